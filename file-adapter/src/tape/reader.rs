//! The reader of a tape: a thread that reads ahead within the limits, and hands over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use lockgate_core::{
    Batch, BufferSize, EndpointError, FaultTolerance, InputConsumer, InputReader,
    InputReaderCommand as Command, QueueLimits, Resume, size,
};

use super::cursor::Cursor;
use super::pace::Pace;
use super::place::{Place, range_from_msgpack, range_to_msgpack};
use crate::recording::RecordingError;

pub(super) struct TapeReader {
    orders: Option<Sender<Command>>,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How a reader begins.
pub(super) struct Start {
    pub(super) cursor: Cursor,
    /// By which positions know the tape.
    pub(super) id: String,
    /// Whether nothing is read but what is replayed.
    pub(super) is_scripted: bool,
    pub(super) pace: Option<Pace>,
    pub(super) level: FaultTolerance,
}

impl TapeReader {
    pub(super) fn start(
        start: Start,
        consumer: Arc<dyn InputConsumer>,
    ) -> Result<Self, EndpointError> {
        let (orders, inbox) = channel();
        let closed = Arc::new(AtomicBool::new(false));
        let mark = Closing(closed.clone());
        let place = start.cursor.place();
        let (queue, full, ended) = (Queue::default(), false, false);
        let reading = Reading { start, consumer, inbox, queue, place, full, ended };
        let span = tracing::Span::current();
        let thread = std::thread::Builder::new().name("recording".into()).spawn(move || {
            let _mark = mark;
            let _opened_for = span.entered();
            reading.run();
        });
        let thread = thread.map_err(|source| EndpointError::Unavailable {
            what: "starting the thread of a recording".into(),
            source: source.into(),
        })?;
        Ok(Self { orders: Some(orders), closed, thread: Some(thread) })
    }
}

struct Closing(Arc<AtomicBool>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl InputReader for TapeReader {
    fn request(&self, command: Command) {
        // A reader that has closed has said why.
        let _ = self.orders.as_ref().map(|orders| orders.send(command));
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Drop for TapeReader {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(super) fn unreadable(error: RecordingError) -> EndpointError {
    match error {
        RecordingError::Storage { .. } => {
            EndpointError::Unavailable { what: "reading a recording".into(), source: error.into() }
        }
        error => EndpointError::Data(error.to_string()),
    }
}

/// What is announced and not handed over, in order.
#[derive(Default)]
struct Queue {
    batches: VecDeque<Queued>,
    held: BufferSize,
}

struct Queued {
    batch: Batch,
    /// Where the batch begins, and where the tape goes on behind it.
    from: Place,
    to: Place,
}

impl Queue {
    /// How many records of `batch` fit besides.
    fn room(&self, batch: &Batch, limits: QueueLimits) -> usize {
        let records = limits.max_queued_records.saturating_sub(self.held.records);
        let bytes = limits.max_queued_bytes.saturating_sub(self.held.bytes);
        let fits = (batch.records_within(bytes) as u64).min(records) as usize;
        if self.held.records == 0 { fits.max(1) } else { fits }
    }

    fn push(&mut self, queued: Queued) {
        self.held = self.held.plus(queued.batch.size());
        self.batches.push_back(queued);
    }

    /// Takes out at most so many records, and where the tape goes on behind them.
    fn take(&mut self, records: usize) -> Option<(Batch, Place)> {
        let queued = self.batches.front_mut()?;
        let (batch, to) = if records < queued.batch.len() {
            queued.from.record += records as u64;
            (queued.batch.take_front(records), queued.from)
        } else {
            let Queued { batch, to, .. } = self.batches.pop_front()?;
            (batch, to)
        };
        self.held = self.held.minus(batch.size()).unwrap_or_default();
        Some((batch, to))
    }
}

struct Reading {
    start: Start,
    consumer: Arc<dyn InputConsumer>,
    inbox: Receiver<Command>,
    queue: Queue,
    /// Where what is handed over ends.
    place: Place,
    /// Whether nothing more fits until something is handed over.
    full: bool,
    ended: bool,
}

/// The reader was disconnected.
struct Disconnected;

impl Reading {
    fn run(mut self) {
        let mut is_reading = false;
        loop {
            let order = if is_reading && !self.full && !self.ended {
                match self.inbox.try_recv() {
                    Ok(order) => Some(order),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => return,
                }
            } else {
                let Ok(order) = self.inbox.recv() else { return };
                Some(order)
            };
            let done = match order {
                None => self.read(),
                Some(Command::Extend) => {
                    is_reading = !self.start.is_scripted;
                    if self.start.is_scripted {
                        self.end();
                    }
                    Ok(())
                }
                Some(Command::Pause) => {
                    is_reading = false;
                    Ok(())
                }
                Some(Command::Queue { .. }) => {
                    self.hand_over();
                    Ok(())
                }
                Some(Command::Replay { data, .. }) => match self.replay(&data) {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(Disconnected)) => return,
                    Err(error) => Err(error),
                },
                Some(Command::Disconnect) => return,
            };
            if let Err(error) = done {
                self.consumer.error(true, error);
                return;
            }
            if self.ended && self.queue.held.records == 0 {
                return;
            }
        }
    }

    /// Announces what fits of the next records, or the end.
    fn read(&mut self) -> Result<(), EndpointError> {
        let limits = self.consumer.limits();
        let Some(batch) = self.start.cursor.front().map_err(unreadable)? else {
            self.end();
            return Ok(());
        };
        let records = self.queue.room(batch, limits);
        if records == 0 {
            self.full = true;
            return Ok(());
        }
        let from = self.start.cursor.place();
        let batch = self.start.cursor.take(records);
        self.consumer.buffered(batch.size());
        self.queue.push(Queued { batch, from, to: self.start.cursor.place() });
        Ok(())
    }

    fn end(&mut self) {
        self.ended = true;
        self.consumer.eoi();
    }

    /// Answers `Queue`. Every position is a good one, so a wanted checkpoint changes nothing.
    fn hand_over(&mut self) {
        let (from, mut batches) = (self.place, Vec::new());
        let mut left = self.consumer.max_batch_size();
        while left > 0
            && let Some((batch, to)) = self.queue.take(left)
        {
            left -= batch.len();
            self.place = to;
            batches.push(batch);
        }
        self.full = false;
        let seek = self.place.to_seek(&self.start.id).into();
        let resume = match self.start.level {
            FaultTolerance::ExactlyOnce => {
                Resume::Replay { seek, replay: range_to_msgpack(from, self.place) }
            }
            _ => Resume::Seek { seek },
        };
        self.consumer.extended(batches, resume);
    }

    /// Answers `Replay`.
    fn replay(&mut self, data: &rmpv::Value) -> Result<Result<(), Disconnected>, EndpointError> {
        let (from, to) = range_from_msgpack(data)?;
        self.start.cursor.seek(from).map_err(unreadable)?;
        let mut batches = Vec::new();
        while self.start.cursor.place() < to
            && let Some(batch) = self.start.cursor.front().map_err(unreadable)?
        {
            let mut records = batch.len();
            let place = self.start.cursor.place();
            if place >= to {
                break;
            }
            if place.part == to.part {
                records = records.min(usize::try_from(to.record - place.record).unwrap_or(records));
            }
            batches.push(self.start.cursor.take(records));
        }
        self.place = to;
        if let Some(due) = self.start.pace.as_mut().and_then(|pace| pace.due(&batches))
            && self.wait_until(due).is_err()
        {
            return Ok(Err(Disconnected));
        }
        self.consumer.buffered(size(&batches));
        self.consumer.replayed(batches);
        Ok(Ok(()))
    }

    /// Nothing but `Disconnect` comes while a `Replay` is unanswered.
    fn wait_until(&self, due: Instant) -> Result<(), Disconnected> {
        match self.inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(Disconnected),
        }
    }
}
