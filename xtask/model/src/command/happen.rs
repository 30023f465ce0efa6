//! What may happen in a state.

use std::time::Duration;

use super::CommandModel;
use super::action::CommandAction as A;
use super::reader::{Reader, Told};
use super::state::CommandState;
use super::threads::{Keeping, Thread, Work};

impl CommandState {
    /// Everything that may happen now.
    pub(super) fn actions(&self, model: &CommandModel, actions: &mut Vec<A>) {
        if self.breach.is_some() {
            return;
        }
        self.must_happen(model, actions);
        if self.end.is_none() {
            let at_rest = actions.is_empty();
            self.readers_may_act(model, actions);
            if at_rest && self.deadline().is_some() {
                actions.push(A::Time);
            }
            if self.disturbances_left > 0 {
                self.disturbances(!at_rest, actions);
            }
        }
        if self.disturbances_left > 0 {
            actions.push(A::Crash);
        }
    }

    /// What happens sooner or later. The threads go on with their work also when the run is over.
    pub(super) fn must_happen(&self, model: &CommandModel, actions: &mut Vec<A>) {
        self.threads(model, actions);
        if self.end.is_some() {
            return;
        }
        for (input, reader) in self.readers.iter().enumerate() {
            if !reader.has_failed() {
                look(model, input, reader, actions);
            }
        }
    }

    fn threads(&self, model: &CommandModel, actions: &mut Vec<A>) {
        match self.worker.work.front() {
            None => {}
            Some(_) if self.worker.full => actions.push(A::Space(Thread::Outputs)),
            Some(Work::Step(step, _)) if Self::journals(model) && !self.worker.hashed => {
                actions.push(A::Hash(*step));
            }
            Some(work) => actions.push(A::Work(*work)),
        }
        match self.keeper.work.front() {
            None => {}
            Some(_) if self.keeper.full => actions.push(A::Space(Thread::State)),
            Some(Keeping::Journal(..)) => actions.extend(self.keeper.entries().map(A::Journal)),
            Some(keeping) => actions.push(A::Keep(*keeping)),
        }
    }

    /// What readers and users may never do.
    fn readers_may_act(&self, model: &CommandModel, actions: &mut Vec<A>) {
        for (input, reader) in self.readers.iter().enumerate() {
            if reader.has_failed() {
                look(model, input, reader, actions);
            }
            if reader.can_announce(model.records[input]) {
                actions.push(A::Announce(input));
            }
            if reader.can_end(model.records[input]) {
                actions.push(A::End(input));
            }
            if reader.can_close() {
                actions.push(A::Close(input));
            }
            if reader.user_paused {
                actions.push(A::Resume(input));
            }
        }
    }

    fn disturbances(&self, busy: bool, actions: &mut Vec<A>) {
        if self.worker.can_be_full() {
            actions.push(A::Full(Thread::Outputs));
        }
        if self.keeper.can_be_full() {
            actions.push(A::Full(Thread::State));
        }
        if !self.worker.work.is_empty() {
            actions.push(A::Break(Thread::Outputs));
        }
        if !self.keeper.work.is_empty() {
            actions.push(A::Break(Thread::State));
        }
        for (input, reader) in self.readers.iter().enumerate() {
            if !reader.closed && !reader.has_failed() {
                actions.push(A::Fail(input));
            }
            if !reader.user_paused {
                actions.push(A::Pause(input));
            }
        }
        if !self.machine.is_stopping() {
            actions.extend([A::Checkpoint, A::Stop, A::Reload]);
        }
        if !self.asked.suspend {
            actions.push(A::Suspend);
        }
        if busy && self.deadline().is_some() {
            actions.push(A::Slow);
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.machine.next_deadline()
    }
}

/// What a reader does when it looks into its inbox.
fn look(model: &CommandModel, input: usize, reader: &Reader, actions: &mut Vec<A>) {
    match reader.inbox.front() {
        Some(_) if reader.closed => {}
        Some(Told::Replay(_)) => actions.push(A::Replay(input)),
        Some(Told::Queue { .. }) => {
            let answers = reader.answers(model).into_iter();
            let answer = |(records, standing)| A::Answer { input, records, standing };
            actions.extend(answers.map(answer));
        }
        Some(_) => actions.push(A::TakeUp(input)),
        None => {}
    }
}
