//! What people who watch may see of an input while it runs.

use std::sync::Arc;

use crate::record::Partition;

/// Where an input stands in one part of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// The part.
    pub partition: Arc<Partition>,
    /// The first offset that no step has.
    pub position: u64,
    /// Where the part ends as far as is known: the first offset that does not exist yet, or the file's length.
    pub end: Option<u64>,
}

impl PartitionStatus {
    /// How much is between the position and the end: offsets, or bytes of a file.
    pub fn lag(&self) -> Option<u64> {
        self.end.map(|end| end.saturating_sub(self.position))
    }
}

/// Looks at a running input, from any thread, also when its reader is gone.
pub trait InputWatch: Send + Sync {
    /// What the input reads at the moment, in the order of the partitions. Must not wait for the source.
    fn partitions(&self) -> Vec<PartitionStatus>;
}
