//! What a run looks like at one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::BufferSize;

use crate::sequence::PauseReason;

/// What a run is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Giving the steps since the last checkpoint again.
    #[default]
    Replaying,
    /// Reading.
    Running,
    /// Finishing what is under way.
    Stopping,
    /// Nothing more comes.
    Ended,
}

/// A run at one moment.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// What it is doing.
    pub phase: Phase,
    /// The last step that exists.
    pub step: u64,
    /// Steps since the start of this run, replayed ones included.
    pub steps: u64,
    /// Those of them that were replayed.
    pub replayed_steps: u64,
    /// The last step that a checkpoint covers.
    pub checkpointed_step: u64,
    /// Checkpoints since the start of this run.
    pub checkpoints: u64,
    /// Time since the start of this run.
    pub elapsed: Duration,
    /// Why inputs are paused, while a disk is full.
    pub blocked: Option<String>,
    /// The inputs, in their order.
    pub inputs: Vec<InputStatus>,
    /// The outputs, in their order.
    pub outputs: Vec<OutputStatus>,
}

/// An input at one moment.
#[derive(Clone, Debug, Default)]
pub struct InputStatus {
    /// Its name.
    pub name: String,
    /// Records in steps since the start of this run.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What its reader holds.
    pub held: BufferSize,
    /// Whether it has reached the end of its input.
    pub ended: bool,
    /// Whether it stands where no checkpoint can be taken.
    pub at_barrier: bool,
    /// Whether its reader has been silent for longer than the stall timeout.
    pub stalled: bool,
    /// Why it is paused.
    pub paused: Vec<PauseReason>,
    /// How often each stated policy was applied.
    pub policies: BTreeMap<&'static str, u64>,
}

/// An output at one moment.
#[derive(Clone, Debug, Default)]
pub struct OutputStatus {
    /// Its name.
    pub name: String,
    /// Records taken since the start of this run.
    pub records: u64,
    /// Their bytes, as they came in.
    pub bytes: u64,
    /// What does not work at the moment and is tried again.
    pub trouble: Option<String>,
    /// How often each stated policy was applied.
    pub policies: BTreeMap<&'static str, u64>,
}
