//! What must never happen, whatever goes wrong: looked at while it happens and at the end of each life.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use lockgate_controller::{Error, StateError, Status};
use lockgate_core::{EndpointError, InputReaderCommand as Command};

use crate::disk::Struck;
use crate::fault::{Fault, Strike};
use crate::plan::Kind;
use crate::world::{Row, World, value};

/// How a process ended by itself.
pub(crate) type Ended = Result<Status, Error>;

impl World {
    /// A bit that has changed may cost anything but the truth: whoever notices refuses.
    pub(crate) fn breach_unless_rotten(&mut self, text: &str) {
        if !self.is_rotten {
            self.breach(text.to_owned());
        }
    }

    /// An output was given a step: the next one, and the same as ever.
    pub(crate) fn step_written(
        &mut self,
        output: usize,
        step: u64,
        before: Option<u64>,
        rows: &[Row],
    ) {
        self.note(|| format!("output {output}: step {step}, {} records", rows.len()));
        if before.is_some_and(|before| step != before + 1) {
            self.breach(format!("output {output} got step {step} after {before:?}"));
        }
        if output == 0 {
            self.in_flight -= rows.len() as i64;
        }
        if !self.plan.exactly_once {
            return;
        }
        let mut hasher = DefaultHasher::new();
        rows.hash(&mut hasher);
        let hash = hasher.finish();
        let known = *self.steps.entry(step).or_insert(hash);
        if known != hash {
            self.breach_unless_rotten(&format!("step {step} is not what it was before"));
        }
    }

    /// A reader has handed over records: what is on its way is bounded by what readers may hold.
    pub(crate) fn handed_over(&mut self, records: u64) {
        self.in_flight += records as i64;
        let largest = self.max_queued.iter().max().copied().unwrap_or_default();
        let step = self.max_queued.iter().sum::<u64>();
        // As much as the largest queue may be in flight, and one step; the next step is being formed.
        let bound = largest + 2 * step;
        if self.in_flight > bound as i64 {
            self.breach(format!("{} records are in flight, {bound} may be", self.in_flight));
        }
    }

    /// A reader was sent a command in this state.
    pub(crate) fn commanded(&mut self, input: usize, state: &mut CommandState, command: &Command) {
        if !state.allows(command) {
            self.breach(format!("input {input} was sent {command:?} while {state:?}"));
        }
        if *command == Command::Extend && self.paused[input] {
            self.breach(format!("input {input} was told to read although it is paused"));
        }
    }

    /// A process has opened the state directory; its last checkpoint covers this step.
    pub(crate) fn opened(&mut self, checkpoint: u64) {
        if checkpoint < self.checkpointed {
            let promised = self.checkpointed;
            let text = format!("the checkpoint is at step {checkpoint}, {promised} was promised");
            self.breach_unless_rotten(&text);
        }
    }

    /// A process ended by itself: did it have a reason?
    pub(crate) fn judge_end(&mut self, ended: &Ended, strikes: &[Strike], struck: Struck) {
        let error = match ended {
            Err(error) => error,
            Ok(Status { step, checkpointed_step, .. }) => {
                if checkpointed_step != step {
                    self.breach(format!(
                        "it ended well at step {step}, and a checkpoint covers {checkpointed_step}"
                    ));
                }
                return;
            }
        };
        let had = |is_it: fn(&Fault) -> bool| strikes.iter().any(|strike| is_it(&strike.fault));
        let disk_failed = struck.failed_syncs + struck.failed_writes > 0;
        let is_expected = match error {
            Error::State(StateError::Storage { .. }) => disk_failed || self.is_rotten,
            Error::State(StateError::Full { .. }) => struck.full > 0,
            Error::State(StateError::Damaged { .. } | StateError::Format { .. }) => self.is_rotten,
            Error::State(_) | Error::Circuit { .. } | Error::Bug(_) => false,
            Error::Input { .. } => had(|fault| matches!(fault, Fault::Fails { fatal: true, .. })),
            Error::Output { error: EndpointError::Storage { .. }, .. } => {
                had(|fault| matches!(fault, Fault::OutputFails { .. }))
            }
            Error::Output { .. } | Error::Diverged(_) => self.is_rotten,
            Error::Protocol(_) => had(|fault| matches!(fault, Fault::Dies { .. })),
            Error::Stalled { .. } => {
                self.plan.stops_on_stall
                    && had(|fault| {
                        use Fault::{Dies, Frozen, Late, Mute};
                        matches!(fault, Late { .. } | Mute { .. } | Dies { .. } | Frozen { .. })
                    })
            }
            Error::StoppedLate { .. } => had(|fault| matches!(fault, Fault::Stop)),
        };
        if !is_expected {
            self.breach(format!("the run failed without a reason: {error}"));
        }
    }

    /// A process is still there long after the last fault has passed.
    pub(crate) fn judge_waiting(&mut self, strikes: &[Strike]) {
        // Time that a process did not have; a reader that nobody wants to wait for; an input that somebody paused.
        let lasts =
            |strike: &Strike| matches!(strike.fault, Fault::Frozen { .. } | Fault::Mute { .. });
        let waits = strikes.iter().any(lasts) || self.may_be_paused.contains(&true);
        if !(waits || self.plan.is_endless() && self.is_complete()) {
            self.breach("nothing is wrong any more, and it does not go on".into());
        }
        self.note(|| "killed while it waited".into());
    }

    /// Nothing goes wrong any more, and everything has ended: is everything there, once, and in order?
    pub(crate) fn judge_outputs(&mut self) {
        let mut breaches = Vec::new();
        for (output, destination) in self.destinations.iter().enumerate() {
            let mut seen: BTreeMap<(usize, u32), Vec<&Row>> = BTreeMap::new();
            for row in &destination.rows {
                seen.entry((row.input, row.partition)).or_default().push(row);
            }
            for (input, upstream) in self.upstreams.iter().enumerate() {
                for partition in 0..upstream.partitions {
                    let rows = seen.remove(&(input, partition)).unwrap_or_default();
                    let place = format!("output {output}, input {input}, partition {partition}");
                    for (at, row) in rows.iter().enumerate() {
                        if row.value != value(self.plan.seed, input, partition, row.n) {
                            breaches.push(format!("{place}: record {} is another", row.n));
                        }
                        if row.tally != at as u64 + 1 {
                            let tally = row.tally;
                            breaches.push(format!("{place}: row {at} was counted as {tally}"));
                        }
                    }
                    let missing = (0..upstream.records).find(|n| {
                        !rows.iter().any(|row| row.n == *n)
                            && !upstream.was_elsewhere(partition, *n)
                    });
                    if let Some(n) = missing {
                        breaches.push(format!("{place}: record {n} is lost"));
                    }
                    let exact = rows.iter().map(|row| row.n).eq(0..upstream.records);
                    // What others of a group have had is theirs; everything else is cut back with the outputs.
                    let may_repeat = self.plan.inputs[input].kind == Kind::Group;
                    if !may_repeat && missing.is_none() && !exact {
                        let numbers: Vec<u32> = rows.iter().map(|row| row.n).collect();
                        breaches.push(format!("{place}: doubled or out of order: {numbers:?}"));
                    }
                }
            }
            if let Some((place, _)) = seen.pop_first() {
                breaches.push(format!("output {output} has records of {place:?}"));
            }
        }
        breaches.into_iter().for_each(|text| self.breach(text));
    }
}

/// Which command may follow, as the protocol's description says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CommandState {
    #[default]
    New,
    Replaying {
        answered: bool,
    },
    Running {
        asked: bool,
    },
    Paused {
        asked: bool,
    },
    Gone,
}

impl CommandState {
    fn allows(&mut self, command: &Command) -> bool {
        use CommandState::{Gone, New, Paused, Replaying, Running};
        let next = match (*self, command) {
            (Gone, _) => None,
            (_, Command::Disconnect) => Some(Gone),
            (New | Replaying { answered: true }, Command::Replay { .. }) => {
                Some(Replaying { answered: false })
            }
            (New | Replaying { answered: true }, Command::Extend) => Some(Running { asked: false }),
            (Paused { asked }, Command::Extend) => Some(Running { asked }),
            (Running { asked: false }, Command::Queue { .. }) => Some(Running { asked: true }),
            (Paused { asked: false }, Command::Queue { .. }) => Some(Paused { asked: true }),
            (Running { asked }, Command::Pause) => Some(Paused { asked }),
            _ => None,
        };
        *self = next.unwrap_or(*self);
        next.is_some()
    }

    pub(crate) fn answered(&mut self) {
        match self {
            Self::Replaying { answered } => *answered = true,
            Self::Running { asked } | Self::Paused { asked } => *asked = false,
            Self::New | Self::Gone => {}
        }
    }
}
