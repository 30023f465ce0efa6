//! A schedule: what is done to a reader, as a list that can be printed, cut short and done again.
//!
//! A schedule is legal by construction: an operation that is not allowed where it stands is left out when
//! it is carried out. So every sublist of a schedule is a schedule. Not here: carrying it out (`run`).

use std::fmt;

use lockgate_core::{FaultTolerance, QueueLimits};

use crate::random::Random;
use crate::report::Counted;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Extend,
    Pause,
    /// Send Queue and wait for the answer, which makes a step.
    Queue(Ask),
    /// Send Queue and go on; the answer is waited for when the next step is due, and lost in a crash.
    QueueAndGoOn(Ask),
    /// Wait until the reader holds something or has ended.
    Await,
    /// Take the last position as the checkpoint and forget the journal, unless it is a barrier.
    Checkpoint,
    /// Drop the reader as it is, open another one at the checkpoint, replay the journal.
    Crash(QueueLimits),
    /// As `Crash`, and end again while the step with this number is replayed: by a crash, or in order.
    EndInReplay {
        step: usize,
        in_order: bool,
        limits: QueueLimits,
    },
    /// Disconnect, wait until the reader is closed, then as `Crash`.
    Disconnect(QueueLimits),
    /// Extend if need be, then wait and queue until everything has been handed over; compare.
    Drain(usize),
}

/// What a Queue asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) max_batch: usize,
    pub(crate) checkpoint_requested: bool,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {}", Counted(self.max_batch as u64))?;
        if self.checkpoint_requested { f.write_str(", checkpoint requested") } else { Ok(()) }
    }
}

/// Limits as a report shows them.
pub(crate) struct Shown(pub(crate) QueueLimits);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueueLimits { max_queued_records, max_queued_bytes } = self.0;
        write!(f, "limits {}, {max_queued_bytes} bytes", Counted(max_queued_records))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Extend => f.write_str("Extend"),
            Op::Pause => f.write_str("Pause"),
            Op::Queue(ask) => write!(f, "Queue, {ask}"),
            Op::QueueAndGoOn(ask) => write!(f, "Queue, {ask}, and go on without the answer"),
            Op::Await => f.write_str("wait until something is buffered, or the end"),
            Op::Checkpoint => f.write_str("take a checkpoint"),
            Op::Crash(limits) => {
                write!(f, "crash; open at the checkpoint and replay; {}", Shown(*limits))
            }
            Op::EndInReplay { step, in_order, limits } => {
                let (end, step) = (if *in_order { "Disconnect" } else { "crash" }, step + 1);
                write!(f, "crash; {end} while step {step} is replayed; ")?;
                write!(f, "open at the checkpoint and replay; {}", Shown(*limits))
            }
            Op::Disconnect(limits) => {
                write!(f, "Disconnect; open at the checkpoint and replay; {}", Shown(*limits))
            }
            Op::Drain(max_batch) => {
                write!(f, "read to the end, by Queues of at most {}", Counted(*max_batch as u64))
            }
        }
    }
}

impl Op {
    /// A plainer operation, from which less is to be read.
    pub(crate) fn plainer(self, limits: QueueLimits) -> Self {
        match self {
            Op::Queue(ask) | Op::QueueAndGoOn(ask) => {
                Op::Queue(Ask { checkpoint_requested: false, ..ask })
            }
            Op::Crash(_) | Op::EndInReplay { .. } | Op::Disconnect(_) => Op::Crash(limits),
            op => op,
        }
    }
}

/// Operations for one reader opened with one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    pub(crate) level: FaultTolerance,
    pub(crate) limits: QueueLimits,
    pub(crate) ops: Vec<Op>,
}

/// How much data there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

/// A schedule that is crashed everywhere has so many operations: each costs several readers.
const CRASHED_OPS: usize = 12;

impl Schedule {
    /// The schedule of a seed, which ends with the whole input read, where there are checkpoints twice.
    pub(crate) fn random(seed: u64, level: FaultTolerance, amount: Amount) -> Self {
        let mut dice = Dice { random: Random::new(seed), amount };
        let limits = dice.limits();
        let crashes = level > FaultTolerance::None;
        let mut ops = Vec::new();
        let mut state = State::New;
        for _ in 0..5 + dice.random.below(25) {
            let op = dice.op(state, crashes);
            state = match op {
                Op::Extend | Op::Drain(_) => State::Running,
                Op::Pause => State::Paused,
                Op::Crash(_) | Op::EndInReplay { .. } | Op::Disconnect(_) => State::New,
                _ => state,
            };
            ops.push(op);
        }
        let mut schedule = Self { seed, level, limits, ops };
        schedule.end(&mut dice);
        schedule
    }

    /// For every place in the beginning of this schedule one that crashes there, with and without a Queue
    /// unanswered.
    pub(crate) fn crashed_everywhere(&self, amount: Amount) -> Vec<Self> {
        let mut dice = Dice { random: Random::new(self.seed), amount };
        let mut schedules = Vec::new();
        for place in 0..=self.ops.len().min(CRASHED_OPS) {
            for unanswered in [false, true] {
                let mut ops = self.ops[..place].to_vec();
                if unanswered {
                    ops.push(Op::QueueAndGoOn(dice.ask()));
                }
                ops.push(Op::Crash(dice.limits()));
                let mut schedule = Self { ops, ..self.clone() };
                schedule.end(&mut dice);
                schedules.push(schedule);
            }
        }
        schedules
    }

    /// What random schedules do rarely, and what has gone wrong elsewhere.
    pub(crate) fn stories(&self, amount: Amount) -> Vec<Self> {
        let limits = self.limits;
        let max_batch = amount.records as usize / 3 + 1;
        let some = Op::Queue(Ask { max_batch, checkpoint_requested: false });
        let all = Op::Queue(Ask { max_batch: 1 << 20, checkpoint_requested: true });
        let crash = Op::Crash(limits);
        let (drain, replaying) =
            (Op::Drain(max_batch), Op::EndInReplay { step: 1, in_order: false, limits });
        let stories: [&[Op]; 5] = [
            // Crashed before anything was handed over, and again at the checkpoint taken there.
            &[crash, Op::Checkpoint, crash, Op::Extend, crash, drain],
            // C8: a checkpoint right after a replay, before anything new.
            &[Op::Extend, Op::Await, some, crash, Op::Checkpoint, crash, drain],
            // C9: empty steps: before there is input, while there is more to come, and after the end.
            &[
                Op::Extend,
                some,
                Op::Pause,
                all,
                all,
                all,
                crash,
                Op::Checkpoint,
                crash,
                drain,
                all,
                all,
            ],
            // Every life replays what the one before it had replayed, and adds a step.
            &[
                Op::Extend,
                some,
                crash,
                Op::Extend,
                Op::Await,
                some,
                replaying,
                Op::Extend,
                some,
                replaying,
            ],
            // Paused at once, again and again.
            &[
                Op::Extend,
                Op::Pause,
                Op::Extend,
                Op::Pause,
                all,
                Op::Extend,
                Op::Await,
                Op::Pause,
                all,
                all,
            ],
        ];
        let mut dice = Dice { random: Random::new(self.seed), amount };
        let whole = |ops: &&[Op]| {
            let mut story = Self { ops: ops.to_vec(), ..self.clone() };
            story.end(&mut dice);
            story
        };
        stories.iter().map(whole).collect()
    }

    fn end(&mut self, dice: &mut Dice) {
        self.ops.push(dice.drain());
        if self.level > FaultTolerance::None {
            // The position at the very end, with and without steps to replay.
            if dice.random.once_in(2) {
                self.ops.push(Op::Checkpoint);
            }
            self.ops.push(Op::Crash(dice.limits()));
            self.ops.push(dice.drain());
        }
        self.ops.push(Op::Disconnect(dice.limits()));
    }
}

/// What a reader will be doing at a place in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Running,
    Paused,
}

struct Dice {
    random: Random,
    amount: Amount,
}

impl Dice {
    /// Often narrow, so that the reader meets its limits; never too narrow for a single record.
    fn limits(&mut self) -> QueueLimits {
        let Amount { records, bytes } = self.amount;
        let roomy = QueueLimits { max_queued_records: 2 * records + 10, max_queued_bytes: 1 << 20 };
        let max_queued_records = self.random.one_of(&[1, 2, 3, 7, records / 4 + 1]);
        let max_queued_bytes = self.random.one_of(&[1, bytes / 10 + 1, bytes / 3 + 1]);
        match self.random.below(4) {
            0 => QueueLimits { max_queued_records, ..roomy },
            1 => QueueLimits { max_queued_bytes, ..roomy },
            2 => QueueLimits { max_queued_records, max_queued_bytes },
            _ => roomy,
        }
    }

    fn ask(&mut self) -> Ask {
        let most = self.random.below(self.amount.records + 1) as usize + 1;
        Ask {
            max_batch: self.random.one_of(&[1, 2, 3, 5, most, 1 << 20]),
            checkpoint_requested: self.random.once_in(3),
        }
    }

    /// In not too many steps.
    fn drain(&mut self) -> Op {
        let most = self.amount.records;
        let max_batch = most / 20 + 1 + self.random.below(most / 4 + 3);
        Op::Drain(max_batch as usize)
    }

    /// What is allowed in this state, as far as that can be known beforehand.
    fn op(&mut self, state: State, crashes: bool) -> Op {
        let limits = self.limits();
        match (self.random.below(20), state) {
            (0..12, State::New) | (0..4, State::Paused) => Op::Extend,
            (0..2, State::Running) => Op::Pause,
            (2..8, State::Running) => Op::Await,
            (12, State::Running | State::Paused) => Op::QueueAndGoOn(self.ask()),
            (13, _) if self.random.once_in(3) => self.drain(),
            (14..16, _) if crashes => Op::Checkpoint,
            (16, _) if crashes => Op::Crash(limits),
            (18, _) if crashes && self.random.once_in(2) => {
                let (step, in_order) = (self.random.below(4) as usize, self.random.once_in(2));
                Op::EndInReplay { step, in_order, limits }
            }
            (19, _) if crashes && self.random.once_in(2) => Op::Disconnect(limits),
            (_, State::New) => Op::Extend,
            _ => Op::Queue(self.ask()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMOUNT: Amount = Amount { records: 30, bytes: 300 };

    fn kind(op: Op) -> &'static str {
        match op {
            Op::Extend => "Extend",
            Op::Pause => "Pause",
            Op::Queue(_) => "Queue",
            Op::QueueAndGoOn(_) => "QueueAndGoOn",
            Op::Await => "Await",
            Op::Checkpoint => "Checkpoint",
            Op::Crash(_) => "Crash",
            Op::EndInReplay { in_order: false, .. } => "EndInReplay by a crash",
            Op::EndInReplay { in_order: true, .. } => "EndInReplay in order",
            Op::Disconnect(_) => "Disconnect",
            Op::Drain(_) => "Drain",
        }
    }

    fn kinds(level: FaultTolerance) -> Vec<&'static str> {
        let ops = (0..50).flat_map(|seed| Schedule::random(seed, level, AMOUNT).ops);
        let kinds: std::collections::BTreeSet<_> = ops.map(kind).collect();
        kinds.into_iter().collect()
    }

    #[test]
    fn everything_is_done_where_it_means_something() {
        assert_eq!(kinds(FaultTolerance::AtLeastOnce).len(), 11);
        assert_eq!(kinds(FaultTolerance::ExactlyOnce).len(), 11);
        let undisturbed =
            ["Await", "Disconnect", "Drain", "Extend", "Pause", "Queue", "QueueAndGoOn"];
        assert_eq!(kinds(FaultTolerance::None), undisturbed);
    }

    #[test]
    fn a_schedule_is_crashed_at_every_point() {
        let schedule = Schedule::random(1, FaultTolerance::ExactlyOnce, AMOUNT);
        let crashed = schedule.crashed_everywhere(AMOUNT);
        let points = schedule.ops.len().min(CRASHED_OPS) + 1;
        assert_eq!(crashed.len(), 2 * points);
        for (place, pair) in crashed.chunks(2).enumerate() {
            assert_eq!(pair[0].ops[..place], schedule.ops[..place]);
            assert!(matches!(pair[0].ops[place], Op::Crash(_)));
            assert!(matches!(pair[1].ops[place..], [Op::QueueAndGoOn(_), Op::Crash(_), ..]));
        }
    }

    /// A seed means the same schedule everywhere, and a schedule can be read.
    #[test]
    fn a_seed_is_a_schedule() {
        let schedule = Schedule::random(8, FaultTolerance::ExactlyOnce, AMOUNT);
        let ops: Vec<_> = schedule.ops.iter().map(Op::to_string).collect();
        insta::assert_snapshot!(ops.join("\n"));
    }
}
