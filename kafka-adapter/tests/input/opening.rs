//! Where a reader begins, and what it refuses to begin with.

use std::time::Duration;

use lockgate_kafka_adapter::{KafkaInput, KafkaInputConfig, ReadMode, StartFrom, TopicSelection};
use serde_json::json;

use crate::broker::{Sent, Topic};
use crate::harness::{offsets, open, read_all, refused};

fn check_start(topic: &Topic, start_from: StartFrom, expected: &[(u32, Vec<u64>)]) {
    let config = KafkaInputConfig { start_from, ..topic.read() };
    let read = read_all(KafkaInput::new(config));
    assert_eq!(offsets(&read), expected.iter().cloned().collect());
}

#[test]
fn a_first_start_begins_where_it_is_told() {
    // Such old records would be deleted at once.
    let topic = Topic::with("start", 2, &[("retention.ms", "-1")]);
    let at = |partition, ms| Sent { timestamp: Some(ms), ..Sent::of(partition, "x") };
    topic.send(&[at(0, 1000), at(0, 2000), at(0, 3000), at(1, 1500), at(1, 1600)]);
    check_start(&topic, StartFrom::Earliest, &[(0, vec![0, 1, 2]), (1, vec![0, 1])]);
    check_start(&topic, StartFrom::Latest, &[]);
    check_start(&topic, StartFrom::Timestamp(1600), &[(0, vec![1, 2]), (1, vec![1])]);
    check_start(&topic, StartFrom::Timestamp(2500), &[(0, vec![2])]);
    let offsets = |partition, offset| {
        StartFrom::Offsets([(topic.name.clone(), [(partition, offset)].into())].into())
    };
    check_start(&topic, offsets(0, 2), &[(0, vec![2]), (1, vec![0, 1])]);
    let config = |start_from| KafkaInput::new(KafkaInputConfig { start_from, ..topic.read() });
    assert!(refused(config(offsets(0, 4)), None).contains("1 beyond its end"));
    assert!(refused(config(offsets(2, 0)), None).contains("[2]"));
}

/// K24: "latest" was once resolved late, and what came between opening and reading was lost.
#[test]
fn k24_latest_is_a_number_when_the_reader_is_open() {
    let topic = Topic::new("latest", 1);
    topic.send(&[Sent::of(0, "before")]);
    let config = KafkaInputConfig { start_from: StartFrom::Latest, ..topic.follow() };
    let reading = open(KafkaInput::new(config.clone()), None).unwrap();
    assert_eq!(reading.start()["topics"], json!({&topic.name: {"0": 1}}));
    topic.send(&[Sent::of(0, "between")]);
    reading.extend();
    assert_eq!(reading.records(1)[0].value.as_deref(), Some(&b"between"[..]));
    let start = reading.start();
    drop(reading);
    // A crash before the first step: the number is what counts, not the word.
    let reading = open(KafkaInput::new(config), Some(&start)).unwrap();
    reading.extend();
    assert_eq!(reading.records(1)[0].offset, 1);
}

#[test]
fn chosen_partitions_only() {
    let topic = Topic::new("chosen", 3);
    topic.send(&[Sent::of(0, "x"), Sent::of(1, "x"), Sent::of(2, "x")]);
    let config = |numbers: &[u32]| {
        KafkaInput::new(KafkaInputConfig {
            mode: ReadMode::Assign { partitions: Some(numbers.to_vec()), offsets_group: None },
            ..topic.read()
        })
    };
    assert_eq!(offsets(&read_all(config(&[2, 0, 2]))), [(0, vec![0]), (2, vec![0])].into());
    let text = refused(config(&[1, 5]), None);
    assert!(text.contains("no partition 5, only 0 to 2"), "{text}");
}

/// K13: retention passed the checkpoint while the reader was down, and it jumped in silence.
#[test]
fn k13_expired_offsets_are_refused_with_numbers() {
    let topic = Topic::new("expired", 1);
    topic.send(&vec![Sent::of(0, "x"); 10]);
    let seek = json!({"version": 1, "topics": {&topic.name: {"0": 3}}});
    topic.delete_before(0, 7);
    let text = refused(KafkaInput::new(topic.read()), Some(&seek));
    for part in [&*topic.name, "offset 3", "from 7 to 10", "first 4"] {
        assert!(text.contains(part), "{text}");
    }
    // A first start has nothing to lose.
    assert_eq!(offsets(&read_all(KafkaInput::new(topic.read()))), [(0, vec![7, 8, 9])].into());
}

/// K12: after a truncation the client jumped to the beginning or the end.
#[test]
fn k12_a_position_beyond_the_end_is_refused() {
    let topic = Topic::new("beyond", 1);
    topic.send(&[Sent::of(0, "x")]);
    let seek = json!({"version": 1, "topics": {&topic.name: {"0": 5}}});
    let text = refused(KafkaInput::new(topic.read()), Some(&seek));
    assert!(text.contains("4 beyond its end"), "{text}");
    let gone = json!({"version": 1, "topics": {&topic.name: {"0": 0, "4": 0}}});
    assert!(refused(KafkaInput::new(topic.read()), Some(&gone)).contains("[4]"));
}

#[test]
fn what_is_not_there_is_named() {
    let topic = Topic::new("there", 1);
    let mut config = topic.read();
    config.topics = TopicSelection::Names(vec![format!("{}-not", topic.name)]);
    let text = refused(KafkaInput::new(config), None);
    assert!(text.contains("-not does not exist"), "{text}");
    // The port was free a moment ago, and nobody has taken it since.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = listener.local_addr().unwrap().to_string();
    drop(listener);
    let config = KafkaInputConfig { brokers: vec![broker.clone()], ..topic.read() };
    let (connect, refresh) = (Duration::from_millis(800), Duration::from_secs(30));
    let text = refused(KafkaInput::new(config).timed(connect, refresh), None);
    assert!(text.contains(&broker) && text.contains("refused"), "{text}");
}
