//! What must hold, and how a state says that it does not.
//!
//! A state in which something is broken has nothing after it and counts as one with all others in which the
//! same is broken, so each property is broken by one state at most: the nearest.

use stateright::Property;

use super::{CommandModel, CommandState};

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// A reader was sent a command that may not follow.
    Command,
    /// The machine ended the run although nothing outside of it had failed.
    Failure,
    /// An assertion of the machine failed.
    Assertion,
    /// A modelled reader reported what it may not report, so the model itself is wrong.
    Reader,
    /// A step was written before its journal entry was durable.
    Unjournaled,
    /// A step was written out of turn.
    Order,
    /// A record was left out or written twice.
    Records,
    /// A step that could be seen before a crash became another one.
    Changed,
    /// A checkpoint's positions are not those of what was written.
    Positions,
    /// A run was complete without everything being written and covered.
    Complete,
    /// A run stopped without a checkpoint over every step.
    Stopped,
    /// The grace time of a stop ran out although nothing was slow.
    Late,
    /// Something waits that nothing will wake.
    Waits,
    /// A checkpoint does not come that is wanted or due.
    NoCheckpoint,
    /// An input goes on that a user has paused.
    UserPause,
    /// An input goes on while what comes in cannot be stored.
    NoSpace,
    /// Other limits were in force for a reader that still held something or read on.
    Reload,
    /// Somebody was told what is not so.
    Answer,
    /// Somebody who asked for something is not answered.
    Unanswered,
    /// A reader that had stopped for a checkpoint was asked to stop for it again.
    AskedAgain,
}

macro_rules! never {
    ($($sentence:literal: $breach:ident,)*) => {
        vec![$(Property::always($sentence, |_: &CommandModel, state: &CommandState| {
            state.breach() != Some(Breach::$breach)
        })),*]
    };
}

pub(super) fn properties() -> Vec<Property<CommandModel>> {
    never! {
        "no reader is sent a command that may not follow": Command,
        "a run fails only for a reason from outside": Failure,
        "no assertion fails": Assertion,
        "the readers of the model keep the protocol": Reader,
        "nothing is written before it is journaled": Unjournaled,
        "steps are written in order, without gaps": Order,
        "every record is written once, in order": Records,
        "what could be seen before a crash is the same after it": Changed,
        "a checkpoint has the positions of what was written": Positions,
        "a complete run has written everything and a checkpoint covers it": Complete,
        "a stopped run has a checkpoint over every step": Stopped,
        "a stop is late only if something is slow or a barrier stays": Late,
        "nothing waits for ever": Waits,
        "a checkpoint comes unless a barrier stays": NoCheckpoint,
        "an input that a user has paused stays paused": UserPause,
        "no input goes on while a disk is full": NoSpace,
        "limits change for readers that hold nothing and do not read": Reload,
        "whoever asked is told the truth": Answer,
        "whoever asked is answered": Unanswered,
        "a reader that has stopped for a checkpoint is not asked to stop for it again": AskedAgain,
    }
}
