//! Says that something has come into the queue of a partition, which is told only when it was empty before.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::waker::Waker;

/// Raised when the queue of a partition is no longer empty.
pub(super) struct Signal {
    raised: AtomicBool,
    waker: Waker,
}

impl Signal {
    /// One that is raised: something may have come before.
    pub(super) fn new(waker: Waker) -> Self {
        Self { raised: AtomicBool::new(true), waker }
    }

    /// For whoever has put something into the empty queue.
    pub(super) fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Whether something may have come since the queue was found empty.
    pub(super) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// To be called before the queue is emptied: what comes while that is done is looked for once more.
    pub(super) fn lower(&self) {
        self.raised.store(false, Ordering::Release);
    }

    /// The queue was not emptied, so nobody will tell of it: it is to be looked at again.
    pub(super) fn keep_raised(&self) {
        self.raised.store(true, Ordering::Release);
    }
}
