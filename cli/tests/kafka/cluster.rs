//! Clusters and topics of the tests.

use std::collections::BTreeMap;
use std::future::Future;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use crate::rows::{Check, Row};
use crate::site::Running;

const WAIT: Duration = Duration::from_secs(60);

/// The bootstrap servers of the cluster that all tests share.
pub(crate) fn shared() -> String {
    std::env::var("LOCKGATE_KAFKA").unwrap_or_else(|_| {
        panic!(
            "LOCKGATE_KAFKA is not set: these tests need a Kafka broker. `cargo xtask test` starts one, and so \
             does `cargo xtask kafka start`, which prints what to set"
        )
    })
}

/// A cluster that one test has for itself, to kill its brokers; nothing is left of it afterwards.
pub(crate) struct Cluster {
    name: &'static str,
    pub(crate) servers: String,
}

impl Cluster {
    pub(crate) fn start(name: &'static str, brokers: u32) -> Self {
        Self::xtask(name, &["wipe"]);
        let said = Self::xtask(name, &["start", "--brokers", &brokers.to_string()]);
        let servers = said.trim().trim_start_matches("LOCKGATE_KAFKA=").to_owned();
        Self { name, servers }
    }

    pub(crate) fn kill(&self, broker: u32) {
        Self::xtask(self.name, &["kill", "--only", &broker.to_string()]);
    }

    pub(crate) fn start_again(&self, broker: u32) {
        Self::xtask(self.name, &["start", "--only", &broker.to_string()]);
    }

    /// What the verb prints.
    fn xtask(name: &str, verb: &[&str]) -> String {
        let program = std::env::var("LOCKGATE_XTASK").unwrap_or_else(|_| {
            panic!("LOCKGATE_XTASK is not set: run these tests by `cargo xtask test`")
        });
        let mut command = Command::new(program);
        let output = command.arg("kafka").args(verb).args(["--name", name]).output().unwrap();
        assert!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        Self::xtask(self.name, &["wipe"]);
    }
}

/// Waits for a future on this thread.
fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(WAIT)).request_timeout(Some(WAIT))
}

/// A topic of its own, deleted at the end.
pub(crate) struct Topic {
    pub(crate) name: String,
    servers: String,
    partitions: u32,
    admin: AdminClient<DefaultClientContext>,
    asking: BaseConsumer,
}

impl Topic {
    pub(crate) fn new(servers: &str, purpose: &str, partitions: u32, copies: i32) -> Self {
        Self::made(servers, purpose, partitions, TopicReplication::Fixed(copies), &[])
    }

    /// With one partition, whose leader is the first of two brokers as long as it lives. What only that one has may
    /// be lost with it.
    pub(crate) fn careless(servers: &str, purpose: &str, leader: i32, follower: i32) -> Self {
        let config = [("unclean.leader.election.enable", "true"), ("min.insync.replicas", "1")];
        let brokers: [&[i32]; 1] = [&[leader, follower]];
        Self::made(servers, purpose, 1, TopicReplication::Variable(&brokers), &config)
    }

    /// With one partition, which the brokers compact all the time.
    pub(crate) fn compacted(servers: &str, purpose: &str) -> Self {
        let config = [
            ("cleanup.policy", "compact"),
            ("segment.ms", "100"),
            ("min.cleanable.dirty.ratio", "0.001"),
            ("min.compaction.lag.ms", "0"),
        ];
        Self::made(servers, purpose, 1, TopicReplication::Fixed(1), &config)
    }

    fn made(
        servers: &str,
        purpose: &str,
        partitions: u32,
        copies: TopicReplication<'_>,
        settings: &[(&str, &str)],
    ) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let name = format!("{purpose}-{now:x}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", servers);
        let admin: AdminClient<_> = config.create().unwrap();
        let mut new = NewTopic::new(&name, partitions as i32, copies);
        new.config.extend_from_slice(settings);
        wait(admin.create_topics([&new], &options())).unwrap().pop().unwrap().unwrap();
        let asking = config.create().unwrap();
        let topic = Self { name, servers: servers.to_owned(), partitions, admin, asking };
        let begun = Instant::now();
        while topic.led() < partitions as usize {
            assert!(begun.elapsed() < WAIT, "{} has no leaders", topic.name);
            std::thread::yield_now();
        }
        topic
    }

    /// How many partitions have a leader.
    fn led(&self) -> usize {
        let Ok(metadata) = self.asking.fetch_metadata(Some(&self.name), WAIT) else { return 0 };
        let partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
        partitions.filter(|partition| partition.leader() >= 0).count()
    }

    /// How many brokers the cluster says it has.
    pub(crate) fn brokers(&self) -> usize {
        self.asking.fetch_metadata(Some(&self.name), WAIT).map_or(0, |said| said.brokers().len())
    }

    /// Whether every broker has all it should have of all topics of the cluster, Kafka's own included: then none of
    /// them is missed.
    pub(crate) fn in_sync(&self) -> bool {
        let Ok(metadata) = self.asking.fetch_metadata(None, WAIT) else { return false };
        let mut partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
        partitions.all(|partition| partition.isr().len() == partition.replicas().len())
    }

    /// The sum of the ends of all partitions, transactions under way included; 0 where nobody says.
    pub(crate) fn size(&self) -> u64 {
        self.ends().iter().sum()
    }

    fn ends(&self) -> Vec<u64> {
        let wait = Duration::from_secs(1);
        let end = |partition| {
            let marks = self.asking.fetch_watermarks(&self.name, partition, wait);
            marks.map_or(0, |(_, end)| end as u64)
        };
        (0..self.partitions as i32).map(end).collect()
    }

    /// The broker that leads a partition, if one does.
    pub(crate) fn leader(&self, partition: i32) -> Option<i32> {
        let metadata = self.asking.fetch_metadata(Some(&self.name), WAIT).ok()?;
        let partitions = metadata.topics().first()?.partitions();
        let leader = partitions.iter().find(|found| found.id() == partition)?.leader();
        (leader >= 0).then_some(leader)
    }

    pub(crate) fn writer(&self) -> Writer<'_> {
        self.writer_of(0)
    }

    /// One whose records are those from this number on, wherever they come to lie.
    pub(crate) fn writer_of(&self, first: u64) -> Writer<'_> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.servers);
        config.set("enable.idempotence", "true");
        config.set("linger.ms", "20");
        config.set("message.timeout.ms", "300000");
        let next = (0..self.partitions).map(|partition| (partition, first)).collect();
        Writer { topic: self, producer: config.create().unwrap(), next }
    }

    /// So many records in each partition.
    pub(crate) fn filled(self, each: u64) -> Self {
        let mut writer = self.writer();
        writer.fill(each);
        writer.finish();
        self
    }

    /// Writes a few more records to each partition, again and again, while `work` is done. How many records each
    /// partition has then.
    pub(crate) fn fed_while(&self, work: impl FnOnce()) -> BTreeMap<u32, u64> {
        thread::scope(|scope| {
            // Dropped also when the test fails.
            let (stop, stopped) = channel::<()>();
            let written = scope.spawn(move || {
                let mut writer = self.writer();
                let pause = Duration::from_millis(20);
                while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    writer.fill(10);
                }
                writer.finish()
            });
            work();
            drop(stop);
            written.join().unwrap()
        })
    }

    /// Waits until the program has written so many more records than there were.
    pub(crate) fn grows(&self, running: &mut Running, records: u64) {
        let size = self.size();
        assert!(running.until(|| self.size() > size + records), "{}", running.stderr());
    }

    /// Waits until the program has written so many records of each partition, stops it in order, and looks at all
    /// of them.
    pub(crate) fn completed_by(&self, mut running: Running, each: &BTreeMap<u32, u64>) {
        let total: u64 = each.values().sum();
        let begun = Instant::now();
        while self.committed() < total {
            let alive = running.child.try_wait().unwrap().is_none();
            assert!(
                alive && begun.elapsed() < WAIT,
                "{each:?} in, {:?} out, ends {:?}: {}",
                self.committed_of_each(),
                self.ends(),
                running.stderr()
            );
        }
        running.signal("TERM");
        let ended = running.end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        self.check(each);
    }

    /// Gives every committed record to `take`, one partition after the other.
    pub(crate) fn read_committed(&self, mut take: impl FnMut(u32, Row)) {
        let mut config = ClientConfig::new();
        for (name, value) in [
            ("bootstrap.servers", self.servers.as_str()),
            ("group.id", "lockgate-check"),
            ("isolation.level", "read_committed"),
            ("enable.auto.commit", "false"),
            ("enable.partition.eof", "true"),
            ("fetch.queue.backoff.ms", "2"),
        ] {
            config.set(name, value);
        }
        for partition in 0..self.partitions {
            let consumer: BaseConsumer = config.create().unwrap();
            let mut list = TopicPartitionList::new();
            let number = partition as i32;
            list.add_partition_offset(&self.name, number, Offset::Beginning).unwrap();
            consumer.assign(&list).unwrap();
            let mut heard = Instant::now();
            loop {
                match consumer.poll(Duration::from_millis(100)) {
                    Some(Ok(message)) => take(partition, Row::of_message(&message)),
                    Some(Err(KafkaError::PartitionEOF(_))) => break,
                    // It connects again by itself.
                    Some(Err(KafkaError::MessageConsumption(
                        RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::AllBrokersDown,
                    )))
                    | None => {
                        assert!(heard.elapsed() < WAIT, "{}[{partition}] has no end", self.name);
                        continue;
                    }
                    Some(Err(error)) => panic!("{}[{partition}]: {error}", self.name),
                }
                heard = Instant::now();
            }
        }
    }

    /// Every record is there once and in its place; so many in each partition.
    pub(crate) fn check(&self, each: &BTreeMap<u32, u64>) {
        let mut check = Check::default();
        self.read_committed(|partition, row| check.take(partition, &row));
        check.end(each);
    }

    /// How many committed records there are.
    pub(crate) fn committed(&self) -> u64 {
        self.committed_of_each().values().sum()
    }

    fn committed_of_each(&self) -> BTreeMap<u32, u64> {
        let mut counts = self.each(0);
        self.read_committed(|partition, _| *counts.entry(partition).or_default() += 1);
        counts
    }

    pub(crate) fn each(&self, records: u64) -> BTreeMap<u32, u64> {
        (0..self.partitions).map(|partition| (partition, records)).collect()
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let _ = wait(self.admin.delete_topics(&[&self.name], &options()));
    }
}

/// Writes the records that follow from their places.
pub(crate) struct Writer<'a> {
    topic: &'a Topic,
    producer: BaseProducer,
    /// The number of the next record of each partition.
    next: BTreeMap<u32, u64>,
}

impl Writer<'_> {
    /// Adds the next record of a partition.
    pub(crate) fn add(&mut self, partition: u32) {
        let next = self.next.entry(partition).or_default();
        let row = Row::of(partition, *next);
        *next += 1;
        let mut record: BaseRecord<'_, [u8], [u8]> =
            BaseRecord::to(&self.topic.name).partition(partition as i32);
        record.key = row.key.as_deref();
        record.payload = row.value.as_deref();
        record.headers = row.owned_headers();
        loop {
            match self.producer.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    self.producer.poll(Duration::from_millis(10));
                }
                Err((error, _)) => panic!("{error}"),
            }
        }
        self.producer.poll(Duration::ZERO);
    }

    /// So many more records in each partition, until the brokers have them.
    pub(crate) fn fill(&mut self, each: u64) {
        for _ in 0..each {
            (0..self.topic.partitions).for_each(|partition| self.add(partition));
        }
        self.producer.flush(Duration::from_secs(300)).unwrap();
    }

    /// Until the brokers have everything; how many records each partition has.
    pub(crate) fn finish(self) -> BTreeMap<u32, u64> {
        self.producer.flush(Duration::from_secs(300)).unwrap();
        self.next
    }
}
