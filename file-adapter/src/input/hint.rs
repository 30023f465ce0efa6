//! Many changes on the disk before the next look are one.

use crate::sync::atomic::{AtomicBool, Ordering};

/// Set from the first change to the next look.
#[derive(Default)]
pub(super) struct Hint(AtomicBool);

impl Hint {
    /// Something has changed. Whether the reader is to be told: not if it was told and has not looked since.
    pub(super) fn changed(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// A look is about to be taken: changes from now on are told.
    pub(super) fn looking(&self) {
        self.0.store(false, Ordering::Release);
    }
}
