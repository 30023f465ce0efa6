//! What must hold when a run has come to rest: nothing has to happen any more, no deadline is set, and all
//! that could still come is what may never come.

use super::CommandModel;
use super::breach::Breach;
use super::state::CommandState;

impl CommandState {
    /// Whether a reader that has nothing to give stands at a barrier, and more could still come.
    pub(super) fn a_barrier_stays(&self) -> bool {
        self.readers.iter().enumerate().any(|(input, reader)| {
            self.machine.at_barrier(input)
                && reader.held() == 0
                && !reader.has_ended()
                && (reader.is_running() || reader.user_paused)
        })
    }

    pub(super) fn check_rest(&mut self, model: &CommandModel) {
        if !self.is_at_rest(model) {
            return;
        }
        if self.waits() {
            self.broken(Breach::Waits);
        } else if self.asked.suspend || self.asked.reload {
            self.broken(Breach::Unanswered);
        } else if (self.checkpoint_wanted.is_some() || self.machine.last_step() > self.disk.step)
            && !self.a_barrier_stays()
        {
            self.broken(Breach::NoCheckpoint);
        }
    }

    fn is_at_rest(&self, model: &CommandModel) -> bool {
        let mut actions = Vec::new();
        self.must_happen(model, &mut actions);
        actions.is_empty() && self.machine.next_deadline().is_none()
    }

    /// Whether anything waits although the run is at rest.
    fn waits(&self) -> bool {
        let reader_waits = self.readers.iter().enumerate().any(|(input, reader)| {
            // A command that is never looked at, or records that nobody asks for,
            !reader.inbox.is_empty()
                || reader.held() > 0
                // or that are handed over and never written,
                || reader.next != self.disk.written[input]
                // or a reader that could read and is not told to.
                || !(reader.is_running() || reader.user_paused || reader.closed || reader.has_ended())
        });
        let all_given = self.readers.iter().all(|reader| reader.has_ended() && reader.held() == 0);
        let failed = self.readers.iter().any(|reader| reader.has_failed());
        reader_waits
            || all_given
            || failed
            || self.machine.is_replaying()
            || self.machine.is_stopping()
    }
}
