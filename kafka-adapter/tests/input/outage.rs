//! Brokers that go away, on a cluster within the process that does so on demand.

use std::time::{Duration, Instant};

use lockgate_kafka_adapter::{KafkaInput, KafkaInputConfig, TopicSelection};
use rdkafka::config::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};

use crate::harness::{Reading, open};

const BROKER: i32 = 1;

struct Cluster {
    cluster: MockCluster<'static, DefaultProducerContext>,
    producer: BaseProducer,
}

impl Cluster {
    fn new() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        config.set("reconnect.backoff.max.ms", "200");
        let producer = config.create().unwrap();
        Self { cluster, producer }
    }

    fn send(&self, value: &str) {
        let record = BaseRecord::<(), str>::to("t").partition(0).payload(value);
        self.producer.send(record).map_err(|(error, _)| error).unwrap();
        self.producer.flush(Duration::from_secs(10)).unwrap();
    }

    fn open(&self) -> Reading {
        let topics = TopicSelection::Names(vec!["t".into()]);
        let servers = self.cluster.bootstrap_servers();
        let mut config = KafkaInputConfig::new(vec![servers], topics);
        config.properties.insert("reconnect.backoff.max.ms".into(), "200".into());
        let reading = open(KafkaInput::new(config), None).unwrap();
        reading.extend();
        reading
    }
}

#[test]
fn an_outage_is_reported_once_and_reading_goes_on_after_it() {
    let cluster = Cluster::new();
    cluster.send("before");
    let reading = cluster.open();
    assert_eq!(reading.records(1)[0].offset, 0);
    for outage in 1..=2 {
        cluster.cluster.broker_down(BROKER).unwrap();
        reading.reports(outage);
        // The reader still answers.
        assert!(reading.queue().unwrap().records().is_empty());
        cluster.cluster.broker_up(BROKER).unwrap();
        cluster.send("after");
        assert_eq!(reading.records(1)[0].offset, outage as u64);
        let errors = reading.errors();
        assert_eq!(errors.len(), outage, "{errors:?}");
        assert!(errors[0].contains("no Kafka broker can be reached"), "{errors:?}");
    }
}

/// Waiting for a coordinator that never answers once held up the end of the program.
#[test]
fn a_reader_closes_soon_while_no_broker_can_be_reached() {
    let cluster = Cluster::new();
    let reading = cluster.open();
    cluster.cluster.broker_down(BROKER).unwrap();
    reading.reports(1);
    let begun = Instant::now();
    drop(reading);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}
