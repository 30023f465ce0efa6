//! What SIGTERM and SIGINT wish for.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failed;

/// Signals within this time are one.
const TOGETHER: Duration = Duration::from_millis(300);

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// An end in order.
    Stop,
    /// An end at once, whatever hangs.
    EndAtOnce,
}

/// The signals that the process gets from now on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    stopping: Option<Instant>,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failed> {
        let listen =
            |kind| signal(kind).map_err(|error| Failed::storage("listening for signals", &error));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            stopping: None,
        })
    }

    /// The next wish. Nothing is lost when this is dropped before there is one.
    pub(crate) async fn wish(&mut self) -> Wish {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
            match self.stopping {
                None => {
                    self.stopping = Some(Instant::now());
                    return Wish::Stop;
                }
                // What comes together (to a process and to its group) is one wish.
                Some(since) if since.elapsed() < TOGETHER => {}
                Some(_) => return Wish::EndAtOnce,
            }
        }
    }

    /// Whether an end has been wished for.
    pub(crate) fn are_stopping(&self) -> bool {
        self.stopping.is_some()
    }
}
