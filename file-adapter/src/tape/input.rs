//! A tape as an input.

use std::path::PathBuf;
use std::sync::Arc;

use lockgate_core::{
    EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader, Partition,
};
use serde_json::Value as JsonValue;

use super::Tape;
use super::cursor::Cursor;
use super::pace::{Pace, Speed};
use super::place::{Place, range_to_msgpack};
use super::reader::{self, Start, TapeReader};

/// A tape as an input: gives what was recorded again, with the same positions and timestamps. Keeps every level of
/// fault tolerance.
pub struct TapeInput {
    tape: Found,
    is_scripted: bool,
    only: Option<Partition>,
    speed: Option<Speed>,
}

impl TapeInput {
    /// An input that gives all of `tape`, as fast as it is taken.
    pub fn new(tape: Tape) -> Self {
        Self { tape: Found::Open(tape), is_scripted: false, only: None, speed: None }
    }

    /// An input that gives only those parts of `tape` that it is told to replay, and is at its end then.
    pub fn scripted(tape: Tape) -> Self {
        Self { is_scripted: true, ..Self::new(tape) }
    }

    /// An input that gives what [`Tape::find`] finds when it is opened.
    pub fn at(path: PathBuf, input: Option<String>) -> Self {
        let tape = Found::At { path, input };
        Self { tape, is_scripted: false, only: None, speed: None }
    }

    /// Gives the records of this partition only.
    #[must_use]
    pub fn only(mut self, partition: Partition) -> Self {
        self.only = Some(partition);
        self
    }

    /// Replays steps no sooner than their records' timestamps say, which are taken as going on from the first.
    #[must_use]
    pub fn paced(mut self, speed: Speed) -> Self {
        self.speed = Some(speed);
        self
    }

    /// What a `Replay` of a part of the tape consists of, for a script of steps.
    pub fn replay_of(part: usize) -> rmpv::Value {
        let from = Place { part: part as u64, record: 0 };
        range_to_msgpack(from, Place { part: from.part + 1, record: 0 })
    }
}

enum Found {
    Open(Tape),
    At { path: PathBuf, input: Option<String> },
}

impl InputEndpoint for TapeInput {
    fn fault_tolerance(&self) -> FaultTolerance {
        FaultTolerance::ExactlyOnce
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        let Self { tape, is_scripted, only, speed } = *self;
        let tape = match tape {
            Found::Open(tape) => tape,
            Found::At { path, input } => {
                Tape::find(&path, input.as_deref()).map_err(reader::unreadable)?
            }
        };
        let place = resume.map(|seek| Place::from_seek(&seek, &tape.id())).transpose()?;
        let place = place.unwrap_or_default();
        if place.part > tape.parts().len() as u64 {
            let text =
                "the stored position lies behind the end of the recording: it was cut short since";
            return Err(EndpointError::Data(text.into()));
        }
        let id = tape.id();
        let mut cursor = Cursor::new(tape, only);
        cursor.seek(place).map_err(reader::unreadable)?;
        let pace = speed.map(Pace::new);
        let start = Start { cursor, id, is_scripted, pace, level };
        Ok(Box::new(TapeReader::start(start, consumer)?))
    }
}
