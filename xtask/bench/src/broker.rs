//! Topics of our own on the broker that `cargo xtask bench` names, deleted at the end.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use tokio::runtime::Builder;

/// How many partitions a topic with records has.
pub(crate) const PARTITIONS: u32 = 6;

const WAIT: Duration = Duration::from_secs(120);

/// Test brokers have small segments, so that they are soon deleted; these are as in production.
const SETTINGS: [(&str, &str); 3] =
    [("segment.bytes", "1073741824"), ("retention.ms", "-1"), ("retention.bytes", "-1")];

/// The bootstrap servers.
pub(crate) fn servers() -> Result<String> {
    std::env::var("LOCKGATE_KAFKA")
        .context("LOCKGATE_KAFKA is not set: start this by `cargo xtask bench`")
}

/// A client's settings with nothing but the servers.
pub(crate) fn client() -> Result<ClientConfig> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers()?);
    Ok(config)
}

/// A topic, which is deleted when this is dropped.
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) records: u64,
    admin: AdminClient<DefaultClientContext>,
}

impl Topic {
    /// An empty one.
    pub(crate) fn new(purpose: &str, partitions: u32) -> Result<Self> {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let name = format!("bench-{purpose}-{since:x}");
        let admin: AdminClient<_> = client()?.create()?;
        let mut new = NewTopic::new(&name, i32::try_from(partitions)?, TopicReplication::Fixed(1));
        new.config.extend_from_slice(&SETTINGS);
        let options = AdminOptions::new().operation_timeout(Some(WAIT)).request_timeout(Some(WAIT));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let made = runtime.block_on(admin.create_topics([&new], &options))?;
        for result in made {
            if let Err((name, code)) = result {
                bail!("creating the topic {name}: {code}");
            }
        }
        let topic = Self { name, records: 0, admin };
        topic.wait_for_leaders(partitions as usize)?;
        topic.wait_for_logs(partitions)?;
        Ok(topic)
    }

    fn wait_for_leaders(&self, partitions: usize) -> Result<()> {
        let asking: BaseConsumer = client()?.create()?;
        let begun = Instant::now();
        loop {
            let metadata = asking.fetch_metadata(Some(&self.name), WAIT)?;
            let found = metadata.topics().iter().flat_map(|topic| topic.partitions());
            if found.filter(|partition| partition.leader() >= 0).count() >= partitions {
                return Ok(());
            }
            ensure!(begun.elapsed() < WAIT, "{} has no leaders", self.name);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Brokers say who leads a partition before that one has made its log.
    fn wait_for_logs(&self, partitions: u32) -> Result<()> {
        let asking: BaseConsumer = client()?.create()?;
        let begun = Instant::now();
        for partition in 0..partitions {
            while let Err(error) = asking.fetch_watermarks(&self.name, partition as i32, WAIT) {
                ensure!(begun.elapsed() < WAIT, "{}[{partition}]: {error}", self.name);
                thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }

    /// With so many records of so many bytes, dealt out to all partitions in turn.
    pub(crate) fn filled(purpose: &str, records: u64, bytes: usize) -> Result<Self> {
        let mut topic = Self::new(purpose, PARTITIONS)?;
        eprintln!("  writing {records} records of {bytes} bytes");
        let mut config = client()?;
        config.set("linger.ms", "50").set("batch.size", "1000000");
        let producer: BaseProducer = config.create()?;
        let value = vec![b'x'; bytes];
        for record in 0..records {
            let partition = (record % u64::from(PARTITIONS)) as i32;
            send(&producer, &topic.name, partition, &value)?;
        }
        producer.flush(WAIT)?;
        topic.records = records;
        Ok(topic)
    }
}

/// Sends one record, waiting while the producer is full.
pub(crate) fn send(
    producer: &BaseProducer,
    topic: &str,
    partition: i32,
    value: &[u8],
) -> Result<()> {
    let mut record = BaseRecord::<(), [u8]>::to(topic).partition(partition).payload(value);
    while let Err((error, back)) = producer.send(record) {
        if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
            return Err(error.into());
        }
        producer.poll(Duration::from_millis(10));
        record = back;
    }
    Ok(())
}

impl Drop for Topic {
    fn drop(&mut self) {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        let deleted = self.admin.delete_topics(&[&self.name], &AdminOptions::new());
        if let Err(error) = runtime.block_on(deleted) {
            eprintln!("warning: the topic {} is left over: {error}", self.name);
        }
    }
}
