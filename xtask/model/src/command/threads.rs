//! The thread of circuit and outputs and the one of the state directory: each comes to its work in order.

use std::collections::VecDeque;

use super::source::Content;

/// What the thread of circuit and outputs was given to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Let the circuit work on a step.
    Step(u64, Content),
    /// Write a step.
    Write(u64),
    /// Close what is held open.
    Finish,
    /// Get ready for a checkpoint.
    Prepare,
    /// Do what follows a checkpoint.
    Complete,
}

/// The thread of circuit and outputs.
#[derive(Clone, Debug, Default)]
pub(super) struct Worker {
    pub(super) work: VecDeque<Work>,
    /// Whether the step at the front has been hashed.
    pub(super) hashed: bool,
    /// Worked on and not written.
    pub(super) stepped: VecDeque<(u64, Content)>,
    /// Whether it waits for space on its disk.
    pub(super) full: bool,
}

impl Worker {
    /// Whether the next work needs space on a disk.
    pub(super) fn can_be_full(&self) -> bool {
        !self.full && self.work.front().is_some_and(|work| !matches!(work, Work::Step(..)))
    }
}

/// What the thread of the state directory was given to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keeping {
    /// Read the journal.
    Load {
        /// From the step after this.
        after: u64,
    },
    /// Make a step durable.
    Journal(u64, Content),
    /// Store a checkpoint.
    Store {
        /// The last step that it covers.
        step: u64,
        /// The readers' positions.
        seeks: [u8; 2],
        /// The outputs' position.
        written: [u8; 2],
    },
}

/// The thread of the state directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Keeper {
    pub(super) work: VecDeque<Keeping>,
    /// Whether it waits for space on its disk.
    pub(super) full: bool,
}

impl Keeper {
    /// Whether the next work needs space on a disk.
    pub(super) fn can_be_full(&self) -> bool {
        !self.full && self.work.front().is_some_and(|work| !matches!(work, Keeping::Load { .. }))
    }

    /// The steps that wait together for the journal.
    pub(super) fn entries(&self) -> impl Iterator<Item = u64> {
        self.work.iter().map_while(|work| match work {
            Keeping::Journal(step, _) => Some(*step),
            Keeping::Load { .. } | Keeping::Store { .. } => None,
        })
    }
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Thread {
    /// The one of circuit and outputs.
    Outputs,
    /// The one of the state directory.
    State,
}
