//! What comes after a crash is what came before it.

use std::time::Duration;

use lockgate_kafka_adapter::KafkaInput;
use serde_json::json;

use crate::broker::{Sent, Topic};
use crate::harness::{LIMITS, Step, offsets, open, open_with, refused};

/// A topic of two partitions with gaps, and steps that were read of it.
fn journaled(purpose: &str) -> (Topic, Vec<Step>) {
    let topic = Topic::new(purpose, 2);
    let producer = Topic::producer(true);
    for round in 0..6 {
        let records: Vec<Sent> = (0..10).map(|i| Sent::of(i % 2, format!("{round} {i}"))).collect();
        topic.transact(&producer, &records, round % 3 != 1);
    }
    let reading = open_with(KafkaInput::new(topic.read()), None, LIMITS, 7).unwrap();
    reading.extend();
    reading.holds(40).unwrap();
    let steps = reading.to_the_end().unwrap();
    assert_eq!(steps.len(), 6);
    (topic, steps)
}

#[test]
fn steps_are_replayed_as_they_were_from_every_checkpoint() {
    let (topic, steps) = journaled("replayed");
    for checkpoint in 0..steps.len() {
        for replayed in checkpoint..=steps.len() {
            let seek = checkpoint.checked_sub(1).map(|step| &steps[step].seek);
            let reading = open(KafkaInput::new(topic.read()), seek).unwrap();
            for step in &steps[checkpoint..replayed] {
                assert_eq!(reading.replay(step).unwrap(), step.records());
            }
            reading.extend();
            let read = reading.to_the_end().unwrap();
            let read: Vec<_> = read.iter().flat_map(Step::records).collect();
            let rest: Vec<_> = steps[replayed..].iter().flat_map(Step::records).collect();
            assert_eq!(offsets(&read), offsets(&rest), "{checkpoint} {replayed}");
        }
    }
}

/// K3: what was compacted or expired was waited for, or passed over.
#[test]
fn k3_a_replay_that_misses_records_stops() {
    let (topic, steps) = journaled("missing");
    let reading = open(KafkaInput::new(topic.read()), None).unwrap();
    topic.delete_before(0, 2);
    let text = reading.replay(&steps[0]).unwrap_err();
    assert!(text.contains(&format!("{}[0]", topic.name)) && text.contains("offset 0"), "{text}");
    assert_eq!(reading.failure(), text);
}

/// The same for records that are gone from the middle, and for a log that has become shorter.
#[test]
fn k3_a_replay_is_counted() {
    let (topic, steps) = journaled("counted");
    let range = |from: u64, to: u64, count: u64| {
        let range =
            vec![topic.name.as_str().into(), 1.into(), from.into(), to.into(), count.into()];
        Step { replay: rmpv::Value::Array(vec![rmpv::Value::Array(range)]), ..steps[0].clone() }
    };
    let check = |step: Step, expected: &[&str]| {
        let reading = open(KafkaInput::new(topic.read()), None).unwrap();
        let text = reading.replay(&step).unwrap_err();
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    };
    // Offsets 5 to 12 are a marker, five aborted records and another marker.
    check(range(0, 12, 6), &["[1]", "6 records at offsets 0 to 12", "holds 5 records now"]);
    check(range(0, 99, 30), &["30 records at offsets 0 to 99", "the log ends at 36"]);
    let reading = open(KafkaInput::new(topic.read()), None).unwrap();
    assert_eq!(reading.replay(&range(0, 12, 5)).unwrap().len(), 5);
    assert_eq!(reading.replay(&range(30, 36, 5)).unwrap().len(), 5);
    assert_eq!(reading.replay(&range(6, 13, 1)).unwrap().len(), 1);
}

/// K10: partitions that were added while the reader was down were once read from their end.
#[test]
fn k10_a_partition_added_while_down_is_read_from_its_beginning() {
    let topic = Topic::new("grown", 1);
    topic.send(&[Sent::of(0, "old")]);
    let reading = open(KafkaInput::new(topic.read()), None).unwrap();
    reading.extend();
    let seek = reading.to_the_end().unwrap().pop().unwrap().seek;
    drop(reading);
    topic.grow_to(2);
    topic.send(&[Sent::of(0, "new"), Sent::of(1, "first"), Sent::of(1, "second")]);
    let reading = open(KafkaInput::new(topic.read()), Some(&seek)).unwrap();
    reading.extend();
    let steps = reading.to_the_end().unwrap();
    let read: Vec<_> = steps.iter().flat_map(Step::records).collect();
    assert_eq!(offsets(&read), [(0, vec![1]), (1, vec![0, 1])].into());
}

/// K11: a reader of a topic that was deleted and made anew went on at an offset that meant something else.
#[test]
fn k11_a_topic_that_was_made_anew_is_refused() {
    let topic = Topic::new("anew", 1);
    topic.send(&vec![Sent::of(0, "x"); 3]);
    let (connect, refresh) = (Duration::from_secs(15), Duration::from_millis(100));
    let running = open(KafkaInput::new(topic.follow()).timed(connect, refresh), None).unwrap();
    running.extend();
    running.holds(3).unwrap();
    let seek = running.queue().unwrap().seek;
    topic.make_anew(1);
    topic.send(&vec![Sent::of(0, "y"); 9]);
    let text = refused(KafkaInput::new(topic.read()), Some(&seek));
    assert!(text.contains(&topic.name) && text.contains("made anew"), "{text}");
    assert!(running.failure().contains(&topic.name));
}

/// What a step costs once grew with the number of partitions that had nothing to say.
#[test]
fn a_step_names_only_the_partitions_that_moved() {
    let topic = Topic::new("idle", 100);
    topic.send(&[Sent::of(3, "x"), Sent::of(7, "x")]);
    let reading = open(KafkaInput::new(topic.follow()), None).unwrap();
    reading.extend();
    reading.holds(2).unwrap();
    let first = reading.queue().unwrap();
    assert!(first.position.is_whole());
    let whole = |step: &Step| step.seek["topics"][&topic.name].as_object().unwrap().len();
    assert_eq!(whole(&first), 100);
    topic.send(&[Sent::of(42, "x")]);
    reading.holds(1).unwrap();
    let second = reading.queue().unwrap();
    let named = &second.position.json()["topics"][&topic.name];
    assert_eq!((second.position.is_whole(), named), (false, &json!({"42": 1})));
    assert_eq!(whole(&second), 100);
    drop(reading);
    // A reader of another process goes on after both, replayed or not.
    topic.send(&[Sent::of(42, "y")]);
    let again = open(KafkaInput::new(topic.follow()), Some(&first.seek)).unwrap();
    assert_eq!(again.replay(&second).unwrap(), second.records());
    let resumed = open(KafkaInput::new(topic.follow()), Some(&second.seek)).unwrap();
    for reading in [again, resumed] {
        reading.extend();
        reading.holds(1).unwrap();
        let third = reading.queue().unwrap();
        assert_eq!(offsets(&third.records()), [(42, vec![1])].into());
        assert!(third.position.is_whole() && whole(&third) == 100);
    }
}
