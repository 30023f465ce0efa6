//! Brokers that go away, and transactions that they give up.

use std::time::{Duration, Instant};

use lockgate_core::Output;
use lockgate_kafka_adapter::{KafkaOutput, KafkaOutputConfig, TopicChoice};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;

use crate::broker::Topic;
use crate::harness::{Writing, all_values, committed_values, config, stable_end, wait_until};

const BROKER: i32 = 1;

/// A cluster within the process that goes away on demand.
fn cluster(
    exactly_once: bool,
) -> (MockCluster<'static, DefaultProducerContext>, KafkaOutputConfig) {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    let servers = vec![cluster.bootstrap_servers()];
    let mut config = KafkaOutputConfig::new(servers, "o", TopicChoice::Fixed("t".into()));
    config.exactly_once = exactly_once;
    config.properties.insert("reconnect.backoff.max.ms".into(), "200".into());
    (cluster, config)
}

#[test]
fn an_outage_is_told_once_and_writing_goes_on_after_it() {
    for exactly_once in [true, false] {
        let (cluster, config) = cluster(exactly_once);
        let mut writing = Writing::new(KafkaOutput::new(config));
        writing.write(1, &["a"]);
        writing.prepare();
        for outage in 1..=2 {
            cluster.broker_down(BROKER).unwrap();
            writing.write(outage + 1, &["b"]);
            writing.heard.wait("trouble", |said| said.troubles.len() as u64 == outage);
            cluster.broker_up(BROKER).unwrap();
            writing.prepare();
            let said = writing.heard.said();
            assert_eq!((said.troubles.len() as u64, said.recovered as u64), (outage, outage));
            assert!(said.troubles[0].contains("writing to the Kafka brokers"), "{said:?}");
        }
    }
}

/// Waiting for a coordinator that never answers once held up the end of the program.
#[test]
fn an_output_is_dropped_soon_while_no_broker_can_be_reached() {
    for exactly_once in [true, false] {
        let (cluster, config) = cluster(exactly_once);
        let mut writing = Writing::new(KafkaOutput::new(config));
        writing.write(1, &["a"]);
        cluster.broker_down(BROKER).unwrap();
        writing.write(2, &["b"]);
        writing.heard.wait("trouble", |said| !said.troubles.is_empty());
        let begun = Instant::now();
        drop(writing);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
}

/// The brokers look for such transactions every ten seconds.
#[test]
fn a_transaction_that_the_brokers_gave_up_is_written_again() {
    let topic = Topic::new("overdue", 1);
    let mut config = config(&topic);
    config.properties.insert("transaction.timeout.ms".into(), "1000".into());
    let output = KafkaOutput::new(config).held_open(Duration::from_secs(600));
    let mut writing = Writing::new(output);
    writing.write(1, &["a", "b"]);
    // They are visible to readers that do not wait for a decision as soon as they are there. Then the end of what
    // other readers see moves on when the brokers have given the transaction up.
    wait_until("the records came", || all_values(&topic) == ["a", "b"]);
    wait_until("the brokers gave the transaction up", || stable_end(&topic) >= 3);
    writing.write(2, &["c"]);
    writing.prepare();
    assert_eq!(committed_values(&topic), ["a", "b", "c"]);
    assert_eq!(all_values(&topic)[..2], ["a", "b"]);
    let said = writing.heard.said();
    assert_eq!((said.troubles.len(), said.recovered), (1, 1), "{said:?}");
    writing.output.finish().unwrap();
}
