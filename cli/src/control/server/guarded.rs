//! A connection whose other end must take what it is given.

use std::future::Future;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Whoever takes nothing for so long has gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// A stream whose writing fails when nothing is taken for too long. Reading waits as long as it likes.
pub(super) struct Guarded<S> {
    stream: S,
    stuck: Option<Pin<Box<Sleep>>>,
    patience: Duration,
}

impl<S> Guarded<S> {
    pub(super) fn new(stream: S) -> Self {
        Self::with_patience(stream, PATIENCE)
    }

    fn with_patience(stream: S, patience: Duration) -> Self {
        Self { stream, stuck: None, patience }
    }

    /// Hands on what came of writing, or fails when that has been nothing for too long.
    fn watch<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<Result<T>>) -> Poll<Result<T>> {
        if outcome.is_ready() {
            self.stuck = None;
            return outcome;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the other end takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test]
    async fn whoever_takes_nothing_is_left() {
        let (ours, theirs) = duplex(10);
        let mut guarded = Guarded::with_patience(ours, Duration::from_millis(20));
        let error = guarded.write_all(&[0; 11]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(theirs);
    }

    #[tokio::test]
    async fn whoever_takes_something_is_not() {
        let (ours, mut theirs) = duplex(10);
        let mut guarded = Guarded::with_patience(ours, Duration::from_secs(60));
        let take = async {
            let mut taken = Vec::new();
            theirs.read_to_end(&mut taken).await.unwrap();
            taken.len()
        };
        let give = async {
            guarded.write_all(&[0; 1000]).await.unwrap();
            guarded.shutdown().await.unwrap();
            drop(guarded);
        };
        assert_eq!(tokio::join!(take, give).0, 1000);
    }
}
