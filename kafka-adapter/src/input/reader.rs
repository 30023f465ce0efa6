//! A reader's thread, which owns the client: takes commands, replays, reads on.
//!
//! The thread sleeps whenever there is nothing to do and is woken by commands and by the client. Not here: how
//! records are read.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lockgate_core::{
    EndpointError, FaultTolerance, InputConsumer, InputReader, InputReaderCommand as Command,
    InputWatch, size,
};
use serde_json::Value as JsonValue;

use super::KafkaInput;
use super::ask::Questions;
use super::begin::Beginning;
use super::epochs::cuts;
use super::gauges::Gauges;
use super::live::Live;
use super::member::Member;
use super::plan::{Policies, taken_back};
use super::position::{Seek, ranges_from_msgpack};
use super::properties::{self, Readers};
use super::replay::replay;
use super::source::Source;
use super::start::start;
use super::topics::Topics;
use super::watch::{Looks, Watch};
use crate::client::Name;
use crate::client::{self, Client};
use crate::config::{GroupConfig, KafkaInputConfig, ReadMode};
use crate::group::{GroupCommits, GroupSeek};
use crate::waker::Waker;

/// How long dropping a reader waits for its thread: longer than a group may take to let it go.
const DROP: Duration = Duration::from_secs(20);

/// How long a reader waits for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// How long opening may wait for the brokers.
    pub(super) connect: Duration,
    /// How often new partitions are looked for.
    pub(super) refresh: Duration,
    /// How often it is looked which partitions are busy.
    pub(super) look: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let [look, connect, refresh] = [1, 15, 30].map(Duration::from_secs);
        Self { connect, refresh, look }
    }
}

/// An open Kafka input.
pub(super) struct KafkaReader {
    orders: Sender<Order>,
    waker: Waker,
    /// Set with the last command: a long replay does not look for commands.
    stop: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
    start: JsonValue,
    max_pending_records: Arc<AtomicU32>,
    gauges: Arc<Gauges>,
    thread: Option<Ending>,
}

/// What a reader's thread is told.
pub(super) enum Order {
    Command(Command),
    /// A checkpoint with this position is durable.
    Checkpointed(JsonValue),
    /// So many records of each partition may be pending.
    Reload(NonZeroU32),
}

/// What a reader was opened with.
pub(super) struct Shared {
    pub(super) level: FaultTolerance,
    pub(super) consumer: Arc<dyn InputConsumer>,
    max_pending_records: Arc<AtomicU32>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) stop: Arc<AtomicBool>,
    /// Where partitions end, if they do.
    pub(super) ends: Option<BTreeMap<Name, u64>>,
    pub(super) watch: Option<Watch>,
    pub(super) policies: Policies,
    /// Whether offsets are committed for tools to see, though no group is joined.
    pub(super) has_offsets_group: bool,
}

impl Shared {
    pub(super) fn max_pending_records(&self) -> NonZeroU32 {
        NonZeroU32::new(self.max_pending_records.load(Ordering::Acquire)).unwrap_or(NonZeroU32::MIN)
    }
}

/// What a reader's thread does.
enum Task {
    /// Reads partitions that were found, from here on.
    Assigned(Seek),
    /// Reads what the group gives it.
    Member { group: String, beginning: Box<Beginning>, commits: Option<GroupCommits> },
}

impl KafkaReader {
    pub(super) fn open(
        input: &KafkaInput,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Self, EndpointError> {
        let config = &input.config;
        input.check()?;
        let topics = Topics::new(&config.topics)?;
        let asking = client::create(&properties::base(config))?;
        let opening =
            Opening { config, timing: input.timing, level, consumer, topics, asking, resume };
        match &config.mode {
            ReadMode::Assign { .. } => opening.assigned(),
            ReadMode::Group(group) => opening.member(group, input.commits.clone()),
        }
    }
}

/// A reader that is being opened.
struct Opening<'a> {
    config: &'a KafkaInputConfig,
    timing: Timing,
    level: FaultTolerance,
    consumer: Arc<dyn InputConsumer>,
    topics: Topics,
    asking: Client,
    resume: Option<JsonValue>,
}

impl Opening<'_> {
    fn assigned(self) -> Result<KafkaReader, EndpointError> {
        let Self { config, timing, level, consumer, topics, asking, resume } = self;
        if resume.as_ref().is_some_and(|resume| resume.get("group").is_some()) {
            return Err(other_mode("the member of a consumer group"));
        }
        let brokers = config.brokers.join(",");
        let stored = resume.as_ref().map(Seek::from_json).transpose()?;
        let questions = Questions { client: &asking, brokers: &brokers, patience: timing.connect };
        let mut start = start(config, &topics, &questions, stored.as_ref())?;
        let waker = Waker::default();
        let partitions = start.seek.iter().count();
        let limits = consumer.limits();
        let reading = properties::reading(config, limits, Readers::All(partitions));
        let busy = properties::reading(config, limits, Readers::Busy);
        let client = client::create(&reading)?;
        let mut source = Source::new(client, waker.clone()).with_lane(busy, timing.look);
        for (topic, number, offset) in start.seek.iter() {
            source.add(topic, number, offset)?;
        }
        let cuts = cuts(&mut source, &start.seek, timing.connect)?;
        let taken_back = taken_back(&mut start.seek, &cuts, Policies::of(config))?;
        let gauges = source.gauges();
        for (index, part) in source.parts.iter().enumerate() {
            let at = start.seek.offset(part.topic(), part.number()).unwrap_or(part.position);
            gauges.reach(
                index,
                &part.partition,
                at,
                start.ends.as_ref().and_then(|ends| ends.get(&part.name()).copied()),
            );
        }
        for (policy, text) in start.applied.into_iter().chain(taken_back) {
            consumer.policy_applied(policy, text);
        }
        let looks = Looks {
            client: asking,
            brokers,
            topics,
            ids: start.seek.ids.clone(),
            grows: matches!(config.mode, ReadMode::Assign { partitions: None, .. }),
            known: start.seek.iter().map(|(topic, number, _)| (topic.to_owned(), number)).collect(),
            every: timing.refresh,
            waker: waker.clone(),
            gauges: gauges.clone(),
        };
        let watch = config.stop_at.is_none().then(|| Watch::start(looks)).transpose()?;
        let shared = shared(config, level, consumer, start.ends, watch, gauges);
        spawn(shared, source, waker, start.seek.to_json(), Task::Assigned(start.seek))
    }

    fn member(
        self,
        group: &GroupConfig,
        commits: Option<GroupCommits>,
    ) -> Result<KafkaReader, EndpointError> {
        let Self { config, timing, level, consumer, topics, asking, resume } = self;
        if config.stop_at.is_some() {
            return Err(EndpointError::Configuration(
                "stop_at: a member of a group does not know the end of what others read; use mode: assign".into(),
            ));
        }
        if let Some(resume) = &resume {
            if resume.get("group").is_none() {
                return Err(other_mode("assigned partitions"));
            }
            let stored = GroupSeek::from_json(resume)?;
            if stored.group != group.id {
                return Err(EndpointError::Configuration(format!(
                    "group: the stored position is that of a member of {}, not of {}",
                    stored.group, group.id
                )));
            }
        }
        let brokers = config.brokers.join(",");
        let questions = Questions { client: &asking, brokers: &brokers, patience: timing.connect };
        let mut partitions = 0;
        for topic in topics.find(&questions)? {
            partitions += questions.partitions(&topic)?.len();
        }
        let waker = Waker::default();
        let readers = Readers::All(partitions);
        let reading = properties::reading(config, consumer.limits(), readers);
        let source = Source::new(client::create(&reading)?, waker.clone());
        if let Some(commits) = &commits {
            commits.wakes(waker.clone());
        }
        let beginning = Box::new(Beginning { config: config.clone(), asking, brokers });
        let task = Task::Member { group: group.id.clone(), beginning, commits };
        let gauges = source.gauges();
        let shared = shared(config, level, consumer, None, None, gauges);
        spawn(shared, source, waker, GroupSeek::new(&group.id, 0).to_json(), task)
    }
}

fn other_mode(what: &str) -> EndpointError {
    EndpointError::Configuration(format!(
        "mode: the stored position is that of {what}; set the mode back, or start afresh with another state \
         directory"
    ))
}

fn shared(
    config: &KafkaInputConfig,
    level: FaultTolerance,
    consumer: Arc<dyn InputConsumer>,
    ends: Option<BTreeMap<Name, u64>>,
    watch: Option<Watch>,
    gauges: Arc<Gauges>,
) -> Shared {
    Shared {
        level,
        consumer,
        max_pending_records: Arc::new(config.max_pending_records.get().into()),
        gauges,
        stop: Arc::new(AtomicBool::new(false)),
        ends,
        watch,
        policies: Policies::of(config),
        has_offsets_group: matches!(config.mode, ReadMode::Assign { offsets_group: Some(_), .. }),
    }
}

fn spawn(
    shared: Shared,
    source: Source,
    waker: Waker,
    start: JsonValue,
    task: Task,
) -> Result<KafkaReader, EndpointError> {
    let (orders, received) = channel();
    let (stop, closed) = (shared.stop.clone(), Arc::new(AtomicBool::new(false)));
    let (max_pending_records, gauges) = (shared.max_pending_records.clone(), shared.gauges.clone());
    let (mark, thread_waker) = (Closing(closed.clone()), waker.clone());
    let span = tracing::Span::current();
    let (alive, ended) = channel();
    let spawned = std::thread::Builder::new().name("kafka-input".into()).spawn(move || {
        // Dropped after the client.
        let _alive: Sender<Infallible> = alive;
        let mut source = source;
        let _opened_for = span.entered();
        thread_waker.wakes_this_thread();
        let mark = mark;
        if let Err(error) = read(&shared, &mut source, task, &received) {
            shared.consumer.error(true, error);
        }
        // Before the client is dropped, which waits for its connections.
        drop(mark);
    });
    let thread = spawned.map_err(|error| EndpointError::Unavailable {
        what: "starting a thread for a Kafka input".into(),
        source: error.into(),
    })?;
    let thread = Some(Ending { thread, ended });
    Ok(KafkaReader { orders, waker, stop, closed, start, max_pending_records, gauges, thread })
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
        let _ = self.orders.send(Order::Command(command));
        self.waker.wake();
    }

    fn checkpointed(&self, seek: &JsonValue) {
        let _ = self.orders.send(Order::Checkpointed(seek.clone()));
        self.waker.wake();
    }

    fn reload(&self, max_pending_records: NonZeroU32) {
        self.max_pending_records.store(max_pending_records.get(), Ordering::Release);
        let _ = self.orders.send(Order::Reload(max_pending_records));
        self.waker.wake();
    }

    fn watch(&self) -> Option<Arc<dyn InputWatch>> {
        Some(self.gauges.clone())
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn start(&self) -> Option<JsonValue> {
        Some(self.start.clone())
    }
}

impl Drop for KafkaReader {
    /// Waits for the thread, so that nothing is reported for a reader that is gone. One whose client does not close is
    /// left behind: a stop must not hang on it, nor the signal that would end the process at once.
    fn drop(&mut self) {
        self.request(Command::Disconnect);
        if let Some(thread) = self.thread.take()
            && !thread.ends_within(DROP)
        {
            tracing::warn!("the thread of a Kafka input is left behind: its client does not close");
        }
    }
}

/// A thread that can be waited for.
struct Ending {
    thread: JoinHandle<()>,
    /// Nothing ever comes; the other end is gone when the thread is done.
    ended: Receiver<Infallible>,
}

impl Ending {
    /// Whether it has ended in time. Itself it does not wait for.
    fn ends_within(self, patience: Duration) -> bool {
        if self.thread.thread().id() == std::thread::current().id() {
            return true;
        }
        let has_ended = self.ended.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected);
        if has_ended {
            // A panic has been printed, and shows in `is_closed`.
            let _ = self.thread.join();
        }
        has_ended
    }
}

/// The next command, waiting for it; `None` if there will be none.
fn next_command(orders: &Receiver<Order>) -> Option<Command> {
    loop {
        match orders.try_recv() {
            Ok(Order::Command(command)) => return Some(command),
            // Of what was read in an earlier run; and what is looked up when reading begins.
            Ok(Order::Checkpointed(_) | Order::Reload(_)) => {}
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::thread::park(),
        }
    }
}

/// From the first command to the last.
fn read(
    shared: &Shared,
    source: &mut Source,
    task: Task,
    orders: &Receiver<Order>,
) -> Result<(), EndpointError> {
    match task {
        Task::Assigned(seek) => read_assigned(shared, source, seek, orders),
        Task::Member { group, beginning, commits } => match next_command(orders) {
            Some(Command::Extend) => {
                Member::new(shared, source, &group, &beginning, commits)?.run(orders)
            }
            Some(Command::Disconnect) | None => Ok(()),
            Some(command) => Err(not_first(&command)),
        },
    }
}

fn read_assigned(
    shared: &Shared,
    source: &mut Source,
    mut seek: Seek,
    orders: &Receiver<Order>,
) -> Result<(), EndpointError> {
    let consumer = shared.consumer.as_ref();
    while let Some(command) = next_command(orders) {
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
                seek.advance(&Seek::from_json(&metadata)?);
            }
            Command::Extend => return Live::new(shared, source, &seek)?.run(orders),
            Command::Disconnect => return Ok(()),
            command => return Err(not_first(&command)),
        }
    }
    Ok(())
}

fn not_first(command: &Command) -> EndpointError {
    EndpointError::Bug(format!("a Kafka input was sent {command:?} first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that ends when it is told to.
    fn thread() -> (Ending, Sender<()>) {
        let ((tell, told), (alive, ended)) = (channel(), channel());
        let thread = std::thread::spawn(move || {
            let _alive: Sender<Infallible> = alive;
            let _ = told.recv();
        });
        (Ending { thread, ended }, tell)
    }

    /// A client that did not close once held up a stop for ever, and the second signal, too.
    #[test]
    fn a_thread_that_does_not_end_is_left_behind() {
        let (thread, tell) = thread();
        assert!(!thread.ends_within(Duration::from_millis(20)));
        drop(tell);
    }

    #[test]
    fn a_thread_that_ends_is_waited_for() {
        let (thread, tell) = self::thread();
        drop(tell);
        assert!(thread.ends_within(Duration::from_secs(60)));
    }
}
