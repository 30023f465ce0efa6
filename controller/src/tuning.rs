//! The settings that may change while a pipeline runs.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use lockgate_core::QueueLimits;

/// What to do about a reader that does not answer. It is reported either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStall {
    /// Wait for it.
    #[default]
    Wait,
    /// Stop the pipeline.
    Stop,
}

/// How a pipeline is run, as far as that may change while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
    /// A step is cut when this many records are buffered.
    pub min_batch_records: u64,
    /// A step is cut at the latest this long after its first record was buffered.
    pub max_buffering_delay: Duration,
    /// Each input gives at most this many records to one step.
    pub max_batch_records: usize,
    /// A reader that has not answered for this long is stalled.
    pub stall_timeout: Duration,
    /// What to do then.
    pub on_stall: OnStall,
    /// How long an orderly stop may take.
    pub shutdown_timeout: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            checkpoint_interval: Duration::from_secs(10),
            min_batch_records: 5_000,
            max_buffering_delay: Duration::from_millis(5),
            max_batch_records: 100_000,
            stall_timeout: Duration::from_secs(60),
            on_stall: OnStall::default(),
            shutdown_timeout: Duration::from_secs(30),
        }
    }
}

/// How an input is read, as far as that may change while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputTuning {
    /// How much its reader may hold.
    pub limits: QueueLimits,
    /// How many records of each partition may be pending, for readers that bound partitions one by one.
    pub max_pending_records: Option<NonZeroU32>,
    /// How many of its records enter steps in a second, over any longer time; `None` for as many as come.
    pub max_records_per_second: Option<NonZeroU64>,
}

impl Default for InputTuning {
    fn default() -> Self {
        let limits = QueueLimits { max_queued_records: 1_000_000, max_queued_bytes: 16 << 20 };
        Self { limits, max_pending_records: None, max_records_per_second: None }
    }
}

/// How many bytes the reader may hold that may hold most. What is in flight may be as much.
pub(crate) fn largest_queue_bytes<'a>(inputs: impl IntoIterator<Item = &'a InputTuning>) -> u64 {
    let bytes = inputs.into_iter().map(|tuning| tuning.limits.max_queued_bytes);
    bytes.max().unwrap_or_default()
}

/// Everything that may change while a pipeline runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reload {
    /// Of the pipeline.
    pub tuning: Tuning,
    /// Of each input, in their order.
    pub inputs: Vec<InputTuning>,
}
