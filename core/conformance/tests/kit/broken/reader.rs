//! The reference, watched on its way in (commands) and out (answers), with one thing changed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lockgate_core::{
    Batch, BatchBuilder, BufferSize, EndpointError, FaultTolerance, InputConsumer, InputEndpoint,
    InputReader, InputReaderCommand as Command, MemoryInput, MemoryRecord, NewRecord, Position,
    QueueLimits, Resume, count, size,
};
use serde_json::Value as JsonValue;

/// What every reader here gives, unless something is wrong with it.
pub(crate) const VALUES: [&str; 16] = [
    "r00", "r01", "r02", "r03", "r04", "r05", "r06", "r07", "r08", "r09", "r10", "r11", "r12",
    "r13", "r14", "r15",
];

const ONE: BufferSize = BufferSize { records: 1, bytes: 3 };

/// What is wrong with a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Nothing,
    /// Not wrong: a reader with nothing left may close.
    ClosesWhenDrained,
    /// Not wrong: what was begun may be finished.
    BuffersAfterDisconnect,
    FailsOnGoodData,
    GoesOnAfterFailing,
    CannotOpenAtItsPositions,
    BuffersOnOpening,
    BuffersAfterReplay,
    StopsReadingAfterAWhile,
    StartsFromTheBeginning,
    SkipsOneAfterResuming,
    GivesOneAgainAfterResuming,
    ForgetsReplays,
    ReadsOnAfterPause,
    IgnoresQueue,
    IgnoresQueueWhilePaused,
    IgnoresQueueAfterTheEnd,
    IgnoresReplay,
    AnswersTwice,
    HandsOverNothing,
    AnnouncesTooLittle,
    AnnouncesNoReplay,
    IgnoresMaxBatchSize,
    IgnoresLimits,
    GivesSeekOnly,
    GivesChangesOnly,
    EndsAtABarrier,
    NeverEnds,
    EndsTwice,
    EndsTooEarly,
    ClosesBeforeDrained,
    ClosesInSilence,
    ClosesAfterASmallError,
    DiesInQueue,
    PanicsInQueue,
    NeverCloses,
    LosesARecord,
    LosesTheLastRecord,
    DoublesARecord,
    Reorders,
    ChangesAValue,
    ReplaysOneLess,
    ReplaysOtherContent,
}

impl Wrong {
    /// The records of a source with this fault.
    fn source(self) -> MemoryInput {
        let mut values = VALUES.to_vec();
        match self {
            Wrong::LosesARecord => drop(values.remove(7)),
            Wrong::LosesTheLastRecord => drop(values.pop()),
            Wrong::DoublesARecord => values.insert(7, values[6]),
            Wrong::Reorders => values.swap(7, 8),
            Wrong::ChangesAValue => values[7] = "new",
            _ => {}
        }
        MemoryInput::new("memory", values.into_iter().map(MemoryRecord::of).collect())
    }

    /// Where a reader with this fault starts when it is told to start at `seek`.
    fn start(self, seek: JsonValue) -> Result<Option<JsonValue>, EndpointError> {
        let next = seek.as_u64().unwrap();
        let middle = 1..VALUES.len() as u64;
        match self {
            Wrong::CannotOpenAtItsPositions => {
                Err(EndpointError::Data(format!("{seek} is a strange position")))
            }
            Wrong::StartsFromTheBeginning => Ok(None),
            Wrong::SkipsOneAfterResuming if middle.contains(&next) => Ok(Some((next + 1).into())),
            Wrong::GivesOneAgainAfterResuming if middle.contains(&next) => {
                Ok(Some((next - 1).into()))
            }
            _ => Ok(Some(seek)),
        }
    }
}

/// An endpoint with a fault.
pub(crate) struct Broken(pub(crate) Wrong);

struct Reader {
    inner: Mutex<Box<dyn InputReader>>,
    /// As it was opened.
    opened: Option<JsonValue>,
    consumer: Arc<Consumer>,
}

impl InputEndpoint for Broken {
    fn fault_tolerance(&self) -> FaultTolerance {
        FaultTolerance::ExactlyOnce
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        real: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        let Self(wrong) = *self;
        let opened = resume.map(|seek| wrong.start(seek)).transpose()?.flatten();
        if wrong == Wrong::BuffersOnOpening {
            real.buffered(ONE);
        }
        let consumer = Arc::new(Consumer::new(wrong, level, real));
        let inner = Box::new(wrong.source()).open(level, consumer.clone(), opened.clone())?;
        Ok(Box::new(Reader { inner: Mutex::new(inner), opened, consumer }))
    }
}

impl InputReader for Reader {
    fn request(&self, command: Command) {
        let Consumer { wrong, level, is_paused, is_replaying, has_replayed, .. } = &*self.consumer;
        let mut inner = self.inner.lock().unwrap();
        match (&command, wrong) {
            (_, Wrong::ClosesWhenDrained) if self.consumer.is_drained() => return,
            (Command::Disconnect, Wrong::BuffersAfterDisconnect)
                if !self.consumer.has_ended.is_set() =>
            {
                self.consumer.real.buffered(ONE);
            }
            (Command::Replay { .. }, Wrong::IgnoresReplay) => return,
            (Command::Pause, Wrong::ReadsOnAfterPause) => return,
            (Command::Queue { .. }, Wrong::IgnoresQueue) => return,
            (Command::Queue { .. }, Wrong::IgnoresQueueWhilePaused) if is_paused.is_set() => return,
            (Command::Queue { .. }, Wrong::IgnoresQueueAfterTheEnd)
                if self.consumer.has_ended.is_set() =>
            {
                return;
            }
            (Command::Queue { .. }, Wrong::PanicsInQueue) => panic!("the source is strange"),
            (Command::Queue { .. }, Wrong::DiesInQueue) => return self.consumer.close(None),
            (Command::Extend, Wrong::ForgetsReplays) if has_replayed.is_set() => {
                let source = Box::new(wrong.source());
                *inner = source.open(*level, self.consumer.clone(), self.opened.clone()).unwrap();
            }
            _ => {}
        }
        let is_replay = matches!(command, Command::Replay { .. });
        is_paused
            .set(command == Command::Pause || is_paused.is_set() && command != Command::Extend);
        is_replaying.set(is_replay);
        has_replayed.set(is_replay);
        inner.request(command);
        is_replaying.set(false);
        if is_replay && *wrong == Wrong::BuffersAfterReplay {
            self.consumer.real.buffered(ONE);
        }
    }

    fn is_closed(&self) -> bool {
        match self.consumer.wrong {
            Wrong::NeverCloses => false,
            Wrong::ClosesWhenDrained if self.consumer.is_drained() => true,
            Wrong::ClosesBeforeDrained if self.consumer.has_ended.is_set() => true,
            _ => self.consumer.is_closed.is_set() || self.inner.lock().unwrap().is_closed(),
        }
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Flag {
    fn set(&self, value: bool) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Between the reference and the kit's consumer.
struct Consumer {
    wrong: Wrong,
    level: FaultTolerance,
    real: Arc<dyn InputConsumer>,
    is_paused: Flag,
    is_replaying: Flag,
    has_replayed: Flag,
    has_ended: Flag,
    is_closed: Flag,
    announced: AtomicU64,
    given: AtomicU64,
}

impl Consumer {
    fn new(wrong: Wrong, level: FaultTolerance, real: Arc<dyn InputConsumer>) -> Self {
        let [is_paused, is_replaying, has_replayed, has_ended, is_closed] = Default::default();
        let (announced, given) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            wrong,
            level,
            real,
            is_paused,
            is_replaying,
            has_replayed,
            has_ended,
            is_closed,
            announced,
            given,
        }
    }

    fn is_drained(&self) -> bool {
        let held = self.announced.load(Ordering::Relaxed) - self.given.load(Ordering::Relaxed);
        self.has_ended.is_set() && held == 0
    }

    /// Closes the reader after an error, fatal or not, or without one.
    fn close(&self, error: Option<bool>) {
        if let Some(is_fatal) = error {
            self.real.error(is_fatal, EndpointError::Data("the source is strange".into()));
        }
        self.is_closed.set(true);
    }
}

/// The same records with another value.
fn rewritten(batch: &Batch) -> Batch {
    let mut builder = BatchBuilder::new(batch.partition().clone());
    for record in batch.iter() {
        let record =
            NewRecord { offset: record.offset, value: Some(b"new"), ..NewRecord::default() };
        builder.push(record).unwrap();
    }
    builder.build()
}

impl InputConsumer for Consumer {
    fn max_batch_size(&self) -> usize {
        match self.wrong {
            Wrong::IgnoresMaxBatchSize => 10,
            Wrong::HandsOverNothing => 0,
            _ => self.real.max_batch_size(),
        }
    }

    fn limits(&self) -> QueueLimits {
        let announced = self.announced.load(Ordering::Relaxed);
        match self.wrong {
            Wrong::IgnoresLimits => {
                QueueLimits { max_queued_records: 12, max_queued_bytes: 1 << 20 }
            }
            // There is always something left to read.
            Wrong::ReadsOnAfterPause => QueueLimits { max_queued_records: 1, max_queued_bytes: 1 },
            Wrong::StopsReadingAfterAWhile if announced > 0 => {
                QueueLimits { max_queued_records: 0, max_queued_bytes: 0 }
            }
            Wrong::StopsReadingAfterAWhile => {
                QueueLimits { max_queued_records: 1, max_queued_bytes: 3 }
            }
            _ => self.real.limits(),
        }
    }

    fn discarded(&self, amount: BufferSize) {
        self.real.discarded(amount);
    }

    fn buffered(&self, mut amount: BufferSize) {
        if self.is_closed.is_set() {
            return;
        }
        self.announced.fetch_add(amount.records, Ordering::Relaxed);
        match self.wrong {
            Wrong::AnnouncesNoReplay | Wrong::ReplaysOneLess if self.is_replaying.is_set() => {
                return;
            }
            Wrong::AnnouncesTooLittle => {
                amount = BufferSize { records: amount.records - 1, bytes: amount.bytes - 3 };
            }
            Wrong::EndsTooEarly if !self.is_replaying.is_set() => self.real.eoi(),
            _ => {}
        }
        self.real.buffered(amount);
        match self.wrong {
            Wrong::ClosesInSilence => self.close(None),
            Wrong::ClosesAfterASmallError => self.close(Some(false)),
            Wrong::FailsOnGoodData => self.close(Some(true)),
            Wrong::GoesOnAfterFailing => {
                self.close(Some(true));
                self.real.buffered(ONE);
            }
            _ => {}
        }
    }

    fn replayed(&self, mut batches: Vec<Batch>) {
        self.given.fetch_add(count(&batches), Ordering::Relaxed);
        match self.wrong {
            Wrong::ReplaysOneLess => {
                batches.iter_mut().for_each(|batch| drop(batch.take_front(1)));
                self.real.buffered(size(&batches));
            }
            Wrong::ReplaysOtherContent => batches = batches.iter().map(rewritten).collect(),
            _ => {}
        }
        self.real.replayed(batches);
    }

    fn extended(&self, batches: Vec<Batch>, mut resume: Resume) {
        self.given.fetch_add(count(&batches), Ordering::Relaxed);
        match (self.wrong, &resume) {
            (Wrong::GivesSeekOnly, Resume::Replay { seek, .. }) => {
                resume = Resume::Seek { seek: seek.clone() };
            }
            (Wrong::GivesChangesOnly, Resume::Seek { seek }) => {
                resume = Resume::Seek { seek: Position::Change(seek.json().clone()) };
            }
            (Wrong::EndsAtABarrier, Resume::Seek { .. }) => resume = Resume::Barrier,
            _ => {}
        }
        self.real.extended(batches, resume.clone());
        if self.wrong == Wrong::AnswersTwice {
            self.real.extended(Vec::new(), resume);
        }
    }

    fn eoi(&self) {
        if self.is_closed.is_set() {
            return;
        }
        self.has_ended.set(true);
        match self.wrong {
            Wrong::NeverEnds | Wrong::EndsTooEarly => {}
            Wrong::EndsTwice => {
                self.real.eoi();
                self.real.eoi();
            }
            _ => self.real.eoi(),
        }
    }

    fn error(&self, fatal: bool, error: EndpointError) {
        self.real.error(fatal, error);
    }

    fn policy_applied(&self, policy: &'static str, text: String) {
        self.real.policy_applied(policy, text);
    }
}
