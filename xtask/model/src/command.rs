//! The command protocol: the shipped sequencing machine against everything that two readers, the threads
//! around it, the disk, people and crashes may do.
//!
//! Each thing that may happen next is one action, and the machine is told of it at once. That loses nothing:
//! what is late is not the news but the doing, and every reader and every thread has a queue of what it was
//! told to do and comes to it whenever it likes.
//!
//! What must happen sooner or later (a command is looked at, a step is worked on) is told apart from what may
//! never happen (another record, the end of the input, a crash). Where nothing of the first kind is left, the
//! run has come to rest, and nothing may be waiting. Every action uses something up that does not come back,
//! so every way ends, and "at rest" says all there is to say about waiting for ever.
//!
//! Not here: the machine's own code (`lockgate_controller::Sequence`), which is explored as it is.

mod action;
mod breach;
mod disk;
mod follow;
mod happen;
mod perform;
mod reader;
mod rest;
mod sound;
mod source;
mod state;
mod threads;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lockgate_controller::{OnStall, SequenceFault, SequenceSettings, Tuning};
use lockgate_core::FaultTolerance;
use stateright::{Model, Property};

pub use action::CommandAction;
pub use breach::Breach;
pub use sound::{Defect, check_ends, check_shape};
use source::Source;
pub use state::CommandState;

/// What the readers have, and how much may go wrong.
#[derive(Clone, Debug)]
pub struct CommandModel {
    /// What the readers promise.
    level: FaultTolerance,
    /// How many records each of the two sources has.
    records: [u8; 2],
    /// How many disturbances one run may see: crashes, requests of people, full disks, failures, delays.
    disturbances: u8,
    /// A step is cut at once when so many records are buffered, and late for fewer.
    min_batch_records: u64,
    /// Whether a reader that is silent for too long ends the run.
    stop_on_stall: bool,
    /// What is wrong with the machine, on purpose.
    fault: Option<SequenceFault>,
    sources: Arc<[Source; 2]>,
}

/// Records in one answer at most.
const MAX_BATCH_RECORDS: u8 = 2;

const SECOND: Duration = Duration::from_secs(1);

impl CommandModel {
    /// Two readers with so many records, and so many disturbances.
    pub fn new(level: FaultTolerance, records: [u8; 2], disturbances: u8) -> Self {
        Self {
            level,
            records,
            disturbances,
            min_batch_records: 1,
            stop_on_stall: false,
            fault: None,
            sources: Arc::new([Source::new(0, records[0]), Source::new(1, records[1])]),
        }
    }

    /// The same with steps that wait for more records, and a run that ends when a reader is silent.
    #[must_use]
    pub fn with_waiting_steps(mut self) -> Self {
        (self.min_batch_records, self.stop_on_stall) = (2, true);
        self
    }

    /// The same with `fault` in the machine.
    #[must_use]
    pub fn with_fault(mut self, fault: SequenceFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Far apart, so that what is due next is never a matter of sums.
    fn settings(&self) -> SequenceSettings {
        let on_stall = if self.stop_on_stall { OnStall::Stop } else { OnStall::Wait };
        let tuning = Tuning {
            checkpoint_interval: 10 * SECOND,
            min_batch_records: self.min_batch_records,
            max_buffering_delay: SECOND,
            stall_timeout: 100 * SECOND,
            on_stall,
            shutdown_timeout: 1000 * SECOND,
            ..Tuning::default()
        };
        SequenceSettings { level: self.level, tuning, max_bytes_in_flight: 1 }
    }
}

/// The models that are explored, each with its name: those of every test run, or the large ones.
pub fn command_models(full: bool) -> Vec<(String, CommandModel)> {
    use FaultTolerance::{AtLeastOnce, ExactlyOnce};
    // What the readers promise, what they have, and how many disturbances.
    let sizes: &[(FaultTolerance, [u8; 2], u8)] = if full {
        &[
            (ExactlyOnce, [2, 1], 2),
            (ExactlyOnce, [2, 2], 1),
            (ExactlyOnce, [1, 1], 3),
            (AtLeastOnce, [2, 1], 1),
            (AtLeastOnce, [1, 1], 2),
            (AtLeastOnce, [2, 0], 3),
        ]
    } else {
        &[(ExactlyOnce, [2, 1], 1), (AtLeastOnce, [1, 1], 1), (AtLeastOnce, [2, 0], 1)]
    };
    let mut models = Vec::new();
    for (level, records, disturbances) in sizes {
        let model = CommandModel::new(*level, *records, *disturbances);
        models.push((model.to_string(), model));
    }
    for level in [ExactlyOnce, AtLeastOnce] {
        let records = if full { [2, 1] } else { [1, 1] };
        let model = CommandModel::new(level, records, 1).with_waiting_steps();
        models.push((model.to_string(), model));
    }
    models
}

/// Its name.
impl fmt::Display for CommandModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            FaultTolerance::None => "no promise",
            FaultTolerance::AtLeastOnce => "at least once",
            FaultTolerance::ExactlyOnce => "exactly once",
        };
        let [first, second] = self.records;
        write!(f, "{level}, {first}+{second} records")?;
        match self.disturbances {
            1 => write!(f, ", 1 disturbance")?,
            disturbances => write!(f, ", {disturbances} disturbances")?,
        }
        if self.min_batch_records > 1 {
            write!(f, ", steps of {}", self.min_batch_records)?;
        }
        Ok(())
    }
}

impl Model for CommandModel {
    type State = CommandState;
    type Action = CommandAction;

    fn init_states(&self) -> Vec<CommandState> {
        vec![CommandState::new(self)]
    }

    fn actions(&self, state: &CommandState, actions: &mut Vec<CommandAction>) {
        state.actions(self, actions);
    }

    fn next_state(&self, last: &CommandState, action: CommandAction) -> Option<CommandState> {
        Some(last.after(self, action))
    }

    fn format_action(&self, action: &CommandAction) -> String {
        action.to_string()
    }

    fn properties(&self) -> Vec<Property<Self>> {
        breach::properties()
    }
}
