//! `ReaderProtocol` beside a table written down once more: it allows what the table allows, and nothing else.

use arbitrary::Arbitrary;
use lockgate_core::{
    BufferSize, FaultTolerance, InputReaderCommand, Position, QueueLimits, ReaderProtocol,
    ReaderState, Resume,
};

const LIMITS: QueueLimits = QueueLimits { max_queued_records: 5, max_queued_bytes: 50 };

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Level {
    None,
    AtLeastOnce,
    ExactlyOnce,
}

impl Level {
    pub fn of_core(self) -> FaultTolerance {
        match self {
            Level::None => FaultTolerance::None,
            Level::AtLeastOnce => FaultTolerance::AtLeastOnce,
            Level::ExactlyOnce => FaultTolerance::ExactlyOnce,
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Op {
    Replay,
    Extend,
    Pause,
    Queue { checkpoint_requested: bool },
    Disconnect,
    Buffered(u8, u8),
    Discarded(u8, u8),
    Replayed(u8, u8),
    Extended { records: u8, bytes: u8, resume: Where },
    EndOfInput,
    Fatal,
    Closed,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Where {
    Barrier,
    Seek,
    Replay,
    Change,
}

pub fn run(level: Level, ops: &[Op]) {
    let level = level.of_core();
    let mut protocol = ReaderProtocol::new("in", level, LIMITS);
    for op in ops {
        let before = protocol.clone();
        let (state, held) = (before.state(), before.held());
        let result = match *op {
            Op::Replay => send(&mut protocol, level, replay()),
            Op::Extend => send(&mut protocol, level, InputReaderCommand::Extend),
            Op::Pause => send(&mut protocol, level, InputReaderCommand::Pause),
            Op::Queue { checkpoint_requested } => {
                send(&mut protocol, level, InputReaderCommand::Queue { checkpoint_requested })
            }
            Op::Disconnect => send(&mut protocol, level, InputReaderCommand::Disconnect),
            Op::Buffered(records, bytes) => {
                let result = protocol.buffered(size(records, bytes)).is_ok();
                let is_bounded =
                    matches!(state, ReaderState::Running { .. } | ReaderState::Paused { .. });
                assert!(!result || !is_bounded || LIMITS.allow(protocol.held()), "over the limit");
                assert!(!result || !before.ended(), "more after the end");
                result
            }
            Op::Discarded(records, bytes) => {
                let result = protocol.discarded(size(records, bytes)).is_ok();
                assert!(!result || held.minus(size(records, bytes)) == Some(protocol.held()));
                result
            }
            Op::Replayed(records, bytes) => {
                let result = protocol.replayed(size(records, bytes)).is_ok();
                if result && state != ReaderState::Gone {
                    assert_eq!(state, ReaderState::Replaying { answered: false });
                    assert_eq!((held, protocol.held()), (size(records, bytes), BufferSize::ZERO));
                }
                result
            }
            Op::Extended { records, bytes, resume } => {
                let given = size(records, bytes);
                let result = protocol.extended(given, &of(resume)).is_ok();
                if result && state != ReaderState::Gone {
                    assert!(before.unanswered() && !protocol.unanswered(), "nobody had asked");
                    assert_eq!(held.minus(given), Some(protocol.held()));
                    let promised =
                        level != FaultTolerance::ExactlyOnce || matches!(resume, Where::Replay);
                    assert!(promised, "weaker than promised");
                }
                result
            }
            Op::EndOfInput => {
                let result = protocol.eoi().is_ok();
                assert!(!result || !before.ended());
                result
            }
            Op::Fatal => {
                protocol.fatal();
                true
            }
            Op::Closed => {
                let may =
                    before.failed() || state == ReaderState::Gone || before.has_nothing_left();
                let result = protocol.closed().is_ok();
                assert!(!result || may, "it died");
                result
            }
        };
        if !result {
            // Whether an answer is owed at the end is all that a refusal may use up.
            assert_eq!((protocol.state(), protocol.held()), (state, held), "refused, but changed");
        }
    }
}

/// The table of the protocol.
fn send(protocol: &mut ReaderProtocol, level: FaultTolerance, command: InputReaderCommand) -> bool {
    use InputReaderCommand as C;
    use ReaderState as S;
    let state = protocol.state();
    let becomes = match (&command, state) {
        (_, S::Gone) => None,
        (C::Disconnect, _) => Some(S::Gone),
        (C::Replay { .. }, S::New | S::Replaying { answered: true }) => {
            (level == FaultTolerance::ExactlyOnce).then_some(S::Replaying { answered: false })
        }
        (C::Extend, S::New | S::Replaying { answered: true }) => Some(S::Running { queued: false }),
        (C::Extend, S::Paused { queued }) => Some(S::Running { queued }),
        (C::Pause, S::Running { queued }) => Some(S::Paused { queued }),
        (C::Queue { .. }, S::Running { queued: false }) => Some(S::Running { queued: true }),
        (C::Queue { .. }, S::Paused { queued: false }) => Some(S::Paused { queued: true }),
        _ => None,
    };
    let sent = protocol.send(&command);
    assert_eq!(sent.is_ok(), becomes.is_some(), "{command:?} to a reader that is {state}");
    assert_eq!(protocol.state(), becomes.unwrap_or(state));
    sent.is_ok()
}

fn replay() -> InputReaderCommand {
    InputReaderCommand::Replay { metadata: 0.into(), data: rmpv::Value::Nil }
}

fn of(resume: Where) -> Resume {
    match resume {
        Where::Barrier => Resume::Barrier,
        Where::Seek => Resume::Seek { seek: 1.into() },
        Where::Replay => Resume::Replay { seek: 1.into(), replay: rmpv::Value::Nil },
        Where::Change => Resume::Seek { seek: Position::Change(serde_json::json!({"a": 1})) },
    }
}

fn size(records: u8, bytes: u8) -> BufferSize {
    BufferSize { records: (records % 8).into(), bytes: (bytes % 64).into() }
}
