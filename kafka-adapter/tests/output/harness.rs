//! What an output is given, whom it reports to, and what is in a topic afterwards.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use lockgate_core::{
    Batch, BatchBuilder, EndpointError, NewRecord, Output, OutputReporter, Partition,
};
use lockgate_kafka_adapter::{KafkaOutput, KafkaOutputConfig, TopicChoice};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers, Message};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::Value as JsonValue;

use crate::broker::{Topic, brokers};

pub(crate) const WAIT: Duration = Duration::from_secs(20);

/// Listens to an output.
#[derive(Default)]
pub(crate) struct Heard {
    said: Mutex<Said>,
    changed: Condvar,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) troubles: Vec<String>,
    pub(crate) recovered: usize,
    pub(crate) policies: Vec<(&'static str, String)>,
}

impl Heard {
    fn hear(&self, what: impl FnOnce(&mut Said)) {
        what(&mut self.said.lock().unwrap());
        self.changed.notify_all();
    }

    pub(crate) fn said(&self) -> Said {
        self.said.lock().unwrap().clone()
    }

    /// Until something was said.
    pub(crate) fn wait(&self, what: &str, ready: impl Fn(&Said) -> bool) {
        let deadline = Instant::now() + WAIT;
        let mut said = self.said.lock().unwrap();
        while !ready(&said) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited for {what}: {said:?}");
            said = self.changed.wait_timeout(said, left).unwrap().0;
        }
    }
}

impl OutputReporter for Heard {
    fn trouble(&self, error: EndpointError) {
        self.hear(|said| said.troubles.push(error.to_string()));
    }

    fn recovered(&self) {
        self.hear(|said| said.recovered += 1);
    }

    fn policy_applied(&self, policy: &'static str, text: String) {
        self.hear(|said| said.policies.push((policy, text)));
    }
}

/// A configuration that writes to this topic.
pub(crate) fn config(topic: &Topic) -> KafkaOutputConfig {
    let servers = brokers().split(',').map(str::to_owned).collect();
    KafkaOutputConfig::new(servers, "lockgate-test", TopicChoice::Fixed(topic.name.clone()))
}

/// An open output.
pub(crate) struct Writing {
    pub(crate) output: KafkaOutput,
    pub(crate) heard: Arc<Heard>,
    pub(crate) position: JsonValue,
}

pub(crate) fn open(
    mut output: KafkaOutput,
    last_step: u64,
    position: Option<&JsonValue>,
) -> Result<Writing, EndpointError> {
    let heard = Arc::new(Heard::default());
    output.attach(last_step, heard.clone());
    let position = output.recover(position)?;
    Ok(Writing { output, heard, position })
}

/// Why it cannot be opened.
pub(crate) fn refused(
    output: KafkaOutput,
    last_step: u64,
    position: Option<&JsonValue>,
) -> EndpointError {
    match open(output, last_step, position) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

impl Writing {
    pub(crate) fn new(output: KafkaOutput) -> Self {
        open(output, 0, None).unwrap()
    }

    /// Writes a step of records with these values, from partition 0 of `in`, at offset 100 times the step and on.
    pub(crate) fn write(&mut self, step: u64, values: &[&str]) {
        self.output.write(step, &[batch(step * 100, values)]).unwrap();
    }

    pub(crate) fn prepare(&mut self) -> JsonValue {
        self.output.prepare().unwrap()
    }

    /// What it fails with, some step later.
    pub(crate) fn failure(&mut self) -> EndpointError {
        match self.output.prepare() {
            Ok(_) => panic!("it did not fail"),
            Err(error) => error,
        }
    }
}

/// Records of partition 0 of `in`.
pub(crate) fn batch(first_offset: u64, values: &[&str]) -> Batch {
    let records = values
        .iter()
        .map(|value| NewRecord { value: Some(value.as_bytes()), ..NewRecord::default() });
    batch_of(0, first_offset, records)
}

/// Records of a partition of `in`.
pub(crate) fn batch_of<'a>(
    partition: u32,
    first_offset: u64,
    records: impl IntoIterator<Item = NewRecord<'a>>,
) -> Batch {
    let partition = Partition { source: "in".into(), number: Some(partition) };
    let mut builder = BatchBuilder::new(partition.into());
    for (offset, record) in (first_offset..).zip(records) {
        builder.push(NewRecord { offset, ..record }).unwrap();
    }
    builder.build()
}

/// A record in a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) partition: i32,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

/// Everything in a topic that a reader with this isolation level sees.
fn read(topic: &str, isolation: &str) -> Vec<Got> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers());
    config.set("group.id", "lockgate-test-reader").set("enable.auto.commit", "false");
    config.set("isolation.level", isolation).set("enable.partition.eof", "true");
    config.set("fetch.wait.max.ms", "20");
    let consumer: BaseConsumer = config.create().unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), WAIT).unwrap();
    let partitions = metadata.topics()[0].partitions().len();
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions as i32 {
        list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).unwrap();
    drop(list);
    let (mut got, mut ended) = (Vec::new(), 0);
    let deadline = Instant::now() + WAIT;
    while ended < partitions {
        assert!(Instant::now() < deadline, "{topic}: {ended} of {partitions} partitions ended");
        let message = match consumer.poll(Duration::from_millis(100)) {
            None => continue,
            Some(Err(KafkaError::PartitionEOF(_))) => {
                ended += 1;
                continue;
            }
            Some(message) => message.unwrap(),
        };
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            let owned = |header: rdkafka::message::Header<'_, &[u8]>| {
                (header.key.to_owned(), header.value.map(<[u8]>::to_vec))
            };
            headers.iter().map(owned).collect()
        });
        got.push(Got {
            partition: message.partition(),
            timestamp: message.timestamp().to_millis(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers,
        });
    }
    got
}

pub(crate) fn committed(topic: &Topic) -> Vec<Got> {
    read(&topic.name, "read_committed")
}

fn values(got: Vec<Got>) -> Vec<String> {
    got.into_iter().map(|got| String::from_utf8(got.value.unwrap()).unwrap()).collect()
}

/// The values that readers of committed records see.
pub(crate) fn committed_values(topic: &Topic) -> Vec<String> {
    values(committed(topic))
}

/// The values that anybody can see, those of open and aborted transactions included.
pub(crate) fn all_values(topic: &Topic) -> Vec<String> {
    values(read(&topic.name, "read_uncommitted"))
}

/// The end of what is decided in partition 0 of a topic: records and markers of transactions.
pub(crate) fn stable_end(topic: &Topic) -> i64 {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers()).set("isolation.level", "read_committed");
    let consumer: BaseConsumer = config.create().unwrap();
    consumer.fetch_watermarks(&topic.name, 0, WAIT).unwrap().1
}

/// Asks the brokers again and again.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never happened that {what}");
    }
}

/// The offset that a group has committed for partition 0 of a topic.
pub(crate) fn group_offset(group: &str, topic: &str) -> Option<i64> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers()).set("group.id", group);
    config.set("isolation.level", "read_committed");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition(topic, 0);
    let found = consumer.committed_offsets(list, WAIT).unwrap();
    match found.find_partition(topic, 0).unwrap().offset() {
        Offset::Offset(offset) => Some(offset),
        _ => None,
    }
}
