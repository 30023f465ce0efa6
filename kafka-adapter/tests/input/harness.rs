//! An open reader as a controller sees it: commands are checked before they are sent, answers before they are
//! believed, and every wait has an end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use lockgate_core::{
    Batch, BufferSize, EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader,
    InputReaderCommand as Command, Position, QueueLimits, ReaderProtocol, Record, Resume, size,
};
use lockgate_kafka_adapter::KafkaInput;
use serde_json::Value as JsonValue;

const WAIT: Duration = Duration::from_secs(20);
pub(crate) const LIMITS: QueueLimits =
    QueueLimits { max_queued_records: 100_000, max_queued_bytes: 16 << 20 };

/// What a reader said.
struct Said {
    protocol: ReaderProtocol,
    answer: Option<(Vec<Batch>, Option<Resume>)>,
    fatal: Option<String>,
    errors: Vec<String>,
    policies: Vec<(&'static str, String)>,
}

struct Desk {
    said: Mutex<Said>,
    changed: Condvar,
    limits: QueueLimits,
    max_batch: usize,
    /// For how long the reader's thread stands still at its next announcement.
    freeze: Mutex<Option<Duration>>,
}

impl Desk {
    fn hear<E: std::fmt::Display>(&self, what: impl FnOnce(&mut Said) -> Result<(), E>) {
        let mut said = self.said.lock().unwrap();
        if let Err(error) = what(&mut said) {
            said.fatal = Some(format!("protocol: {error}"));
        }
        self.changed.notify_all();
    }
}

impl InputConsumer for Desk {
    fn max_batch_size(&self) -> usize {
        self.max_batch
    }

    fn limits(&self) -> QueueLimits {
        self.limits
    }

    fn buffered(&self, amount: BufferSize) {
        if let Some(length) = self.freeze.lock().unwrap().take() {
            std::thread::sleep(length); // polls: nothing, as in a debugger
        }
        self.hear(|said| said.protocol.buffered(amount));
    }

    fn discarded(&self, amount: BufferSize) {
        self.hear(|said| said.protocol.discarded(amount));
    }

    fn replayed(&self, batches: Vec<Batch>) {
        self.hear(|said| {
            said.protocol.replayed(size(&batches))?;
            said.answer = Some((batches, None));
            Ok::<_, lockgate_core::ProtocolError>(())
        });
    }

    fn extended(&self, batches: Vec<Batch>, resume: Resume) {
        self.hear(|said| {
            said.protocol.extended(size(&batches), &resume)?;
            said.answer = Some((batches, Some(resume)));
            Ok::<_, lockgate_core::ProtocolError>(())
        });
    }

    fn eoi(&self) {
        self.hear(|said| said.protocol.eoi());
    }

    fn error(&self, fatal: bool, error: EndpointError) {
        self.hear(|said| {
            if fatal {
                said.protocol.fatal();
                said.fatal = Some(error.to_string());
            } else {
                said.errors.push(error.to_string());
            }
            Ok::<_, String>(())
        });
    }

    fn policy_applied(&self, policy: &'static str, text: String) {
        self.hear(|said| {
            said.policies.push((policy, text));
            Ok::<_, String>(())
        });
    }
}

/// A step: its records and what would be journaled.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) batches: Vec<Batch>,
    /// As it was given.
    pub(crate) position: Position,
    /// The whole of it.
    pub(crate) seek: JsonValue,
    pub(crate) replay: rmpv::Value,
}

impl Step {
    pub(crate) fn records(&self) -> Vec<Got> {
        got(&self.batches)
    }
}

/// A record that was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) partition: u32,
    pub(crate) offset: u64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn got(batches: &[Batch]) -> Vec<Got> {
    let owned = |record: Record<'_>| Got {
        partition: record.partition.number.unwrap(),
        offset: record.offset,
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: (record.headers.iter())
            .map(|header| (header.name.to_vec(), header.value.map(<[u8]>::to_vec)))
            .collect(),
    };
    batches.iter().flat_map(Batch::iter).map(owned).collect()
}

/// Offsets by partition.
pub(crate) fn offsets<'a>(records: impl IntoIterator<Item = &'a Got>) -> BTreeMap<u32, Vec<u64>> {
    let mut offsets: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for record in records {
        offsets.entry(record.partition).or_default().push(record.offset);
    }
    offsets
}

pub(crate) struct Reading {
    desk: Arc<Desk>,
    reader: Box<dyn InputReader>,
    seek: RefCell<Option<JsonValue>>,
}

/// Opens a reader.
pub(crate) fn open(
    input: KafkaInput,
    resume: Option<&JsonValue>,
) -> Result<Reading, EndpointError> {
    open_with(input, resume, LIMITS, 100_000)
}

pub(crate) fn open_with(
    input: KafkaInput,
    resume: Option<&JsonValue>,
    limits: QueueLimits,
    max_batch: usize,
) -> Result<Reading, EndpointError> {
    open_at(FaultTolerance::ExactlyOnce, input, resume, limits, max_batch)
}

/// Opens the member of a group.
pub(crate) fn join(input: KafkaInput) -> Reading {
    open_at(FaultTolerance::AtLeastOnce, input, None, LIMITS, 100_000).unwrap()
}

fn open_at(
    level: FaultTolerance,
    input: KafkaInput,
    resume: Option<&JsonValue>,
    limits: QueueLimits,
    max_batch: usize,
) -> Result<Reading, EndpointError> {
    let protocol = ReaderProtocol::new("kafka", level, limits);
    let said =
        Said { protocol, answer: None, fatal: None, errors: Vec::new(), policies: Vec::new() };
    let freeze = Mutex::default();
    let desk = Desk { said: Mutex::new(said), changed: Condvar::new(), limits, max_batch, freeze };
    let desk = Arc::new(desk);
    let reader = Box::new(input).open(level, desk.clone(), resume.cloned())?;
    Ok(Reading { desk, reader, seek: RefCell::default() })
}

/// Why it cannot be opened.
pub(crate) fn refused(input: KafkaInput, resume: Option<&JsonValue>) -> String {
    match open(input, resume) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

impl Reading {
    fn wait<T>(
        &self,
        what: &str,
        mut ready: impl FnMut(&mut Said) -> Option<T>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + WAIT;
        let mut said = self.desk.said.lock().unwrap();
        loop {
            if let Some(fatal) = &said.fatal {
                return Err(fatal.clone());
            }
            if let Some(found) = ready(&mut said) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited for {what}; held {:?}", said.protocol.held());
            said = self.desk.changed.wait_timeout(said, left).unwrap().0;
        }
    }

    fn send(&self, command: Command) {
        self.desk.said.lock().unwrap().protocol.send(&command).unwrap();
        self.reader.request(command);
    }

    pub(crate) fn start(&self) -> JsonValue {
        self.reader.start().unwrap()
    }

    pub(crate) fn extend(&self) {
        self.send(Command::Extend);
    }

    pub(crate) fn pause(&self) {
        self.send(Command::Pause);
    }

    pub(crate) fn queue(&self) -> Result<Step, String> {
        self.send(Command::Queue { checkpoint_requested: false });
        let answer = self.wait("the answer to Queue", |said| said.answer.take())?;
        let (batches, Some(Resume::Replay { seek, replay })) = answer else { panic!("not a step") };
        let position = seek;
        let mut seek = self.seek.borrow_mut();
        position.apply(&mut seek);
        Ok(Step { batches, position, seek: seek.clone().unwrap(), replay })
    }

    /// As the member of a group: the records, and where it stands.
    pub(crate) fn turn(&self) -> Result<(Vec<Got>, JsonValue), String> {
        self.send(Command::Queue { checkpoint_requested: false });
        let answer = self.wait("the answer to Queue", |said| said.answer.take())?;
        let (batches, Some(Resume::Seek { seek })) = answer else { panic!("not a turn") };
        Ok((got(&batches), seek.json().clone()))
    }

    /// A checkpoint with this position is durable.
    pub(crate) fn checkpointed(&self, seek: &JsonValue) {
        self.reader.checkpointed(seek);
    }

    /// The reader's thread stands still for so long at its next announcement.
    pub(crate) fn freeze(&self, length: Duration) {
        *self.desk.freeze.lock().unwrap() = Some(length);
    }

    /// The numbers of the partitions that people who watch see.
    pub(crate) fn partitions_seen(&self) -> Vec<u32> {
        let seen = self.reader.watch().unwrap().partitions().into_iter();
        seen.filter_map(|one| one.partition.number).collect()
    }

    /// Waits until people who watch see it stand there: of each partition its number, position and end.
    pub(crate) fn stands(&self, expected: &[(u32, u64, Option<u64>)]) {
        let watch = self.reader.watch().unwrap();
        let deadline = Instant::now() + WAIT;
        loop {
            let seen = watch.partitions().into_iter();
            let seen = seen.map(|one| (one.partition.number.unwrap(), one.position, one.end));
            let seen: Vec<_> = seen.collect();
            if seen == expected {
                return;
            }
            assert!(Instant::now() < deadline, "it stands at {seen:?}");
            std::thread::sleep(Duration::from_millis(5)); // polls: what the reader's thread shows
        }
    }

    /// Whether anything is held now.
    pub(crate) fn holds_some(&self) -> bool {
        self.desk.said.lock().unwrap().protocol.held().records > 0
    }

    pub(crate) fn replay(&self, step: &Step) -> Result<Vec<Got>, String> {
        self.send(Command::Replay {
            metadata: step.position.json().clone(),
            data: step.replay.clone(),
        });
        let (batches, _) = self.wait("the answer to Replay", |said| said.answer.take())?;
        Ok(got(&batches))
    }

    /// Until so many records are held.
    pub(crate) fn holds(&self, records: u64) -> Result<(), String> {
        self.wait("records", |said| (said.protocol.held().records >= records).then_some(()))
    }

    pub(crate) fn errors(&self) -> Vec<String> {
        self.desk.said.lock().unwrap().errors.clone()
    }

    /// The policies that were applied, each with its text.
    pub(crate) fn policies(&self) -> Vec<(&'static str, String)> {
        self.desk.said.lock().unwrap().policies.clone()
    }

    /// Until so many errors that are not fatal were reported.
    pub(crate) fn reports(&self, errors: usize) {
        self.wait("an error", |said| (said.errors.len() >= errors).then_some(())).unwrap();
    }

    pub(crate) fn failure(&self) -> String {
        self.wait("a fatal error", |_| None::<()>).unwrap_err()
    }

    /// Steps until everything up to the end of input was handed over.
    pub(crate) fn to_the_end(&self) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        loop {
            let wants = |said: &mut Said| {
                (said.protocol.held().records > 0 || said.protocol.ended())
                    .then(|| said.protocol.has_nothing_left())
            };
            if self.wait("records or the end", wants)? {
                return Ok(steps);
            }
            steps.push(self.queue()?);
        }
    }

    /// Steps until so many records were handed over.
    pub(crate) fn records(&self, records: usize) -> Vec<Got> {
        let mut got = Vec::new();
        while got.len() < records {
            self.holds(1).unwrap();
            got.extend(self.queue().unwrap().records());
        }
        got
    }
}

/// Everything of an input that ends.
pub(crate) fn read_all(input: KafkaInput) -> Vec<Got> {
    let reading = open(input, None).unwrap();
    reading.extend();
    reading.to_the_end().unwrap().iter().flat_map(Step::records).collect()
}
