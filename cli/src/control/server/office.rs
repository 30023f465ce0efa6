//! What those who answer requests share.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::StatusCode;
use lockgate_controller::{Handle, Phase};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::answer::Refusal;
use super::guard::Guard;
use super::health::Pulse;
use super::pace::Pace;
use super::page::Page;
use crate::control::Board;

/// So many connections at most; the next ones wait to be accepted.
pub(super) const MAX_CONNECTIONS: usize = 128;
/// So many requests a second from all clients together,
const REQUESTS_PER_SECOND: u32 = 100;
/// and so many at once.
const REQUESTS_AT_ONCE: u32 = 50;
/// What was rendered is as good for so long.
const FRESH: Duration = Duration::from_millis(100);
/// How long requests that wait have for their answer when the server is stopped: the run has ended then.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What those who answer requests share.
pub(super) struct Office {
    pub(super) board: Arc<Board>,
    pub(super) guard: Guard,
    pub(super) page: Page,
    pub(super) pulse: Pulse,
    /// One for each connection that there may be.
    pub(super) seats: Arc<Semaphore>,
    /// Whether the server is being stopped.
    pub(super) closing: watch::Receiver<bool>,
    pub(super) status: Rendered,
    pub(super) metrics: Rendered,
    /// One for each input, and one for all of them.
    pub(super) partitions: Vec<Rendered>,
    started: Instant,
    pace: Mutex<Pace>,
}

impl Office {
    pub(super) fn new(board: Arc<Board>, guard: Guard, closing: watch::Receiver<bool>) -> Self {
        let partitions = (0..=board.facts.inputs.len()).map(|_| Rendered::default()).collect();
        Self {
            board,
            guard,
            page: Page::new(),
            pulse: Pulse::default(),
            seats: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            closing,
            status: Rendered::default(),
            metrics: Rendered::default(),
            partitions,
            started: Instant::now(),
            pace: Mutex::new(Pace::new(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE)),
        }
    }

    /// The time since the server was started.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long a request has to wait for the sake of all others.
    pub(super) fn delay(&self) -> Duration {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).delay(self.now())
    }

    /// Whether all connections are taken, so that clients should not keep theirs.
    pub(super) fn is_crowded(&self) -> bool {
        self.seats.available_permits() == 0
    }

    /// The run.
    ///
    /// # Errors
    /// While the pipeline is being opened.
    pub(super) fn run(&self) -> Result<Handle, Refusal> {
        self.board.run().ok_or_else(|| {
            let error = "the pipeline is being opened; ask again when /readyz says that it reads";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)
        })
    }

    /// Waits until the server is stopped.
    pub(super) async fn closed(&self) {
        let mut closing = self.closing.clone();
        // Whoever could say so has gone: that is the same.
        let _ = closing.wait_for(|closing| *closing).await;
    }

    /// What comes of asking `run`; nothing if it has ended, or the server is stopped, before.
    pub(super) async fn wait_for<T>(
        &self,
        run: &Handle,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        let mut status = run.status().clone();
        let mut answer = pin!(self.wait(answer));
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            _ = status.wait_for(|status| status.phase == Phase::Ended) => {}
        }
        // A run that has ended may still have answered.
        timeout(LAST_WORDS, answer).await.ok().flatten()
    }

    /// What comes of `answer`; nothing if the server is stopped before.
    pub(super) async fn wait<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = pin!(answer);
        let answer = tokio::select! {
            biased;
            answer = &mut answer => Some(answer),
            () = self.closed() => timeout(LAST_WORDS, answer).await.ok(),
        };
        self.forget();
        answer
    }

    /// Whoever asks next sees what has just been done.
    fn forget(&self) {
        let rendered = [&self.status, &self.metrics].into_iter().chain(&self.partitions);
        rendered.for_each(Rendered::forget);
    }
}

/// An answer that is the same for all who ask within a moment.
#[derive(Default)]
pub(super) struct Rendered(Mutex<Option<(Instant, Bytes)>>);

impl Rendered {
    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The answer, made by `render` if the last one is too old.
    pub(super) fn get(&self, render: impl FnOnce() -> Vec<u8>) -> Bytes {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, answer)) = &*last
            && made.elapsed() < FRESH
        {
            return answer.clone();
        }
        let answer = Bytes::from(render());
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}
