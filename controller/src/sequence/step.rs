//! How a step comes to be: whom to ask, when, and what exists when all have answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::{
    Batch, FaultTolerance, InputReaderCommand, Part, PartDigest, Position, ReaderState, Resume,
    Step,
};

use super::ending::Ending;
use super::flight::Proof;
use super::{
    Action, CheckpointStage, Failure, JournalPart, JournaledStep, MAX_STEPS_IN_FLIGHT, Notice,
    Outcome, Phase, Sequence, SequenceFault,
};

/// The step being formed.
#[derive(Clone, Debug)]
pub(super) struct Forming {
    /// What is replayed, or `None` for a new step.
    pub(super) journaled: Option<JournaledStep>,
    pub(super) missing: BTreeSet<usize>,
    pub(super) parts: BTreeMap<usize, (Vec<Batch>, Option<Resume>)>,
}

impl Sequence {
    pub(super) fn advance_replay(&mut self, now: Duration) -> bool {
        if self.forming.is_some() {
            return self.complete_step(now);
        }
        let has_room = self.has_room();
        let last_step = self.last_step;
        let Phase::Replaying { steps, loading, complete, replayed } = &mut self.phase else {
            return false;
        };
        if *loading || !has_room {
            return false;
        }
        if let Some(step) = steps.pop_front() {
            *replayed += 1;
            self.ask_for_replay(now, step);
        } else if *complete {
            let steps = *replayed;
            self.phase = Phase::Running;
            if steps > 0 {
                self.act(Action::Notify(Notice::Replayed { steps }));
            }
            self.checkpoint_due = now.saturating_add(self.settings.tuning.checkpoint_interval);
            self.extend_all(now);
            self.suspend_if_wanted(now);
        } else {
            *loading = true;
            self.act(Action::LoadJournal { after: last_step });
        }
        true
    }

    pub(super) fn ask_for_replay(&mut self, now: Duration, step: JournaledStep) {
        if step.step != self.last_step + 1 {
            let text =
                format!("the journal goes from step {} to step {}", self.last_step, step.step);
            return self.done(Outcome::failed(Failure::Bug(text)));
        }
        let missing = step.parts.iter().map(|part| part.input).collect();
        for part in &step.parts {
            let command = InputReaderCommand::Replay {
                metadata: part.seek.json().clone(),
                data: part.replay.clone(),
            };
            self.send(now, part.input, command);
        }
        self.forming = Some(Forming { journaled: Some(step), missing, parts: BTreeMap::new() });
    }

    pub(super) fn can_form(&self) -> bool {
        let stage = matches!(
            self.checkpoint,
            CheckpointStage::Idle
                | CheckpointStage::ClearingBarriers
                | CheckpointStage::Storing { .. }
                | CheckpointStage::Completing { .. }
        );
        // A failed run takes no more steps.
        let phase =
            matches!(self.phase, Phase::Running | Phase::Stopping { ending: Ending::Stopped });
        stage && phase && self.forming.is_none() && self.has_room() && self.blocked.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.flight.len() < MAX_STEPS_IN_FLIGHT
            && self.flight.bytes() <= self.settings.max_bytes_in_flight
            || self.has(SequenceFault::RoomIgnored)
    }

    /// When a step is cut at the latest.
    pub(super) fn cut_due(&self) -> Option<Duration> {
        self.held_since.map(|since| since.saturating_add(self.settings.tuning.max_buffering_delay))
    }

    /// The inputs to ask for their part of the next step now; the others would answer with nothing, and
    /// their positions do not change. Empty if no step is due.
    pub(super) fn due_inputs(&self, now: Duration) -> BTreeSet<usize> {
        let mut due = BTreeSet::new();
        if !self.can_form() {
            return due;
        }
        due.extend(self.to_drain());
        // A reader at a barrier with nothing left may have found a better position at the end.
        due.extend(self.barriers.iter().filter(|input| self.inputs[**input].is_done()));
        if self.checkpoint != CheckpointStage::ClearingBarriers {
            if matches!(self.phase, Phase::Running) && self.step_is_due(now, &self.holding) {
                due.extend(&self.holding);
            }
            return due;
        }
        // Those at a barrier go on at once.
        due.extend(self.holding.intersection(&self.barriers));
        match &self.phase {
            // Under exactly-once there are no barriers, but places where resuming is cheap.
            Phase::Running if self.settings.level == FaultTolerance::ExactlyOnce => {
                due.extend(&self.holding);
            }
            // One that got away from a barrier stays where it is, as long as others move away from theirs;
            // one that knows none may go on.
            Phase::Running => {
                if self.stay_due() <= now {
                    due.extend(self.staying());
                }
                let mut going_on = self.holding.clone();
                going_on.retain(|input| !self.inputs[*input].has_barriers);
                if self.step_is_due(now, &going_on) {
                    due.extend(going_on);
                }
            }
            _ => {}
        }
        due
    }

    /// The inputs that hold something and stay where they are, so that a checkpoint can be taken when others
    /// have got away from their barriers too.
    pub(super) fn staying(&self) -> impl Iterator<Item = usize> {
        let clearing = self.checkpoint == CheckpointStage::ClearingBarriers
            && matches!(self.phase, Phase::Running)
            && !self.has(SequenceFault::HeldUpByBarrier);
        let holding = self.holding.iter().copied().filter(move |_| clearing);
        holding.filter(|input| self.inputs[*input].has_barriers && !self.barriers.contains(input))
    }

    /// Until when they stay at most: a source that is idle at a barrier must not hold up the others.
    pub(super) fn stay_due(&self) -> Duration {
        self.staying_since.saturating_add(self.settings.tuning.max_buffering_delay)
    }

    /// Whether it is time for a step of the inputs in `from`, which hold something.
    pub(super) fn step_is_due(&self, now: Duration, from: &BTreeSet<usize>) -> bool {
        let held: u64 = from.iter().map(|input| self.held(*input).records).sum();
        let enough = held >= self.settings.tuning.min_batch_records;
        let late = || self.cut_due().is_some_and(|due| due <= now);
        let no_more = || from.iter().any(|input| self.inputs[*input].is_half_full());
        !from.is_empty() && (enough || late() || no_more())
    }

    pub(super) fn ask_for_step(&mut self, now: Duration) -> bool {
        let asked = self.due_inputs(now);
        if asked.is_empty() {
            return false;
        }
        if self.staying().any(|input| asked.contains(&input)) {
            self.staying_since = now;
        }
        for input in &asked {
            // One that has stopped for the checkpoint already would give nothing again and again.
            let checkpoint_requested = self.checkpoint == CheckpointStage::ClearingBarriers
                && (!self.inputs[*input].stopped || self.has(SequenceFault::StoppedAskedAgain));
            self.send(now, *input, InputReaderCommand::Queue { checkpoint_requested });
        }
        // What is left out of this step still waits.
        let waits = |input: &usize| !asked.contains(input) && !self.inputs[*input].has_barriers;
        if !self.holding.iter().any(waits) {
            self.held_since = None;
        }
        self.forming = Some(Forming { journaled: None, missing: asked, parts: BTreeMap::new() });
        true
    }

    /// The step exists when the last part has come.
    pub(super) fn complete_step(&mut self, now: Duration) -> bool {
        let Some(forming) = self.forming.take_if(|forming| forming.missing.is_empty()) else {
            return false;
        };
        // What is left was buffered at the latest now.
        self.held_since = (!self.holding.is_empty()).then(|| self.held_since.unwrap_or(now));
        if forming.parts.is_empty() {
            // All that were asked had ended, and closed instead of saying so once more: there is no step.
            self.drain_when_clear();
            return true;
        }
        let number = self.last_step + 1;
        let journals = self.settings.level == FaultTolerance::ExactlyOnce;
        let mut parts = Vec::with_capacity(forming.parts.len());
        let mut to_journal = Vec::new();
        let mut bytes = 0;
        for (input, (batches, resume)) in forming.parts {
            bytes += batches.iter().map(Batch::bytes).sum::<u64>();
            let mut seek = None;
            if let Some(resume) = resume {
                seek = resume.seek().cloned().map(Arc::new);
                self.take_position(now, input, seek.as_deref());
                if let (true, Resume::Replay { seek, replay }) = (journals, resume) {
                    let digest = PartDigest::default();
                    to_journal.push(JournalPart { input, seek, replay, digest });
                }
            }
            if let Some(step) = &forming.journaled {
                let part = step.parts.iter().find(|part| part.input == input);
                seek = part.map(|part| Arc::new(part.seek.clone()));
                if let Some(seek) = &seek
                    && !self.has(SequenceFault::ReplayedPositionLost)
                {
                    seek.apply(&mut self.inputs[input].seek);
                }
            }
            parts.push(Part { input, batches, seek });
        }
        let proof = match forming.journaled {
            Some(step) => Proof::Compare(step.parts),
            None if journals => Proof::Journal(to_journal),
            None => Proof::Given,
        };
        self.last_step = number;
        self.flight.push(number, bytes, proof);
        self.act(Action::Step(Step { number, parts }));
        self.drain_when_clear();
        true
    }

    /// A wanted checkpoint goes on when nobody stands at a barrier.
    fn drain_when_clear(&mut self) {
        if self.checkpoint == CheckpointStage::ClearingBarriers && self.barriers.is_empty() {
            self.checkpoint.advance(CheckpointStage::Draining);
        }
    }

    /// A reader with nothing left has closed instead of answering: it has no part in the step.
    pub(super) fn closed(&mut self, input: usize) {
        if self.inputs[input].answered() {
            self.act(Action::Notify(Notice::Answered { input }));
        }
        if let Some(forming) = &mut self.forming {
            forming.missing.remove(&input);
        }
    }

    /// The reader stands at `seek` after its part, or at a barrier.
    fn take_position(&mut self, now: Duration, input: usize, seek: Option<&Position>) {
        if self.barriers.contains(&input) {
            self.staying_since = now;
        }
        if let Some(seek) = seek {
            self.barriers.remove(&input);
            seek.apply(&mut self.inputs[input].seek);
        } else if self.settings.level > FaultTolerance::None {
            self.barriers.insert(input);
            self.inputs[input].has_barriers = true;
            // Even when stopping it must read on until it reaches a position that it can come back to.
            let paused = matches!(self.reader_state(input), ReaderState::Paused { .. });
            if paused && self.is_stopping() && self.inputs[input].pauses.is_empty() {
                self.send(now, input, InputReaderCommand::Extend);
            }
        }
    }
}
