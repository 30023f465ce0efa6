//! A reader's thread, which owns the client: takes commands, replays, reads on.
//!
//! The thread sleeps whenever there is nothing to do and is woken by commands and by the client. Not here: how
//! records are read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lockgate_core::{
    EndpointError, FaultTolerance, InputConsumer, InputReader, InputReaderCommand as Command, size,
};
use serde_json::Value as JsonValue;

use super::ask::{Name, Questions};
use super::client::{self, Waker};
use super::live::Live;
use super::position::{Seek, ranges_from_msgpack};
use super::properties;
use super::replay::replay;
use super::source::Source;
use super::start::{start, topics};
use super::watch::{Looks, Watch};
use crate::config::KafkaInputConfig;

/// How long a reader waits for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// How long opening may wait for the brokers.
    pub(super) connect: Duration,
    /// How often new partitions are looked for.
    pub(super) refresh: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { connect: Duration::from_secs(15), refresh: Duration::from_secs(30) }
    }
}

/// An open Kafka input.
pub(super) struct KafkaReader {
    commands: Sender<Command>,
    waker: Waker,
    /// Set with the last command: a long replay does not look for commands.
    stop: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
    start: JsonValue,
    thread: Option<JoinHandle<()>>,
}

/// What a reader was opened with.
pub(super) struct Shared {
    pub(super) level: FaultTolerance,
    pub(super) consumer: Arc<dyn InputConsumer>,
    pub(super) max_pending_records: NonZeroU32,
    pub(super) stop: Arc<AtomicBool>,
    /// Where partitions end, if they do.
    pub(super) ends: Option<BTreeMap<Name, u64>>,
    pub(super) watch: Option<Watch>,
}

impl KafkaReader {
    pub(super) fn open(
        config: &KafkaInputConfig,
        timing: Timing,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Self, EndpointError> {
        properties::check(&config.properties)?;
        if config.brokers.is_empty() {
            return Err(EndpointError::Configuration("brokers: name at least one".into()));
        }
        let brokers = config.brokers.join(",");
        let stored = resume.as_ref().map(Seek::from_json).transpose()?;
        let asking = client::create(&properties::base(config))?;
        let questions = Questions { client: &asking, brokers: &brokers, patience: timing.connect };
        let start = start(config, &questions, stored.as_ref())?;
        let waker = Waker::default();
        let partitions = start.seek.iter().count();
        let reading = properties::reading(config, consumer.limits(), partitions);
        let mut source = Source::new(client::create(&reading)?, waker.clone());
        for (topic, number, offset) in start.seek.iter() {
            source.add(topic, number, offset)?;
        }
        let looks = Looks {
            client: asking,
            brokers,
            topics: topics(config)?,
            ids: start.seek.ids.clone(),
            grows: config.partitions.is_none(),
            known: start.seek.iter().map(|(topic, number, _)| (topic.to_owned(), number)).collect(),
            every: timing.refresh,
            waker: waker.clone(),
        };
        let watch = config.stop_at.is_none().then(|| Watch::start(looks)).transpose()?;
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Shared {
            level,
            consumer,
            max_pending_records: config.max_pending_records,
            stop: stop.clone(),
            ends: start.ends,
            watch,
        };
        let (commands, received) = channel();
        let closed = Arc::new(AtomicBool::new(false));
        let (mark, thread_waker) = (Closing(closed.clone()), waker.clone());
        let (position, seek) = (start.seek.to_json(), start.seek);
        let spawned = std::thread::Builder::new().name("kafka-input".into()).spawn(move || {
            thread_waker.wakes_this_thread();
            let mark = mark;
            if let Err(error) = read(&shared, &mut source, seek, &received) {
                shared.consumer.error(true, error);
            }
            // Before the client is dropped, which waits for its connections.
            drop(mark);
        });
        let thread = Some(spawned.map_err(|error| EndpointError::Unavailable {
            what: "starting a thread for a Kafka input".into(),
            source: error.into(),
        })?);
        Ok(Self { commands, waker, stop, closed, start: position, thread })
    }
}

/// Marks the reader as closed when its thread has nothing more to say, however that came.
struct Closing(Arc<AtomicBool>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl InputReader for KafkaReader {
    fn request(&self, command: Command) {
        if command == Command::Disconnect {
            self.stop.store(true, Ordering::Release);
        }
        // A thread that has ended takes no commands; `is_closed` says so.
        let _ = self.commands.send(command);
        self.waker.wake();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn start(&self) -> Option<JsonValue> {
        Some(self.start.clone())
    }
}

impl Drop for KafkaReader {
    /// Waits for the thread, so that nothing is reported for a reader that is gone.
    fn drop(&mut self) {
        self.request(Command::Disconnect);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic has been printed, and shows in `is_closed`.
            let _ = thread.join();
        }
    }
}

/// The next command, waiting for it; `None` if there will be none.
fn next_command(commands: &Receiver<Command>) -> Option<Command> {
    loop {
        match commands.try_recv() {
            Ok(command) => return Some(command),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::thread::park(),
        }
    }
}

/// From the first command to the last.
fn read(
    shared: &Shared,
    source: &mut Source,
    mut seek: Seek,
    commands: &Receiver<Command>,
) -> Result<(), EndpointError> {
    let consumer = shared.consumer.as_ref();
    while let Some(command) = next_command(commands) {
        match command {
            Command::Replay { metadata, data } => {
                let ranges = ranges_from_msgpack(&data)?;
                let batches = replay(source, &ranges, consumer, &shared.stop)?;
                let Some(batches) = batches else { return Ok(()) };
                let size = size(&batches);
                if size.records > 0 {
                    consumer.buffered(size);
                }
                consumer.replayed(batches);
                for (topic, number, offset) in Seek::from_json(&metadata)?.iter() {
                    seek.set(topic, number, offset);
                }
            }
            Command::Extend => return Live::new(shared, source, &seek)?.run(commands),
            Command::Disconnect => return Ok(()),
            command => {
                return Err(EndpointError::Bug(format!(
                    "a Kafka input was sent {command:?} first"
                )));
            }
        }
    }
    Ok(())
}
