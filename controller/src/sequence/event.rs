//! What the sequencing machine is told and what it asks for.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::{
    Batch, BufferSize, EndpointError, InputReaderCommand, PartDigest, Position, ProtocolError,
    Resume, Step,
};
use serde_json::Value as JsonValue;

use super::steer::{Answer, Ticket};
use crate::tuning::{InputTuning, Reload};

/// Everything that can wake the controller.
#[derive(Debug)]
pub enum Event {
    /// Nothing but time has passed.
    Tick,
    /// A reader buffered more.
    Buffered {
        /// The input's number.
        input: usize,
        /// How much more.
        amount: BufferSize,
    },
    /// A reader let go of what it had buffered.
    Discarded {
        /// The input's number.
        input: usize,
        /// How much of it.
        amount: BufferSize,
    },
    /// A reader answered `Replay`.
    Replayed {
        /// The input's number.
        input: usize,
        /// The records of the step.
        batches: Vec<Batch>,
    },
    /// A reader answered `Queue`.
    Extended {
        /// The input's number.
        input: usize,
        /// The records.
        batches: Vec<Batch>,
        /// Where the reader stands after them.
        resume: Resume,
    },
    /// A reader reached the end of its input.
    EndOfInput {
        /// The input's number.
        input: usize,
    },
    /// A reader reported an error.
    InputFailed {
        /// The input's number.
        input: usize,
        /// Whether it gives up.
        fatal: bool,
        /// The error.
        error: EndpointError,
    },
    /// A reader was found closed.
    InputClosed {
        /// The input's number.
        input: usize,
    },
    /// Journaled steps, in order, in answer to [`Action::LoadJournal`]; none means that was all.
    JournalLoaded {
        /// The steps.
        steps: Vec<JournaledStep>,
    },
    /// The parts of the step have these digests, in their order. Comes before [`Event::Stepped`].
    Hashed {
        /// The step.
        step: u64,
        /// One for each part.
        digests: Vec<PartDigest>,
    },
    /// All steps up to this one are durable in the journal.
    Journaled {
        /// The last durable step.
        through: u64,
    },
    /// The circuit has worked on the step.
    Stepped {
        /// The step.
        step: u64,
    },
    /// Every output has taken the step.
    Written {
        /// The step.
        step: u64,
    },
    /// The disk is full: an output or the journal tries again until there is space.
    Blocked {
        /// What waits, and why.
        reason: String,
    },
    /// There is space again.
    Unblocked,
    /// The outputs have closed what they held open for more.
    Finished,
    /// Circuit and outputs are ready for the checkpoint.
    Prepared {
        /// The circuit's state.
        circuit: Vec<u8>,
        /// The outputs' positions, in their order.
        positions: Vec<JsonValue>,
    },
    /// The checkpoint is durable.
    Stored,
    /// The outputs did what must follow the checkpoint.
    Completed,
    /// Circuit, an output or the state directory failed for good.
    Broken {
        /// Why.
        failure: Failure,
    },
    /// Somebody wants this input paused.
    PauseRequested {
        /// The input's number.
        input: usize,
    },
    /// Somebody wants this input to go on.
    ResumeRequested {
        /// The input's number.
        input: usize,
    },
    /// Somebody waits until which inputs people have paused is durable.
    PausesAwaited {
        /// Who.
        ticket: Ticket,
    },
    /// Which inputs people have paused is durable, in answer to [`Action::KeepPauses`].
    PausesKept {
        /// Who waits for it.
        ticket: Ticket,
    },
    /// Somebody wants a checkpoint now.
    CheckpointRequested,
    /// Somebody waits for a checkpoint that covers every step that exists now.
    CheckpointAwaited {
        /// Who.
        ticket: Ticket,
    },
    /// Somebody wants an orderly stop, but only with a checkpoint: without one the pipeline is to run on.
    SuspendRequested {
        /// Who waits for it.
        ticket: Ticket,
    },
    /// Somebody wants other settings.
    ReloadRequested {
        /// All of them.
        reload: Reload,
        /// Who waits for it.
        ticket: Ticket,
    },
    /// Somebody wants an orderly stop: finish the steps under way, take a checkpoint, end.
    StopRequested,
}

/// What the driver has to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send a command to a reader. The protocol allows it.
    Send {
        /// The input's number.
        input: usize,
        /// The command.
        command: InputReaderCommand,
    },
    /// Read journaled steps after this one; answered by [`Event::JournalLoaded`].
    LoadJournal {
        /// The last step that is known.
        after: u64,
    },
    /// Make the step durable; answered by [`Event::Journaled`].
    Journal(JournaledStep),
    /// Hash the step if it is journaled, which is answered by [`Event::Hashed`], and let the circuit work on
    /// it, which is answered by [`Event::Stepped`].
    Step(Step),
    /// Let the outputs write the step; answered by [`Event::Written`].
    Write {
        /// The step.
        step: u64,
    },
    /// Let the outputs close what they hold open; answered by [`Event::Finished`].
    Finish,
    /// Get circuit and outputs ready for a checkpoint; answered by [`Event::Prepared`].
    Prepare,
    /// Store the checkpoint and trim the journal; answered by [`Event::Stored`].
    Store(Checkpoint),
    /// Let the outputs do what must follow; answered by [`Event::Completed`].
    Complete,
    /// From now on the reader is to give at most this many records to a step, and never more than the pipeline's
    /// settings allow.
    LimitBatch {
        /// The input's number.
        input: usize,
        /// How many.
        records: u64,
    },
    /// These settings of the inputs are in force. None that holds anything has other limits than before.
    Reload {
        /// Of each input, in their order.
        inputs: Vec<InputTuning>,
    },
    /// Make durable which inputs people have paused; answered by [`Event::PausesKept`].
    KeepPauses {
        /// The numbers of those that are.
        inputs: Vec<usize>,
        /// Who waits for it.
        ticket: Ticket,
    },
    /// Tell whoever has this ticket.
    Answer {
        /// Who.
        ticket: Ticket,
        /// What.
        answer: Answer,
    },
    /// Tell people.
    Notify(Notice),
    /// Nothing more comes.
    Done(Outcome),
}

/// A step as the journal keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct JournaledStep {
    /// Its number.
    pub step: u64,
    /// What each input gave, in the order of the inputs.
    pub parts: Vec<JournalPart>,
}

/// One input's part of a journaled step.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalPart {
    /// The input's number.
    pub input: usize,
    /// Where the reader stood after the step, as it gave it.
    pub seek: Position,
    /// What the step consists of.
    pub replay: rmpv::Value,
    /// Count and hash of the records.
    pub digest: PartDigest,
}

/// Everything needed to go on after `step`.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The last step it covers.
    pub step: u64,
    /// The circuit's state.
    pub circuit: Vec<u8>,
    /// The inputs' positions, in their order; `None` is the beginning.
    pub seeks: Vec<Option<JsonValue>>,
    /// The outputs' positions, in their order.
    pub positions: Vec<JsonValue>,
}

/// Something people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The journal was replayed; new input follows.
    Replayed {
        /// Number of steps.
        steps: u64,
    },
    /// A reader has not answered for longer than the stall timeout.
    Stalled {
        /// The input's number.
        input: usize,
        /// How long it has been silent.
        silent: Duration,
    },
    /// A stalled reader has answered.
    Answered {
        /// The input's number.
        input: usize,
    },
    /// A reader reported an error and goes on.
    InputError {
        /// The input's number.
        input: usize,
        /// Its kind, see [`EndpointError::kind`].
        kind: &'static str,
        /// The error.
        text: String,
    },
    /// A checkpoint is complete.
    Checkpointed {
        /// The last step it covers.
        step: u64,
        /// How long it took, from the wish for it to the last thing that must follow.
        took: Duration,
    },
    /// A disk is full; inputs are paused.
    Blocked {
        /// What waits, and why.
        reason: String,
    },
    /// There is space again; inputs go on.
    Unblocked,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All input was read and written; the last checkpoint covers it.
    Completed,
    /// Stopped in order; the last checkpoint covers every step of this run. What a stop during a replay left
    /// in the journal is replayed by the next.
    Stopped,
    /// Stopped when the grace time was over; the next start goes on from the last checkpoint.
    StoppedLate,
    /// Something failed. Where that was possible a last checkpoint was taken.
    Failed(Arc<Failure>),
}

impl Outcome {
    pub(super) fn failed(failure: Failure) -> Self {
        Outcome::Failed(Arc::new(failure))
    }
}

/// Why a run failed.
#[derive(Debug)]
pub enum Failure {
    /// A reader failed and said so.
    Input {
        /// The input's number.
        input: usize,
        /// What it said.
        error: EndpointError,
    },
    /// A reader broke the protocol or died.
    Protocol(ProtocolError),
    /// A reader stayed silent, and the policy is to stop then.
    Stalled {
        /// The input's number.
        input: usize,
        /// How long it has been silent.
        silent: Duration,
    },
    /// A replayed step is not the one that was journaled.
    Diverged {
        /// The step.
        step: u64,
        /// The input's number.
        input: usize,
        /// Where the step should have ended, as the reader gave it.
        seek: Position,
        /// What was journaled.
        journaled: PartDigest,
        /// What came.
        replayed: PartDigest,
    },
    /// The circuit failed.
    Circuit {
        /// The step.
        step: u64,
        /// Why.
        error: lockgate_core::BoxError,
    },
    /// An output failed.
    Output {
        /// The output's name.
        output: String,
        /// Why.
        error: EndpointError,
    },
    /// The state directory failed.
    State(crate::state::StateError),
    /// A part of lockgate itself went away.
    Bug(String),
}
