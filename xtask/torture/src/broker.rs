//! The real broker: topics that are made, filled, read and deleted, and its own death.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use crate::record;

/// Of every topic.
pub(crate) const PARTITIONS: u32 = 4;

const WAIT: Duration = Duration::from_secs(60);

/// A cluster with one broker that answers.
pub(crate) struct Broker {
    pub(crate) servers: String,
    /// The program that starts and kills it, and the cluster's name.
    keeper: Option<(PathBuf, String)>,
    admin: AdminClient<DefaultClientContext>,
    /// One for all: a new one takes seconds to get going.
    reader: BaseConsumer,
    runtime: tokio::runtime::Runtime,
    topics: Cell<u32>,
}

impl Broker {
    pub(crate) fn new(servers: &str, keeper: Option<(PathBuf, String)>) -> Result<Self> {
        let admin = configured(servers).create().context("a client of the broker")?;
        let mut config = configured(servers);
        for (name, value) in [
            ("group.id", "torture-compares"),
            ("isolation.level", "read_committed"),
            ("enable.auto.commit", "false"),
            ("enable.partition.eof", "true"),
            ("fetch.queue.backoff.ms", "2"),
        ] {
            config.set(name, value);
        }
        let reader = config.create().context("a client of the broker")?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self { servers: servers.into(), keeper, admin, reader, runtime, topics: Cell::new(0) })
    }

    pub(crate) fn may_be_killed(&self) -> bool {
        self.keeper.is_some()
    }

    pub(crate) fn kill(&self) -> Result<()> {
        self.keep("kill")
    }

    /// Waits until it answers.
    pub(crate) fn start_again(&self) -> Result<()> {
        self.keep("start")
    }

    fn keep(&self, verb: &str) -> Result<()> {
        let (program, name) = self.keeper.as_ref().context("this broker is not ours")?;
        let mut command = Command::new(program);
        command.args(["kafka", verb, "--only", "1", "--name", name]);
        let output = command.output().with_context(|| format!("starting {command:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?}: {said}");
        Ok(())
    }

    /// A topic of its own.
    pub(crate) fn topic(&self, purpose: &str) -> Result<String> {
        let number = self.topics.replace(self.topics.get() + 1);
        let name = format!("torture-{}-{number}-{purpose}", std::process::id());
        let new = NewTopic::new(&name, PARTITIONS as i32, TopicReplication::Fixed(1));
        let made = self.runtime.block_on(self.admin.create_topics([&new], &options()));
        for topic in made.context("making a topic")? {
            topic.map_err(|(topic, code)| anyhow!("making the topic {topic}: {code}"))?;
        }
        let begun = Instant::now();
        loop {
            let metadata = self.reader.fetch_metadata(Some(&name), WAIT)?;
            let partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
            if partitions.filter(|one| one.leader() >= 0).count() == PARTITIONS as usize {
                return Ok(name);
            }
            ensure!(begun.elapsed() < WAIT, "{name} has no leaders");
        }
    }

    /// What cannot be deleted stays.
    pub(crate) fn delete(&self, topic: &str) {
        let _ = self.runtime.block_on(self.admin.delete_topics(&[topic], &options()));
    }

    /// So many records of its own source in each partition.
    pub(crate) fn fill(&self, topic: &str, each: u32) -> Result<()> {
        let mut config = configured(&self.servers);
        config.set("enable.idempotence", "true").set("linger.ms", "20");
        let producer: BaseProducer = config.create()?;
        let mut value = Vec::new();
        for number in 0..each {
            for partition in 0..PARTITIONS {
                value.clear();
                record::write(&mut value, partition, number);
                let mut new: BaseRecord<'_, [u8], [u8]> =
                    BaseRecord::to(topic).partition(partition as i32).payload(&value);
                while let Err((error, back)) = producer.send(new) {
                    let is_full = KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
                    ensure!(error == is_full, "filling {topic}: {error}");
                    new = back;
                    producer.poll(Duration::from_millis(10));
                }
            }
            producer.poll(Duration::ZERO);
        }
        producer.flush(WAIT).context("filling a topic")
    }

    /// Gives every committed record to `take`, in the order of its partition.
    pub(crate) fn read_committed(
        &self,
        topic: &str,
        mut take: impl FnMut(u32, &[u8]),
    ) -> Result<()> {
        let mut list = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            list.add_partition_offset(topic, partition as i32, Offset::Beginning)?;
        }
        self.reader.assign(&list)?;
        let mut ended = BTreeSet::new();
        let mut heard = Instant::now();
        while ended.len() < PARTITIONS as usize {
            match self.reader.poll(Duration::from_millis(100)) {
                // What is left of the topic before this one.
                Some(Ok(message)) if message.topic() != topic => continue,
                Some(Ok(message)) => {
                    take(message.partition() as u32, message.payload().unwrap_or_default());
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    ended.insert(partition);
                }
                // It connects again by itself.
                Some(Err(KafkaError::MessageConsumption(
                    RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::AllBrokersDown,
                )))
                | None => {
                    ensure!(heard.elapsed() < WAIT, "{topic} has no end");
                    continue;
                }
                Some(Err(error)) => bail!("reading {topic}: {error}"),
            }
            heard = Instant::now();
        }
        self.reader.unassign()?;
        Ok(())
    }
}

fn configured(servers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers);
    // What is expected here, brokers that die, is not worth a word.
    config.set("log_level", "0").set("reconnect.backoff.max.ms", "300");
    config
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(WAIT)).request_timeout(Some(WAIT))
}
