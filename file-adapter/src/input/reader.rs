//! A reader's thread: takes commands, reads ahead within the limits, hands over.
//!
//! The thread waits for a command whenever it may not read: it never sleeps and never spins. Not here:
//! how files are read, found again and followed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use lockgate_core::{
    EndpointError, FaultTolerance, InputConsumer, InputReader, InputReaderCommand, InputWatch, size,
};
use serde_json::Value as JsonValue;

use super::arena::Pool;
use super::discover::Patterns;
use super::frame::Rules;
use super::gauges::Gauges;
use super::live::{Live, Shared, Timing};
use super::plan::{Plan, make_plan};
use super::position::{Seek, ranges_from_msgpack};
use super::queue::FileId;
use super::replay::Replayer;
use super::start::skip_to_end;
use crate::config::{FileInputConfig, StartAt};

/// Files are read in blocks of this size.
const BLOCK_BYTES: usize = 1 << 20;
/// A record's place in its block fits 32 bits.
const MAX_RECORD_BYTES: usize = 1 << 30;

/// What wakes the thread.
#[derive(Debug)]
pub(super) enum Wake {
    Command(InputReaderCommand),
    /// Something changed among the followed files.
    Changed,
}

/// An open file input.
pub(super) struct FileReader {
    wakes: Sender<Wake>,
    /// Set with the last command: a long replay does not look for commands.
    stop: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
    start: Option<JsonValue>,
    watch: Arc<Gauges>,
    thread: Option<JoinHandle<()>>,
}

impl FileReader {
    pub(super) fn open(
        config: &FileInputConfig,
        timing: Timing,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Self, EndpointError> {
        let rules = rules(config)?;
        let patterns = Arc::new(Patterns::new(&config.paths)?);
        let seek = resume.as_ref().map(Seek::from_json).transpose()?;
        let mut plan = make_plan(patterns.scan()?, seek.as_ref(), config.follow)?;
        let start = match (resume, config.start_at) {
            (None, StartAt::Beginning) => None,
            (None, StartAt::End) => Some(skip_to_end(&mut plan, rules)?.to_json()),
            (resume, _) => resume,
        };
        // What is queued, what is in flight, and a step under way.
        let blocks = 3 * (consumer.limits().max_queued_bytes / BLOCK_BYTES as u64);
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        let pool = Pool::new(BLOCK_BYTES, blocks.saturating_add(2));
        let (wakes, commands) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (follow, gauges) = (config.follow, Arc::<Gauges>::default());
        for (place, file) in plan.files.iter().enumerate() {
            gauges.track(FileId(place as u64), &file.name, &file.found.path, file.mark.as_ref());
        }
        let watch = gauges.clone();
        let shared = Shared { rules, level, consumer, pool, patterns, follow, timing, gauges };
        let thread = Thread { shared, commands, wakes: wakes.clone(), stop: stop.clone(), plan };
        let closed = Arc::new(AtomicBool::new(false));
        let mark = Closing(closed.clone());
        let span = tracing::Span::current();
        let spawned = std::thread::Builder::new().name("file-input".into()).spawn(move || {
            let _mark = mark;
            let _opened_for = span.entered();
            thread.run();
        });
        let thread = Some(spawned.map_err(|error| EndpointError::Unavailable {
            what: "starting a thread for a file input".into(),
            source: error.into(),
        })?);
        Ok(Self { wakes, stop, closed, start, thread, watch })
    }
}

fn rules(config: &FileInputConfig) -> Result<Rules, EndpointError> {
    let FileInputConfig { framing, max_record_bytes, overlong, .. } = *config;
    if max_record_bytes > MAX_RECORD_BYTES {
        return Err(EndpointError::Configuration(format!(
            "max_record_bytes: {max_record_bytes} is more than {MAX_RECORD_BYTES}, the most that is possible"
        )));
    }
    Ok(Rules { framing, max_record_bytes, overlong })
}

/// Marks the reader as closed when its thread ends, however it ends.
struct Closing(Arc<AtomicBool>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl InputReader for FileReader {
    fn request(&self, command: InputReaderCommand) {
        if command == InputReaderCommand::Disconnect {
            self.stop.store(true, Ordering::Release);
        }
        // A thread that has ended takes no commands; `is_closed` says so.
        let _ = self.wakes.send(Wake::Command(command));
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn start(&self) -> Option<JsonValue> {
        self.start.clone()
    }

    fn watch(&self) -> Option<Arc<dyn InputWatch>> {
        Some(self.watch.clone())
    }
}

impl Drop for FileReader {
    /// Waits for the thread, so that nothing is reported for a reader that is gone.
    fn drop(&mut self) {
        self.request(InputReaderCommand::Disconnect);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic has been printed, and shows in `is_closed`.
            let _ = thread.join();
        }
    }
}

struct Thread {
    shared: Shared,
    commands: Receiver<Wake>,
    wakes: Sender<Wake>,
    stop: Arc<AtomicBool>,
    plan: Plan,
}

impl Thread {
    fn run(self) {
        let consumer = self.shared.consumer.clone();
        if let Err(error) = self.read() {
            consumer.error(true, error);
        }
    }

    /// From the first command to the last.
    fn read(self) -> Result<(), EndpointError> {
        let Self { shared, commands, wakes, stop, mut plan } = self;
        let Shared { rules, pool, patterns, .. } = &shared;
        let mut replayer = Replayer::new(*rules, pool.clone(), patterns.clone(), stop);
        let mut replayed_to = None;
        loop {
            let Ok(wake) = commands.recv() else { return Ok(()) };
            match wake {
                Wake::Command(InputReaderCommand::Replay { metadata, data }) => {
                    let replayed = replayer.replay(&ranges_from_msgpack(data)?)?;
                    let Some(replayed) = replayed else { return Ok(()) };
                    shared.report(replayed.applied);
                    let size = size(&replayed.batches);
                    if size.records > 0 {
                        shared.consumer.buffered(size);
                    }
                    shared.consumer.replayed(replayed.batches);
                    replayed_to = Some(metadata);
                }
                Wake::Command(InputReaderCommand::Extend) => break,
                Wake::Command(InputReaderCommand::Disconnect) => return Ok(()),
                Wake::Changed => {}
                Wake::Command(command) => {
                    return Err(EndpointError::Bug(format!(
                        "a file input was sent {command:?} first"
                    )));
                }
            }
        }
        if let Some(metadata) = replayed_to {
            let seek = Seek::from_json(&metadata)?;
            plan = make_plan(patterns.scan()?, Some(&seek), shared.follow)?;
        }
        Live::new(shared, plan, replayer, wakes).run(&commands)
    }
}
