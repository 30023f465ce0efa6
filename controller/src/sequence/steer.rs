//! What people may ask for while the pipeline runs: pause, checkpoint, suspend, change its settings.
//!
//! Whoever waits for an answer has a [`Ticket`]. What the run's end leaves unanswered is for the driver to tell.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::{InputReaderCommand, ReaderState};

use super::ending::Ending;
use super::input::Input;
use super::pace::Pace;
use super::{Action, PauseReason, Phase, Sequence, SequenceFault};
use crate::tuning::{InputTuning, Reload, largest_queue_bytes};

/// Names a request to which somebody waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Which inputs people have paused is durable.
    PausesKept,
    /// A checkpoint covers this step, the last that existed when it was asked for, or a later one.
    Checkpointed {
        /// The last step it covers.
        step: u64,
    },
    /// The run has ended in order.
    Suspended {
        /// The last step, which the last checkpoint covers.
        step: u64,
    },
    /// The changed settings are in force.
    Reloaded,
    /// There was no checkpoint, because something waits for space on a disk.
    Blocked {
        /// What waits, and why.
        reason: String,
        /// The last step that a checkpoint covers.
        checkpoint: u64,
    },
    /// There can be no checkpoint: somebody has paused an input where none can be taken.
    AtBarrier {
        /// The input's number.
        input: usize,
    },
    /// There was no checkpoint within the time that a stop may take.
    Late {
        /// The last step that a checkpoint covers.
        checkpoint: u64,
    },
}

/// Those who wait for a checkpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckpointWaiters {
    /// For one that has not begun.
    next: Vec<Ticket>,
    /// For the one under way.
    current: Vec<Ticket>,
}

impl CheckpointWaiters {
    pub(super) fn lens(&self) -> (usize, usize) {
        (self.next.len(), self.current.len())
    }
}

/// A wish to suspend: a stop that can be called off, since the pipeline is to run on unless its last checkpoint is
/// there.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspension {
    waiting: Vec<Ticket>,
    /// Whether the stop under way is for its sake alone.
    pub(super) stops: bool,
}

impl Suspension {
    pub(super) fn is_wanted(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Changed settings that wait until what was read under the old ones has been handed over.
#[derive(Clone, Debug)]
pub(super) struct Reloading {
    waiting: Vec<Ticket>,
    pub(super) inputs: Vec<InputTuning>,
}

impl Sequence {
    pub(super) fn pause(&mut self, now: Duration, input: usize, reason: PauseReason) {
        let Some(paused) = self.inputs.get_mut(input) else { return };
        paused.pauses.insert(reason);
        let runs = matches!(paused.protocol.state(), ReaderState::Running { .. });
        if runs || reason == PauseReason::Backpressure && self.has(SequenceFault::PausedTwice) {
            self.send(now, input, InputReaderCommand::Pause);
        }
    }

    pub(super) fn resume(&mut self, now: Duration, input: usize, reason: PauseReason) {
        let Some(resumed) = self.inputs.get_mut(input) else { return };
        resumed.pauses.remove(&reason);
        if reason == PauseReason::Backpressure && self.has(SequenceFault::UserPauseForgotten) {
            self.inputs[input].pauses.clear();
        }
        self.extend_if_free(now, input);
    }

    /// Lets the reader read, if nothing is against it.
    fn extend_if_free(&mut self, now: Duration, input: usize) {
        let waits = match self.inputs[input].protocol.state() {
            ReaderState::Paused { .. } => true,
            ReaderState::New | ReaderState::Replaying { answered: true } => !self.is_replaying(),
            _ => false,
        };
        // A stop wants no more, except from a reader that must get away from a barrier.
        let wanted = match &self.phase {
            Phase::Replaying { .. } | Phase::Running => true,
            Phase::Stopping { ending: Ending::Stopped } => self.barriers.contains(&input),
            _ => false,
        };
        let free =
            self.inputs[input].pauses.is_empty() || self.has(SequenceFault::PauseReasonsMixed);
        if waits && wanted && free {
            self.send(now, input, InputReaderCommand::Extend);
        }
    }

    pub(super) fn extend_all(&mut self, now: Duration) {
        for input in 0..self.inputs.len() {
            let is_new = matches!(
                self.inputs[input].protocol.state(),
                ReaderState::New | ReaderState::Replaying { answered: true }
            );
            if is_new && self.inputs[input].pauses.is_empty() {
                self.send(now, input, InputReaderCommand::Extend);
                if self.has(SequenceFault::ExtendedTwice) {
                    self.act(Action::Send { input, command: InputReaderCommand::Extend });
                }
            }
        }
    }

    pub(super) fn keep_pauses(&mut self, ticket: Ticket) {
        let inputs = (0..self.inputs.len())
            .filter(|input| self.inputs[*input].pauses.contains(&PauseReason::User))
            .collect();
        self.act(Action::KeepPauses { inputs, ticket });
    }

    pub(super) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.act(Action::Answer { ticket, answer });
    }

    pub(super) fn await_checkpoint(&mut self, ticket: Ticket) {
        if self.last_step == self.checkpointed_step && !self.is_stopping() {
            let step = self.checkpointed_step;
            return self.answer(ticket, Answer::Checkpointed { step });
        }
        if let Some(blocked) = self.blocked_answer() {
            return self.answer(ticket, blocked);
        }
        self.checkpoint_waiters.next.push(ticket);
        self.checkpoint_requested = true;
    }

    /// A checkpoint begins: no step that exists now is left out of it.
    pub(super) fn checkpoint_begins(&mut self, now: Duration) {
        self.checkpoint_began = now;
        self.checkpoint_requested = false;
        let waiters = &mut self.checkpoint_waiters;
        waiters.current.append(&mut waiters.next);
    }

    pub(super) fn checkpoint_completed(&mut self) {
        let step = self.checkpointed_step;
        for ticket in std::mem::take(&mut self.checkpoint_waiters.current) {
            self.answer(ticket, Answer::Checkpointed { step });
        }
    }

    pub(super) fn suspend(&mut self, now: Duration, ticket: Ticket) {
        if let Some(blocked) = self.blocked_answer() {
            return self.answer(ticket, blocked);
        }
        self.suspension.waiting.push(ticket);
        self.suspend_if_wanted(now);
    }

    /// Begins what waited for the end of a replay.
    pub(super) fn suspend_if_wanted(&mut self, now: Duration) {
        if self.suspension.is_wanted() && matches!(self.phase, Phase::Running) {
            self.suspension.stops = true;
            self.stop(now, Ending::Stopped);
        }
    }

    /// Something waits for space on a disk: nobody is told to wait for a checkpoint that may never come.
    pub(super) fn no_checkpoint_for_now(&mut self, now: Duration) {
        if let Some(blocked) = self.blocked_answer() {
            self.refuse_checkpoint(&blocked);
            self.call_off_suspension(now, &blocked);
        }
    }

    /// What those are told who want a checkpoint while something waits for space.
    fn blocked_answer(&self) -> Option<Answer> {
        let (reason, checkpoint) = (self.blocked.last()?.clone(), self.checkpointed_step);
        Some(Answer::Blocked { reason, checkpoint })
    }

    /// Gives this answer to all who wait for a checkpoint. Whether there was anybody.
    fn refuse_checkpoint(&mut self, answer: &Answer) -> bool {
        let CheckpointWaiters { current, next } = std::mem::take(&mut self.checkpoint_waiters);
        let waiting = current.into_iter().chain(next);
        waiting.map(|ticket| self.answer(ticket, answer.clone())).count() > 0
    }

    /// Tells those who wait for a checkpoint that there will be none, as long as an input that somebody has paused
    /// stands at a barrier. Whether there was anybody.
    pub(super) fn give_up_at_barriers(&mut self, now: Duration) -> bool {
        let is_held = |input: &usize| {
            let input = &self.inputs[*input];
            input.pauses.contains(&PauseReason::User)
                && matches!(input.protocol.state(), ReaderState::Paused { queued: false })
                && input.protocol.held().records == 0
        };
        let Some(input) = self.barriers.iter().copied().find(is_held) else { return false };
        let answer = Answer::AtBarrier { input };
        let has_waiters = self.refuse_checkpoint(&answer);
        self.suspension.stops && self.call_off_suspension(now, &answer) || has_waiters
    }

    /// The pipeline goes on as if nobody had wished to suspend it. Whether there was anything to call off.
    pub(super) fn call_off_suspension(&mut self, now: Duration, answer: &Answer) -> bool {
        let Suspension { waiting, stops } = std::mem::take(&mut self.suspension);
        for ticket in &waiting {
            self.answer(*ticket, answer.clone());
        }
        let is_suspending = stops
            && matches!(
                self.phase,
                Phase::Stopping { ending: Ending::Stopped }
                    | Phase::Ending { ending: Ending::Stopped }
            );
        if is_suspending {
            self.phase = Phase::Running;
            self.stop_deadline = None;
            self.drain_for_reload(now);
            if !self.has(SequenceFault::CalledOffStaysPaused) {
                (0..self.inputs.len()).for_each(|input| self.extend_if_free(now, input));
            }
        }
        is_suspending
    }

    /// Tells those who wished to suspend that it is done.
    pub(super) fn suspended(&mut self) {
        let step = self.checkpointed_step;
        for ticket in std::mem::take(&mut self.suspension.waiting) {
            self.answer(ticket, Answer::Suspended { step });
        }
    }

    /// Takes in changed settings. What bounds what readers hold takes effect when they hold nothing; a later wish
    /// takes the place of one that still waits.
    pub(super) fn reload(&mut self, now: Duration, reload: Reload, ticket: Ticket) {
        let Reload { tuning, inputs } = reload;
        let interval = tuning.checkpoint_interval;
        if interval != self.settings.tuning.checkpoint_interval {
            self.checkpoint_due = now.saturating_add(interval);
        }
        self.settings.tuning = tuning;
        let mut waiting = vec![ticket];
        if let Some(earlier) = self.reloading.take() {
            waiting.extend(earlier.waiting);
        }
        for (input, tuning) in inputs.iter().enumerate() {
            let Some(state) = self.inputs.get_mut(input) else { break };
            state.pace = match (state.pace, tuning.max_records_per_second) {
                (Some(mut pace), Some(rate)) => {
                    pace.set(rate, now);
                    Some(pace)
                }
                (None, Some(rate)) => Some(Pace::new(rate, now)),
                (_, None) => None,
            };
            state.pace_is_new = true;
            self.keep_pace(now, input);
            self.limit_batch(input);
        }
        self.reloading = Some(Reloading { waiting, inputs });
        if !self.is_stopping() {
            self.drain_for_reload(now);
        }
    }

    /// Says how much the reader is to give to a step.
    pub(super) fn limit_batch(&mut self, input: usize) {
        let pace = self.inputs[input].pace.filter(|_| !self.is_stopping());
        let records = pace.map_or(u64::MAX, |pace| pace.at_most());
        self.act(Action::LimitBatch { input, records });
    }

    /// Pauses the inputs whose readers must hold nothing before the changed settings can be in force, and no others.
    fn drain_for_reload(&mut self, now: Duration) {
        let Some(Reloading { inputs, .. }) = &self.reloading else { return };
        let is_bounded_otherwise = |(old, new): (&Input, &InputTuning)| {
            old.tuning.limits != new.limits
                || old.tuning.max_pending_records != new.max_pending_records
        };
        let drained: Vec<bool> = self.inputs.iter().zip(inputs).map(is_bounded_otherwise).collect();
        for (input, is_drained) in drained.into_iter().enumerate() {
            match is_drained {
                true => self.pause(now, input, PauseReason::Reload),
                false => self.resume(now, input, PauseReason::Reload),
            }
        }
    }

    /// Puts changed settings in force when the readers that they concern hold nothing. Whether it did.
    pub(super) fn advance_reload(&mut self, now: Duration) -> bool {
        let is_due = matches!(self.phase, Phase::Running | Phase::Replaying { .. })
            && self.forming.is_none();
        let Some(Reloading { waiting, inputs }) = self.reloading.take_if(|_| is_due) else {
            return false;
        };
        let unheard = self.has(SequenceFault::ReloadUnheard);
        let is_drained =
            |input: &Input| input.is_drained() || unheard && input.protocol.held().records == 0;
        if !self.inputs.iter().all(is_drained) {
            self.reloading = Some(Reloading { waiting, inputs });
            return false;
        }
        for (state, tuning) in self.inputs.iter_mut().zip(&inputs) {
            if state.pauses.contains(&PauseReason::Reload) {
                state.protocol.reload(tuning.limits);
            }
            state.tuning = *tuning;
        }
        self.settings.max_bytes_in_flight = largest_queue_bytes(&inputs);
        self.act(Action::Reload { inputs });
        if !self.has(SequenceFault::ReloadStaysPaused) {
            (0..self.inputs.len()).for_each(|input| self.resume(now, input, PauseReason::Reload));
        }
        waiting.into_iter().for_each(|ticket| self.answer(ticket, Answer::Reloaded));
        true
    }

    /// The inputs that must say once more that they hold nothing before changed settings can be in force: a reader
    /// that was told to pause may have read on until it heard of it.
    pub(super) fn to_drain(&self) -> BTreeSet<usize> {
        match &self.reloading {
            Some(_) => {
                let drains = |input: &usize| {
                    let input = &self.inputs[*input];
                    input.protocol.held().records == 0 && !input.is_drained()
                };
                (0..self.inputs.len()).filter(drains).collect()
            }
            None => BTreeSet::new(),
        }
    }
}
