//! How a run ends: in order where that is possible, with the reason either way.

use std::time::Duration;

use lockgate_core::{InputReaderCommand, ReaderState};

use super::{Action, Failure, Outcome, Phase, Sequence};

/// How a run that is about to end will end if nothing gets in the way.
#[derive(Debug)]
pub(super) enum Ending {
    Completed,
    Stopped,
    Failed(Failure),
}

impl Sequence {
    /// Wants no more input: steps under way are finished, barriers cleared, a last checkpoint taken.
    pub(super) fn stop(&mut self, now: Duration, ending: Ending) {
        self.stop_deadline.get_or_insert(now.saturating_add(self.settings.shutdown_timeout));
        if self.is_stopping() {
            return;
        }
        let failed = matches!(ending, Ending::Failed(_));
        if self.is_replaying() || failed {
            // A step that lacks a part does not exist: nothing of it is journaled or written.
            self.forming = None;
        }
        self.phase = Phase::Stopping { ending };
        for input in 0..self.inputs.len() {
            let reads_on = !failed && self.barriers.contains(&input);
            if matches!(self.inputs[input].protocol.state(), ReaderState::Running { .. })
                && !reads_on
            {
                self.send(now, input, InputReaderCommand::Pause);
            }
        }
    }

    pub(super) fn fail(&mut self, now: Duration, failure: Failure) {
        match &mut self.phase {
            // The failure during a stop is what people must know.
            Phase::Stopping { ending } | Phase::Ending { ending } => {
                if !matches!(ending, Ending::Failed(_)) {
                    *ending = Ending::Failed(failure);
                }
                self.forming = None;
            }
            Phase::Finishing => self.phase = Phase::Ending { ending: Ending::Failed(failure) },
            _ => self.stop(now, Ending::Failed(failure)),
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
            None => Outcome::Failed(Failure::Bug("the run ended without a reason".into())),
        };
        self.done(outcome);
    }

    pub(super) fn done(&mut self, outcome: Outcome) {
        self.phase = Phase::Done;
        for input in 0..self.inputs.len() {
            let reader = &mut self.inputs[input].protocol;
            if reader.send(&InputReaderCommand::Disconnect).is_ok() {
                self.act(Action::Send { input, command: InputReaderCommand::Disconnect });
            }
        }
        self.act(Action::Done(outcome));
    }
}
