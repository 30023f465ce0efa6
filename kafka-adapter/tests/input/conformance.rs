//! Kafka inputs held against the rules of the protocol.

use lockgate_conformance::{Conformance, Known};
use lockgate_kafka_adapter::KafkaInput;

use crate::broker::{Sent, Topic};

/// Three partitions: plain records, records in transactions with an aborted tail, and nothing.
fn known_topic() -> (Topic, Vec<Known>) {
    let topic = Topic::new("kit", 3);
    let mut known = Vec::new();
    let value = |i: u64| format!("record {i} {}", "x".repeat((i * 7 % 40) as usize)).into_bytes();
    let plain: Vec<Sent> = (0..40).map(|i| Sent::of(0, value(i))).collect();
    topic.send(&plain);
    let of = |partition: u32, offset: u64, value: Vec<u8>| {
        Known::new(&topic.name, value).partition(partition).offset(offset).key(None)
    };
    known.extend((0..40).map(|i| of(0, i, value(i))));
    let producer = Topic::producer(true);
    let mut offset = 0;
    for (round, commits) in [true, false, true, true, false].into_iter().enumerate() {
        let records: Vec<Sent> = (0..4).map(|i| Sent::of(1, value(round as u64 * 4 + i))).collect();
        topic.transact(&producer, &records, commits);
        for record in records {
            if commits {
                known.push(of(1, offset, record.value.unwrap()));
            }
            offset += 1;
        }
        // The marker.
        offset += 1;
    }
    (topic, known)
}

#[test]
fn a_topic_read_to_its_end() {
    let (topic, known) = known_topic();
    let config = topic.read();
    let summary = Conformance::new(|| KafkaInput::new(config.clone()))
        .holds(known)
        .schedules(3)
        .run()
        .unwrap_or_else(|report| panic!("{report}"));
    assert!(summary.replays > 20 && summary.checkpoints > 5, "{summary}");
}

#[test]
fn a_topic_that_goes_on() {
    let (topic, known) = known_topic();
    let config = topic.follow();
    Conformance::new(|| KafkaInput::new(config.clone()))
        .holds(known)
        .schedules(3)
        .endless()
        .check();
}
