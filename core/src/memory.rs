//! The reference: an input and an output that live in memory and keep every rule of the protocol.
//!
//! They need no thread: a command is executed inside the call that requests it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value as JsonValue, json};

use crate::batch::{Batch, BatchBuilder, NewRecord};
use crate::command::InputReaderCommand;
use crate::error::EndpointError;
use crate::output::Output;
use crate::reader::{InputConsumer, InputEndpoint, InputReader};
use crate::record::{BufferSize, Header, Partition, Timestamp};
use crate::resume::{FaultTolerance, Resume};

/// A record of a [`MemoryInput`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryRecord {
    /// The number of its partition.
    pub partition: u32,
    /// When it was made or stored.
    pub timestamp: Option<Timestamp>,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Option<Vec<u8>>,
    /// The headers in order.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl MemoryRecord {
    /// A record of partition 0 with nothing but a value.
    pub fn of(value: impl Into<Vec<u8>>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }
}

/// An input that gives a list of records, in order, and then ends. A record's offset is its place in the
/// list.
#[derive(Clone, Debug)]
pub struct MemoryInput {
    source: String,
    records: Arc<Vec<MemoryRecord>>,
    seek_every: usize,
}

impl MemoryInput {
    /// An input called `source` that gives `records`.
    pub fn new(source: impl Into<String>, records: Vec<MemoryRecord>) -> Self {
        Self { source: source.into(), records: Arc::new(records), seek_every: 1 }
    }

    /// Under at-least-once, only every `n`-th position (and the end) can be sought; all others are
    /// barriers. `n` is at least 1.
    #[must_use]
    pub fn seek_every(mut self, n: usize) -> Self {
        self.seek_every = n.max(1);
        self
    }
}

impl InputEndpoint for MemoryInput {
    fn fault_tolerance(&self) -> FaultTolerance {
        FaultTolerance::ExactlyOnce
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        let next = resume.map_or(Ok(0), |seek| self.position(&seek))?;
        let progress = Progress { next, buffered: next, ..Progress::default() };
        let input = *self;
        Ok(Box::new(MemoryReader { input, level, consumer, progress: Mutex::new(progress) }))
    }
}

impl MemoryInput {
    fn position(&self, seek: &JsonValue) -> Result<usize, EndpointError> {
        let next = seek.as_u64().and_then(|next| usize::try_from(next).ok());
        next.filter(|next| *next <= self.records.len()).ok_or_else(|| {
            let len = self.records.len();
            EndpointError::Data(format!(
                "{}: position {seek} is not a place among {len} records",
                self.source
            ))
        })
    }

    fn size(&self, range: std::ops::Range<usize>) -> BufferSize {
        let mut size = BufferSize { records: range.len() as u64, bytes: 0 };
        for record in &self.records[range] {
            let field = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
            let headers = record.headers.iter().map(|(name, value)| name.len() + field(value));
            size.bytes +=
                (field(&record.key) + field(&record.value) + headers.sum::<usize>()) as u64;
        }
        size
    }

    fn batches(&self, range: std::ops::Range<usize>) -> Result<Vec<Batch>, EndpointError> {
        let mut batches = Vec::new();
        let first = range.start;
        for run in self.records[range].chunk_by(|a, b| a.partition == b.partition) {
            let number = Some(run[0].partition);
            let partition = Partition { source: self.source.clone(), number };
            let mut builder = BatchBuilder::new(Arc::new(partition));
            for record in run {
                let headers = record.headers.iter();
                let headers = headers.map(|(name, value)| Header { name, value: value.as_deref() });
                let headers: Vec<_> = headers.collect();
                let record = NewRecord {
                    offset: (first + batches.iter().map(Batch::len).sum::<usize>() + builder.len())
                        as u64,
                    timestamp: record.timestamp,
                    leader_epoch: None,
                    key: record.key.as_deref(),
                    value: record.value.as_deref(),
                    headers: &headers,
                };
                builder.push(record).map_err(|full| EndpointError::Data(full.to_string()))?;
            }
            batches.push(builder.build());
        }
        Ok(batches)
    }
}

struct MemoryReader {
    input: MemoryInput,
    level: FaultTolerance,
    consumer: Arc<dyn InputConsumer>,
    progress: Mutex<Progress>,
}

/// **Invariant:** `next <= buffered <= records.len()`.
#[derive(Default)]
struct Progress {
    /// The first record that was not handed over.
    next: usize,
    /// The first record that was not announced.
    buffered: usize,
    /// What was announced and not handed over.
    held: BufferSize,
    running: bool,
    ended: bool,
    closed: bool,
}

impl MemoryReader {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buffers as much as the limits allow.
    fn fill(&self, progress: &mut Progress) {
        let limits = self.consumer.limits();
        let start = progress.buffered;
        while progress.buffered < self.input.records.len() {
            let next = self.input.size(progress.buffered..progress.buffered + 1);
            let held = progress.held.plus(next);
            if !limits.allow(held) {
                break;
            }
            progress.held = held;
            progress.buffered += 1;
        }
        if progress.buffered > start {
            self.consumer.buffered(self.input.size(start..progress.buffered));
        }
        if progress.buffered == self.input.records.len() && !progress.ended {
            progress.ended = true;
            self.consumer.eoi();
        }
    }

    fn is_seekable(&self, position: usize) -> bool {
        self.level == FaultTolerance::ExactlyOnce
            || position.is_multiple_of(self.input.seek_every)
            || position == self.input.records.len()
    }

    fn resume(&self, from: usize, to: usize) -> Resume {
        let seek = json!(to).into();
        match self.level {
            FaultTolerance::ExactlyOnce => {
                let range = vec![rmpv::Value::from(from), rmpv::Value::from(to)];
                Resume::Replay { seek, replay: rmpv::Value::Array(range) }
            }
            _ if self.is_seekable(to) => Resume::Seek { seek },
            _ => Resume::Barrier,
        }
    }

    fn queue(&self, progress: &mut Progress, checkpoint_requested: bool) {
        let from = progress.next;
        let mut to = progress.buffered.min(from.saturating_add(self.consumer.max_batch_size()));
        if checkpoint_requested {
            to = (from + 1..=to).find(|position| self.is_seekable(*position)).unwrap_or(to);
        }
        progress.next = to;
        let given = self.input.size(from..to);
        progress.held = progress.held.minus(given).unwrap_or(BufferSize::ZERO);
        match self.input.batches(from..to) {
            Ok(batches) => self.consumer.extended(batches, self.resume(from, to)),
            Err(error) => self.fail(progress, error),
        }
    }

    fn replay(&self, progress: &mut Progress, data: &rmpv::Value) {
        let bounds: Option<Vec<_>> =
            data.as_array().map(|bounds| bounds.iter().filter_map(rmpv::Value::as_u64).collect());
        let range = match bounds.as_deref() {
            Some([from, to]) if from <= to && *to as usize <= self.input.records.len() => {
                *from as usize..*to as usize
            }
            _ => {
                let source = &self.input.source;
                let error = EndpointError::Data(format!("{source}: there is no step {data}"));
                return self.fail(progress, error);
            }
        };
        (progress.next, progress.buffered) = (range.end, range.end);
        progress.held = BufferSize::ZERO;
        self.consumer.buffered(self.input.size(range.clone()));
        match self.input.batches(range) {
            Ok(batches) => self.consumer.replayed(batches),
            Err(error) => self.fail(progress, error),
        }
    }

    fn fail(&self, progress: &mut Progress, error: EndpointError) {
        self.consumer.error(true, error);
        progress.closed = true;
    }
}

impl InputReader for MemoryReader {
    fn request(&self, command: InputReaderCommand) {
        let progress = &mut *self.progress();
        if progress.closed {
            return;
        }
        match command {
            InputReaderCommand::Replay { data, .. } => self.replay(progress, &data),
            InputReaderCommand::Extend => progress.running = true,
            InputReaderCommand::Pause => progress.running = false,
            InputReaderCommand::Queue { checkpoint_requested } => {
                self.queue(progress, checkpoint_requested);
            }
            InputReaderCommand::Disconnect => progress.closed = true,
        }
        if progress.running && !progress.closed {
            self.fill(progress);
        }
    }

    fn is_closed(&self) -> bool {
        self.progress().closed
    }
}

/// An output that keeps what was written, step by step. Its clones share what they hold, so a test can
/// look into it, and open it again after a simulated crash.
#[derive(Clone, Debug, Default)]
pub struct MemoryOutput {
    written: Arc<Mutex<Vec<(u64, Batch)>>>,
}

impl MemoryOutput {
    /// The batches written so far, each with its step.
    pub fn written(&self) -> Vec<(u64, Batch)> {
        self.lock().clone()
    }

    /// The values written so far, in order; absent values are left out.
    pub fn values(&self) -> Vec<Vec<u8>> {
        let written = self.lock();
        let records = written.iter().flat_map(|(_, batch)| batch.iter());
        records.filter_map(|record| record.value.map(<[u8]>::to_vec)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Batch)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output for MemoryOutput {
    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        let mut written = self.lock();
        let Some(position) = position else { return Ok(json!(written.len())) };
        match position.as_u64().and_then(|len| usize::try_from(len).ok()) {
            Some(len) if len <= written.len() => written.truncate(len),
            _ => {
                let len = written.len();
                return Err(EndpointError::Data(format!(
                    "memory output: position {position} is beyond its {len} batches"
                )));
            }
        }
        Ok(position.clone())
    }

    fn write(&mut self, step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        self.lock().extend(batches.iter().map(|batch| (step, batch.clone())));
        Ok(())
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        Ok(json!(self.lock().len()))
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        Ok(())
    }
}
