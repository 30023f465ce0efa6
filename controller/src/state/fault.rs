//! Faults of the state directory that are put in on purpose, to show that a simulation would find them.
//!
//! Without debug assertions none has an effect, and nothing of them is left in the program.

use super::State;

/// A deliberate fault.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateFault {
    /// What is stored is not on the disk when that is said.
    NotSynced,
    /// Steps count as journaled that were not written.
    AnsweredEarly,
    /// The journal is trimmed before the checkpoint that covers it is stored.
    TrimmedApart,
    /// A step behind the checkpoint is trimmed, too.
    TrimmedTooFar,
}

impl State {
    /// This state with a fault in it.
    pub(crate) fn with_fault(mut self, fault: StateFault) -> Self {
        self.fault = Some(fault);
        if self.has(StateFault::NotSynced) {
            let _ = self.database.pragma_update(None, "synchronous", "OFF");
        }
        self
    }

    /// Whether the fault was put in.
    pub(super) fn has(&self, fault: StateFault) -> bool {
        cfg!(debug_assertions) && self.fault == Some(fault)
    }
}
