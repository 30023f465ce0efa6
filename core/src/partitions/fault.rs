//! Deliberate faults, so that the checkers can be shown to find them.
//!
//! Without debug assertions none has an effect, and nothing of them is left in the program.

use super::PartitionContexts;

/// A deliberate fault of [`PartitionContexts`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartitionFault {
    /// A partition counts as full when it is above its limit, not when it has reached it.
    FullAboveTheLimit,
    /// A revoke leaves the partition as it was.
    RevokedNotMarked,
    /// A reload does not wait for partitions that are being revoked.
    ReloadForgetsRevoking,
    /// A reload makes a partition ours again that is being revoked.
    ReloadRevivesRevoking,
    /// Partitions resume although a reload is requested.
    ResumesDuringReload,
    /// A second reload during the first is forgotten.
    SecondReloadForgotten,
    /// The watermark passes an incomplete record.
    WatermarkPassesIncomplete,
    /// A completion counts although its epoch is over.
    LateCompletionCounts,
    /// A paused partition that comes back is started without being resumed.
    AssignedAsRunning,
    /// A partition that is being revoked is paused like any other.
    PausesRevoking,
    /// A lost partition is committed.
    CommitsLost,
    /// A commit that failed is not tried again.
    FailedCommitForgotten,
    /// What a partition had pending before it came back is not counted.
    EndedNotCounted,
    /// A revoke waits for its records without end.
    RevokeWaitsForEver,
    /// A paused partition resumes when it is empty, not when it is below its limit.
    ResumesWhenEmpty,
}

impl PartitionFault {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::FullAboveTheLimit,
        Self::RevokedNotMarked,
        Self::ReloadForgetsRevoking,
        Self::ReloadRevivesRevoking,
        Self::ResumesDuringReload,
        Self::SecondReloadForgotten,
        Self::WatermarkPassesIncomplete,
        Self::LateCompletionCounts,
        Self::AssignedAsRunning,
        Self::PausesRevoking,
        Self::CommitsLost,
        Self::FailedCommitForgotten,
        Self::EndedNotCounted,
        Self::RevokeWaitsForEver,
        Self::ResumesWhenEmpty,
    ];
}

impl PartitionContexts {
    /// These contexts with a fault in them.
    #[doc(hidden)]
    #[must_use]
    pub fn with_fault(mut self, fault: PartitionFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Whether the fault was put in.
    #[inline]
    pub(super) fn has(&self, fault: PartitionFault) -> bool {
        cfg!(debug_assertions) && self.fault == Some(fault)
    }
}
