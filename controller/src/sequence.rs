//! The sequencing machine: which command goes to which reader, when a step exists, when it may be seen,
//! when a checkpoint can be taken.
//!
//! Pure: [`Sequence::handle`] takes an event and the time, [`Sequence::next_action`] gives what is to be
//! done. Not here: doing it ([`Controller`](crate::Controller)).
//!
//! The life of a step: the readers that hold something are asked for their part (*forming*); when the
//! last part has come the step exists and is *in flight*, where the journal and the circuit work on it
//! at the same time; it is written when both are done with it, in order; then it leaves.

mod checkpoint;
mod ending;
mod event;
mod fault;
mod flight;
mod input;
mod pace;
#[cfg(test)]
mod schedules;
mod shape;
mod steer;
#[cfg(test)]
mod steering;
mod step;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use lockgate_core::{
    Batch, BufferSize, FaultTolerance, InputReaderCommand, ProtocolError, ReaderState, Resume, size,
};
use serde_json::Value as JsonValue;

pub use checkpoint::CheckpointStage;
use ending::Ending;
pub use event::{Action, Checkpoint, Event, Failure, JournalPart, JournaledStep, Notice, Outcome};
pub use fault::SequenceFault;
use flight::Flight;
use input::Input;
pub use input::PauseReason;
pub use steer::{Answer, Ticket};
use steer::{CheckpointWaiters, Reloading, Suspension};
use step::Forming;

use crate::tuning::{InputTuning, OnStall, Tuning};

/// What the machine has to know about an input.
#[derive(Clone, Debug)]
pub struct SequenceInput {
    /// Its name.
    pub name: String,
    /// How it is read.
    pub tuning: InputTuning,
    /// Where it was opened: the last checkpoint's position, or its start.
    pub seek: Option<JsonValue>,
    /// Whether somebody has paused it before this run.
    pub paused: bool,
    /// The inputs that must have ended before it is read.
    pub start_after: Vec<usize>,
}

impl SequenceInput {
    /// An input that is read from the start, opened at `seek`.
    pub fn new(name: impl Into<String>, tuning: InputTuning, seek: Option<JsonValue>) -> Self {
        Self { name: name.into(), tuning, seek, paused: false, start_after: Vec::new() }
    }
}

/// The rules by which the machine decides.
#[derive(Clone, Debug)]
pub struct SequenceSettings {
    /// What the readers promised. Steps are journaled under [`FaultTolerance::ExactlyOnce`].
    pub level: FaultTolerance,
    /// What may change while it runs.
    pub tuning: Tuning,
    /// Steps in flight hold at most this many bytes, plus one step.
    pub max_bytes_in_flight: u64,
}

/// Steps in flight at most. More would not go faster: the journal writes all that wait in one go.
const MAX_STEPS_IN_FLIGHT: usize = 8;

/// The sequencing machine of one run.
#[derive(Clone, Debug)]
pub struct Sequence {
    settings: SequenceSettings,
    inputs: Vec<Input>,
    phase: Phase,
    /// The last step that exists.
    last_step: u64,
    forming: Option<Forming>,
    flight: Flight,
    checkpoint: CheckpointStage,
    /// The last step that a checkpoint covers.
    checkpointed_step: u64,
    checkpoint_due: Duration,
    checkpoint_requested: bool,
    /// When the checkpoint under way, or the last one, began.
    checkpoint_began: Duration,
    /// Inputs whose readers hold records.
    holding: BTreeSet<usize>,
    /// Inputs that stand where no checkpoint can be taken.
    barriers: BTreeSet<usize>,
    /// Since when something is buffered that no step has taken.
    held_since: Option<Duration>,
    /// Since when those that stay where they are, for the sake of a checkpoint, do so: another reader at a
    /// barrier moved then, or they were asked all the same.
    staying_since: Duration,
    /// Why outputs and journal wait for space on a disk, one reason for each that does.
    blocked: Vec<String>,
    /// Inputs whose readers hold records that may not enter a step yet.
    paced: BTreeSet<usize>,
    /// Inputs that wait for the end of others.
    waiting_to_start: BTreeSet<usize>,
    checkpoint_waiters: CheckpointWaiters,
    suspension: Suspension,
    reloading: Option<Reloading>,
    /// When an orderly stop must have ended.
    stop_deadline: Option<Duration>,
    actions: VecDeque<Action>,
    fault: Option<SequenceFault>,
}

#[derive(Clone, Debug)]
enum Phase {
    Replaying {
        steps: VecDeque<JournaledStep>,
        loading: bool,
        complete: bool,
        replayed: u64,
    },
    Running,
    /// No new input is wanted; `ending` says how the run will end.
    Stopping {
        ending: Ending,
    },
    /// All input was handed over: the outputs close what they hold open.
    Finishing,
    /// The last checkpoint is being taken; `ending` says how the run ends then.
    Ending {
        ending: Ending,
    },
    Done,
}

impl Sequence {
    /// A machine over freshly opened readers. `last_step` is the last step that the last checkpoint
    /// covers (0 if there is none); under exactly-once the journal is asked for what came after it.
    pub fn new(
        settings: SequenceSettings,
        inputs: Vec<SequenceInput>,
        last_step: u64,
        now: Duration,
    ) -> Self {
        let level = settings.level;
        let inputs: Vec<_> =
            inputs.into_iter().map(|input| Input::new(input, level, now)).collect();
        let waits = |input: &usize| inputs[*input].pauses.contains(&PauseReason::StartOrder);
        let waiting_to_start = (0..inputs.len()).filter(waits);
        let mut sequence = Self {
            checkpoint_due: now.saturating_add(settings.tuning.checkpoint_interval),
            phase: Phase::Running,
            settings,
            waiting_to_start: waiting_to_start.collect(),
            inputs,
            last_step,
            forming: None,
            flight: Flight::default(),
            checkpoint: CheckpointStage::Idle,
            checkpointed_step: last_step,
            checkpoint_requested: false,
            checkpoint_began: now,
            holding: BTreeSet::new(),
            barriers: BTreeSet::new(),
            held_since: None,
            staying_since: now,
            blocked: Vec::new(),
            paced: BTreeSet::new(),
            checkpoint_waiters: CheckpointWaiters::default(),
            suspension: Suspension::default(),
            reloading: None,
            stop_deadline: None,
            actions: VecDeque::new(),
            fault: None,
        };
        if level == FaultTolerance::ExactlyOnce {
            let steps = VecDeque::new();
            sequence.phase =
                Phase::Replaying { steps, loading: true, complete: false, replayed: 0 };
            sequence.act(Action::LoadJournal { after: last_step });
        } else {
            sequence.extend_all(now);
        }
        sequence
    }

    /// The next thing to do, if there is one.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Tick`] is due if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Duration> {
        if matches!(self.phase, Phase::Done) {
            return None;
        }
        let stall = (self.forming.iter())
            .flat_map(|forming| &forming.missing)
            .filter_map(|input| self.inputs[*input].stall_due(self.settings.tuning.stall_timeout))
            .min();
        let phase = match &self.phase {
            Phase::Running if self.forming.is_none() => {
                let may_cut = self.checkpoint != CheckpointStage::ClearingBarriers
                    || self.holding.iter().any(|input| !self.inputs[*input].has_barriers);
                let cut = self.cut_due().filter(|_| may_cut && self.can_form());
                let stay = self.staying().next().map(|_| self.stay_due());
                let stay = stay.filter(|_| self.can_form());
                let checkpoint = self.checkpoint_is_useful().then_some(self.checkpoint_due);
                cut.into_iter().chain(stay).chain(checkpoint).min()
            }
            _ => None,
        };
        let paced = self.paced.iter().filter_map(|input| self.inputs[*input].pace);
        let paced = paced.map(|pace| pace.next_at).min();
        stall.into_iter().chain(phase).chain(paced).chain(self.stop_deadline).min()
    }

    /// The last step that exists.
    pub fn last_step(&self) -> u64 {
        self.last_step
    }

    /// The last step that a durable checkpoint covers.
    pub fn checkpointed_step(&self) -> u64 {
        self.checkpointed_step
    }

    /// Whether journaled steps are being replayed.
    pub fn is_replaying(&self) -> bool {
        matches!(self.phase, Phase::Replaying { .. })
    }

    /// Whether the run is about to end.
    pub fn is_stopping(&self) -> bool {
        !matches!(self.phase, Phase::Replaying { .. } | Phase::Running)
    }

    /// How far the checkpoint under way has come.
    pub fn checkpoint_stage(&self) -> CheckpointStage {
        self.checkpoint
    }

    /// Whether the reader of `input` stands at a barrier.
    pub fn at_barrier(&self, input: usize) -> bool {
        self.barriers.contains(&input)
    }

    /// Whether the reader of `input` has been silent for longer than the stall timeout.
    pub fn is_stalled(&self, input: usize) -> bool {
        self.inputs[input].stalled
    }

    /// What the reader of `input` holds.
    pub fn held(&self, input: usize) -> BufferSize {
        self.inputs[input].protocol.held()
    }

    /// Where the reader of `input` stands in the protocol.
    pub fn reader_state(&self, input: usize) -> ReaderState {
        self.inputs[input].protocol.state()
    }

    /// Whether the reader of `input` has reported the end of its input.
    pub fn has_ended(&self, input: usize) -> bool {
        self.inputs[input].protocol.ended()
    }

    /// Why `input` is paused; none means that it runs.
    pub fn pause_reasons(&self, input: usize) -> Vec<PauseReason> {
        self.inputs[input].pauses.iter().copied().collect()
    }

    /// Whether changed settings wait until what was read under the old ones has been handed over.
    pub fn is_reloading(&self) -> bool {
        self.reloading.is_some()
    }

    /// How many steps exist and are not written yet.
    pub fn steps_in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Takes in what happened at time `now` (from any fixed beginning, never going back).
    pub fn handle(&mut self, now: Duration, event: Event) {
        if matches!(self.phase, Phase::Done) {
            return;
        }
        self.take_in(now, event);
        self.check_time(now);
        self.advance(now);
        debug_assert!(
            self.next_deadline().is_none_or(|deadline| deadline > now),
            "what is due is done"
        );
    }

    fn take_in(&mut self, now: Duration, event: Event) {
        match event {
            Event::Tick => {}
            Event::Buffered { input, amount } => self.buffered(now, input, amount),
            Event::Discarded { input, amount } => {
                let checked = self.inputs[input].protocol.discarded(amount);
                if self.believe(now, checked) && self.held(input).records == 0 {
                    self.holding.remove(&input);
                    self.paced.remove(&input);
                    if self.holding.is_empty() {
                        self.held_since = None;
                    }
                }
            }
            Event::Replayed { input, batches } => {
                let checked = self.inputs[input].protocol.replayed(size(&batches));
                if self.believe(now, checked) {
                    self.answered(input, batches, None);
                }
            }
            Event::Extended { input, batches, resume } => {
                let given = size(&batches);
                let checked = self.inputs[input].protocol.extended(given, &resume);
                if self.believe(now, checked) {
                    let rest = self.inputs[input].protocol.held().records;
                    self.inputs[input].stopped = given.records == 0 && rest > 0;
                    self.inputs[input].gave(now, given.records);
                    if rest == 0 || self.has(SequenceFault::RestForgotten) {
                        self.holding.remove(&input);
                    }
                    self.keep_pace(now, input);
                    self.answered(input, batches, Some(resume));
                }
            }
            Event::EndOfInput { input } => {
                let ended = self.inputs[input].protocol.eoi();
                self.believe(now, ended);
            }
            Event::InputFailed { input, fatal: false, error } => {
                let (kind, text) = (error.kind(), error.to_string());
                self.act(Action::Notify(Notice::InputError { input, kind, text }));
            }
            Event::InputFailed { input, fatal: true, error } => {
                self.inputs[input].protocol.fatal();
                self.fail(now, Failure::Input { input, error });
            }
            Event::InputClosed { input } => {
                let closed = self.inputs[input].protocol.closed();
                if self.believe(now, closed) {
                    self.closed(input);
                }
            }
            Event::JournalLoaded { steps: loaded } => {
                let half = self.has(SequenceFault::JournalHalfLoaded);
                if let Phase::Replaying { steps, loading, complete, .. } = &mut self.phase {
                    *loading = false;
                    *complete = loaded.is_empty() || half;
                    steps.extend(loaded);
                }
            }
            Event::Hashed { step, digests } => match self.flight.hashed(step, &digests) {
                Ok(Some(step)) => {
                    if self.has(SequenceFault::WriteBeforeJournal) {
                        self.flight.journaled(step.step);
                    }
                    self.act(Action::Journal(step));
                }
                Ok(None) => {}
                Err(failure) => self.done(Outcome::failed(failure)),
            },
            Event::Journaled { through } => self.flight.journaled(through),
            Event::Stepped { step } => self.flight.stepped(step),
            Event::Written { step } => self.flight.written(step),
            Event::Blocked { reason } => {
                self.blocked.push(reason.clone());
                (0..self.inputs.len()).for_each(|i| self.pause(now, i, PauseReason::Backpressure));
                self.no_checkpoint_for_now(now);
                self.act(Action::Notify(Notice::Blocked { reason }));
            }
            Event::Unblocked => {
                self.blocked.pop();
                if self.blocked.is_empty() {
                    self.act(Action::Notify(Notice::Unblocked));
                    (0..self.inputs.len())
                        .for_each(|i| self.resume(now, i, PauseReason::Backpressure));
                }
            }
            Event::Finished => {
                if matches!(self.phase, Phase::Finishing) {
                    self.phase = Phase::Ending { ending: Ending::Completed };
                }
            }
            Event::Prepared { circuit, positions } => self.store(circuit, positions),
            Event::Stored => {
                self.stored();
            }
            Event::Completed => {
                self.checkpoint.advance(CheckpointStage::Idle);
                self.checkpoint_completed();
                self.checkpoint_due = now.saturating_add(self.settings.tuning.checkpoint_interval);
                let step = self.checkpointed_step;
                let took = now.saturating_sub(self.checkpoint_began);
                self.act(Action::Notify(Notice::Checkpointed { step, took }));
                if matches!(self.phase, Phase::Ending { .. }) {
                    self.end();
                }
            }
            Event::Broken { failure } => self.done(Outcome::failed(failure)),
            Event::PauseRequested { input } => self.pause(now, input, PauseReason::User),
            Event::ResumeRequested { input } => self.resume(now, input, PauseReason::User),
            Event::PausesAwaited { ticket } => self.keep_pauses(ticket),
            Event::PausesKept { ticket } => self.answer(ticket, Answer::PausesKept),
            Event::CheckpointRequested => self.checkpoint_requested = true,
            Event::CheckpointAwaited { ticket } => self.await_checkpoint(ticket),
            Event::SuspendRequested { ticket } => self.suspend(now, ticket),
            Event::ReloadRequested { reload, ticket } => self.reload(now, reload, ticket),
            Event::StopRequested => {
                if std::mem::take(&mut self.suspension.stops) {
                    self.stop_deadline = None;
                }
                self.stop(now, Ending::Stopped);
            }
        }
    }

    fn buffered(&mut self, now: Duration, input: usize, amount: BufferSize) {
        let buffered = self.inputs[input].protocol.buffered(amount);
        if self.believe(now, buffered) && !self.is_replaying() && amount.records > 0 {
            self.holding.insert(input);
            self.held_since.get_or_insert(now);
            self.keep_pace(now, input);
        }
    }

    /// What a rate keeps back does not count as held until its time has come.
    fn keep_pace(&mut self, now: Duration, input: usize) {
        let holds = self.held(input).records > 0;
        // A stop does not wait for it: a reader may have to get away from a barrier.
        let pace = self.inputs[input].pace.filter(|_| !self.is_stopping());
        let waits = pace.is_some_and(|pace| pace.next_at > now);
        if holds && waits && self.holding.remove(&input) {
            self.paced.insert(input);
        } else if !waits && self.paced.remove(&input) && holds {
            self.holding.insert(input);
            self.held_since.get_or_insert(now);
        }
        if self.holding.is_empty() && self.forming.is_none() {
            self.held_since = None;
        }
    }

    fn paced_may_go_on(&mut self, now: Duration) {
        for input in std::mem::take(&mut self.paced) {
            self.paced.insert(input);
            self.keep_pace(now, input);
        }
    }

    /// Lets the inputs read on that waited for the end of others.
    fn start_those_in_turn(&mut self, now: Duration) {
        for input in self.waiting_to_start.clone() {
            let before = &self.inputs[input].start_after;
            if before.iter().all(|before| self.inputs[*before].is_done()) {
                self.waiting_to_start.remove(&input);
                self.resume(now, input, PauseReason::StartOrder);
            }
        }
    }

    fn answered(&mut self, input: usize, batches: Vec<Batch>, resume: Option<Resume>) {
        if self.inputs[input].answered() {
            self.act(Action::Notify(Notice::Answered { input }));
        }
        let doubled = self.has(SequenceFault::PartDoubled);
        let batches = if doubled { [&batches[..], &batches].concat() } else { batches };
        // After a failure the step under way is given up; a late answer has no place.
        if let Some(forming) = &mut self.forming
            && forming.missing.remove(&input)
        {
            forming.parts.insert(input, (batches, resume));
        }
    }

    /// A protocol error of a reader ends the run; whether there was none.
    fn believe(&mut self, now: Duration, checked: Result<(), ProtocolError>) -> bool {
        match checked {
            Ok(()) => true,
            Err(error) => {
                self.fail(now, Failure::Protocol(error));
                false
            }
        }
    }

    fn check_time(&mut self, now: Duration) {
        if matches!(self.phase, Phase::Done) {
            return;
        }
        let missing: Vec<usize> = (self.forming.iter())
            .flat_map(|forming| &forming.missing)
            .copied()
            .filter(|input| {
                self.inputs[*input]
                    .stall_due(self.settings.tuning.stall_timeout)
                    .is_some_and(|due| due <= now)
            })
            .collect();
        for input in missing {
            let silent = self.inputs[input].stall(now);
            self.act(Action::Notify(Notice::Stalled { input, silent }));
            if self.settings.tuning.on_stall == OnStall::Stop {
                self.fail(now, Failure::Stalled { input, silent });
            }
        }
        self.paced_may_go_on(now);
        if self.stop_deadline.is_some_and(|deadline| deadline <= now)
            && !self.has(SequenceFault::StopNeverLate)
        {
            let checkpoint = self.checkpointed_step;
            if self.call_off_suspension(now, &Answer::Late { checkpoint }) {
                return;
            }
            let outcome = match self.take_ending() {
                Some(Ending::Failed(failure)) => Outcome::Failed(failure),
                _ => Outcome::StoppedLate,
            };
            self.done(outcome);
        }
    }

    /// Does everything that can be done now.
    fn advance(&mut self, now: Duration) {
        loop {
            // Between the positions of a checkpoint and its completion nothing is written: what the
            // outputs complete then is exactly what the positions claim.
            while self.checkpoint.lets_write()
                && let Some(step) = self.flight.next_to_write()
            {
                self.act(Action::Write { step });
            }
            self.start_those_in_turn(now);
            if self.advance_reload(now) {
                continue;
            }
            let moved = match &self.phase {
                Phase::Done => false,
                Phase::Replaying { .. } => self.advance_replay(now),
                _ => self.advance_run(now),
            };
            if !moved {
                break;
            }
        }
    }

    fn advance_run(&mut self, now: Duration) -> bool {
        if self.forming.is_some() {
            return self.complete_step(now);
        }
        if self.advance_checkpoint(now) {
            return true;
        }
        if matches!(self.phase, Phase::Running)
            && (self.flight.is_empty() || self.has(SequenceFault::EndsTooEarly))
            && self.holding.is_empty()
            && self.inputs.iter().all(Input::is_done)
            && self.barriers.is_empty()
            && self.checkpoint == CheckpointStage::Idle
        {
            self.phase = Phase::Finishing;
            self.act(Action::Finish);
            return true;
        }
        self.ask_for_step(now)
    }

    fn send(&mut self, now: Duration, input: usize, command: InputReaderCommand) {
        match self.inputs[input].protocol.send(&command) {
            Ok(()) => {
                if matches!(
                    command,
                    InputReaderCommand::Replay { .. } | InputReaderCommand::Queue { .. }
                ) {
                    self.inputs[input].asked(now);
                }
                self.inputs[input].sent(&command);
                if matches!(command, InputReaderCommand::Queue { .. })
                    && self.inputs[input].pace.is_some()
                {
                    self.limit_batch(input);
                }
                self.act(Action::Send { input, command });
            }
            // Never sent: the machine itself is wrong.
            Err(error) => {
                self.phase = Phase::Done;
                self.act(Action::Done(Outcome::failed(Failure::Bug(error.to_string()))));
            }
        }
    }

    fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }
}
