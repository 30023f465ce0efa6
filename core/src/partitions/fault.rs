//! Deliberate faults, so that the checkers can be shown to find them.
//!
//! They exist in builds with debug assertions only; in all others [`Seeded::is`] is `false` for the compiler.

/// A deliberate fault of [`PartitionContexts`](super::PartitionContexts).
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

/// The fault of one machine, if it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Seeded {
    #[cfg(debug_assertions)]
    fault: Option<PartitionFault>,
}

impl Seeded {
    #[cfg(debug_assertions)]
    pub(super) fn with(fault: PartitionFault) -> Self {
        Self { fault: Some(fault) }
    }

    #[cfg(debug_assertions)]
    pub(super) fn is(self, fault: PartitionFault) -> bool {
        self.fault == Some(fault)
    }

    #[cfg(not(debug_assertions))]
    pub(super) fn is(self, _: PartitionFault) -> bool {
        false
    }
}
