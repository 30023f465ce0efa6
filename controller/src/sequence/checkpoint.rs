//! The stages of a checkpoint.

use std::time::Duration;

use lockgate_core::FaultTolerance;
use serde_json::Value as JsonValue;

use super::ending::Ending;
use super::{Action, Checkpoint, Phase, Sequence, SequenceFault};

/// How far a checkpoint has come. The stages follow each other in this order, and read as one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointStage {
    /// No checkpoint is wanted;
    Idle,
    /// one is wanted, so steps are cut until no reader stands at a barrier,
    ClearingBarriers,
    /// then no more step is cut until all that exist are written,
    Draining,
    /// then circuit and outputs give their state and positions,
    Preparing {
        /// after this step,
        step: u64,
    },
    /// which are stored in one transaction that also trims the journal,
    Storing {
        /// up to this step,
        step: u64,
    },
    /// and the outputs do what must follow.
    Completing {
        /// for all steps up to this one.
        step: u64,
    },
}

impl CheckpointStage {
    /// Whether steps may be written at this stage.
    pub(super) fn lets_write(self) -> bool {
        matches!(
            self,
            CheckpointStage::Idle
                | CheckpointStage::ClearingBarriers
                | CheckpointStage::Draining
                | CheckpointStage::Completing { .. }
        )
    }

    /// Goes on to `next`, which must follow.
    pub(super) fn advance(&mut self, next: CheckpointStage) {
        use CheckpointStage as S;
        let follows = match (*self, next) {
            (S::Idle, S::ClearingBarriers)
            | (S::ClearingBarriers, S::Draining)
            | (S::Draining, S::Preparing { .. })
            | (S::Completing { .. }, S::Idle) => true,
            (S::Preparing { step: a }, S::Storing { step: b })
            | (S::Storing { step: a }, S::Completing { step: b }) => a == b,
            _ => false,
        };
        debug_assert!(follows, "checkpoint stage {next:?} does not follow {self:?}");
        *self = next;
    }
}

impl Sequence {
    /// Whether there is anything new that a checkpoint would cover.
    pub(super) fn checkpoint_is_useful(&self) -> bool {
        self.checkpoint == CheckpointStage::Idle
            && self.last_step > self.checkpointed_step
            && !self.has(SequenceFault::CheckpointNeverDue)
    }

    /// Moves the checkpoint on if it can be moved.
    pub(super) fn advance_checkpoint(&mut self, now: Duration) -> bool {
        match self.checkpoint {
            CheckpointStage::Idle => {
                let wanted = match &self.phase {
                    Phase::Running => {
                        self.checkpoint_requested
                            || self.checkpoint_is_useful() && self.checkpoint_due <= now
                    }
                    Phase::Stopping { .. } | Phase::Ending { .. } => true,
                    _ => false,
                };
                if wanted {
                    self.checkpoint_begins(now);
                    self.staying_since = now;
                    self.checkpoint.advance(CheckpointStage::ClearingBarriers);
                }
                wanted
            }
            CheckpointStage::ClearingBarriers => {
                if self.give_up_at_barriers(now) {
                    return true;
                }
                // One more step lets readers stop where resuming is cheap.
                let one_more = matches!(self.phase, Phase::Running)
                    && self.settings.level == FaultTolerance::ExactlyOnce
                    && !self.holding.is_empty();
                let ignored = self.has(SequenceFault::BarrierIgnored);
                if (self.barriers.is_empty() || ignored) && !(one_more && self.can_form()) {
                    self.checkpoint.advance(CheckpointStage::Draining);
                    return true;
                }
                // A failed run takes no more steps, so a barrier stays.
                let stuck = !self.barriers.is_empty()
                    && match &self.phase {
                        Phase::Stopping { ending } => matches!(ending, Ending::Failed(_)),
                        Phase::Ending { .. } => true,
                        _ => false,
                    };
                if stuck && self.flight.is_empty() {
                    self.end();
                }
                false
            }
            CheckpointStage::Draining => {
                if !self.flight.is_empty() && !self.has(SequenceFault::DrainingSkipped) {
                    return false;
                }
                self.checkpoint.advance(CheckpointStage::Preparing { step: self.last_step });
                if matches!(self.phase, Phase::Stopping { .. })
                    && let Some(ending) = self.take_ending()
                {
                    self.phase = Phase::Ending { ending };
                }
                self.act(Action::Prepare);
                true
            }
            CheckpointStage::Preparing { .. }
            | CheckpointStage::Storing { .. }
            | CheckpointStage::Completing { .. } => false,
        }
    }

    /// Circuit and outputs are ready. No step was completed since, so the readers' last positions are
    /// those of the checkpoint.
    pub(super) fn store(&mut self, circuit: Vec<u8>, positions: Vec<JsonValue>) {
        let step = self.last_step_of_checkpoint();
        debug_assert_eq!(step, self.last_step);
        self.checkpoint.advance(CheckpointStage::Storing { step });
        let seeks = self.inputs.iter().map(|input| input.seek.clone()).collect();
        self.act(Action::Store(Checkpoint { step, circuit, seeks, positions }));
    }

    /// The checkpoint is durable.
    pub(super) fn stored(&mut self) {
        let step = self.last_step_of_checkpoint();
        self.checkpointed_step = step;
        self.checkpoint.advance(CheckpointStage::Completing { step });
        self.act(Action::Complete);
    }

    fn last_step_of_checkpoint(&self) -> u64 {
        match self.checkpoint {
            CheckpointStage::Preparing { step }
            | CheckpointStage::Storing { step }
            | CheckpointStage::Completing { step } => step,
            _ => self.last_step,
        }
    }
}
