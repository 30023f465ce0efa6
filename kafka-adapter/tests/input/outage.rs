//! Brokers that go away, on a cluster within the process that does so on demand.

use std::time::{Duration, Instant};

use crate::mock::Cluster;

const BROKER: i32 = 1;

#[test]
fn an_outage_is_reported_once_and_reading_goes_on_after_it() {
    let cluster = Cluster::new();
    cluster.send(&["before"]);
    let reading = cluster.open();
    assert_eq!(reading.records(1)[0].offset, 0);
    for outage in 1..=2 {
        cluster.cluster.broker_down(BROKER).unwrap();
        reading.reports(outage);
        // The reader still answers.
        assert!(reading.queue().unwrap().records().is_empty());
        cluster.cluster.broker_up(BROKER).unwrap();
        cluster.send(&["after"]);
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
