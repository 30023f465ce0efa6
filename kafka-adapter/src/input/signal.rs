//! Says that something has come into the queue of a partition, which is told only when it was empty before.

use std::collections::BTreeSet;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};
use crate::waker::Waker;

/// The places of the partitions whose signals were raised since somebody looked: nobody has to look at all of them.
#[derive(Clone, Default)]
pub(super) struct Raised(Arc<Mutex<BTreeSet<usize>>>);

impl Raised {
    fn insert(&self, place: usize) {
        self.places(|places| {
            places.insert(place);
        });
    }

    /// Takes them out.
    pub(super) fn take(&self) -> BTreeSet<usize> {
        self.places(std::mem::take)
    }

    fn places<T>(&self, with: impl FnOnce(&mut BTreeSet<usize>) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Raised when the queue of a partition is no longer empty.
pub(super) struct Signal {
    is_raised: AtomicBool,
    place: usize,
    raised: Raised,
    waker: Waker,
}

impl Signal {
    /// That of the partition at `place`. It is raised: something may have come before.
    pub(super) fn new(place: usize, raised: Raised, waker: Waker) -> Self {
        raised.insert(place);
        Self { is_raised: AtomicBool::new(true), place, raised, waker }
    }

    /// For whoever has put something into the empty queue.
    pub(super) fn raise(&self) {
        if !self.is_raised.swap(true, Ordering::AcqRel) {
            self.raised.insert(self.place);
            self.waker.wake();
        }
    }

    /// Whether something may have come since the queue was found empty.
    pub(super) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Acquire)
    }

    /// To be called before the queue is emptied: what comes while that is done is looked for once more.
    pub(super) fn lower(&self) {
        self.is_raised.store(false, Ordering::Release);
    }

    /// The queue was not emptied, so nobody will tell of it: it is to be looked at again.
    pub(super) fn keep_raised(&self) {
        self.is_raised.store(true, Ordering::Release);
        self.raised.insert(self.place);
    }
}
