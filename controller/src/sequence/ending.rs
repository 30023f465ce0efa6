//! How a run ends: in order where that is possible, with the reason either way.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::{InputReaderCommand, ReaderState};

use super::{Action, Failure, Outcome, PauseReason, Phase, Sequence, SequenceFault};

/// How a run that is about to end will end if nothing gets in the way.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    Completed,
    Stopped,
    Failed(Arc<Failure>),
}

impl Sequence {
    /// Wants no more input: steps under way are finished, barriers cleared, a last checkpoint taken.
    pub(super) fn stop(&mut self, now: Duration, ending: Ending) {
        self.stop_deadline.get_or_insert(now.saturating_add(self.settings.tuning.shutdown_timeout));
        if self.is_stopping() {
            return;
        }
        if self.has(SequenceFault::StopWithoutCheckpoint) {
            return self.done(Outcome::Stopped);
        }
        let failed = matches!(ending, Ending::Failed(_));
        if (self.is_replaying() || failed) && !self.has(SequenceFault::FormingKept) {
            // A step that lacks a part does not exist: nothing of it is journaled or written.
            self.forming = None;
        }
        self.phase = Phase::Stopping { ending };
        self.paced_may_go_on(now);
        for input in 0..self.inputs.len() {
            // Changed settings no longer matter, and must not keep a reader at a barrier.
            self.inputs[input].pauses.remove(&PauseReason::Reload);
            let reads_on = !failed
                && self.barriers.contains(&input)
                && !self.has(SequenceFault::BarrierPausedByStop);
            if matches!(self.inputs[input].protocol.state(), ReaderState::Running { .. })
                && !reads_on
            {
                self.send(now, input, InputReaderCommand::Pause);
            }
        }
    }

    pub(super) fn fail(&mut self, now: Duration, failure: Failure) {
        self.suspension.stops = false;
        let failed = Ending::Failed(Arc::new(failure));
        match &mut self.phase {
            // The failure during a stop is what people must know.
            Phase::Stopping { ending } | Phase::Ending { ending } => {
                if !matches!(ending, Ending::Failed(_)) {
                    *ending = failed;
                }
                self.forming = None;
            }
            Phase::Finishing => self.phase = Phase::Ending { ending: failed },
            _ => self.stop(now, failed),
        }
    }

    pub(super) fn take_ending(&mut self) -> Option<Ending> {
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Stopping { ending } | Phase::Ending { ending } => Some(ending),
            _ => None,
        }
    }

    pub(super) fn end(&mut self) {
        let outcome = match self.take_ending() {
            Some(Ending::Completed) => Outcome::Completed,
            Some(Ending::Stopped) => Outcome::Stopped,
            Some(Ending::Failed(failure)) => Outcome::Failed(failure),
            None => Outcome::failed(Failure::Bug("the run ended without a reason".into())),
        };
        self.done(outcome);
    }

    pub(super) fn done(&mut self, outcome: Outcome) {
        self.phase = Phase::Done;
        if matches!(outcome, Outcome::Completed | Outcome::Stopped) {
            self.suspended();
        }
        for input in 0..self.inputs.len() {
            let reader = &mut self.inputs[input].protocol;
            if reader.send(&InputReaderCommand::Disconnect).is_ok() {
                self.act(Action::Send { input, command: InputReaderCommand::Disconnect });
            }
        }
        self.act(Action::Done(outcome));
    }
}
