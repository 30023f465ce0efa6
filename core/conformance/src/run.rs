//! Carries out a schedule, with what a controller would keep: the checkpoint, the journal, the place in the
//! data.
//!
//! A crash drops the reader and nothing else, so what was handed over after the checkpoint and is not in the
//! journal is rolled back. Not here: which schedules there are (`schedule`).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lockgate_core::{
    FaultTolerance, InputEndpoint, InputReaderCommand, QueueLimits, ReaderState, Resume,
};
use serde_json::Value as JsonValue;

use crate::desk::{Answer, Demands, Said};
use crate::journal::{Step, json_from_disk};
use crate::life::{Life, Patience, Terms, Waited};
use crate::report::{Counted, Fault, Line, Summary, Trace};
use crate::rule::Rule;
use crate::schedule::{Ask, Op, Schedule, Shown};
use crate::truth::{Place, Truth};

/// What is tested, and how long it may take to answer.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) open: &'a dyn Fn() -> Box<dyn InputEndpoint>,
    pub(crate) truth: &'a Truth,
    pub(crate) patience: Patience,
    pub(crate) is_endless: bool,
}

/// What became of a schedule.
pub(crate) struct Outcome {
    pub(crate) trace: Trace,
    pub(crate) summary: Summary,
    /// The fault, and how many operations had been begun by then.
    pub(crate) fault: Option<(Fault, usize)>,
}

/// Carries out `schedule` until its end or the first fault.
pub(crate) fn carry_out(case: Case<'_>, schedule: &Schedule) -> Outcome {
    let mut run = Run {
        case,
        level: schedule.level,
        life: None,
        checkpoint: Checkpoint { seek: None, place: case.truth.start() },
        journal: Vec::new(),
        place: case.truth.start(),
        position: None,
        is_at_barrier: false,
        is_first: true,
        trace: Trace::default(),
        summary: Summary { schedules: 1, ..Summary::default() },
    };
    let fault = match catch_unwind(AssertUnwindSafe(|| run.all(schedule))) {
        Ok(result) => result.err(),
        Err(panic) => {
            let came = format!("the panic \"{}\"", message(&*panic));
            Some(Fault::new(Rule::DoesNotPanic, "no panic, whatever happens", came))
        }
    };
    if let Some(life) = &run.life {
        let said = life.said();
        run.take_down(said);
    }
    // A reader that has panicked may do so again, which adds nothing.
    let _ = catch_unwind(AssertUnwindSafe(|| run.drop_reader()));
    let begun = run.trace.lines.len().saturating_sub(1);
    Outcome { trace: run.trace, summary: run.summary, fault: fault.map(|fault| (fault, begun)) }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a text")
}

#[derive(Clone, Debug)]
struct Checkpoint {
    seek: Option<JsonValue>,
    place: Place,
}

/// What there is to hand over.
enum Input {
    Some,
    End,
}

struct Run<'a> {
    case: Case<'a>,
    level: FaultTolerance,
    life: Option<Life>,
    checkpoint: Checkpoint,
    journal: Vec<Step>,
    place: Place,
    /// The last that was given; `None`: the beginning.
    position: Option<JsonValue>,
    /// Whether the reader has gone on from there, to where it cannot come back to.
    is_at_barrier: bool,
    /// The present reader has handed over no records yet, other than by replays.
    is_first: bool,
    trace: Trace,
    summary: Summary,
}

impl Run<'_> {
    fn all(&mut self, schedule: &Schedule) -> Result<(), Fault> {
        let limits = schedule.limits;
        self.trace.lines.push(Line { done: format!("open; {}", Shown(limits)), said: Vec::new() });
        self.open(limits)?;
        for op in &schedule.ops {
            self.trace.lines.push(Line { done: op.to_string(), said: Vec::new() });
            self.life().begin(self.operation());
            let is_done = self.one(*op)?;
            self.life().check()?;
            let said = self.life().said();
            self.take_down(said);
            if !is_done && let Some(line) = self.trace.lines.last_mut() {
                line.done += " (left out here)";
            }
        }
        Ok(())
    }

    fn life(&self) -> &Life {
        self.life.as_ref().expect("a reader is open between operations")
    }

    fn operation(&self) -> usize {
        self.trace.lines.len() - 1
    }

    fn take_down(&mut self, said: Vec<Said>) {
        for Said { during, text, .. } in said {
            self.trace.lines[during].said.push(text);
        }
    }

    /// Whether the operation is allowed here, and was carried out.
    fn one(&mut self, op: Op) -> Result<bool, Fault> {
        let state = self.life().state();
        match op {
            Op::Extend => match state {
                ReaderState::New | ReaderState::Replaying { .. } | ReaderState::Paused { .. } => {
                    self.life().send(InputReaderCommand::Extend)?;
                }
                _ => return Ok(false),
            },
            Op::Pause => match state {
                ReaderState::Running { .. } => self.life().send(InputReaderCommand::Pause)?,
                _ => return Ok(false),
            },
            Op::Queue(ask) => {
                let was_sent = self.queue(ask)?;
                self.settle()?;
                return Ok(was_sent);
            }
            Op::QueueAndGoOn(ask) => return self.queue(ask),
            Op::Await => {
                self.settle()?;
                if !matches!(state, ReaderState::Running { .. }) || self.life().is_owed() {
                    return Ok(false);
                }
                self.wait_for_input()?;
            }
            Op::Checkpoint => return self.take_checkpoint(),
            Op::Drain(max_batch) => return self.drain(max_batch),
            Op::Disconnect(limits) => {
                self.life().disconnect()?;
                if self.level > FaultTolerance::None {
                    self.drop_reader();
                    self.open(limits)?;
                    self.replay_all()?;
                }
            }
            _ if self.level == FaultTolerance::None => return Ok(false),
            Op::Crash(limits) => {
                self.crash();
                self.open(limits)?;
                self.replay_all()?;
            }
            Op::EndInReplay { step, in_order, limits } => {
                self.crash();
                self.open(limits)?;
                let step = step.min(self.journal.len().saturating_sub(1));
                for before in 0..step {
                    self.replay(before)?;
                }
                if step < self.journal.len() {
                    self.life().send(self.journal[step].command())?;
                }
                if in_order {
                    self.life().disconnect()?;
                }
                self.crash();
                self.open(limits)?;
                self.replay_all()?;
            }
        }
        Ok(true)
    }

    fn crash(&mut self) {
        self.summary.crashes += 1;
        self.drop_reader();
    }

    /// What the reader answered and nobody has taken is lost.
    fn drop_reader(&mut self) {
        if let Some(life) = self.life.take() {
            self.take_down(life.crash());
        }
    }

    /// Opens a reader at the checkpoint, as a controller does.
    fn open(&mut self, limits: QueueLimits) -> Result<(), Fault> {
        let Case { patience, is_endless, .. } = self.case;
        let demands = Demands { wants_failure: false, is_endless };
        let terms = Terms { level: self.level, limits, patience, demands };
        let stored = self.checkpoint.seek.as_ref().map(json_from_disk);
        let line = self.operation();
        if let Some(seek) = &stored {
            self.trace.lines[line].said.push(format!("open at {seek}"));
        }
        let opened = Life::open((self.case.open)(), terms, stored.clone(), line);
        let life = opened.map_err(|error| match &stored {
            None => {
                let expected = "the reader can be opened at the beginning";
                Fault::new(Rule::ReadsGoodData, expected, format!("the error \"{error}\""))
            }
            Some(seek) => {
                let expected = format!("the reader can be opened at {seek}, which it gave");
                Fault::new(Rule::OpensAtItsPositions, expected, format!("the error \"{error}\""))
            }
        })?;
        // The first checkpoint is taken before anything is read.
        self.checkpoint.seek = stored.or_else(|| life.start());
        self.position.clone_from(&self.checkpoint.seek);
        self.is_at_barrier = false;
        self.place = self.checkpoint.place.clone();
        self.is_first = true;
        self.summary.readers += 1;
        self.life.insert(life).check()
    }

    fn replay_all(&mut self) -> Result<(), Fault> {
        (0..self.journal.len()).try_for_each(|step| self.replay(step))
    }

    fn replay(&mut self, number: usize) -> Result<(), Fault> {
        let step = &self.journal[number];
        let life = self.life();
        life.send(step.command())?;
        let waited = life.wait_for_answer()?;
        let Some(answer) = life.take_answer().filter(|_| waited == Waited::Came) else {
            let came = life.in_vain("no answer");
            return Err(Fault::new(Rule::AnswersReplay, "the answer to Replay", came));
        };
        step.compare(number, &answer)?;
        self.place = step.after.clone();
        step.seek.apply(&mut self.position);
        self.summary.replays += 1;
        self.summary.records += self.journal[number].records.len();
        Ok(())
    }

    /// Sends a Queue when the one before it is answered.
    fn queue(&mut self, ask: Ask) -> Result<bool, Fault> {
        self.settle()?;
        let life = self.life();
        let may = matches!(life.state(), ReaderState::Running { .. } | ReaderState::Paused { .. });
        if !may || life.is_owed() {
            return Ok(false);
        }
        life.send_queue(ask)?;
        Ok(true)
    }

    /// Waits for the answer to the last Queue, if one is unanswered.
    fn settle(&mut self) -> Result<(), Fault> {
        let life = self.life();
        if !life.is_owed() || life.state() == ReaderState::Gone {
            return Ok(());
        }
        match life.wait_for_answer()? {
            Waited::Came => match life.take_answer() {
                Some(answer) => self.step(answer),
                None => Ok(()),
            },
            // It had nothing left.
            Waited::Closed => Ok(()),
            Waited::TooLong => {
                let came = life.in_vain("no answer");
                Err(Fault::new(Rule::AnswersQueue, "the answer to Queue", came))
            }
        }
    }

    fn step(&mut self, answer: Answer) -> Result<(), Fault> {
        let records = answer.records();
        self.place = self.case.truth.follow(&self.place, &records, self.is_first)?;
        self.is_first &= records.is_empty();
        self.summary.steps += 1;
        self.summary.records += records.len();
        let resume = answer.resume.unwrap_or(Resume::Barrier);
        self.is_at_barrier = resume.is_barrier();
        if let Some(seek) = resume.seek() {
            seek.apply(&mut self.position);
        }
        if let Resume::Replay { seek, replay } = resume
            && self.level == FaultTolerance::ExactlyOnce
        {
            let after = self.place.clone();
            self.journal.push(Step::new(seek, replay, &answer.batches, records, after));
        }
        Ok(())
    }

    fn take_checkpoint(&mut self) -> Result<bool, Fault> {
        self.settle()?;
        if self.is_at_barrier || self.level == FaultTolerance::None {
            return Ok(false);
        }
        self.checkpoint = Checkpoint { seek: self.position.clone(), place: self.place.clone() };
        self.journal.clear();
        self.summary.checkpoints += 1;
        Ok(true)
    }

    fn drain(&mut self, max_batch: usize) -> Result<bool, Fault> {
        self.settle()?;
        match self.life().state() {
            ReaderState::Gone => return Ok(false),
            ReaderState::Running { .. } => {}
            _ => self.life().send(InputReaderCommand::Extend)?,
        }
        while let Input::Some = self.wait_for_input()? {
            self.queue(Ask { max_batch, checkpoint_requested: false })?;
            self.settle()?;
        }
        // There is nothing left, and a checkpoint can be taken.
        self.queue(Ask { max_batch, checkpoint_requested: true })?;
        self.settle()?;
        match self.case.truth.next(&self.place) {
            None => Ok(true),
            Some(next) => {
                let left = self.case.truth.left(&self.place);
                let came = format!("the end of input, with {} still to come", Counted(left));
                Err(Fault::new(Rule::NothingLost, next.to_string(), came))
            }
        }
    }

    /// Waits until the reader holds something or has ended.
    fn wait_for_input(&mut self) -> Result<Input, Fault> {
        let (life, truth) = (self.life(), self.case.truth);
        let left = truth.left(&self.place);
        if self.case.is_endless && left == 0 && life.held().records == 0 {
            return Ok(Input::End);
        }
        let came = life.wait(|desk| desk.protocol.held().records > 0 || desk.protocol.ended())?;
        match (came, truth.next(&self.place)) {
            (Waited::Came, _) if life.held().records > 0 => Ok(Input::Some),
            (Waited::Came | Waited::Closed, _) => Ok(Input::End),
            (Waited::TooLong, None) => {
                let expected = "the end of input: everything has been handed over";
                Err(Fault::new(Rule::ReportsEnd, expected, life.in_vain("nothing")))
            }
            (Waited::TooLong, Some(next)) => {
                let left = Counted(left);
                let expected =
                    format!("more is announced, or the end; {left} to come, the next {next}");
                Err(Fault::new(Rule::ReadsWhenExtended, expected, life.in_vain("nothing")))
            }
        }
    }
}
