//! A cluster within the process that does on demand what a real one cannot be asked for.

use std::time::Duration;

use lockgate_kafka_adapter::{
    GroupConfig, GroupProtocol, KafkaInput, KafkaInputConfig, ReadMode, TopicSelection,
};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use rdkafka::{Offset, TopicPartitionList};

use crate::harness::{Reading, join, open};

const WAIT: Duration = Duration::from_secs(20);

/// One broker, with the topic t of one partition.
pub(crate) struct Cluster {
    pub(crate) cluster: MockCluster<'static, DefaultProducerContext>,
    producer: BaseProducer,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        config.set("reconnect.backoff.max.ms", "200");
        let producer = config.create().unwrap();
        Self { cluster, producer }
    }

    pub(crate) fn send(&self, values: &[&str]) {
        for value in values {
            let record = BaseRecord::<(), str>::to("t").partition(0).payload(value);
            self.producer.send(record).map_err(|(error, _)| error).unwrap();
        }
        self.producer.flush(WAIT).unwrap();
    }

    /// What the broker answers to the next requests of a kind.
    pub(crate) fn answers(&self, request: RDKafkaApiKey, answer: RDKafkaRespErr, times: usize) {
        self.cluster.request_errors(request, &vec![answer; times]);
    }

    pub(crate) fn input(&self) -> KafkaInputConfig {
        let topics = TopicSelection::Names(vec!["t".into()]);
        let mut config = KafkaInputConfig::new(vec![self.cluster.bootstrap_servers()], topics);
        config.properties.insert("reconnect.backoff.max.ms".into(), "200".into());
        config
    }

    pub(crate) fn open(&self) -> Reading {
        opened(self.input())
    }

    /// As a member of the group g.
    pub(crate) fn join(&self) -> Reading {
        let protocol = GroupProtocol::CooperativeSticky;
        let group = GroupConfig { id: "g".into(), protocol, instance_id: None };
        let mut config = KafkaInputConfig { mode: ReadMode::Group(group), ..self.input() };
        for (name, value) in [("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "200")] {
            config.properties.insert(name.into(), value.into());
        }
        let reading = join(KafkaInput::new(config));
        reading.extend();
        reading
    }

    /// The offset that the group g has committed.
    pub(crate) fn committed(&self) -> Option<i64> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.cluster.bootstrap_servers()).set("group.id", "g");
        let consumer: BaseConsumer = config.create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition("t", 0);
        let found = consumer.committed_offsets(list, WAIT).unwrap();
        match found.find_partition("t", 0).unwrap().offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }
    }
}

pub(crate) fn opened(input: KafkaInputConfig) -> Reading {
    let reading = open(KafkaInput::new(input), None).unwrap();
    reading.extend();
    reading
}
