//! `Sequence` among readers, a worker and a keeper of the state that are played here: what it asks for may be asked for,
//! and what readers may not do is refused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use lockgate_controller::{
    Action, Answer, Checkpoint, Event, Failure, InputTuning, JournaledStep, OnStall, Outcome,
    Reload, Sequence, SequenceInput, SequenceSettings, Ticket, Tuning,
};
use lockgate_core::{
    Batch, BatchBuilder, BufferSize, EndpointError, FaultTolerance, InputReaderCommand, NewRecord,
    PartDigest, Partition, Position, QueueLimits, ReaderProtocol, Resume, Step, size,
};

const INPUTS: usize = 2;
const SECOND: Duration = Duration::from_secs(1);
/// Steps in flight at most, as `controller/src/sequence.rs` has it.
const MAX_STEPS_IN_FLIGHT: u64 = 8;

#[derive(Arbitrary, Debug)]
pub struct Rules {
    is_exactly_once: bool,
    stops_on_stall: bool,
    second_waits: bool,
    min_batch: u8,
    max_bytes_in_flight: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Op {
    Buffer {
        input: bool,
        records: u8,
    },
    Discard {
        input: bool,
        records: u8,
    },
    Answer {
        input: bool,
        records: u8,
        at_barrier: bool,
    },
    EndOfInput {
        input: bool,
    },
    Fail {
        input: bool,
        is_fatal: bool,
    },
    Close {
        input: bool,
    },
    Work,
    Keep,
    Time {
        half_seconds: u8,
    },
    Pause {
        input: bool,
    },
    Resume {
        input: bool,
    },
    PausesAwaited,
    Checkpoint,
    CheckpointAwaited,
    Suspend,
    Stop,
    Reload {
        records: u8,
    },
    Blocked,
    Unblocked,
    /// What no reader may do: too much, unasked.
    Misbehave {
        input: bool,
        how: u8,
    },
    /// The process dies, and the next one goes on.
    Crash,
}

/// A reader as it should be.
struct Reader {
    protocol: ReaderProtocol,
    /// The first record that was not announced, and the first that was not given.
    announced: u64,
    given: u64,
    /// Of the step that is to be replayed: where it ends.
    replay: Option<(u64, u64)>,
    limit: Option<u64>,
    limits: QueueLimits,
}

enum Work {
    Step(Step),
    Write(u64),
    Finish,
    Prepare,
    Complete,
}

enum Keeping {
    Load(u64),
    Journal(JournaledStep),
    Store(Checkpoint),
    Pauses(Ticket),
}

/// What survives a crash.
#[derive(Default)]
struct Disk {
    checkpoint: Option<Checkpoint>,
    journal: Vec<JournaledStep>,
    /// Up to which record each input's are in the output, as of the checkpoint.
    written: [u64; INPUTS],
}

struct World {
    sequence: Sequence,
    level: FaultTolerance,
    now: Duration,
    readers: Vec<Reader>,
    work: VecDeque<Work>,
    keeping: VecDeque<Keeping>,
    disk: Disk,
    /// The last step that the circuit has, that is durable, and that is written.
    stepped: u64,
    journaled: u64,
    written: u64,
    /// Up to which record of each input a step goes.
    content: BTreeMap<u64, [u64; INPUTS]>,
    is_storing: bool,
    outcome: Option<Outcome>,
    /// Why the run may fail.
    may_fail: bool,
    tickets: u64,
    blocked: u32,
}

pub fn run(rules: &Rules, ops: &[Op]) {
    let mut world = World::open(rules, Disk::default());
    for op in ops {
        if let Op::Crash = op {
            let disk = std::mem::take(&mut world.disk);
            world = World::open(rules, disk);
        } else {
            world.perform(*op);
        }
    }
    world.end();
}

impl World {
    fn open(rules: &Rules, disk: Disk) -> Self {
        let level = match rules.is_exactly_once {
            true => FaultTolerance::ExactlyOnce,
            false => FaultTolerance::AtLeastOnce,
        };
        let tuning = Tuning {
            checkpoint_interval: 10 * SECOND,
            min_batch_records: u64::from(rules.min_batch % 5) + 1,
            max_buffering_delay: SECOND,
            stall_timeout: 5 * SECOND,
            on_stall: if rules.stops_on_stall { OnStall::Stop } else { OnStall::Wait },
            shutdown_timeout: 30 * SECOND,
            ..Tuning::default()
        };
        let max_bytes_in_flight = u64::from(rules.max_bytes_in_flight);
        let settings = SequenceSettings { level, tuning, max_bytes_in_flight };
        let limits = QueueLimits { max_queued_records: 4, max_queued_bytes: 1000 };
        let last = disk.checkpoint.as_ref();
        let seeks: Vec<_> =
            (0..INPUTS).map(|n| last.and_then(|last| last.seeks[n].clone())).collect();
        let input = |n: usize| SequenceInput {
            start_after: if n == 1 && rules.second_waits { vec![0] } else { Vec::new() },
            ..SequenceInput::new(format!("input {n}"), tuning_of(limits), seeks[n].clone())
        };
        let reader = |n: usize| {
            let from = seeks[n].as_ref().and_then(serde_json::Value::as_u64).unwrap_or(0);
            let protocol = ReaderProtocol::new(format!("input {n}"), level, limits);
            Reader { protocol, announced: from, given: from, replay: None, limit: None, limits }
        };
        let step = last.map_or(0, |last| last.step);
        let now = SECOND;
        let mut world = Self {
            sequence: Sequence::new(settings, (0..INPUTS).map(input).collect(), step, now),
            level,
            now,
            readers: (0..INPUTS).map(reader).collect(),
            work: VecDeque::new(),
            keeping: VecDeque::new(),
            stepped: step,
            journaled: step,
            written: step,
            content: BTreeMap::from([(step, disk.written)]),
            disk,
            is_storing: false,
            outcome: None,
            may_fail: false,
            tickets: 0,
            blocked: 0,
        };
        world.obey();
        world
    }

    fn perform(&mut self, op: Op) {
        let place = |input: bool| usize::from(input);
        match op {
            Op::Buffer { input, records } => self.buffer(place(input), (records % 5).into()),
            Op::Discard { input, records } => {
                let reader = &mut self.readers[place(input)];
                let held = reader.announced - reader.given;
                let records = u64::from(records).min(held);
                let amount = amount(records);
                // What is let go of comes again from wherever it was.
                if reader.replay.is_none() && reader.protocol.discarded(amount).is_ok() {
                    reader.announced -= records;
                    self.on(Event::Discarded { input: place(input), amount });
                }
            }
            Op::Answer { input, records, at_barrier } => {
                self.answer(place(input), records.into(), at_barrier);
            }
            Op::EndOfInput { input } => {
                if self.readers[place(input)].protocol.eoi().is_ok() {
                    self.on(Event::EndOfInput { input: place(input) });
                }
            }
            Op::Fail { input, is_fatal } => {
                if is_fatal {
                    self.readers[place(input)].protocol.fatal();
                    self.may_fail = true;
                }
                let error = EndpointError::Data("as told".into());
                self.on(Event::InputFailed { input: place(input), fatal: is_fatal, error });
            }
            Op::Close { input } => {
                self.may_fail |= self.readers[place(input)].protocol.closed().is_err();
                self.on(Event::InputClosed { input: place(input) });
            }
            Op::Work => self.work(),
            Op::Keep => self.keep(),
            Op::Time { half_seconds } => {
                self.now += u32::from(half_seconds) * SECOND / 2;
                self.on(Event::Tick);
            }
            Op::Pause { input } => self.on(Event::PauseRequested { input: place(input) }),
            Op::Resume { input } => self.on(Event::ResumeRequested { input: place(input) }),
            Op::PausesAwaited => {
                let ticket = self.ticket();
                self.on(Event::PausesAwaited { ticket });
            }
            Op::Checkpoint => self.on(Event::CheckpointRequested),
            Op::CheckpointAwaited => {
                let ticket = self.ticket();
                self.on(Event::CheckpointAwaited { ticket });
            }
            Op::Suspend => {
                let ticket = self.ticket();
                self.on(Event::SuspendRequested { ticket });
            }
            Op::Stop => self.on(Event::StopRequested),
            Op::Reload { records } => {
                let limits = QueueLimits {
                    max_queued_records: u64::from(records % 6) + 1,
                    max_queued_bytes: 1000,
                };
                let ticket = self.ticket();
                let reload =
                    Reload { tuning: Tuning::default(), inputs: vec![tuning_of(limits); INPUTS] };
                self.on(Event::ReloadRequested { reload, ticket });
            }
            Op::Blocked => {
                self.blocked += 1;
                self.on(Event::Blocked { reason: "full".into() });
            }
            Op::Unblocked => {
                if self.blocked > 0 {
                    self.blocked -= 1;
                    self.on(Event::Unblocked);
                }
            }
            Op::Misbehave { input, how } => self.misbehave(place(input), how),
            Op::Crash => {}
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Tells the machine, and does what it asks for.
    fn on(&mut self, event: Event) {
        self.sequence.handle(self.now, event);
        self.obey();
        let deadline = self.sequence.next_deadline();
        assert!(deadline.is_none_or(|deadline| deadline > self.now), "what is due is not done");
        assert!(self.sequence.steps_in_flight() as u64 <= MAX_STEPS_IN_FLIGHT, "too many steps");
    }

    fn buffer(&mut self, input: usize, records: u64) {
        let reader = &mut self.readers[input];
        // A replay announces just what it gives.
        if reader.replay.is_none() && reader.protocol.buffered(amount(records)).is_ok() {
            reader.announced += records;
            self.on(Event::Buffered { input, amount: amount(records) });
        }
    }

    fn answer(&mut self, input: usize, most: u64, at_barrier: bool) {
        let level = self.level;
        let reader = &mut self.readers[input];
        if let Some((from, to)) = reader.replay.take() {
            let batches = batches(input, from, to);
            reader.protocol.buffered(size(&batches)).expect("a replay may be announced");
            reader.protocol.replayed(size(&batches)).expect("a replay was asked for");
            (reader.announced, reader.given) = (to, to);
            self.on(Event::Buffered { input, amount: size(&batches) });
            self.on(Event::Replayed { input, batches });
            return;
        }
        if !reader.protocol.unanswered() {
            return;
        }
        let most = most.min(reader.limit.unwrap_or(u64::MAX));
        let to = (reader.given + most).min(reader.announced);
        let seek = Position::Whole(to.into());
        let resume = match level {
            FaultTolerance::ExactlyOnce => {
                let replay = rmpv::Value::Array(vec![reader.given.into(), to.into()]);
                Resume::Replay { seek, replay }
            }
            _ if at_barrier => Resume::Barrier,
            _ => Resume::Seek { seek },
        };
        let batches = batches(input, reader.given, to);
        if reader.protocol.clone().extended(size(&batches), &resume).is_err() {
            return;
        }
        let _ = reader.protocol.extended(size(&batches), &resume);
        reader.given = to;
        self.on(Event::Extended { input, batches, resume });
    }

    fn misbehave(&mut self, input: usize, how: u8) {
        let mut protocol = self.readers[input].protocol.clone();
        let (event, result) = match how % 5 {
            0 => {
                let amount = amount(100);
                (Event::Buffered { input, amount }, protocol.buffered(amount))
            }
            1 => {
                let batches = batches(input, 0, 1);
                let result = protocol.replayed(size(&batches));
                (Event::Replayed { input, batches }, result)
            }
            2 => {
                let batches = batches(input, 0, 90);
                let resume = Resume::Replay { seek: 1.into(), replay: rmpv::Value::Nil };
                let result = protocol.extended(size(&batches), &resume);
                (Event::Extended { input, batches, resume }, result)
            }
            3 => (Event::EndOfInput { input }, protocol.eoi()),
            _ => {
                let amount = amount(100);
                (Event::Discarded { input, amount }, protocol.discarded(amount))
            }
        };
        // Some of it is allowed to a reader that replays or is gone.
        if result.is_ok() {
            return;
        }
        self.may_fail = true;
        self.readers[input].protocol = protocol;
        self.on(event);
        let is_over = self.outcome.is_some() || self.sequence.is_stopping();
        assert!(is_over, "a reader may do what it may not");
    }

    fn work(&mut self) {
        let Some(work) = self.work.pop_front() else { return };
        match work {
            Work::Step(step) => {
                let number = step.number;
                let digests = match self.level {
                    FaultTolerance::ExactlyOnce => {
                        step.parts.iter().map(|part| PartDigest::of(&part.batches)).collect()
                    }
                    _ => Vec::new(),
                };
                if !digests.is_empty() {
                    self.on(Event::Hashed { step: number, digests });
                }
                self.stepped = number;
                self.on(Event::Stepped { step: number });
            }
            Work::Write(step) => {
                self.written = step;
                self.on(Event::Written { step });
            }
            Work::Finish => self.on(Event::Finished),
            Work::Prepare => {
                let positions = vec![self.written.into()];
                self.on(Event::Prepared { circuit: Vec::new(), positions });
            }
            Work::Complete => self.on(Event::Completed),
        }
    }

    fn keep(&mut self) {
        let Some(keeping) = self.keeping.pop_front() else { return };
        match keeping {
            Keeping::Load(after) => {
                let steps = self.disk.journal.iter().filter(|step| step.step > after).take(2);
                let steps = steps.cloned().collect();
                self.on(Event::JournalLoaded { steps });
            }
            Keeping::Journal(step) => {
                let through = step.step;
                self.journaled = through;
                if self.disk.journal.last().is_none_or(|last| last.step < through) {
                    self.disk.journal.push(step);
                }
                self.on(Event::Journaled { through });
            }
            Keeping::Store(checkpoint) => {
                self.disk.journal.retain(|step| step.step > checkpoint.step);
                self.disk.written = self.content[&checkpoint.step];
                self.disk.checkpoint = Some(checkpoint);
                // What is written from here on comes after what completes it.
                self.is_storing = false;
                self.on(Event::Stored);
            }
            Keeping::Pauses(ticket) => self.on(Event::PausesKept { ticket }),
        }
    }

    /// Takes what the machine asks for, which must be allowed.
    fn obey(&mut self) {
        while let Some(action) = self.sequence.next_action() {
            assert!(self.outcome.is_none(), "something is asked for after the end: {action:?}");
            match action {
                Action::Send { input, command } => self.send(input, command),
                Action::LoadJournal { after } => self.keeping.push_back(Keeping::Load(after)),
                Action::Journal(step) => {
                    assert_eq!(self.level, FaultTolerance::ExactlyOnce);
                    self.expect_journal(&step);
                    self.keeping.push_back(Keeping::Journal(step));
                }
                Action::Step(step) => {
                    self.expect_step(&step);
                    self.work.push_back(Work::Step(step));
                }
                Action::Write { step } => {
                    assert!(self.stepped >= step, "written before the circuit has it");
                    let is_durable = self.level != FaultTolerance::ExactlyOnce
                        || self.disk.journal.iter().any(|journaled| journaled.step == step);
                    assert!(is_durable, "an output sees step {step} before it is durable");
                    assert!(!self.is_storing, "written while a checkpoint is stored");
                    self.work.push_back(Work::Write(step));
                }
                Action::Finish => self.work.push_back(Work::Finish),
                Action::Prepare => {
                    self.is_storing = true;
                    self.work.push_back(Work::Prepare);
                }
                Action::Store(checkpoint) => {
                    assert_eq!(checkpoint.step, self.written, "not what is written");
                    let content = self.content[&checkpoint.step];
                    for (seek, end) in checkpoint.seeks.iter().zip(content) {
                        let seek = seek.as_ref().and_then(serde_json::Value::as_u64).unwrap_or(0);
                        assert_eq!(seek, end, "a position that is not after what is written");
                    }
                    self.keeping.push_back(Keeping::Store(checkpoint));
                }
                Action::Complete => self.work.push_back(Work::Complete),
                Action::LimitBatch { input, records } => self.readers[input].limit = Some(records),
                Action::Reload { inputs } => {
                    for (reader, tuning) in self.readers.iter_mut().zip(inputs) {
                        if reader.limits != tuning.limits {
                            let held = reader.protocol.held();
                            assert_eq!(held, BufferSize::ZERO, "read under others");
                            reader.protocol.reload(tuning.limits);
                            reader.limits = tuning.limits;
                        }
                    }
                }
                Action::KeepPauses { ticket, .. } => {
                    self.keeping.push_back(Keeping::Pauses(ticket))
                }
                Action::Answer { answer, .. } => {
                    if let Answer::Checkpointed { step } = answer {
                        // Where nothing was read yet there is nothing to cover.
                        let stored = self.disk.checkpoint.as_ref().map_or(0, |stored| stored.step);
                        assert!(stored >= step, "an answer before it is so: {stored}, {step}");
                    }
                }
                Action::Notify(_) => {}
                Action::Done(outcome) => {
                    self.expect_outcome(&outcome);
                    self.outcome = Some(outcome);
                }
            }
        }
    }

    fn send(&mut self, input: usize, command: InputReaderCommand) {
        let reader = &mut self.readers[input];
        reader.protocol.send(&command).expect("what may not be sent is not sent");
        if let InputReaderCommand::Replay { data, .. } = &command {
            let ends = data.as_array().map(Vec::as_slice).unwrap_or_default();
            let [from, to] = ends else { panic!("not what the reader gave: {data}") };
            reader.replay = from.as_u64().zip(to.as_u64());
            let from = reader.replay.map(|(from, _)| from);
            assert_eq!(from, Some(reader.given), "not where the reader stands");
        }
    }

    fn expect_step(&mut self, step: &Step) {
        let (last, content) = self.content.last_key_value().expect("there is a beginning");
        assert_eq!(step.number, last + 1, "a number is left out");
        let mut content = *content;
        for part in &step.parts {
            for record in part.batches.iter().flat_map(Batch::iter) {
                let next = &mut content[part.input];
                assert_eq!(record.offset, *next, "a record is lost or doubled");
                *next += 1;
            }
        }
        self.content.insert(step.number, content);
    }

    fn expect_journal(&self, step: &JournaledStep) {
        let (before, after) = (&self.content[&(step.step - 1)], &self.content[&step.step]);
        for part in &step.parts {
            let ends = part.replay.as_array().map(Vec::as_slice).unwrap_or_default();
            let ends: Vec<_> = ends.iter().filter_map(rmpv::Value::as_u64).collect();
            assert_eq!(ends, [before[part.input], after[part.input]], "another step is journaled");
            assert_eq!(part.digest.records, after[part.input] - before[part.input]);
        }
    }

    fn expect_outcome(&self, outcome: &Outcome) {
        let stored = self.disk.checkpoint.as_ref().map_or(0, |stored| stored.step);
        match outcome {
            Outcome::Completed => {
                assert_eq!(stored, self.sequence.last_step(), "not all of it is stored");
                for (reader, end) in self.readers.iter().zip(self.disk.written) {
                    assert!(reader.protocol.ended() && reader.announced == end, "not all is read");
                }
            }
            Outcome::Stopped => assert_eq!(stored, self.written, "not all of it is stored"),
            Outcome::StoppedLate => {}
            Outcome::Failed(failure) => match &**failure {
                Failure::Stalled { .. } => {}
                Failure::Input { .. } | Failure::Protocol(_) => {
                    assert!(self.may_fail, "{failure:?}")
                }
                other => panic!("nothing of this failed: {other:?}"),
            },
        }
    }

    /// A stop comes to its end, whatever was before.
    fn end(&mut self) {
        if self.outcome.is_some() {
            return;
        }
        self.on(Event::StopRequested);
        for _ in 0..50 {
            for input in 0..INPUTS {
                self.answer(input, 4, false);
            }
            while self.outcome.is_none() && !(self.work.is_empty() && self.keeping.is_empty()) {
                self.work();
                self.keep();
            }
            if self.outcome.is_some() {
                return;
            }
            self.now += SECOND;
            self.on(Event::Tick);
        }
        panic!("a stop goes on for ever");
    }
}

fn tuning_of(limits: QueueLimits) -> InputTuning {
    InputTuning { limits, ..InputTuning::default() }
}

fn amount(records: u64) -> BufferSize {
    BufferSize { records, bytes: records }
}

fn batches(input: usize, from: u64, to: u64) -> Vec<Batch> {
    let partition = Partition { source: format!("input {input}"), number: None };
    let mut builder = BatchBuilder::new(Arc::new(partition));
    for offset in from..to {
        let record = NewRecord { offset, value: Some(b"x"), ..NewRecord::default() };
        builder.push(record).expect("a small record");
    }
    if from == to { Vec::new() } else { vec![builder.build()] }
}
