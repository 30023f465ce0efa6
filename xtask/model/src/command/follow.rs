//! What follows from what happens.

use std::path::PathBuf;

use lockgate_controller::{Event, Failure, InputTuning, Reload, StateError};
use lockgate_core::EndpointError;

use super::CommandModel;
use super::action::CommandAction as A;
use super::breach::Breach;
use super::reader::{LIMITS, TIGHT, size};
use super::state::{CHECKPOINT, CommandState, RELOAD, SUSPEND};
use super::threads::{Keeper, Keeping, Thread, Work, Worker};

impl CommandState {
    /// The state after `action`.
    pub(super) fn after(&self, model: &CommandModel, action: A) -> Self {
        let mut state = self.clone();
        state.happen(model, action);
        if state.breach.is_none() && state.end.is_none() {
            state.check_rest(model);
        }
        state
    }

    fn happen(&mut self, model: &CommandModel, action: A) {
        match action {
            A::Announce(input) => {
                let announced = self.readers[input].announce();
                if let Some(amount) = self.kept(announced) {
                    self.tell(model, Event::Buffered { input, amount });
                }
            }
            A::End(input) => {
                let ended = self.readers[input].end();
                if self.kept(ended).is_some() {
                    self.tell(model, Event::EndOfInput { input });
                }
            }
            A::Answer { input, records, standing } => {
                let answered = self.readers[input].answer(records, standing);
                if let Some((cut, resume)) = self.kept(answered) {
                    let batches = model.sources[input].batches(cut);
                    self.tell(model, Event::Extended { input, batches, resume });
                }
            }
            A::Replay(input) => {
                let replayed = self.readers[input].replay();
                if let Some(Some(cut)) = self.kept(replayed) {
                    let amount = size(cut.to - cut.from);
                    self.tell(model, Event::Buffered { input, amount });
                    let batches = model.sources[input].batches(cut);
                    self.tell(model, Event::Replayed { input, batches });
                }
            }
            A::TakeUp(input) => {
                let taken = self.readers[input].take_up();
                self.kept(taken);
            }
            A::Close(input) => {
                let closed = self.readers[input].close();
                if self.kept(closed).is_some() {
                    self.tell(model, Event::InputClosed { input });
                }
            }
            A::Hash(_) => self.hash(model),
            A::Work(_) => self.work(model),
            A::Journal(through) => self.journal(model, through),
            A::Keep(_) => self.keep(model),
            A::Space(thread) => {
                match thread {
                    Thread::Outputs => self.worker.full = false,
                    Thread::State => self.keeper.full = false,
                }
                self.tell(model, Event::Unblocked);
            }
            A::Time => {
                self.pass_time(model);
                if self.end.is_some() && !self.a_barrier_stays() {
                    self.broken(Breach::Late);
                }
            }
            A::Resume(input) => {
                self.readers[input].user_paused = false;
                self.tell(model, Event::ResumeRequested { input });
            }
            _ => {
                self.disturbances_left -= 1;
                self.disturb(model, action);
            }
        }
    }

    fn disturb(&mut self, model: &CommandModel, disturbance: A) {
        match disturbance {
            A::Crash => self.crash(model),
            A::Full(thread) => {
                match thread {
                    Thread::Outputs => self.worker.full = true,
                    Thread::State => self.keeper.full = true,
                }
                self.tell(model, Event::Blocked { reason: String::new() });
            }
            A::Break(thread) => {
                let failure = match thread {
                    Thread::Outputs => {
                        self.worker = Worker::default();
                        let error = EndpointError::Data(String::new());
                        Failure::Output { output: String::new(), error }
                    }
                    Thread::State => {
                        self.keeper = Keeper::default();
                        Failure::State(StateError::Missing { path: PathBuf::new() })
                    }
                };
                self.tell(model, Event::Broken { failure });
            }
            A::Fail(input) => {
                self.readers[input].fail();
                let error = EndpointError::Data(String::new());
                self.tell(model, Event::InputFailed { input, fatal: true, error });
            }
            A::Pause(input) => {
                self.readers[input].user_paused = true;
                self.tell(model, Event::PauseRequested { input });
            }
            A::Checkpoint => {
                self.checkpoint_wanted.get_or_insert(self.machine.last_step());
                self.tell(model, Event::CheckpointAwaited { ticket: CHECKPOINT });
            }
            A::Stop => {
                self.asked.stop = true;
                self.tell(model, Event::StopRequested);
            }
            A::Suspend => {
                self.asked.suspend = true;
                self.tell(model, Event::SuspendRequested { ticket: SUSPEND });
            }
            A::Reload => {
                self.asked.reload = true;
                // There and back again.
                let limits = if self.readers[0].limits == LIMITS { TIGHT } else { LIMITS };
                let inputs = vec![InputTuning { limits, ..InputTuning::default() }; 2];
                let reload = Reload { tuning: model.settings().tuning, inputs };
                self.tell(model, Event::ReloadRequested { reload, ticket: RELOAD });
            }
            A::Slow => self.pass_time(model),
            _ => {}
        }
    }

    fn pass_time(&mut self, model: &CommandModel) {
        if let Some(deadline) = self.deadline() {
            self.now = self.now.max(deadline);
            self.tell(model, Event::Tick);
        }
    }

    fn hash(&mut self, model: &CommandModel) {
        self.worker.hashed = true;
        if let Some(Work::Step(step, content)) = self.worker.work.front() {
            let parts = content.iter().zip(model.sources.iter());
            let digests = parts.filter_map(|(cut, source)| cut.map(|cut| source.digest(cut)));
            let (step, digests) = (*step, digests.collect());
            self.tell(model, Event::Hashed { step, digests });
        }
    }

    fn work(&mut self, model: &CommandModel) {
        let event = match self.worker.work.pop_front() {
            Some(Work::Step(step, content)) => {
                self.worker.hashed = false;
                self.worker.stepped.push_back((step, content));
                Event::Stepped { step }
            }
            Some(Work::Write(step)) => {
                let stepped = self.worker.stepped.pop_front().filter(|(number, _)| *number == step);
                let Some((_, content)) = stepped else { return self.broken(Breach::Order) };
                if let Err(breach) = self.disk.write(step, content, Self::journals(model)) {
                    return self.broken(breach);
                }
                Event::Written { step }
            }
            Some(Work::Finish) => {
                if self.disk.written != model.records {
                    return self.broken(Breach::Complete);
                }
                Event::Finished
            }
            Some(Work::Prepare) => {
                let positions = self.disk.written.map(serde_json::Value::from).to_vec();
                Event::Prepared { circuit: Vec::new(), positions }
            }
            Some(Work::Complete) => Event::Completed,
            None => return,
        };
        self.tell(model, event);
    }

    fn journal(&mut self, model: &CommandModel, through: u64) {
        while let Some(Keeping::Journal(step, content)) = self.keeper.work.front().copied()
            && step <= through
        {
            self.keeper.work.pop_front();
            if let Err(breach) = self.disk.append(step, content) {
                return self.broken(breach);
            }
        }
        self.tell(model, Event::Journaled { through });
    }

    fn keep(&mut self, model: &CommandModel) {
        let event = match self.keeper.work.pop_front() {
            Some(Keeping::Load { after }) => {
                Event::JournalLoaded { steps: self.disk.load(model, after) }
            }
            Some(Keeping::Store { step, seeks, written }) => {
                if let Err(breach) = self.disk.store(step, seeks, written) {
                    return self.broken(breach);
                }
                self.checkpoint_wanted = self.checkpoint_wanted.filter(|wanted| *wanted > step);
                for reader in &mut self.readers {
                    reader.stopped_for_checkpoint = false;
                }
                Event::Stored
            }
            _ => return,
        };
        self.tell(model, event);
    }
}
