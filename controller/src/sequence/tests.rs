//! Traces of commands, as people read them: the machine with the in-memory reader and output, in
//! virtual time, without a thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lockgate_core::{
    Circuit, EndpointError, InputConsumer, InputEndpoint, InputReader, MemoryInput, MemoryOutput,
    MemoryRecord, Output, PartDigest, PassThrough, QueueLimits, StepOutput, count,
};

use super::*;

pub(super) const LIMITS: QueueLimits =
    QueueLimits { max_queued_records: 4, max_queued_bytes: 1000 };
pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn settings(level: FaultTolerance) -> SequenceSettings {
    let tuning = Tuning {
        checkpoint_interval: 10 * SECOND,
        min_batch_records: 3,
        max_buffering_delay: SECOND,
        stall_timeout: 5 * SECOND,
        shutdown_timeout: 30 * SECOND,
        ..Tuning::default()
    };
    SequenceSettings { level, tuning, max_bytes_in_flight: 1000 }
}

/// With steps of so many records.
pub(super) fn settings_of(min_batch_records: u64, level: FaultTolerance) -> SequenceSettings {
    let mut settings = settings(level);
    settings.tuning.min_batch_records = min_batch_records;
    settings
}

/// How an input is read within these limits.
pub(super) fn within(limits: QueueLimits) -> InputTuning {
    InputTuning { limits, ..InputTuning::default() }
}

/// Turns the calls of one reader into events.
struct Recorder {
    input: usize,
    bounds: Bounds,
    events: Arc<Mutex<VecDeque<Event>>>,
}

/// Of each input how many records it gives at a time, and what it may hold.
type Bounds = Arc<Mutex<Vec<(usize, QueueLimits)>>>;

impl Recorder {
    pub(super) fn push(&self, event: Event) {
        self.events.lock().unwrap().push_back(event);
    }
}

impl InputConsumer for Recorder {
    fn max_batch_size(&self) -> usize {
        self.bounds.lock().unwrap()[self.input].0
    }
    fn limits(&self) -> QueueLimits {
        self.bounds.lock().unwrap()[self.input].1
    }
    fn buffered(&self, amount: BufferSize) {
        self.push(Event::Buffered { input: self.input, amount });
    }
    fn discarded(&self, amount: BufferSize) {
        self.push(Event::Discarded { input: self.input, amount });
    }
    fn replayed(&self, batches: Vec<Batch>) {
        self.push(Event::Replayed { input: self.input, batches });
    }
    fn extended(&self, batches: Vec<Batch>, resume: Resume) {
        self.push(Event::Extended { input: self.input, batches, resume });
    }
    fn eoi(&self) {
        self.push(Event::EndOfInput { input: self.input });
    }
    fn error(&self, fatal: bool, error: EndpointError) {
        self.push(Event::InputFailed { input: self.input, fatal, error });
    }
    fn policy_applied(&self, _policy: &'static str, _text: String) {}
}

/// What survives a crash.
#[derive(Clone, Default)]
pub(super) struct Disk {
    pub(super) checkpoint: Option<Checkpoint>,
    journal: Vec<JournaledStep>,
    pub(super) output: MemoryOutput,
}

/// The machine with everything around it, each action performed at once unless it is listed in `held`.
pub(super) struct Rig {
    pub(super) sequence: Sequence,
    readers: Vec<Box<dyn InputReader>>,
    bounds: Bounds,
    events: Arc<Mutex<VecDeque<Event>>>,
    pub(super) now: Duration,
    pub(super) disk: Disk,
    stepped: BTreeMap<u64, Vec<Batch>>,
    pub(super) trace: String,
    /// The readers of these inputs do not answer `Queue`.
    silent: BTreeSet<usize>,
    /// Whether the journal is slow: its answers wait for `release_journal`.
    pub(super) hold_journal: bool,
    pub(super) outcome: Option<Outcome>,
}

impl Rig {
    pub(super) fn open(level: FaultTolerance, inputs: &[(&str, MemoryInput)], disk: Disk) -> Self {
        Self::open_with(level, inputs, disk, |_| {})
    }

    /// Opens after `change` has been made to the inputs' settings.
    pub(super) fn open_with(
        level: FaultTolerance,
        inputs: &[(&str, MemoryInput)],
        disk: Disk,
        change: impl Fn(&mut [SequenceInput]),
    ) -> Self {
        let events = Arc::new(Mutex::new(VecDeque::new()));
        let mut output = disk.output.clone();
        let checkpoint = disk.checkpoint.as_ref();
        output.recover(Some(checkpoint.map_or(&0.into(), |c| &c.positions[0]))).unwrap();
        let bounds = Bounds::new(Mutex::new(vec![(3, LIMITS); inputs.len()]));
        let (mut readers, mut sequence_inputs) = (Vec::new(), Vec::new());
        for (number, (name, input)) in inputs.iter().enumerate() {
            let (bounds, events) = (bounds.clone(), events.clone());
            let consumer = Recorder { input: number, bounds, events };
            let seek = checkpoint.and_then(|checkpoint| checkpoint.seeks[number].clone());
            let endpoint = Box::new(input.clone());
            readers.push(endpoint.open(level, Arc::new(consumer), seek.clone()).unwrap());
            sequence_inputs.push(SequenceInput::new(*name, within(LIMITS), seek));
        }
        change(&mut sequence_inputs);
        let step = checkpoint.map_or(0, |checkpoint| checkpoint.step);
        let sequence = Sequence::new(settings(level), sequence_inputs, step, Duration::ZERO);
        Self {
            sequence,
            readers,
            bounds,
            events,
            now: Duration::ZERO,
            disk,
            stepped: BTreeMap::new(),
            trace: String::new(),
            silent: BTreeSet::new(),
            hold_journal: false,
            outcome: None,
        }
    }

    pub(super) fn line(&mut self, text: impl std::fmt::Display) {
        self.trace += &format!("{:>2}s {text}\n", self.now.as_secs());
    }

    /// Performs actions and delivers events until neither is left; whether anything happened.
    pub(super) fn settle(&mut self) {
        loop {
            if let Some(action) = self.sequence.next_action() {
                self.perform(action);
                continue;
            }
            let event = self.events.lock().unwrap().pop_front();
            let Some(event) = event else { return };
            self.deliver(event);
        }
    }

    /// Settles up to the moment at which `step` exists, with all that follows from it still to be done.
    pub(super) fn run_to_step(&mut self, step: u64) {
        while self.sequence.last_step() < step {
            match self.sequence.next_action() {
                Some(action) => self.perform(action),
                None => {
                    let event = self.events.lock().unwrap().pop_front();
                    self.deliver(event.expect("the step cannot be reached"));
                }
            }
        }
    }

    pub(super) fn deliver(&mut self, event: Event) {
        match &event {
            Event::Buffered { input, amount } => {
                self.line(format!("   {input} buffered {}", amount.records));
            }
            Event::Replayed { input, batches } => {
                self.line(format!("   {input} replayed {}", count(batches)));
            }
            Event::Extended { input, batches, resume } => {
                let resume = resume.seek().map_or("barrier".into(), |seek| format!("seek {seek}"));
                self.line(format!("   {input} extended {}, {resume}", count(batches)));
            }
            Event::EndOfInput { input } => self.line(format!("   {input} end of input")),
            _ => {}
        }
        self.sequence.handle(self.now, event);
    }

    pub(super) fn push(&self, event: Event) {
        self.events.lock().unwrap().push_back(event);
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send { input, command } => {
                let text = match &command {
                    InputReaderCommand::Replay { metadata, .. } => format!("Replay to {metadata}"),
                    InputReaderCommand::Queue { checkpoint_requested: true } => {
                        "Queue for a checkpoint".into()
                    }
                    InputReaderCommand::Queue { .. } => "Queue".into(),
                    command => format!("{command:?}"),
                };
                self.line(format!("-> {input} {text}"));
                let queue = matches!(command, InputReaderCommand::Queue { .. });
                if !(queue && self.silent.contains(&input)) {
                    self.readers[input].request(command);
                }
            }
            Action::LoadJournal { after } => {
                let steps = self.disk.journal.iter().filter(|step| step.step > after).take(2);
                self.push(Event::JournalLoaded { steps: steps.cloned().collect() });
            }
            Action::Journal(step) => {
                let through = step.step;
                self.line(format!("   journal step {through}"));
                if !self.hold_journal {
                    self.disk.journal.push(step);
                    self.push(Event::Journaled { through });
                }
            }
            Action::Step(step) => {
                let digests = step.parts.iter().map(|part| PartDigest::of(&part.batches)).collect();
                self.push(Event::Hashed { step: step.number, digests });
                let outputs = ["out".to_string()];
                let mut output = StepOutput::new(&outputs);
                PassThrough.step(&step, &mut output).unwrap();
                self.stepped.insert(step.number, output.into_batches().remove(0));
                self.push(Event::Stepped { step: step.number });
            }
            Action::Write { step } => {
                let batches = self.stepped.remove(&step).unwrap();
                self.line(format!("   write step {step}: {}", count(&batches)));
                self.disk.output.write(step, &batches).unwrap();
                self.push(Event::Written { step });
            }
            Action::LimitBatch { input, records } => {
                self.bounds.lock().unwrap()[input].0 = records.min(3) as usize;
            }
            Action::Reload { inputs } => {
                let limits = inputs.iter().map(|input| input.limits.max_queued_records);
                self.line(format!("   reload: may hold {:?}", limits.collect::<Vec<_>>()));
                for (bounds, tuning) in self.bounds.lock().unwrap().iter_mut().zip(inputs) {
                    bounds.1 = tuning.limits;
                }
            }
            Action::KeepPauses { inputs, ticket } => {
                self.line(format!("   keep paused {inputs:?}"));
                self.push(Event::PausesKept { ticket });
            }
            Action::Answer { ticket, answer } => {
                self.line(format!("   answer {}: {answer:?}", ticket.0));
            }
            Action::Finish => {
                self.line("   finish outputs");
                self.push(Event::Finished);
            }
            Action::Prepare => {
                let position = self.disk.output.prepare().unwrap();
                self.push(Event::Prepared { circuit: Vec::new(), positions: vec![position] });
            }
            Action::Store(checkpoint) => {
                let seeks: Vec<_> =
                    checkpoint.seeks.iter().flatten().map(JsonValue::to_string).collect();
                self.line(format!(
                    "   store checkpoint {} at {}",
                    checkpoint.step,
                    seeks.join(" ")
                ));
                self.disk.journal.retain(|step| step.step > checkpoint.step);
                self.disk.checkpoint = Some(checkpoint);
                self.push(Event::Stored);
            }
            Action::Complete => self.push(Event::Completed),
            Action::Notify(notice) => self.line(format!("   {notice:?}")),
            Action::Done(outcome) => {
                self.outcome = Some(outcome);
                let text = match failure(&self.outcome) {
                    Some(Failure::Protocol(error)) => format!("failed: {error}"),
                    Some(Failure::Diverged { step, input, .. }) => {
                        format!("failed: step {step} of {input} diverged")
                    }
                    Some(failure) => format!("Failed({failure:?})"),
                    None => format!("{:?}", self.outcome.as_ref().unwrap()),
                };
                self.line(format!("   done: {text}"));
            }
        }
    }

    /// Lets time pass up to the next deadline and settles, until the run is over or `until` is reached.
    pub(super) fn run(&mut self, until: Duration) {
        self.settle();
        while self.outcome.is_none() {
            match self.sequence.next_deadline() {
                Some(deadline) if deadline <= until => self.now = self.now.max(deadline),
                _ => break,
            }
            self.deliver(Event::Tick);
            self.settle();
        }
        if self.outcome.is_none() {
            self.now = until;
        }
    }
}

/// Why the run failed, if it did.
pub(super) fn failure(outcome: &Option<Outcome>) -> Option<&Failure> {
    match outcome {
        Some(Outcome::Failed(failure)) => Some(failure),
        _ => None,
    }
}

pub(super) fn letters(n: u8) -> MemoryInput {
    let records = (0..n).map(|i| MemoryRecord::of([b'a' + i])).collect();
    MemoryInput::new("letters", records)
}

pub(super) fn text(output: &MemoryOutput) -> String {
    String::from_utf8(output.values().concat()).unwrap()
}

#[test]
fn a_small_run_with_a_checkpoint_barrier() {
    let input = letters(14).seek_every(5);
    let mut rig = Rig::open(FaultTolerance::AtLeastOnce, &[("letters", input)], Disk::default());
    rig.run_to_step(1);
    rig.deliver(Event::CheckpointRequested);
    rig.run(60 * SECOND);
    assert_eq!(text(&rig.disk.output), "abcdefghijklmn");
    insta::assert_snapshot!(rig.trace);
}

#[test]
fn a_crash_and_the_replay() {
    let inputs = [("one", letters(8)), ("two", letters(5))];
    let mut first = Rig::open(FaultTolerance::ExactlyOnce, &inputs, Disk::default());
    // The crash: whatever was under way after step 2 is gone.
    first.run_to_step(3);
    let disk = first.disk.clone();
    let before = text(&disk.output);
    let mut second = Rig::open(FaultTolerance::ExactlyOnce, &inputs, disk);
    second.run(60 * SECOND);
    insta::assert_snapshot!(format!("{}--- crash ---\n{}", first.trace, second.trace));

    let mut undisturbed = Rig::open(FaultTolerance::ExactlyOnce, &inputs, Disk::default());
    undisturbed.disk.output = MemoryOutput::default();
    undisturbed.run(60 * SECOND);
    assert_eq!(text(&second.disk.output), text(&undisturbed.disk.output));
    assert!(text(&second.disk.output).starts_with(&before));
}

#[test]
fn a_reader_that_dies() {
    let inputs = [("one", letters(8)), ("two", letters(9))];
    let mut rig = Rig::open(FaultTolerance::ExactlyOnce, &inputs, Disk::default());
    rig.silent.insert(1);
    rig.settle();
    rig.deliver(Event::InputClosed { input: 1 });
    rig.run(60 * SECOND);
    insta::assert_snapshot!(rig.trace);
}

#[test]
fn a_reader_that_stalls_and_answers_late() {
    let mut rig =
        Rig::open(FaultTolerance::ExactlyOnce, &[("letters", letters(5))], Disk::default());
    rig.silent.insert(0);
    rig.run(20 * SECOND);
    rig.silent.clear();
    rig.line("   (the reader wakes up)");
    rig.readers[0].request(InputReaderCommand::Queue { checkpoint_requested: false });
    rig.run(60 * SECOND);
    insta::assert_snapshot!(rig.trace);
    assert_eq!(text(&rig.disk.output), "abcde");
}

#[test]
fn a_stalled_reader_stops_the_run_if_that_is_the_policy() {
    let mut rig =
        Rig::open(FaultTolerance::ExactlyOnce, &[("letters", letters(5))], Disk::default());
    rig.sequence.settings.tuning.on_stall = OnStall::Stop;
    rig.silent.insert(0);
    rig.run(60 * SECOND);
    assert!(matches!(failure(&rig.outcome), Some(Failure::Stalled { input: 0, .. })));
}

/// Nothing of a step may be seen before its journal entry is durable.
#[test]
fn nothing_is_written_before_it_is_journaled() {
    let mut rig =
        Rig::open(FaultTolerance::ExactlyOnce, &[("letters", letters(9))], Disk::default());
    rig.hold_journal = true;
    rig.run(9 * SECOND);
    assert_eq!(rig.sequence.last_step(), 3, "steps go on while the journal is slow");
    assert_eq!(text(&rig.disk.output), "");
    rig.push(Event::Journaled { through: 2 });
    rig.settle();
    assert_eq!(text(&rig.disk.output), "abcdef");
}

/// A user's pause is not undone by anything else.
#[test]
fn pause_reasons_are_separate() {
    let mut rig =
        Rig::open(FaultTolerance::ExactlyOnce, &[("letters", letters(9))], Disk::default());
    rig.deliver(Event::PauseRequested { input: 0 });
    rig.deliver(Event::Blocked { reason: "the disk is full".into() });
    rig.deliver(Event::Unblocked);
    rig.run(5 * SECOND);
    assert_eq!(rig.sequence.pause_reasons(0), [PauseReason::User]);
    assert_eq!(rig.sequence.reader_state(0), ReaderState::New);
    rig.deliver(Event::ResumeRequested { input: 0 });
    rig.run(60 * SECOND);
    assert!(matches!(rig.outcome, Some(Outcome::Completed)));
}

#[test]
fn a_stop_takes_a_checkpoint_and_the_next_run_goes_on_there() {
    let inputs = [("letters", letters(20))];
    let mut rig = Rig::open(FaultTolerance::ExactlyOnce, &inputs, Disk::default());
    rig.run_to_step(2);
    rig.deliver(Event::StopRequested);
    rig.run(60 * SECOND);
    assert!(matches!(rig.outcome, Some(Outcome::Stopped)));
    let disk = rig.disk.clone();
    assert!(disk.journal.is_empty());
    assert_eq!(disk.checkpoint.as_ref().unwrap().step, rig.sequence.last_step());
    let mut second = Rig::open(FaultTolerance::ExactlyOnce, &inputs, disk);
    second.run(60 * SECOND);
    assert_eq!(text(&second.disk.output), "abcdefghijklmnopqrst");
}

/// A reader at a barrier is not paused by a stop: it must reach a place that it can come back to.
#[test]
fn a_stop_waits_for_a_barrier_to_clear() {
    let inputs = [("letters", letters(20).seek_every(9))];
    let mut rig = Rig::open(FaultTolerance::AtLeastOnce, &inputs, Disk::default());
    rig.run_to_step(1);
    assert!(rig.sequence.at_barrier(0));
    rig.deliver(Event::StopRequested);
    rig.run(60 * SECOND);
    assert!(matches!(rig.outcome, Some(Outcome::Stopped)), "{}", rig.trace);
    assert_eq!(rig.disk.checkpoint.as_ref().unwrap().seeks, [Some(9.into())]);
}

#[test]
fn a_changed_source_stops_the_replay() {
    let mut first =
        Rig::open(FaultTolerance::ExactlyOnce, &[("letters", letters(3))], Disk::default());
    first.settle();
    let mut disk = first.disk.clone();
    disk.checkpoint = None;
    let input = MemoryInput::new(
        "letters",
        vec![MemoryRecord::of("a"), MemoryRecord::of("b"), MemoryRecord::of("X")],
    );
    disk.journal.push(JournaledStep {
        step: 1,
        parts: vec![JournalPart {
            input: 0,
            seek: 3.into(),
            replay: rmpv::Value::Array(vec![0.into(), 3.into()]),
            digest: PartDigest { records: 3, hash: 1 },
        }],
    });
    let mut second = Rig::open(FaultTolerance::ExactlyOnce, &[("letters", input)], disk);
    second.run(60 * SECOND);
    assert!(matches!(failure(&second.outcome), Some(Failure::Diverged { step: 1, .. })));
    assert!(second.disk.output.values().is_empty());
}
