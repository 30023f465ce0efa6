//! The broker of the tests, and topics that live as long as a test.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockgate_kafka_adapter::{KafkaInputConfig, StopAt, TopicSelection};
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

const WAIT: Duration = Duration::from_secs(20);

/// The bootstrap servers.
pub(crate) fn brokers() -> String {
    std::env::var("LOCKGATE_KAFKA").unwrap_or_else(|_| {
        panic!(
            "LOCKGATE_KAFKA is not set: these tests need a Kafka broker. `cargo xtask kafka start` starts one \
             and prints what to set"
        )
    })
}

fn client() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers());
    config
}

/// Waits for a future on this thread.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A record to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) partition: u32,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Sent {
    pub(crate) fn of(partition: u32, value: impl Into<Vec<u8>>) -> Self {
        Self { partition, value: Some(value.into()), ..Self::default() }
    }
}

/// A topic of its own, deleted at the end.
pub(crate) struct Topic {
    pub(crate) name: String,
    admin: AdminClient<DefaultClientContext>,
}

impl Topic {
    pub(crate) fn new(purpose: &str, partitions: u32) -> Self {
        Self::with(purpose, partitions, &[])
    }

    pub(crate) fn with(purpose: &str, partitions: u32, settings: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let name = format!("{purpose}-{now:x}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let admin = client().create().unwrap();
        let topic = Self { name, admin };
        topic.create(partitions, settings);
        topic
    }

    fn create(&self, partitions: u32, settings: &[(&str, &str)]) {
        let mut new = NewTopic::new(&self.name, partitions as i32, TopicReplication::Fixed(1));
        for (name, value) in settings {
            new = new.set(name, value);
        }
        let made = wait(self.admin.create_topics([&new], &options())).unwrap();
        made.into_iter().for_each(|made| {
            made.unwrap();
        });
        self.wait_for_partitions(partitions);
    }

    /// Deletes it and makes another one of the same name.
    pub(crate) fn make_anew(&self, partitions: u32) {
        self.delete();
        self.create(partitions, &[]);
    }

    pub(crate) fn delete(&self) {
        wait(self.admin.delete_topics(&[&self.name], &options())).unwrap().pop().unwrap().unwrap();
    }

    pub(crate) fn grow_to(&self, partitions: u32) {
        let more = NewPartitions::new(&self.name, partitions as usize);
        wait(self.admin.create_partitions([&more], &options())).unwrap().pop().unwrap().unwrap();
        self.wait_for_partitions(partitions);
    }

    /// Until the broker tells everybody of so many partitions.
    fn wait_for_partitions(&self, partitions: u32) {
        let deadline = std::time::Instant::now() + WAIT;
        let consumer: BaseConsumer = client().create().unwrap();
        loop {
            let metadata = consumer.fetch_metadata(Some(&self.name), WAIT).unwrap();
            let found = &metadata.topics()[0];
            let is_led = |p: &rdkafka::metadata::MetadataPartition| p.leader() >= 0;
            let led = found.partitions().iter().filter(|p| is_led(p)).count();
            if found.error().is_none() && led == partitions as usize {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "{} has {led} partitions", self.name);
            std::thread::yield_now();
        }
    }

    /// Deletes the records before an offset.
    pub(crate) fn delete_before(&self, partition: u32, offset: u64) {
        let mut list = TopicPartitionList::new();
        let offset = Offset::Offset(offset as i64);
        list.add_partition_offset(&self.name, partition as i32, offset).unwrap();
        let deleted = wait(self.admin.delete_records(&list, &options())).unwrap();
        deleted.elements().iter().for_each(|element| element.error().unwrap());
    }

    /// The offsets that a group has committed, by partition.
    pub(crate) fn committed(&self, group: &str, partitions: u32) -> BTreeMap<u32, u64> {
        let consumer: BaseConsumer = client().set("group.id", group).create().unwrap();
        let mut list = TopicPartitionList::new();
        (0..partitions as i32).for_each(|number| {
            list.add_partition(&self.name, number);
        });
        let committed = consumer.committed_offsets(list, WAIT).unwrap();
        let offset = |found: rdkafka::topic_partition_list::TopicPartitionListElem<'_>| {
            let Offset::Offset(offset) = found.offset() else { return None };
            Some((found.partition() as u32, offset as u64))
        };
        committed.elements().into_iter().filter_map(offset).collect()
    }

    /// A producer; transactional if it has an id.
    pub(crate) fn producer(transactions: bool) -> BaseProducer {
        let mut config = client();
        config.set("linger.ms", "0");
        if transactions {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            config.set("transactional.id", format!("t-{}-{count}", std::process::id()));
        }
        let producer: BaseProducer = config.create().unwrap();
        if transactions {
            producer.init_transactions(WAIT).unwrap();
        }
        producer
    }

    pub(crate) fn send_by(&self, producer: &BaseProducer, records: &[Sent]) {
        for sent in records {
            let mut record: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(&self.name).partition(sent.partition as i32);
            record.key = sent.key.as_deref();
            record.payload = sent.value.as_deref();
            record.timestamp = sent.timestamp;
            if !sent.headers.is_empty() {
                let headers =
                    sent.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
                        headers.insert(Header { key, value: value.as_ref() })
                    });
                record.headers = Some(headers);
            }
            producer.send(record).map_err(|(error, _)| error).unwrap();
            producer.poll(Duration::ZERO);
        }
        producer.flush(WAIT).unwrap();
    }

    pub(crate) fn send(&self, records: &[Sent]) {
        self.send_by(&Self::producer(false), records);
    }

    /// Sends within a transaction, which is committed or aborted.
    pub(crate) fn transact(&self, producer: &BaseProducer, records: &[Sent], commits: bool) {
        producer.begin_transaction().unwrap();
        self.send_by(producer, records);
        if commits {
            producer.commit_transaction(WAIT).unwrap();
        } else {
            producer.abort_transaction(WAIT).unwrap();
        }
    }

    /// An input that reads this topic for ever.
    pub(crate) fn follow(&self) -> KafkaInputConfig {
        let servers = brokers().split(',').map(str::to_owned).collect();
        KafkaInputConfig::new(servers, TopicSelection::Names(vec![self.name.clone()]))
    }

    /// An input that reads this topic to its end.
    pub(crate) fn read(&self) -> KafkaInputConfig {
        KafkaInputConfig { stop_at: Some(StopAt::End), ..self.follow() }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let _ = wait(self.admin.delete_topics(&[&self.name], &options()));
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(WAIT)).request_timeout(Some(WAIT))
}
