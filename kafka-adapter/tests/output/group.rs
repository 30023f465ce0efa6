//! Offsets of a consumer group that travel with the records.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockgate_core::{EndpointError, InputPosition, Output};
use lockgate_kafka_adapter::{GroupCommits, KafkaOutput, KafkaOutputConfig};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use serde_json::json;

use crate::broker::{Topic, brokers};
use crate::harness::{
    WAIT, Writing, all_values, batch, committed_values, config, group_offset, stable_end,
    wait_until,
};

/// A reader of a group, which does nothing but being a member.
struct Reader {
    consumer: BaseConsumer,
    group: String,
    topic: Topic,
}

impl Reader {
    fn new() -> Self {
        let topic = Topic::new("read", 1);
        let group = format!("group-{}", topic.name);
        let consumer = member(&group, &topic);
        Self { consumer, group, topic }
    }

    /// Where it stands after a hand-over.
    fn seek(&self, turn: u64, offset: u64) -> [InputPosition; 1] {
        let topics = json!({ self.topic.name.as_str(): { "0": offset } });
        let seek = json!({"version": 1, "group": self.group, "turn": turn, "topics": topics});
        [InputPosition { input: 0, seek: Some(Arc::new(seek.into())) }]
    }

    fn publish(&self, commits: &GroupCommits) {
        KafkaOutput::publish_member(commits, self.consumer.group_metadata());
    }

    fn committed(&self) -> Option<i64> {
        group_offset(&self.group, &self.topic.name)
    }
}

/// A member that has got the only partition.
fn member(group: &str, topic: &Topic) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers()).set("group.id", group);
    config.set("enable.auto.commit", "false").set("session.timeout.ms", "6000");
    let consumer: BaseConsumer = config.create().unwrap();
    consumer.subscribe(&[&topic.name]).unwrap();
    let deadline = Instant::now() + WAIT;
    while consumer.assignment().unwrap().count() == 0 {
        assert!(Instant::now() < deadline, "it never got the partition");
        consumer.poll(Duration::from_millis(20));
    }
    consumer
}

fn slow(topic: &Topic) -> KafkaOutputConfig {
    KafkaOutputConfig { commit_interval: Duration::from_secs(50), ..config(topic) }
}

#[test]
fn offsets_are_committed_with_the_records_and_not_before() {
    let (reader, topic) = (Reader::new(), Topic::new("with", 1));
    let commits = GroupCommits::default();
    reader.publish(&commits);
    let output = KafkaOutput::new(slow(&topic)).committing(0, commits.clone());
    let mut writing = Writing::new(output);
    for (step, offset) in [(1, 5), (2, 9)] {
        writing.output.positions(step, &reader.seek(step, offset));
        writing.output.write(step, &[batch(step, &["x"])]).unwrap();
    }
    assert_eq!((reader.committed(), KafkaOutput::committed_turn(&commits)), (None, 0));
    let position = writing.prepare();
    assert_eq!((reader.committed(), KafkaOutput::committed_turn(&commits)), (Some(9), 2));
    assert_eq!(committed_values(&topic), ["x", "x"]);
    assert_eq!(position["step"], 2);
    // A step without records moves the offsets too; one that moves nothing is a turn all the same.
    for (step, offset) in [(3, 12), (4, 12)] {
        writing.output.positions(step, &reader.seek(step, offset));
        writing.output.write(step, &[]).unwrap();
        writing.prepare();
        assert_eq!(KafkaOutput::committed_turn(&commits), step);
    }
    assert_eq!(reader.committed(), Some(12));
}

/// The reader waits for it before it gives partitions up.
#[test]
fn a_turn_is_committed_when_it_is_due_though_nothing_follows() {
    let (reader, topic) = (Reader::new(), Topic::new("alone", 1));
    let commits = GroupCommits::default();
    reader.publish(&commits);
    let mut writing = Writing::new(KafkaOutput::new(config(&topic)).committing(0, commits.clone()));
    writing.output.positions(1, &reader.seek(1, 5));
    writing.output.write(1, &[batch(0, &["x"])]).unwrap();
    let deadline = Instant::now() + WAIT;
    while KafkaOutput::committed_turn(&commits) < 1 {
        assert!(Instant::now() < deadline, "it was never committed");
        std::thread::yield_now();
    }
    assert_eq!(reader.committed(), Some(5));
}

#[test]
fn nothing_is_written_when_the_reader_has_lost_its_partitions() {
    let (reader, topic) = (Reader::new(), Topic::new("lost", 1));
    let commits = GroupCommits::default();
    reader.publish(&commits);
    let mut writing = Writing::new(KafkaOutput::new(slow(&topic)).committing(0, commits.clone()));
    writing.output.positions(1, &reader.seek(1, 5));
    writing.output.write(1, &[batch(0, &["x"])]).unwrap();
    KafkaOutput::publish_member(&commits, None);
    let error = writing.failure();
    let text = error.to_string();
    assert!(matches!(error, EndpointError::Superseded { .. }), "{text}");
    assert!(text.contains(&reader.group), "{text}");
    assert_eq!((committed_values(&topic), reader.committed()), (Vec::new(), None));
    assert_eq!(KafkaOutput::committed_turn(&commits), 0);
}

/// K17: a commit in an old generation once crashed the process.
#[test]
fn k17_an_old_generation_is_tried_again_with_the_new_one() {
    let (reader, topic) = (Reader::new(), Topic::new("generation", 1));
    let commits = GroupCommits::default();
    reader.publish(&commits);
    let mut writing = Writing::new(KafkaOutput::new(slow(&topic)).committing(0, commits.clone()));
    writing.output.positions(1, &reader.seek(1, 5));
    writing.output.write(1, &[batch(0, &["x"])]).unwrap();
    // What is still with the client when it aborts never gets to the topic.
    wait_until("the record came", || all_values(&topic) == ["x"]);
    // The group has another generation now, which was not published.
    reader.consumer.unsubscribe();
    let newer = member(&reader.group, &reader.topic);
    let prepared = std::thread::scope(|scope| {
        let prepared = scope.spawn(|| writing.output.prepare().map(|_| ()));
        // The record and the mark that ends its transaction.
        wait_until("the transaction ended", || stable_end(&topic) >= 2);
        assert_eq!((reader.committed(), committed_values(&topic)), (None, Vec::new()));
        KafkaOutput::publish_member(&commits, newer.group_metadata());
        prepared.join().unwrap()
    });
    prepared.unwrap();
    assert_eq!((reader.committed(), committed_values(&topic)), (Some(5), vec!["x".to_owned()]));
}
