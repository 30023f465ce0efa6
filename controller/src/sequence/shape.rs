//! What of a machine decides what it will do, and nothing else: two machines of one shape do the same from
//! now on. A model check that knows one of them need not look at the other.
//!
//! Times count from now, and a time that has come is as good as any earlier one. Steps count from the last
//! checkpoint. Left out are the settings, which do not change, and what only goes into messages: how long a
//! reader has been silent, how many steps were replayed, the wording of an error.

use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::time::Duration;

use lockgate_core::{Batch, PartDigest};

use super::ending::Ending;
use super::flight::{Flight, Proof};
use super::input::Input;
use super::step::Forming;
use super::{CheckpointStage, Failure, JournalPart, JournaledStep, Phase, Sequence};

impl Sequence {
    /// Feeds the machine's shape at time `now` to `hasher`. The actions must have been taken out.
    #[doc(hidden)]
    pub fn hash_shape(&self, now: Duration, hasher: &mut impl Hasher) {
        debug_assert!(self.actions.is_empty(), "actions are still to be done");
        let from_checkpoint = |step: u64| step.saturating_sub(self.checkpointed_step);
        for input in &self.inputs {
            hash_input(input, self.settings.tuning.stall_timeout, now, hasher);
        }
        hash_phase(&self.phase, from_checkpoint, hasher);
        from_checkpoint(self.last_step).hash(hasher);
        self.forming.is_some().hash(hasher);
        if let Some(forming) = &self.forming {
            hash_forming(forming, hasher);
        }
        hash_flight(&self.flight, hasher);
        discriminant(&self.checkpoint).hash(hasher);
        if let CheckpointStage::Preparing { step }
        | CheckpointStage::Storing { step }
        | CheckpointStage::Completing { step } = self.checkpoint
        {
            from_checkpoint(step).hash(hasher);
        }
        // Set anew when a checkpoint is complete and when a replay is over.
        if self.checkpoint == CheckpointStage::Idle && matches!(self.phase, Phase::Running) {
            self.checkpoint_due.saturating_sub(now).hash(hasher);
        }
        self.checkpoint_requested.hash(hasher);
        self.holding.hash(hasher);
        self.barriers.hash(hasher);
        self.cut_due().map(|due| due.saturating_sub(now)).hash(hasher);
        // Set anew when a checkpoint begins.
        if self.checkpoint == CheckpointStage::ClearingBarriers {
            self.stay_due().saturating_sub(now).hash(hasher);
        }
        self.blocked.len().hash(hasher);
        (&self.paced, &self.waiting_to_start).hash(hasher);
        self.checkpoint_waiters.lens().hash(hasher);
        (self.suspension.is_wanted(), self.suspension.stops).hash(hasher);
        self.reloading.as_ref().map(|reloading| &reloading.inputs).hash(hasher);
        self.stop_deadline.map(|due| due.saturating_sub(now)).hash(hasher);
    }
}

fn hash_input(input: &Input, stall_timeout: Duration, now: Duration, hasher: &mut impl Hasher) {
    input.protocol.hash(hasher);
    input.seek.hash(hasher);
    input.pauses.hash(hasher);
    (input.has_barriers, input.stopped).hash(hasher);
    input.stalled.hash(hasher);
    (input.drain_shape(), input.tuning).hash(hasher);
    input.pace.map(|pace| pace.next_at.saturating_sub(now)).hash(hasher);
    input.stall_due(stall_timeout).map(|due| due.saturating_sub(now)).hash(hasher);
}

fn hash_phase(phase: &Phase, from_checkpoint: impl Fn(u64) -> u64, hasher: &mut impl Hasher) {
    discriminant(phase).hash(hasher);
    match phase {
        Phase::Replaying { steps, loading, complete, replayed: _ } => {
            steps.len().hash(hasher);
            for step in steps {
                from_checkpoint(step.step).hash(hasher);
                hash_parts(&step.parts, hasher);
            }
            (loading, complete).hash(hasher);
        }
        Phase::Stopping { ending } | Phase::Ending { ending } => {
            discriminant(ending).hash(hasher);
            if let Ending::Failed(failure) = ending {
                discriminant::<Failure>(failure).hash(hasher);
            }
        }
        Phase::Running | Phase::Finishing | Phase::Done => {}
    }
}

fn hash_forming(forming: &Forming, hasher: &mut impl Hasher) {
    forming.missing.hash(hasher);
    let journaled = forming.journaled.as_ref();
    journaled.is_some().hash(hasher);
    if let Some(JournaledStep { step: _, parts }) = journaled {
        hash_parts(parts, hasher);
    }
    forming.parts.len().hash(hasher);
    for (input, (batches, resume)) in &forming.parts {
        input.hash(hasher);
        hash_batches(batches, hasher);
        resume.is_some().hash(hasher);
        if let Some(resume) = resume {
            resume.level().hash(hasher);
            resume.seek().hash(hasher);
            if let lockgate_core::Resume::Replay { replay, .. } = resume {
                hash_value(replay, hasher);
            }
        }
    }
}

/// The steps in flight are the last that exist, without a gap, so their numbers need not be told.
fn hash_flight(flight: &Flight, hasher: &mut impl Hasher) {
    flight.len().hash(hasher);
    for step in flight.iter() {
        (step.bytes, step.stepped, step.writing).hash(hasher);
        discriminant(&step.proof).hash(hasher);
        if let Proof::Journal(parts) | Proof::Compare(parts) = &step.proof {
            hash_parts(parts, hasher);
        }
    }
}

fn hash_parts(parts: &[JournalPart], hasher: &mut impl Hasher) {
    parts.len().hash(hasher);
    for JournalPart { input, seek, replay, digest } in parts {
        let PartDigest { records, hash } = digest;
        (input, seek, records, hash).hash(hasher);
        hash_value(replay, hasher);
    }
}

fn hash_batches(batches: &[Batch], hasher: &mut impl Hasher) {
    batches.len().hash(hasher);
    for batch in batches {
        batch.partition().hash(hasher);
        for record in batch.iter() {
            (record.offset, record.value).hash(hasher);
        }
    }
}

/// By what it looks like, since it may hold a number that is not one.
fn hash_value(value: &rmpv::Value, hasher: &mut impl Hasher) {
    value.to_string().hash(hasher);
}
