//! One partition's context: what is pending, whether it is paused, how far it is committed.

use std::collections::VecDeque;

use super::window::Window;

/// Whose the partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Ours.
    Assigned,
    /// Ours until the revoke is answered: what was begun may be finished and committed, nothing else.
    Revoking,
    /// Not ours any more; the context goes at the next assign stage, unless the partition comes back there.
    Revoked,
}

/// How the last commit of the current epoch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CommitState {
    Idle,
    InFlight,
    /// Refused for good under this assignment; tried again after the next rebalance.
    Refused,
}

/// No epoch has this number.
const NO_EPOCH: u64 = 0;

/// **Invariant:** only the current window takes records and is committed; the others have ended, by a seek or
/// by a new assignment, and count for as long as their records are in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Context {
    pub(super) standing: Standing,
    pub(super) paused: bool,
    /// Whether it is on the list of contexts to look at.
    pub(super) touched: bool,
    pub(super) commit: CommitState,
    /// The offset sent in the last commit of this epoch that did not fail.
    pub(super) committed: Option<u64>,
    current: Window,
    ended: VecDeque<Window>,
    pending: u64,
}

impl Context {
    pub(super) fn new(epoch: u64) -> Self {
        Self {
            standing: Standing::Assigned,
            paused: false,
            touched: false,
            commit: CommitState::Idle,
            committed: None,
            current: Window::new(epoch),
            ended: VecDeque::new(),
            pending: 0,
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.current.epoch
    }

    /// Records not passed by a watermark, those of epochs that have ended included.
    pub(super) fn pending(&self) -> u64 {
        self.pending
    }

    pub(super) fn end_offset(&self) -> Option<u64> {
        self.current.end_offset()
    }

    pub(super) fn watermark(&self) -> Option<u64> {
        self.current.watermark()
    }

    /// Adds records to the current epoch; the number of the first.
    pub(super) fn add(&mut self, offsets: &[u64]) -> u64 {
        self.pending += offsets.len() as u64;
        self.current.add(offsets)
    }

    /// Marks records as complete; whether they are among those that count.
    pub(super) fn complete(&mut self, epoch: u64, first: u64, len: u64) -> bool {
        let mut windows = std::iter::once(&mut self.current).chain(&mut self.ended);
        let window = windows.find(|window| window.epoch == epoch);
        let counts = window.is_some();
        if let Some(window) = window {
            window.complete(first, len);
        }
        counts
    }

    /// Moves the watermarks; by how many records they moved.
    pub(super) fn pass(&mut self) -> u64 {
        let mut passed = self.current.pass();
        if !self.ended.is_empty() {
            passed += self.ended.iter_mut().map(Window::pass).sum::<u64>();
            self.ended.retain(|window| window.pending() > 0);
        }
        self.pending -= passed;
        passed
    }

    /// Ends the current epoch: what it has pending stays, what follows belongs to `epoch`.
    pub(super) fn begin(&mut self, epoch: u64) {
        let ended = std::mem::replace(&mut self.current, Window::new(epoch));
        if ended.pending() > 0 {
            self.ended.push_back(ended);
        }
        (self.commit, self.committed) = (CommitState::Idle, None);
    }

    /// Forgets everything pending; how many records it was. No epoch is under way then.
    pub(super) fn forget(&mut self) -> u64 {
        self.current = Window::new(NO_EPOCH);
        self.ended.clear();
        std::mem::take(&mut self.pending)
    }

    /// The watermark, if it is above what was committed in this epoch.
    pub(super) fn uncommitted(&self) -> Option<u64> {
        let watermark = self.watermark()?;
        self.committed.is_none_or(|committed| watermark > committed).then_some(watermark)
    }

    /// Whether nothing of a partition that is being revoked is under way.
    pub(super) fn is_settled(&self) -> bool {
        let committed = match self.commit {
            CommitState::Idle => self.uncommitted().is_none(),
            CommitState::InFlight => false,
            CommitState::Refused => true,
        };
        self.pending == 0 && committed
    }

    #[cfg(test)]
    pub(super) fn ended_epochs(&self) -> usize {
        self.ended.len()
    }

    /// For [`PartitionFault`](super::PartitionFault): the first record that is pending counts as complete.
    pub(super) fn complete_unasked(&mut self) {
        self.current.complete_first();
    }
}
