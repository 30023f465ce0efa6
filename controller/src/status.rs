//! What a run looks like at one moment.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use lockgate_core::{BufferSize, QueueLimits};

use crate::histogram::Histogram;
use crate::sequence::{CheckpointStage, PauseReason};

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
    /// How many steps the journal had when this run started: all of them are replayed.
    pub steps_to_replay: u64,
    /// Steps that exist and are not written yet.
    pub steps_in_flight: usize,
    /// The last step that a checkpoint covers.
    pub checkpointed_step: u64,
    /// Checkpoints since the start of this run.
    pub checkpoints: u64,
    /// The last checkpoint, and the one under way.
    pub checkpoint: CheckpointStatus,
    /// The journal since the last checkpoint.
    pub journal: JournalStatus,
    /// How long steps take, by what is done with them.
    pub durations: StepDurations,
    /// Whether changed settings wait until what was read under the old ones has been handed over.
    pub reloading: bool,
    /// How often changed settings took effect.
    pub reloads: u64,
    /// Time since the start of this run.
    pub elapsed: Duration,
    /// Why inputs are paused, while a disk is full.
    pub blocked: Option<String>,
    /// The inputs, in their order.
    pub inputs: Vec<InputStatus>,
    /// The outputs, in their order.
    pub outputs: Vec<OutputStatus>,
}

/// Checkpoints at one moment.
#[derive(Clone, Debug)]
pub struct CheckpointStatus {
    /// How far the one under way is.
    pub stage: CheckpointStage,
    /// The last ones, the latest at the end. Before the first of this run it is that of an earlier one; there are none
    /// where nothing is stored.
    pub recent: VecDeque<CheckpointSummary>,
}

/// A checkpoint that was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointSummary {
    /// The last step it covers.
    pub step: u64,
    /// When it was stored.
    pub stored_at: SystemTime,
    /// How long it took, from the wish for it to the last thing that must follow; `None` for that of an earlier run.
    pub took: Option<Duration>,
    /// The bytes of the circuit's state and of all positions; `None` for that of an earlier run.
    pub bytes: Option<u64>,
}

/// So many checkpoints are remembered.
const RECENT: usize = 10;

impl CheckpointStatus {
    pub(crate) fn new(last: Option<CheckpointSummary>) -> Self {
        Self { stage: CheckpointStage::Idle, recent: last.into_iter().collect() }
    }

    pub(crate) fn stored(&mut self, checkpoint: CheckpointSummary) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(checkpoint);
    }
}

impl Default for CheckpointStatus {
    fn default() -> Self {
        Self::new(None)
    }
}

/// The journal at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStatus {
    /// Its steps.
    pub steps: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How long steps take, since the start of this run.
#[derive(Clone, Debug, Default)]
pub struct StepDurations {
    /// From asking the inputs to the last answer.
    pub queue: Histogram,
    /// From the last answer to being durable in the journal; hashing is in it.
    pub journal: Histogram,
    /// From the last answer to the circuit's being done; hashing is in it.
    pub circuit: Histogram,
    /// From being safe to show to having been taken by all outputs.
    pub output: Histogram,
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
    /// What its reader may hold.
    pub limits: QueueLimits,
    /// Whether it has reached the end of its input.
    pub ended: bool,
    /// Whether it stands where no checkpoint can be taken.
    pub at_barrier: bool,
    /// Whether its reader has been silent for longer than the stall timeout.
    pub stalled: bool,
    /// For how long it has been stalled in this run, all times together.
    pub stalled_for: Duration,
    /// Why it is paused.
    pub paused: Vec<PauseReason>,
    /// How often each stated policy was applied.
    pub policies: BTreeMap<&'static str, u64>,
    /// How many errors of each kind its reader reported.
    pub errors: BTreeMap<&'static str, u64>,
    /// The last of them.
    pub last_error: Option<String>,
    /// From a record's arrival to its step's having been taken by all outputs, one for each record.
    pub latency: Histogram,
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
    /// How often something did not work and was tried again.
    pub retries: u64,
    /// How often each stated policy was applied.
    pub policies: BTreeMap<&'static str, u64>,
}
