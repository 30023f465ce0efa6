//! A file input in a temporary directory, driven through the public traits. Every command and answer runs
//! through [`ReaderProtocol`], so a slip of the protocol fails the test; every wait has a deadline and ends
//! with what it waits for.

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockgate_core::{
    Batch, BufferSize, EndpointError, FaultTolerance, Framing, InputConsumer, InputEndpoint,
    InputReader, InputReaderCommand as Command, PartDigest, ProtocolError, QueueLimits,
    ReaderProtocol, Resume, size,
};
use lockgate_file_adapter::{FileInput, FileInputConfig, Overlong, StartAt};
use serde_json::Value as JsonValue;

const DEADLINE: Duration = Duration::from_secs(30);

/// A directory with files, and an input over them.
pub(crate) struct Rig {
    dir: tempfile::TempDir,
    pub(crate) config: FileInputConfig,
    pub(crate) level: FaultTolerance,
    pub(crate) limits: QueueLimits,
    pub(crate) max_batch: usize,
    /// Poll, quiet and linger, if not as usual.
    pub(crate) timing: Option<[Duration; 3]>,
}

/// Source (without the directory), offset, value.
pub(crate) type Rec = (String, u64, Vec<u8>);

impl Rig {
    /// An input over the entries `paths`, relative to the directory.
    pub(crate) fn new(paths: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths.iter().map(|path| dir.path().join(path).to_str().unwrap().to_owned());
        let config = FileInputConfig {
            paths: paths.collect(),
            framing: Framing::Lines,
            max_record_bytes: 1 << 20,
            overlong: Overlong::Stop,
            follow: false,
            start_at: StartAt::Beginning,
        };
        let limits = QueueLimits { max_queued_records: 100_000, max_queued_bytes: 8 << 20 };
        let level = FaultTolerance::ExactlyOnce;
        Self { dir, config, level, limits, max_batch: 1 << 20, timing: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn append(&self, name: &str, content: impl AsRef<[u8]>) {
        let mut file =
            std::fs::OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap();
        file.write_all(content.as_ref()).unwrap();
    }

    /// Writes over what is there, without truncating it first.
    pub(crate) fn overwrite(&self, name: &str, content: impl AsRef<[u8]>) {
        let mut file = std::fs::OpenOptions::new().write(true).open(self.path(name)).unwrap();
        file.write_all(content.as_ref()).unwrap();
    }

    pub(crate) fn truncate(&self, name: &str, len: u64) {
        let file = std::fs::OpenOptions::new().write(true).open(self.path(name)).unwrap();
        file.set_len(len).unwrap();
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    /// `text` with the directory's path replaced.
    pub(crate) fn scrub(&self, text: &str) -> String {
        text.replace(self.dir.path().to_str().unwrap(), "DIR")
    }

    pub(crate) fn open(&self, resume: Option<JsonValue>) -> Result<Session, EndpointError> {
        let (events, inbox) = channel();
        let protocol = ReaderProtocol::new("files", self.level, self.limits);
        let state = State { protocol, violation: None };
        let collector = Arc::new(Collector {
            state: Mutex::new(state),
            events: Mutex::new(events),
            limits: self.limits,
            max_batch: Mutex::new(self.max_batch),
        });
        let endpoint = FileInput::new(self.config.clone());
        let endpoint = match self.timing {
            Some([poll, quiet, linger]) => endpoint.timed(poll, quiet, linger),
            None => endpoint,
        };
        let reader = Box::new(endpoint).open(self.level, collector.clone(), resume)?;
        let root = self.dir.path().to_str().unwrap().to_owned();
        Ok(Session { reader, collector, inbox, root, policies: Vec::new(), ended: false })
    }

    /// An open reader that reads.
    pub(crate) fn start(&self, resume: Option<JsonValue>) -> Session {
        let mut session = self.open(resume).unwrap();
        session.send(Command::Extend);
        session
    }

    /// The text of the error with which the input cannot be opened.
    pub(crate) fn refused(&self, resume: Option<JsonValue>) -> String {
        match self.open(resume) {
            Ok(_) => panic!("the input could be opened"),
            Err(error) => self.scrub(&error.to_string()),
        }
    }

    /// Everything, in one go.
    pub(crate) fn read_all(&self) -> Vec<Rec> {
        self.start(None).drain()
    }

    /// The values of everything, as text.
    pub(crate) fn values(&self) -> Vec<String> {
        texts(&self.read_all())
    }
}

/// The values as text.
pub(crate) fn texts(records: &[Rec]) -> Vec<String> {
    records.iter().map(|(_, _, value)| String::from_utf8_lossy(value).into_owned()).collect()
}

#[derive(Debug)]
enum Event {
    Buffered,
    Discarded,
    Replayed(Vec<Batch>),
    Extended(Vec<Batch>, Resume),
    Eoi,
    Error(String),
    Policy(&'static str, String),
}

struct State {
    protocol: ReaderProtocol,
    violation: Option<ProtocolError>,
}

struct Collector {
    state: Mutex<State>,
    events: Mutex<Sender<Event>>,
    limits: QueueLimits,
    max_batch: Mutex<usize>,
}

impl Collector {
    fn check(
        &self,
        event: Event,
        check: impl FnOnce(&mut ReaderProtocol) -> Result<(), ProtocolError>,
    ) {
        let mut state = self.state.lock().unwrap();
        if let Err(error) = check(&mut state.protocol) {
            state.violation.get_or_insert(error);
        }
        drop(state);
        let _ = self.events.lock().unwrap().send(event);
    }
}

impl InputConsumer for Collector {
    fn max_batch_size(&self) -> usize {
        *self.max_batch.lock().unwrap()
    }

    fn limits(&self) -> QueueLimits {
        self.limits
    }

    fn buffered(&self, amount: BufferSize) {
        self.check(Event::Buffered, |protocol| protocol.buffered(amount));
    }

    fn discarded(&self, amount: BufferSize) {
        self.check(Event::Discarded, |protocol| protocol.discarded(amount));
    }

    fn replayed(&self, batches: Vec<Batch>) {
        let size = size(&batches);
        self.check(Event::Replayed(batches), |protocol| protocol.replayed(size));
    }

    fn extended(&self, batches: Vec<Batch>, resume: Resume) {
        let (size, answer) = (size(&batches), resume.clone());
        self.check(Event::Extended(batches, resume), |protocol| protocol.extended(size, &answer));
    }

    fn eoi(&self) {
        self.check(Event::Eoi, ReaderProtocol::eoi);
    }

    fn error(&self, fatal: bool, error: EndpointError) {
        assert!(fatal, "only fatal errors are expected");
        self.check(Event::Error(error.to_string()), |protocol| {
            protocol.fatal();
            Ok(())
        });
    }

    fn policy_applied(&self, policy: &'static str, text: String) {
        self.check(Event::Policy(policy, text), |_| Ok(()));
    }
}

/// An open reader.
pub(crate) struct Session {
    reader: Box<dyn InputReader>,
    collector: Arc<Collector>,
    inbox: Receiver<Event>,
    root: String,
    /// The policies applied so far, with the texts.
    pub(crate) policies: Vec<(&'static str, String)>,
    ended: bool,
}

/// The answer to one `Queue` or `Replay`.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) records: Vec<Rec>,
    pub(crate) digest: PartDigest,
    pub(crate) resume: Resume,
}

impl Step {
    pub(crate) fn seek(&self) -> JsonValue {
        self.resume.seek().expect("a barrier").json().clone()
    }

    pub(crate) fn replay_command(&self) -> Command {
        match &self.resume {
            Resume::Replay { seek, replay } => {
                // As they come back from disk.
                let mut bytes = Vec::new();
                rmpv::encode::write_value(&mut bytes, replay).unwrap();
                let data = rmpv::decode::read_value(&mut bytes.as_slice()).unwrap();
                let metadata = serde_json::from_str(&seek.to_string()).unwrap();
                Command::Replay { metadata, data }
            }
            other => panic!("not a replayable step: {other:?}"),
        }
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        texts(&self.records)
    }
}

impl Session {
    pub(crate) fn send(&mut self, command: Command) {
        self.collector.state.lock().unwrap().protocol.send(&command).unwrap();
        self.reader.request(command);
    }

    pub(crate) fn start_position(&self) -> Option<JsonValue> {
        self.reader.start()
    }

    /// What people who watch see: of each file its name, position and length.
    pub(crate) fn stands(&self) -> Vec<(String, u64, Option<u64>)> {
        let seen = self.reader.watch().unwrap().partitions().into_iter();
        let name = |source: &str| source.replace(&format!("{}/", self.root), "");
        seen.map(|one| (name(&one.partition.source), one.position, one.end)).collect()
    }

    pub(crate) fn held(&self) -> BufferSize {
        self.collector.state.lock().unwrap().protocol.held()
    }

    pub(crate) fn set_max_batch(&self, records: usize) {
        *self.collector.max_batch.lock().unwrap() = records;
    }

    /// The next event that is not a policy; those are kept.
    fn event(&mut self, deadline: Instant) -> Event {
        let wait = deadline.saturating_duration_since(Instant::now());
        let event = self.inbox.recv_timeout(wait);
        if let Some(violation) = &self.collector.state.lock().unwrap().violation {
            panic!("{violation}");
        }
        match event {
            Ok(Event::Policy(policy, text)) => {
                self.policies.push((policy, text.replace(&self.root, "DIR")));
                self.event(deadline)
            }
            Ok(event) => {
                self.ended |= matches!(event, Event::Eoi);
                event
            }
            Err(_) => {
                panic!("waited too long; held {:?}, policies {:?}", self.held(), self.policies)
            }
        }
    }

    /// Waits until at least `records` are held, or the input has ended.
    pub(crate) fn wait_for(&mut self, records: u64) {
        let deadline = Instant::now() + DEADLINE;
        while self.held().records < records && !self.ended {
            match self.event(deadline) {
                Event::Buffered | Event::Eoi => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Announced records are handed over until `text` is among them. Gives everything up to there.
    pub(crate) fn take_until(&mut self, text: &str) -> Vec<String> {
        let mut taken: Vec<String> = Vec::new();
        while !taken.iter().any(|value| value == text) {
            self.wait_for(1);
            assert!(!self.ended || self.held().records > 0, "{text} is not among {taken:?}");
            taken.extend(self.queue().texts());
        }
        taken
    }

    /// Waits until a policy has been applied.
    pub(crate) fn wait_for_policy(&mut self, policy: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some((_, text)) = self.policies.iter().find(|(name, _)| *name == policy) {
                return text.clone();
            }
            // Policies arrive with other events, or alone.
            match self.inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Event::Policy(policy, text)) => {
                    self.policies.push((policy, text.replace(&self.root, "DIR")));
                }
                Ok(Event::Buffered) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Waits until `n` policies have been applied.
    pub(crate) fn wait_for_policies(&mut self, n: usize) {
        let deadline = Instant::now() + DEADLINE;
        while self.policies.len() < n {
            match self.inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Event::Policy(policy, text)) => {
                    self.policies.push((policy, text.replace(&self.root, "DIR")));
                }
                Ok(Event::Buffered) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    pub(crate) fn wait_for_end(&mut self) {
        self.wait_for(u64::MAX);
    }

    /// Whether everything was announced.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn queue(&mut self) -> Step {
        self.queue_with(false)
    }

    pub(crate) fn queue_for_checkpoint(&mut self) -> Step {
        self.queue_with(true)
    }

    fn queue_with(&mut self, checkpoint_requested: bool) -> Step {
        self.send(Command::Queue { checkpoint_requested });
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.event(deadline) {
                Event::Buffered | Event::Eoi => {}
                Event::Extended(batches, resume) => return self.step(&batches, resume),
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn step(&self, batches: &[Batch], resume: Resume) -> Step {
        let records = batches.iter().flat_map(Batch::iter).map(|record| {
            let source = record.partition.source.replace(&format!("{}/", self.root), "");
            (source, record.offset, record.value.unwrap().to_vec())
        });
        Step { records: records.collect(), digest: PartDigest::of(batches), resume }
    }

    /// Sends a `Replay` and waits for the answer.
    pub(crate) fn replay(&mut self, step: &Step) -> Step {
        self.try_replay(step).unwrap()
    }

    /// The error with which a `Replay` ends.
    pub(crate) fn try_replay(&mut self, step: &Step) -> Result<Step, String> {
        self.send(step.replay_command());
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.event(deadline) {
                Event::Buffered => {}
                Event::Replayed(batches) => return Ok(self.step(&batches, step.resume.clone())),
                Event::Error(text) => {
                    self.wait_closed();
                    return Err(text.replace(&self.root, "DIR"));
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Queues until the input has ended and nothing is left, waiting for some input before each step.
    pub(crate) fn steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            self.wait_for(1);
            if self.ended && self.held().records == 0 {
                return steps;
            }
            steps.push(self.queue());
        }
    }

    /// The records of everything that is left.
    pub(crate) fn drain(&mut self) -> Vec<Rec> {
        self.steps().into_iter().flat_map(|step| step.records).collect()
    }

    /// Queues until `records` have been handed over.
    pub(crate) fn take(&mut self, records: usize) -> Vec<Rec> {
        let mut taken = Vec::new();
        while taken.len() < records {
            self.wait_for(1);
            assert!(!self.ended || self.held().records > 0, "only {taken:?}");
            taken.extend(self.queue().records);
        }
        taken
    }

    /// The error with which the reader ends; nothing is handed over meanwhile.
    pub(crate) fn failure(&mut self) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.event(deadline) {
                Event::Buffered => {}
                Event::Error(text) => {
                    self.wait_closed();
                    return text.replace(&self.root, "DIR");
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Hands over until the reader ends with an error. Gives that.
    pub(crate) fn queue_until_failure(&mut self) -> String {
        loop {
            self.send(Command::Queue { checkpoint_requested: false });
            let deadline = Instant::now() + DEADLINE;
            loop {
                match self.event(deadline) {
                    Event::Buffered => {}
                    Event::Extended(..) => break,
                    Event::Error(text) => {
                        self.wait_closed();
                        return text.replace(&self.root, "DIR");
                    }
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
    }

    /// Spins, with a deadline, until the reader is closed, and checks that it had a reason.
    pub(crate) fn wait_closed(&self) {
        let deadline = Instant::now() + DEADLINE;
        while !self.reader.is_closed() {
            assert!(Instant::now() < deadline, "the reader does not close");
            std::thread::yield_now();
        }
        self.collector.state.lock().unwrap().protocol.closed().unwrap();
    }

    /// The policies applied so far, without their texts.
    pub(crate) fn policy_names(&self) -> Vec<&'static str> {
        self.policies.iter().map(|(policy, _)| *policy).collect()
    }
}

/// gzip of several members.
pub(crate) fn gzip(members: &[&[u8]]) -> Vec<u8> {
    let compress = |member: &&[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(member).unwrap();
        encoder.finish().unwrap()
    };
    members.iter().flat_map(compress).collect()
}

/// zstd of several frames.
pub(crate) fn zstd(frames: &[&[u8]]) -> Vec<u8> {
    frames.iter().flat_map(|frame| zstd::stream::encode_all(*frame, 1).unwrap()).collect()
}

/// `n` numbered lines.
pub(crate) fn numbered(range: std::ops::Range<usize>) -> String {
    range.map(|i| format!("line {i} {}\n", "x".repeat(i % 50))).collect()
}

/// Takes as many records as there are `values`, which must be theirs.
pub(crate) fn expect(session: &mut Session, values: &[&str]) {
    assert_eq!(texts(&session.take(values.len())), values);
}
