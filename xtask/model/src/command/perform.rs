//! Does what the machine asks for: commands go into inboxes, work into queues. What the machine may not ask
//! for is noticed here.

use lockgate_controller::{Action, Answer, Checkpoint, Failure, JournaledStep, Outcome, Ticket};
use lockgate_core::{Batch, FaultTolerance, InputReaderCommand, Step};

use super::CommandModel;
use super::breach::Breach;
use super::reader::{Told, decode};
use super::source::{Content, Cut};
use super::state::{CHECKPOINT, CommandState, End, SUSPEND};
use super::threads::{Keeping, Work};

impl CommandState {
    pub(super) fn perform(&mut self, model: &CommandModel, action: Action) {
        match action {
            Action::Send { input, command } => self.send(input, &command),
            Action::LoadJournal { after } => self.keeper.work.push_back(Keeping::Load { after }),
            Action::Journal(step) => match journaled(&step) {
                Some(content) => {
                    self.keeper.work.push_back(Keeping::Journal(step.step, content));
                }
                None => self.broken(Breach::Records),
            },
            Action::Step(step) => match handed_over(&step) {
                Some(content) => {
                    self.worker.work.push_back(Work::Step(step.number, content));
                }
                None => self.broken(Breach::Records),
            },
            Action::Write { step } => self.worker.work.push_back(Work::Write(step)),
            Action::Finish => self.worker.work.push_back(Work::Finish),
            Action::Prepare => self.worker.work.push_back(Work::Prepare),
            Action::Store(checkpoint) => match stored(&checkpoint) {
                Some(store) => self.keeper.work.push_back(store),
                None => self.broken(Breach::Positions),
            },
            Action::Complete => self.worker.work.push_back(Work::Complete),
            Action::Reload { inputs } => {
                for (reader, tuning) in self.readers.iter_mut().zip(inputs) {
                    if !reader.reload(tuning.limits) {
                        self.breach.get_or_insert(Breach::Reload);
                    }
                }
            }
            Action::Answer { ticket, answer } => self.answered(ticket, &answer),
            Action::LimitBatch { .. } | Action::KeepPauses { .. } | Action::Notify(_) => {}
            Action::Done(outcome) => self.done(model, &outcome),
        }
    }

    fn answered(&mut self, ticket: Ticket, answer: &Answer) {
        match ticket {
            CHECKPOINT => {
                let wanted = self.checkpoint_wanted.take();
                if let Answer::Checkpointed { step } = answer
                    && (self.disk.step < *step || wanted.is_some_and(|wanted| *step < wanted))
                {
                    self.broken(Breach::Answer);
                }
            }
            SUSPEND => {
                self.asked.suspend = false;
                let is_right = match answer {
                    Answer::Suspended { step } => {
                        self.disk.step == *step && *step == self.machine.last_step()
                    }
                    _ => self.asked.stop || !self.machine.is_stopping() || self.has_failed(),
                };
                if !is_right {
                    self.broken(Breach::Answer);
                }
            }
            _ => self.asked.reload = false,
        }
    }

    fn has_failed(&self) -> bool {
        self.readers.iter().any(|reader| reader.has_failed())
    }

    fn send(&mut self, input: usize, command: &InputReaderCommand) {
        let told = match command {
            InputReaderCommand::Replay { metadata, data } => {
                let cut = decode(data).filter(|cut| metadata.as_u64() == Some(cut.to.into()));
                let Some(cut) = cut else { return self.broken(Breach::Command) };
                Told::Replay(cut)
            }
            InputReaderCommand::Extend => Told::Extend,
            InputReaderCommand::Pause => Told::Pause,
            InputReaderCommand::Queue { checkpoint_requested } => {
                Told::Queue { checkpoint_requested: *checkpoint_requested }
            }
            InputReaderCommand::Disconnect => Told::Disconnect,
        };
        let reader = &mut self.readers[input];
        let again = told == Told::Queue { checkpoint_requested: true };
        if again && reader.stopped_for_checkpoint {
            self.broken(Breach::AskedAgain);
        } else if told == Told::Extend && reader.user_paused {
            self.broken(Breach::UserPause);
        } else if told == Told::Extend && (self.worker.full || self.keeper.full) {
            self.broken(Breach::NoSpace);
        } else {
            let taken = reader.tell(told);
            self.kept(taken);
        }
    }

    fn done(&mut self, model: &CommandModel, outcome: &Outcome) {
        let covered = self.disk.step == self.machine.last_step()
            && self.disk.step == self.disk.last_written();
        let end = match outcome {
            Outcome::Completed => {
                if !covered || !self.disk.journal_is_empty() || self.disk.written != model.records {
                    self.broken(Breach::Complete);
                }
                End::Complete
            }
            Outcome::Stopped => {
                // What a stop during a replay leaves is replayed by the next run.
                if !covered {
                    self.broken(Breach::Stopped);
                }
                End::Stopped
            }
            Outcome::StoppedLate => End::Late,
            Outcome::Failed(failure) => {
                let founded = match &**failure {
                    Failure::Input { input, .. } => self.readers[*input].has_failed(),
                    Failure::Stalled { .. } => model.stop_on_stall,
                    // Only the model says so.
                    Failure::Output { .. } | Failure::State(_) => true,
                    _ => false,
                };
                if !founded {
                    self.broken(Breach::Failure);
                }
                End::Failed
            }
        };
        self.end = Some(end);
    }

    pub(super) fn journals(model: &CommandModel) -> bool {
        model.level == FaultTolerance::ExactlyOnce
    }
}

fn journaled(step: &JournaledStep) -> Option<Content> {
    let mut content = [None, None];
    for part in &step.parts {
        let cut = decode(&part.replay)?;
        let same = part.digest.records == u64::from(cut.to - cut.from)
            && part.seek == u64::from(cut.to).into();
        content[part.input] = Some(cut).filter(|_| same);
        content[part.input]?;
    }
    Some(content)
}

/// `None` if what an input gave is not one piece of its source.
fn handed_over(step: &Step) -> Option<Content> {
    let mut content = [None, None];
    for part in &step.parts {
        let mut cut = Cut { from: 0, to: 0 };
        for (place, record) in part.batches.iter().flat_map(Batch::iter).enumerate() {
            let offset = u8::try_from(record.offset).ok()?;
            if place == 0 {
                cut = Cut { from: offset, to: offset };
            }
            if offset != cut.to {
                return None;
            }
            cut.to += 1;
        }
        content[part.input] = Some(cut);
    }
    Some(content)
}

fn stored(checkpoint: &Checkpoint) -> Option<Keeping> {
    let number = |value: &serde_json::Value| value.as_u64().and_then(|n| u8::try_from(n).ok());
    let mut seeks = checkpoint.seeks.iter().map(|seek| seek.as_ref().and_then(number));
    let mut positions = checkpoint.positions.iter().map(number);
    let seeks = [seeks.next()??, seeks.next()??];
    let written = [positions.next()??, positions.next()??];
    Some(Keeping::Store { step: checkpoint.step, seeks, written })
}
