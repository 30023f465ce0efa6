//! What the partition contexts ask for, and what they are given.

/// A partition as its adapter numbers it, from 0 without gaps: memory follows the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId(pub u32);

/// Records of one partition that were taken together. To be given back, whole or in parts and in any order,
/// when they are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tickets {
    pub(super) partition: PartitionId,
    pub(super) epoch: u64,
    pub(super) first: u64,
    pub(super) len: u64,
}

impl Tickets {
    /// The partition of the records.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    /// The epoch in which they were taken: a new one begins with each assignment and each seek.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the tickets of the first `n` records out (all of them if there are fewer); `self` keeps the rest.
    #[must_use]
    pub fn take_front(&mut self, n: u64) -> Tickets {
        let front = Tickets { len: n.min(self.len), ..*self };
        self.first += front.len;
        self.len -= front.len;
        front
    }
}

/// What the adapter has to do, in the order in which it is given out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ContextAction {
    /// Start to read these partitions, each paused or not as it says, whatever it was before.
    Assign(Vec<Assigned>),
    /// Give these partitions up: that answers the revoke, or takes note that they were lost.
    Unassign(Vec<PartitionId>),
    /// Take no more records of these partitions for now.
    Pause(Vec<PartitionId>),
    /// Take records of these partitions again.
    Resume(Vec<PartitionId>),
    /// The properties requested last are in force: nothing is pending that was read under others.
    Reload,
    /// Commit; to be answered by [`commit_answered`](super::PartitionContexts::commit_answered).
    Commit(Vec<Commit>),
}

/// A partition that became ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Assigned {
    /// The partition.
    pub partition: PartitionId,
    /// The epoch that begins.
    pub epoch: u64,
    /// Whether it is paused: it came back with as many records pending as it may have.
    pub paused: bool,
}

/// An offset to commit: every record of the epoch below it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Commit {
    /// The partition.
    pub partition: PartitionId,
    /// The epoch in which the records were taken.
    pub epoch: u64,
    /// Where another reader would go on.
    pub offset: u64,
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitOutcome {
    /// It is stored.
    Done,
    /// It may or may not be stored; it is tried again with the next turn.
    Failed,
    /// The group does not take it from this member now (its generation is over). It is tried again after the
    /// next rebalance, if the partition is still ours then.
    Refused,
}

/// Why records were not taken. None of them was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The partition is not ours, or is being revoked: the records belong to whoever gets it next.
    #[error("partition {}: {offered} records were offered, but it is not assigned", partition.0)]
    NotAssigned {
        /// The partition.
        partition: PartitionId,
        /// How many records were offered.
        offered: usize,
    },
    /// More than [`room`](super::PartitionContexts::room) had said.
    #[error("partition {}: {offered} records were offered where {room} may be taken", partition.0)]
    NoRoom {
        /// The partition.
        partition: PartitionId,
        /// How many records were offered.
        offered: usize,
        /// How many may be taken.
        room: usize,
    },
    /// An offset is not above the one before it, and no seek was announced.
    #[error(
        "partition {}: offset {offset} came where {least} or more was expected; somebody moved the position \
         back: announce it as a seek, or refuse it",
        partition.0
    )]
    Regression {
        /// The partition.
        partition: PartitionId,
        /// The offset that came.
        offset: u64,
        /// The lowest that may come.
        least: u64,
    },
}
