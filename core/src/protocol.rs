//! Which command may follow which, and which answer may come when.
//!
//! One [`ReaderProtocol`] accompanies each open reader. A command is checked before it is sent and an
//! answer before it is believed, so a fault of the controller and a fault of a reader are told apart and
//! both are named.
//!
//! | state | may be sent | becomes |
//! |---|---|---|
//! | new | Replay, Extend, Disconnect | replaying, running, gone |
//! | replaying, unanswered | Disconnect | gone |
//! | replaying, answered | Replay, Extend, Disconnect | replaying, running, gone |
//! | running | Queue (one unanswered at a time), Pause, Disconnect | running, paused, gone |
//! | paused | Queue (one unanswered at a time), Extend, Disconnect | paused, running, gone |
//! | gone | nothing | |

use std::fmt;

use crate::command::InputReaderCommand;
use crate::record::{BufferSize, QueueLimits};
use crate::resume::{FaultTolerance, Resume};

/// Where a reader stands in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReaderState {
    /// Opened; no command yet.
    New,
    /// It was told to replay a step.
    Replaying {
        /// Whether the last replay has been answered.
        answered: bool,
    },
    /// It accepts input.
    Running {
        /// Whether a `Queue` is unanswered.
        queued: bool,
    },
    /// It accepts no input; what is buffered can still be queued.
    Paused {
        /// Whether a `Queue` is unanswered.
        queued: bool,
    },
    /// It was disconnected.
    Gone,
}

impl fmt::Display for ReaderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReaderState::New => "new",
            ReaderState::Replaying { answered: false } => "replaying",
            ReaderState::Replaying { answered: true } => "replayed",
            ReaderState::Running { queued: false } => "running",
            ReaderState::Running { queued: true } => "running, with a Queue unanswered",
            ReaderState::Paused { queued: false } => "paused",
            ReaderState::Paused { queued: true } => "paused, with a Queue unanswered",
            ReaderState::Gone => "gone",
        })
    }
}

/// A step outside the protocol, by the controller (`Command`) or by the reader (all others).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The command may not follow; it was not sent.
    #[error("input {reader}: {command} may not be sent to a reader that is {state}")]
    Command {
        /// The reader's name.
        reader: String,
        /// Its state.
        state: ReaderState,
        /// The command's name.
        command: &'static str,
    },
    /// Nobody asked for this answer.
    #[error("input {reader}: the reader reported `{answer}` while it was {state}")]
    Answer {
        /// The reader's name.
        reader: String,
        /// Its state.
        state: ReaderState,
        /// The answer's name.
        answer: &'static str,
    },
    /// The reader reported more input after it had reported the end.
    #[error("input {reader}: the reader reported `{answer}` after the end of its input")]
    AfterEnd {
        /// The reader's name.
        reader: String,
        /// The answer's name.
        answer: &'static str,
    },
    /// The reader handed over other amounts than it had announced.
    #[error(
        "input {reader}: the reader handed over {} records ({} bytes) but had announced {} ({} bytes)",
        given.records, given.bytes, announced.records, announced.bytes
    )]
    Count {
        /// The reader's name.
        reader: String,
        /// Announced and not yet handed over.
        announced: BufferSize,
        /// Handed over now.
        given: BufferSize,
    },
    /// The reader holds more than it may.
    #[error(
        "input {reader}: the reader holds {} records ({} bytes), more than max_queued_records {} or \
         max_queued_bytes {}",
        held.records, held.bytes, limits.max_queued_records, limits.max_queued_bytes
    )]
    Limit {
        /// The reader's name.
        reader: String,
        /// What it holds.
        held: BufferSize,
        /// What it may hold.
        limits: QueueLimits,
    },
    /// The reader promised more than this answer gives.
    #[error("input {reader}: the reader promised {promised:?} but answered with a {given}")]
    Resume {
        /// The reader's name.
        reader: String,
        /// The level it was opened with.
        promised: FaultTolerance,
        /// What it gave.
        given: &'static str,
    },
    /// The reader said what changed in its position before it had given one.
    #[error("input {reader}: the reader gave the change of a position before it gave the whole")]
    Change {
        /// The reader's name.
        reader: String,
    },
    /// The reader gave nothing although it had announced records and nothing allowed it to stop there.
    #[error(
        "input {reader}: the reader answered Queue with nothing although it holds {} records", held.records
    )]
    Nothing {
        /// The reader's name.
        reader: String,
        /// What it holds.
        held: BufferSize,
    },
    /// The reader closed without having reached the end, reported an error or been disconnected.
    #[error("input {reader}: the reader died while it was {state}, without reporting an error")]
    Died {
        /// The reader's name.
        reader: String,
        /// Its state.
        state: ReaderState,
    },
}

/// The protocol with one reader: its state, what it holds, and what it promised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReaderProtocol {
    reader: String,
    promised: FaultTolerance,
    limits: QueueLimits,
    state: ReaderState,
    held: BufferSize,
    /// Whether the unanswered `Queue` allows the reader to stop at a good position, and so to give nothing.
    checkpoint_requested: bool,
    /// Whether it has said where it stands, after which changes of that are enough.
    has_position: bool,
    /// Whether the last answer was a barrier, and a better one was promised for the end.
    at_barrier: bool,
    ended: bool,
    failed: bool,
    /// Whether an answer was owed when the reader was disconnected: it may still come.
    owed: bool,
}

impl ReaderProtocol {
    /// The protocol with a reader that was just opened.
    pub fn new(reader: impl Into<String>, promised: FaultTolerance, limits: QueueLimits) -> Self {
        Self {
            reader: reader.into(),
            promised,
            limits,
            state: ReaderState::New,
            held: BufferSize::ZERO,
            checkpoint_requested: false,
            has_position: false,
            at_barrier: false,
            ended: false,
            failed: false,
            owed: false,
        }
    }

    /// The reader may hold so much from now on. It must hold nothing, and know that it is paused.
    pub fn reload(&mut self, limits: QueueLimits) {
        debug_assert_eq!(self.held, BufferSize::ZERO, "what is held was allowed by other limits");
        self.limits = limits;
    }

    /// The reader's name.
    pub fn reader(&self) -> &str {
        &self.reader
    }

    /// Its state.
    pub fn state(&self) -> ReaderState {
        self.state
    }

    /// What it has announced and not handed over.
    pub fn held(&self) -> BufferSize {
        self.held
    }

    /// Whether it has reported the end of its input.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Whether it has reported a fatal error.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Whether a `Replay` or a `Queue` waits for its answer.
    pub fn unanswered(&self) -> bool {
        matches!(
            self.state,
            ReaderState::Replaying { answered: false }
                | ReaderState::Running { queued: true }
                | ReaderState::Paused { queued: true }
        )
    }

    /// Whether it has handed over everything up to the end of its input, and can come back to where it stands.
    pub fn has_nothing_left(&self) -> bool {
        self.ended && self.held == BufferSize::ZERO && !self.at_barrier
    }

    /// Records that `command` is about to be sent.
    ///
    /// # Errors
    /// If it may not be sent now; the state is as before.
    pub fn send(&mut self, command: &InputReaderCommand) -> Result<(), ProtocolError> {
        use InputReaderCommand as C;
        use ReaderState as S;
        let owed = self.unanswered();
        self.state = match (self.state, command) {
            (S::New | S::Replaying { answered: true }, C::Replay { .. })
                if self.promised == FaultTolerance::ExactlyOnce =>
            {
                S::Replaying { answered: false }
            }
            (S::New | S::Replaying { answered: true }, C::Extend) => S::Running { queued: false },
            (S::Paused { queued }, C::Extend) => S::Running { queued },
            (S::Running { queued }, C::Pause) => S::Paused { queued },
            (S::Running { queued: false }, C::Queue { .. }) => S::Running { queued: true },
            (S::Paused { queued: false }, C::Queue { .. }) => S::Paused { queued: true },
            (S::Gone, _) => return Err(self.command_error(command)),
            (_, C::Disconnect) => S::Gone,
            _ => return Err(self.command_error(command)),
        };
        match command {
            C::Queue { checkpoint_requested } => self.checkpoint_requested = *checkpoint_requested,
            C::Disconnect => self.owed = owed,
            _ => {}
        }
        Ok(())
    }

    /// The reader reported that it buffered `amount` more.
    ///
    /// # Errors
    /// If it may not read now, or holds more than it may.
    pub fn buffered(&mut self, amount: BufferSize) -> Result<(), ProtocolError> {
        let held = self.held.plus(amount);
        match self.state {
            ReaderState::New | ReaderState::Replaying { answered: true } => {
                return Err(self.answer_error("buffered"));
            }
            _ if self.ended => return Err(self.after_end("buffered")),
            // A step may have been cut under larger limits than today's.
            ReaderState::Replaying { answered: false } | ReaderState::Gone => {}
            ReaderState::Running { .. } | ReaderState::Paused { .. } => {
                if !self.limits.allow(held) {
                    let (reader, limits) = (self.reader.clone(), self.limits);
                    return Err(ProtocolError::Limit { reader, held, limits });
                }
            }
        }
        self.held = held;
        Ok(())
    }

    /// The reader let go of `amount` that it had announced: the part of the source it came from is not its own
    /// any more.
    ///
    /// # Errors
    /// If it has not been told to read, or had not announced so much.
    pub fn discarded(&mut self, amount: BufferSize) -> Result<(), ProtocolError> {
        match self.state {
            ReaderState::New | ReaderState::Replaying { .. } => {
                return Err(self.answer_error("discarded"));
            }
            ReaderState::Running { .. } | ReaderState::Paused { .. } | ReaderState::Gone => {}
        }
        let rest = self.held.minus(amount).filter(|rest| rest.records > 0 || rest.bytes == 0);
        self.held = rest.ok_or_else(|| self.count_error(amount))?;
        Ok(())
    }

    /// The reader answered `Replay` with records of size `given`.
    ///
    /// # Errors
    /// If it was not asked, or announced another amount.
    pub fn replayed(&mut self, given: BufferSize) -> Result<(), ProtocolError> {
        match self.state {
            ReaderState::Replaying { answered: false } => {}
            ReaderState::Gone if std::mem::take(&mut self.owed) => return Ok(()),
            _ => return Err(self.answer_error("replayed")),
        }
        if given != self.held {
            return Err(self.count_error(given));
        }
        self.held = BufferSize::ZERO;
        self.state = ReaderState::Replaying { answered: true };
        Ok(())
    }

    /// The reader answered `Queue` with records of size `given`, and stands at `resume`.
    ///
    /// # Errors
    /// If it was not asked, gave more than it had announced, promised more than `resume`, or said what changed in a
    /// position that it had not given.
    pub fn extended(&mut self, given: BufferSize, resume: &Resume) -> Result<(), ProtocolError> {
        let state = match self.state {
            ReaderState::Running { queued: true } => ReaderState::Running { queued: false },
            ReaderState::Paused { queued: true } => ReaderState::Paused { queued: false },
            ReaderState::Gone if std::mem::take(&mut self.owed) => return Ok(()),
            _ => return Err(self.answer_error("extended")),
        };
        let rest = self.held.minus(given).filter(|rest| rest.records > 0 || rest.bytes == 0);
        let Some(rest) = rest else {
            return Err(self.count_error(given));
        };
        let may_stop = self.checkpoint_requested && !resume.is_barrier();
        if given.records == 0 && rest.records > 0 && !may_stop {
            return Err(ProtocolError::Nothing { reader: self.reader.clone(), held: rest });
        }
        // Under at-least-once a barrier is an answer, but not at the end: there it would never clear.
        let at_end = self.ended && rest.records == 0;
        let least = if at_end { self.promised } else { FaultTolerance::None };
        if (self.promised == FaultTolerance::ExactlyOnce && resume.level() < self.promised)
            || resume.level() < least
        {
            return Err(ProtocolError::Resume {
                reader: self.reader.clone(),
                promised: self.promised,
                given: if resume.is_barrier() { "barrier" } else { "seek position only" },
            });
        }
        match resume.seek() {
            Some(seek) if !self.has_position && !seek.is_whole() => {
                return Err(ProtocolError::Change { reader: self.reader.clone() });
            }
            seek => self.has_position |= seek.is_some(),
        }
        (self.held, self.state) = (rest, state);
        self.at_barrier = resume.is_barrier() && self.promised > FaultTolerance::None;
        self.checkpoint_requested = false;
        Ok(())
    }

    /// The reader reported the end of its input.
    ///
    /// # Errors
    /// If it has not been told to read, or has reported the end before.
    pub fn eoi(&mut self) -> Result<(), ProtocolError> {
        match self.state {
            ReaderState::New | ReaderState::Replaying { .. } => Err(self.answer_error("eoi")),
            _ if self.ended => Err(self.after_end("eoi")),
            _ => {
                self.ended = true;
                Ok(())
            }
        }
    }

    /// The reader reported a fatal error.
    pub fn fatal(&mut self) {
        self.failed = true;
    }

    /// The reader was found closed.
    ///
    /// # Errors
    /// If it had no reason to be.
    pub fn closed(&mut self) -> Result<(), ProtocolError> {
        let drained = self.has_nothing_left();
        if drained
            && let ReaderState::Running { queued } | ReaderState::Paused { queued } =
                &mut self.state
        {
            *queued = false;
        }
        if drained || self.failed || self.state == ReaderState::Gone {
            return Ok(());
        }
        Err(ProtocolError::Died { reader: self.reader.clone(), state: self.state })
    }

    fn command_error(&self, command: &InputReaderCommand) -> ProtocolError {
        let command = match command {
            InputReaderCommand::Replay { .. } => "Replay",
            InputReaderCommand::Extend => "Extend",
            InputReaderCommand::Pause => "Pause",
            InputReaderCommand::Queue { .. } => "Queue",
            InputReaderCommand::Disconnect => "Disconnect",
        };
        ProtocolError::Command { reader: self.reader.clone(), state: self.state, command }
    }

    fn answer_error(&self, answer: &'static str) -> ProtocolError {
        ProtocolError::Answer { reader: self.reader.clone(), state: self.state, answer }
    }

    fn after_end(&self, answer: &'static str) -> ProtocolError {
        ProtocolError::AfterEnd { reader: self.reader.clone(), answer }
    }

    fn count_error(&self, given: BufferSize) -> ProtocolError {
        ProtocolError::Count { reader: self.reader.clone(), announced: self.held, given }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resume::Position;
    use InputReaderCommand as C;

    const LIMITS: QueueLimits = QueueLimits { max_queued_records: 10, max_queued_bytes: 100 };
    const QUEUE: C = C::Queue { checkpoint_requested: false };

    fn new(level: FaultTolerance) -> ReaderProtocol {
        ReaderProtocol::new("orders", level, LIMITS)
    }

    fn replay() -> C {
        C::Replay { metadata: 0.into(), data: rmpv::Value::Nil }
    }

    fn size(records: u64, bytes: u64) -> BufferSize {
        BufferSize { records, bytes }
    }

    /// Every state against every command, as the table in the module's documentation has it.
    #[test]
    fn the_table() {
        let commands = [("Replay", replay()), ("Extend", C::Extend), ("Queue", QUEUE)];
        let commands =
            commands.into_iter().chain([("Pause", C::Pause), ("Disconnect", C::Disconnect)]);
        let commands: Vec<_> = commands.collect();
        let states = [
            ReaderState::New,
            ReaderState::Replaying { answered: false },
            ReaderState::Replaying { answered: true },
            ReaderState::Running { queued: false },
            ReaderState::Running { queued: true },
            ReaderState::Paused { queued: false },
            ReaderState::Paused { queued: true },
            ReaderState::Gone,
        ];
        let mut table = String::new();
        for state in states {
            for (name, command) in &commands {
                let mut protocol = new(FaultTolerance::ExactlyOnce);
                protocol.state = state;
                if protocol.send(command).is_ok() {
                    table += &format!("{state}: {name} -> {}\n", protocol.state);
                } else {
                    assert_eq!(protocol.state, state);
                }
            }
        }
        insta::assert_snapshot!(table, @r"
        new: Replay -> replaying
        new: Extend -> running
        new: Disconnect -> gone
        replaying: Disconnect -> gone
        replayed: Replay -> replaying
        replayed: Extend -> running
        replayed: Disconnect -> gone
        running: Queue -> running, with a Queue unanswered
        running: Pause -> paused
        running: Disconnect -> gone
        running, with a Queue unanswered: Pause -> paused, with a Queue unanswered
        running, with a Queue unanswered: Disconnect -> gone
        paused: Extend -> running
        paused: Queue -> paused, with a Queue unanswered
        paused: Disconnect -> gone
        paused, with a Queue unanswered: Extend -> running, with a Queue unanswered
        paused, with a Queue unanswered: Disconnect -> gone
        ");
    }

    #[test]
    fn answers_are_checked() {
        let fault = |act: &dyn Fn(&mut ReaderProtocol) -> Result<(), ProtocolError>| {
            let mut protocol = new(FaultTolerance::ExactlyOnce);
            act(&mut protocol).unwrap_err().to_string()
        };
        let seek = Resume::Seek { seek: 1.into() };
        let texts = [
            fault(&|p| new(FaultTolerance::AtLeastOnce).send(&replay()).and(p.send(&QUEUE))),
            fault(&|p| p.send(&QUEUE)),
            fault(&|p| p.buffered(size(1, 1))),
            fault(&|p| p.eoi()),
            fault(&|p| p.extended(size(0, 0), &seek)),
            fault(&|p| p.replayed(size(0, 0))),
            fault(&|p| p.send(&C::Extend).and(p.buffered(size(11, 11)))),
            fault(&|p| p.send(&C::Extend).and(p.buffered(size(2, 101)))),
            fault(&|p| p.send(&replay()).and(p.replayed(size(1, 1)))),
            fault(&|p| {
                p.send(&C::Extend)?;
                p.buffered(size(1, 1))?;
                p.send(&QUEUE)?;
                p.extended(size(2, 1), &seek)
            }),
            fault(&|p| {
                p.send(&C::Extend)?;
                p.send(&QUEUE)?;
                p.extended(size(0, 0), &seek)
            }),
            fault(&|p| {
                p.send(&C::Extend)?;
                p.eoi()?;
                p.buffered(size(1, 1))
            }),
            fault(&|p| {
                p.send(&C::Extend)?;
                p.closed()
            }),
        ];
        insta::assert_snapshot!(texts.join("\n"), @r"
        input orders: Replay may not be sent to a reader that is new
        input orders: Queue may not be sent to a reader that is new
        input orders: the reader reported `buffered` while it was new
        input orders: the reader reported `eoi` while it was new
        input orders: the reader reported `extended` while it was new
        input orders: the reader reported `replayed` while it was new
        input orders: the reader holds 11 records (11 bytes), more than max_queued_records 10 or max_queued_bytes 100
        input orders: the reader holds 2 records (101 bytes), more than max_queued_records 10 or max_queued_bytes 100
        input orders: the reader handed over 1 records (1 bytes) but had announced 0 (0 bytes)
        input orders: the reader handed over 2 records (1 bytes) but had announced 1 (1 bytes)
        input orders: the reader promised ExactlyOnce but answered with a seek position only
        input orders: the reader reported `buffered` after the end of its input
        input orders: the reader died while it was running, without reporting an error
        ");
    }

    /// A running reader that has announced three records of a byte each and was sent `command`.
    fn queued(level: FaultTolerance, command: C) -> ReaderProtocol {
        let mut protocol = new(level);
        protocol.send(&C::Extend).unwrap();
        protocol.buffered(size(3, 3)).unwrap();
        protocol.send(&command).unwrap();
        protocol
    }

    const FOR_A_CHECKPOINT: C = C::Queue { checkpoint_requested: true };

    fn seek() -> Resume {
        Resume::Seek { seek: 1.into() }
    }

    #[test]
    fn what_is_known_of_a_reader() {
        let mut protocol = queued(FaultTolerance::AtLeastOnce, QUEUE);
        assert_eq!(protocol.reader(), "orders");
        assert!(protocol.unanswered());
        assert_eq!(protocol.held(), size(3, 3));
        protocol.extended(size(2, 2), &seek()).unwrap();
        assert!(!protocol.unanswered());
        assert_eq!(protocol.held(), size(1, 1));
        assert!(!protocol.ended() && !protocol.failed());
        protocol.eoi().unwrap();
        protocol.fatal();
        assert!(protocol.ended() && protocol.failed());
        assert!(protocol.eoi().is_err(), "the end comes once");
        let mut protocol = new(FaultTolerance::ExactlyOnce);
        protocol.send(&replay()).unwrap();
        assert!(protocol.unanswered());
        protocol.replayed(size(0, 0)).unwrap();
        assert!(!protocol.unanswered());
    }

    /// A paused reader still hands over what it holds.
    #[test]
    fn a_paused_reader_is_drained() {
        let mut protocol = queued(FaultTolerance::AtLeastOnce, C::Pause);
        protocol.send(&QUEUE).unwrap();
        protocol.extended(size(3, 3), &seek()).unwrap();
        assert_eq!(protocol.state(), ReaderState::Paused { queued: false });
    }

    /// A reader that closed at a barrier could not be asked for a better place any more.
    #[test]
    fn a_reader_does_not_close_at_a_barrier() {
        for (level, may) in [(FaultTolerance::None, true), (FaultTolerance::AtLeastOnce, false)] {
            let mut protocol = queued(level, QUEUE);
            protocol.extended(size(3, 3), &Resume::Barrier).unwrap();
            protocol.eoi().unwrap();
            assert_eq!(protocol.closed().is_ok(), may);
        }
    }

    /// Bytes without records, or records without all of their bytes, do not add up.
    #[test]
    fn what_is_left_adds_up() {
        for given in [size(3, 2), size(4, 3), size(2, 4)] {
            let mut protocol = queued(FaultTolerance::AtLeastOnce, QUEUE);
            let error = protocol.extended(given, &seek()).unwrap_err();
            assert!(matches!(error, ProtocolError::Count { .. }), "{given:?}: {error}");
        }
        // Records may be empty.
        let mut protocol = queued(FaultTolerance::AtLeastOnce, QUEUE);
        protocol.extended(size(1, 3), &seek()).unwrap();
    }

    #[test]
    fn nothing_is_an_answer_only_where_there_is_nothing_or_for_a_checkpoint() {
        let answer = |command: C, resume: &Resume| {
            queued(FaultTolerance::AtLeastOnce, command).extended(size(0, 0), resume)
        };
        answer(FOR_A_CHECKPOINT, &seek()).unwrap();
        for (command, resume) in [(QUEUE, seek()), (FOR_A_CHECKPOINT, Resume::Barrier)] {
            let error = answer(command, &resume).unwrap_err();
            assert!(matches!(error, ProtocolError::Nothing { .. }), "{error}");
        }
        // What a checkpoint allowed once is over with its answer.
        let mut protocol = queued(FaultTolerance::AtLeastOnce, FOR_A_CHECKPOINT);
        protocol.extended(size(1, 1), &seek()).unwrap();
        protocol.send(&QUEUE).unwrap();
        assert!(protocol.extended(size(0, 0), &seek()).is_err());
        let mut empty = new(FaultTolerance::AtLeastOnce);
        empty.send(&C::Extend).unwrap();
        empty.send(&QUEUE).unwrap();
        empty.extended(size(0, 0), &seek()).unwrap();
    }

    /// Each level against each answer, before the end of input and at it.
    #[test]
    fn no_position_is_weaker_than_promised() {
        let replay = Resume::Replay { seek: 1.into(), replay: rmpv::Value::Nil };
        let mut table = String::new();
        for level in
            [FaultTolerance::None, FaultTolerance::AtLeastOnce, FaultTolerance::ExactlyOnce]
        {
            for (place, given, ends) in
                [("on the way", 1, false), ("nearly there", 1, true), ("at the end", 3, true)]
            {
                let may = |resume: &Resume| {
                    let mut protocol = queued(level, QUEUE);
                    if ends {
                        protocol.eoi().unwrap();
                    }
                    protocol.extended(size(given, given), resume).is_ok()
                };
                let names =
                    [("Barrier", Resume::Barrier), ("Seek", seek()), ("Replay", replay.clone())];
                let may = names.into_iter().filter(|(_, resume)| may(resume));
                let may: Vec<_> = may.map(|(name, _)| name).collect();
                table += &format!("{level:?} {place}: {}\n", may.join(" "));
            }
        }
        insta::assert_snapshot!(table, @r"
        None on the way: Barrier Seek Replay
        None nearly there: Barrier Seek Replay
        None at the end: Barrier Seek Replay
        AtLeastOnce on the way: Barrier Seek Replay
        AtLeastOnce nearly there: Barrier Seek Replay
        AtLeastOnce at the end: Seek Replay
        ExactlyOnce on the way: Replay
        ExactlyOnce nearly there: Replay
        ExactlyOnce at the end: Replay
        ");
    }

    #[test]
    fn a_change_follows_a_whole_position() {
        let change = Resume::Seek { seek: Position::Change(1.into()) };
        let mut protocol = queued(FaultTolerance::AtLeastOnce, QUEUE);
        let error = protocol.extended(size(1, 1), &change).unwrap_err();
        insta::assert_snapshot!(error, @"input orders: the reader gave the change of a position before it gave the whole");
        for resume in [seek(), Resume::Barrier, change] {
            protocol.extended(size(1, 1), &resume).unwrap();
            protocol.send(&QUEUE).unwrap();
        }
    }

    /// A reader may finish what it was doing when it was disconnected, once.
    #[test]
    fn what_comes_after_disconnect_is_ignored() {
        let mut protocol = new(FaultTolerance::ExactlyOnce);
        protocol.send(&C::Extend).unwrap();
        protocol.send(&QUEUE).unwrap();
        protocol.send(&C::Disconnect).unwrap();
        protocol.buffered(size(3, 3)).unwrap();
        protocol.eoi().unwrap();
        let seek = Resume::Seek { seek: 1.into() };
        protocol.extended(size(1, 1), &seek).unwrap();
        assert!(protocol.extended(size(1, 1), &seek).is_err(), "nobody asked twice");
        protocol.closed().unwrap();
        let mut protocol = new(FaultTolerance::ExactlyOnce);
        protocol.send(&replay()).unwrap();
        protocol.send(&C::Disconnect).unwrap();
        protocol.replayed(size(2, 2)).unwrap();
        assert!(protocol.replayed(size(2, 2)).is_err(), "nobody asked twice");
    }

    /// A reader that gives a part of its source up lets go of what it has read of it.
    #[test]
    fn what_is_discarded_is_held_no_more() {
        let mut protocol = new(FaultTolerance::AtLeastOnce);
        assert!(protocol.discarded(size(0, 0)).is_err(), "it has not read yet");
        protocol.send(&C::Extend).unwrap();
        protocol.buffered(size(5, 50)).unwrap();
        protocol.discarded(size(2, 20)).unwrap();
        assert_eq!(protocol.held(), size(3, 30));
        assert!(matches!(protocol.discarded(size(4, 30)), Err(ProtocolError::Count { .. })));
        assert!(matches!(protocol.discarded(size(3, 20)), Err(ProtocolError::Count { .. })));
        protocol.send(&QUEUE).unwrap();
        protocol.discarded(size(3, 30)).unwrap();
        protocol.extended(size(0, 0), &Resume::Seek { seek: 1.into() }).unwrap();
        protocol.send(&C::Disconnect).unwrap();
        protocol.discarded(size(0, 0)).unwrap();
        let mut replaying = new(FaultTolerance::ExactlyOnce);
        replaying.send(&replay()).unwrap();
        assert!(matches!(replaying.discarded(size(0, 0)), Err(ProtocolError::Answer { .. })));
    }

    #[test]
    fn one_record_may_exceed_the_byte_limit_alone() {
        let mut protocol = new(FaultTolerance::None);
        protocol.send(&C::Extend).unwrap();
        protocol.buffered(size(1, 1000)).unwrap();
        assert!(protocol.buffered(size(1, 1)).is_err());
    }

    #[test]
    fn a_drained_reader_may_close() {
        let mut protocol = new(FaultTolerance::AtLeastOnce);
        protocol.send(&C::Extend).unwrap();
        protocol.buffered(size(2, 2)).unwrap();
        protocol.eoi().unwrap();
        assert!(protocol.closed().is_err());
        protocol.send(&QUEUE).unwrap();
        assert!(protocol.closed().is_err());
        // A barrier at the very end would never clear.
        assert!(protocol.extended(size(2, 2), &Resume::Barrier).is_err());
        protocol.extended(size(2, 2), &Resume::Seek { seek: 2.into() }).unwrap();
        protocol.closed().unwrap();
    }
}
