//! Decides which command goes to which reader when, and makes every step durable before it is seen.
//!
//! The decisions are a pure state machine ([`Sequence`]: events in, actions out). A thin driver
//! ([`Controller`]) performs the actions with three kinds of threads: the readers' own, one for the
//! state directory, one for the circuit and the outputs.

mod alarm;
mod consumer;
mod driver;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod handle;
mod histogram;
mod host;
mod journal;
mod lock;
mod pipeline;
mod recorder;
mod script;
mod sequence;
mod space;
mod state;
mod status;
mod tap;
mod timing;
mod tuning;
mod worker;

pub use driver::Controller;
pub use error::Error;
pub use handle::{Handle, SteerError};
pub use histogram::Histogram;
pub use host::{Host, HostFault, Task, Threads};
pub use pipeline::{Delivery, Input, NamedOutput, Pipeline, Settings};
pub use recorder::Recorder;
pub use script::Script;
pub use sequence::{
    Action, Answer, Checkpoint, CheckpointStage, Event, Failure, JournalPart, JournaledStep,
    Notice, Outcome, PauseReason, Sequence, SequenceFault, SequenceInput, SequenceSettings, Ticket,
};
pub use state::{
    ChangeClass, Inspection, NamedPart, NamedStep, Owner, Setting, State, StateError, StateFault,
    StoredCheckpoint,
};
pub use status::{
    CheckpointStatus, CheckpointSummary, InputStatus, JournalStatus, OutputStatus, Phase, Status,
    StepDurations,
};
pub use tap::{Tap, TapError, Tapped};
pub use tuning::{InputTuning, OnStall, Reload, Tuning};
