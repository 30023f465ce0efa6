//! What lies between the pipeline and the thread that writes: steps in order, bounded in bytes, and errors on
//! their way back.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use lockgate_core::EndpointError;

use super::window::Queued;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// How many bytes may be queued and in the open transaction together; a single step may be larger.
pub(super) const BUDGET: u64 = 32 << 20;

/// What the thread is to do next.
#[derive(Debug)]
pub(super) enum Next {
    Take(Queued),
    /// Commit what there is: somebody waits for it.
    Flush,
    /// The time has come.
    Due,
    Stop,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Queued>,
    /// Bytes queued and in the open transaction.
    held: u64,
    /// Steps queued and in the open transaction.
    unfinished: usize,
    /// Somebody waits until nothing is unfinished.
    flushes: bool,
    /// Somebody waits for room.
    is_crowded: bool,
    stops: bool,
    /// The thread has ended, or will not write any more.
    is_dead: bool,
    failure: Option<EndpointError>,
}

impl Inner {
    fn check(&mut self) -> Result<(), EndpointError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.is_dead {
            return Err(EndpointError::Unavailable {
                what: "writing to Kafka".into(),
                source: "the output has failed before".into(),
            });
        }
        Ok(())
    }
}

/// Joins the output with its thread.
#[derive(Default)]
pub(super) struct Desk {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for<'a>(&self, inner: MutexGuard<'a, Inner>, most: Duration) -> MutexGuard<'a, Inner> {
        self.changed.wait_timeout(inner, most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Queues a step, as soon as there is room.
    ///
    /// # Errors
    /// What the thread failed with.
    pub(super) fn push(&self, step: Queued) -> Result<(), EndpointError> {
        let bytes = step.bytes();
        let mut inner = self.lock();
        loop {
            inner.check()?;
            if inner.held == 0 || inner.held + bytes <= BUDGET {
                break;
            }
            inner.is_crowded = true;
            self.changed.notify_all();
            inner = self.wait(inner);
        }
        inner.is_crowded = false;
        inner.held += bytes;
        inner.unfinished += 1;
        inner.queue.push_back(step);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until everything queued is committed.
    ///
    /// # Errors
    /// What the thread failed with.
    pub(super) fn flush(&self) -> Result<(), EndpointError> {
        let mut inner = self.lock();
        loop {
            inner.check()?;
            if inner.unfinished == 0 {
                inner.flushes = false;
                return Ok(());
            }
            inner.flushes = true;
            self.changed.notify_all();
            inner = self.wait(inner);
        }
    }

    /// The thread is to end.
    pub(super) fn stop(&self) {
        self.lock().stops = true;
        self.changed.notify_all();
    }

    /// Waits until the thread has ended, but no longer than `most`. Says whether it has.
    pub(super) fn ends_within(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        let mut inner = self.lock();
        while !inner.is_dead {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inner = self.wait_for(inner, left);
        }
        true
    }

    /// For the thread: what is next. Waits for it until `until`.
    pub(super) fn next(&self, until: Instant) -> Next {
        let mut inner = self.lock();
        loop {
            if inner.stops {
                return Next::Stop;
            }
            if let Some(step) = inner.queue.pop_front() {
                return Next::Take(step);
            }
            if (inner.flushes || inner.is_crowded) && inner.unfinished > 0 {
                return Next::Flush;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Due;
            }
            inner = self.wait_for(inner, left);
        }
    }

    /// For the thread: so many steps and bytes are committed.
    pub(super) fn finish(&self, steps: usize, bytes: u64) {
        let mut inner = self.lock();
        inner.unfinished = inner.unfinished.saturating_sub(steps);
        inner.held = inner.held.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// For the thread: whether it is to end.
    pub(super) fn stops(&self) -> bool {
        self.lock().stops
    }

    /// For the thread: waits before another attempt. Says whether it is to end.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut inner = self.lock();
        while !inner.stops {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inner = self.wait_for(inner, left);
        }
        true
    }

    /// For the thread: nothing will be written any more, for this reason.
    pub(super) fn fail(&self, failure: EndpointError) {
        let mut inner = self.lock();
        inner.failure.get_or_insert(failure);
        inner.is_dead = true;
        inner.queue.clear();
        self.changed.notify_all();
    }

    /// For the thread: it ends.
    pub(super) fn end(&self) {
        self.lock().is_dead = true;
        self.changed.notify_all();
    }
}
