//! What may happen next, and how it reads in a trace.

use std::fmt;

use super::reader::Standing;
use super::threads::{Keeping, Thread, Work};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandAction {
    /// A reader announces one more record.
    Announce(usize),
    /// A reader reports the end of its input.
    End(usize),
    /// A reader answers `Queue`.
    Answer {
        /// The input's number.
        input: usize,
        /// How many records it hands over.
        records: u8,
        /// Where it stands then.
        standing: Standing,
    },
    /// A reader answers `Replay`.
    Replay(usize),
    /// A reader takes up `Pause`.
    TakeUp(usize),
    /// A reader that has given all, or has failed, closes.
    Close(usize),
    /// The thread of circuit and outputs hashes a step.
    Hash(u64),
    /// The thread of circuit and outputs does what it comes to.
    Work(Work),
    /// The journal makes the steps that wait durable together, up to this one.
    Journal(u64),
    /// The thread of the state directory does what it comes to, other than journal entries.
    Keep(Keeping),
    /// There is space again on the disk of this thread.
    Space(Thread),
    /// Nothing else has to happen, and the next deadline comes.
    Time,
    /// A user lets an input go on that was paused.
    Resume(usize),
    /// Disturbance: the process dies and is started again, or is started after its end.
    Crash,
    /// Disturbance: the disk of this thread is full.
    Full(Thread),
    /// Disturbance: what this thread works on fails for good.
    Break(Thread),
    /// Disturbance: a reader reports a fatal error. What it does then is up to it.
    Fail(usize),
    /// Disturbance: a user pauses an input.
    Pause(usize),
    /// Disturbance: a checkpoint is asked for.
    Checkpoint,
    /// Disturbance: a stop is asked for.
    Stop,
    /// Disturbance: a user wishes to suspend.
    Suspend,
    /// Disturbance: a user changes what readers may hold.
    Reload,
    /// Disturbance: whatever has to happen takes so long that the next deadline comes first.
    Slow,
}

impl fmt::Display for CommandAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announce(input) => write!(f, "reader {input} announces a record"),
            Self::End(input) => write!(f, "reader {input} reports the end of its input"),
            Self::Answer { input, records, standing } => {
                let standing = match standing {
                    Standing::Barrier => "at a barrier",
                    Standing::Seek => "at a place to seek",
                    Standing::Replay => "at a place to seek, with what replays it",
                };
                write!(f, "reader {input} hands over {records}, {standing}")
            }
            Self::Replay(input) => write!(f, "reader {input} replays the step"),
            Self::TakeUp(input) => write!(f, "reader {input} stops reading"),
            Self::Close(input) => write!(f, "reader {input} closes"),
            Self::Hash(step) => write!(f, "step {step} is hashed"),
            Self::Work(Work::Step(step, _)) => write!(f, "the circuit works on step {step}"),
            Self::Work(Work::Write(step)) => write!(f, "the outputs write step {step}"),
            Self::Work(Work::Finish) => write!(f, "the outputs close what they hold open"),
            Self::Work(Work::Prepare) => {
                write!(f, "circuit and outputs get ready for a checkpoint")
            }
            Self::Work(Work::Complete) => write!(f, "the outputs complete the checkpoint"),
            Self::Journal(through) => write!(f, "the journal is durable up to step {through}"),
            Self::Keep(Keeping::Load { after }) => {
                write!(f, "the journal is read from step {}", after + 1)
            }
            Self::Keep(Keeping::Journal(step, _)) => write!(f, "step {step} is journaled"),
            Self::Keep(Keeping::Store { step, .. }) => {
                write!(f, "the checkpoint after step {step} is durable")
            }
            Self::Space(Thread::Outputs) => write!(f, "the outputs have space again"),
            Self::Space(Thread::State) => write!(f, "the state directory has space again"),
            Self::Time => write!(f, "time passes"),
            Self::Resume(input) => write!(f, "a user resumes input {input}"),
            Self::Crash => write!(f, "crash and recovery"),
            Self::Full(Thread::Outputs) => write!(f, "the disk of the outputs is full"),
            Self::Full(Thread::State) => write!(f, "the disk of the state directory is full"),
            Self::Break(Thread::Outputs) => write!(f, "an output fails"),
            Self::Break(Thread::State) => write!(f, "the state directory fails"),
            Self::Fail(input) => write!(f, "reader {input} fails"),
            Self::Pause(input) => write!(f, "a user pauses input {input}"),
            Self::Checkpoint => write!(f, "a user asks for a checkpoint"),
            Self::Stop => write!(f, "a user asks for a stop"),
            Self::Suspend => write!(f, "a user wishes to suspend"),
            Self::Reload => write!(f, "a user changes what readers may hold"),
            Self::Slow => write!(f, "everything is slow, and time passes"),
        }
    }
}
