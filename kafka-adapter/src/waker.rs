//! Wakes the thread of a reader, whoever has something for it.

use std::sync::OnceLock;

use crate::sync::atomic::{Ordering, fence};
use crate::sync::{Arc, Thread, current};

/// Wakes the thread of a reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waker(Arc<OnceLock<Thread>>);

impl Waker {
    /// This thread is the one to wake. To be called before it looks for the first time.
    pub(crate) fn wakes_this_thread(&self) {
        // Nobody else sets it.
        let _ = self.0.set(current());
        // With the one below: whoever does not see the thread yet has left what it will see.
        fence(Ordering::SeqCst);
    }

    /// Wakes it, or its next sleep at once. To be called after leaving what it is to find; nothing is lost before it has
    /// begun, because it looks before it sleeps.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}
