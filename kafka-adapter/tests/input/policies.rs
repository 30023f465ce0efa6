//! What is gone is refused, or counted and gone on with, as it was said; and topics that a pattern finds.

use std::time::Duration;

use lockgate_kafka_adapter::{KafkaInput, KafkaInputConfig, OnGone, TopicSelection};
use serde_json::{Value as JsonValue, json};

use crate::broker::{Sent, Topic};
use crate::harness::{Reading, Step, offsets, open, read_all, refused};

const CONNECT: Duration = Duration::from_secs(15);
/// Looks for changes so often that nobody waits.
const REFRESH: Duration = Duration::from_millis(100);

fn continuing(topic: &Topic) -> KafkaInputConfig {
    KafkaInputConfig {
        on_expired: OnGone::Continue,
        on_truncated: OnGone::Continue,
        on_recreated: OnGone::Continue,
        on_vanished: OnGone::Continue,
        ..topic.read()
    }
}

fn seek(topic: &Topic, offsets: JsonValue) -> JsonValue {
    json!({"version": 1, "topics": {&topic.name: offsets}})
}

/// Opened there, it applies this policy once and reads the rest.
#[track_caller]
fn check(topic: &Topic, seek: &JsonValue, policy: &str, rest: &[(u32, &[u64])]) {
    let reading = open(KafkaInput::new(continuing(topic)), Some(seek)).unwrap();
    let policies = reading.policies();
    assert_eq!(policies.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [policy]);
    assert!(policies[0].1.contains(&topic.name), "{policies:?}");
    reading.extend();
    let read: Vec<_> = reading.to_the_end().unwrap().iter().flat_map(Step::records).collect();
    let rest = rest.iter().map(|(partition, offsets)| (*partition, offsets.to_vec())).collect();
    assert_eq!(offsets(&read), rest);
    // The usual policy says the same and stops.
    assert_eq!(refused(KafkaInput::new(topic.read()), Some(seek)), policies[0].1);
}

#[test]
fn what_is_gone_is_counted_where_a_policy_says_so() {
    let topic = Topic::new("policies", 2);
    topic.send(&vec![Sent::of(0, "x"); 5]);
    topic.send(&vec![Sent::of(1, "x"); 2]);
    topic.delete_before(0, 3);
    check(
        &topic,
        &seek(&topic, json!({"0": 1, "1": 1})),
        "expired_continued",
        &[(0, &[3, 4]), (1, &[1])],
    );
    check(&topic, &seek(&topic, json!({"0": 4, "1": 9})), "truncated_continued", &[(0, &[4])]);
    check(
        &topic,
        &seek(&topic, json!({"0": 4, "1": 1, "7": 3})),
        "vanished_continued",
        &[(0, &[4]), (1, &[1])],
    );
}

/// What a step was made of is never replaced by something else, whatever the policy.
#[test]
fn inside_a_journaled_step_nothing_may_be_gone() {
    let topic = Topic::new("journaled", 1);
    topic.send(&vec![Sent::of(0, "x"); 6]);
    let reading = open(KafkaInput::new(continuing(&topic)), None).unwrap();
    reading.extend();
    let steps = reading.to_the_end().unwrap();
    topic.delete_before(0, 2);
    let start = seek(&topic, json!({"0": 0}));
    let reading = open(KafkaInput::new(continuing(&topic)), Some(&start)).unwrap();
    assert_eq!(reading.policies().len(), 1);
    let text = reading.replay(&steps[0]).unwrap_err();
    assert!(text.contains("offset 0"), "{text}");
}

/// A topic that is made anew or deleted while it is read: the input asks to be opened again, and there the policy
/// is applied.
#[test]
fn what_goes_while_it_is_read_is_applied_when_it_is_opened_again() {
    let topic = Topic::new("goes", 1);
    topic.send(&vec![Sent::of(0, "x"); 3]);
    let config = KafkaInputConfig { stop_at: None, ..continuing(&topic) };
    let running = || KafkaInput::new(config.clone()).timed(CONNECT, REFRESH);
    let read_on = |reading: &Reading| {
        reading.extend();
        reading.holds(3).unwrap();
        reading.queue().unwrap().seek
    };
    let reading = open(running(), None).unwrap();
    let before = read_on(&reading);
    topic.make_anew(1);
    topic.send(&vec![Sent::of(0, "y"); 3]);
    let text = reading.failure();
    assert!(text.contains("opened again") && text.contains("made anew"), "{text}");
    let reading = open(running(), Some(&before)).unwrap();
    assert_eq!(reading.policies()[0].0, "recreated_continued");
    let before = read_on(&reading);
    topic.delete();
    let text = reading.failure();
    assert!(text.contains("opened again") && text.contains("not there any more"), "{text}");
    let reading = open(running(), Some(&before)).unwrap();
    assert_eq!(reading.policies()[0].0, "vanished_continued");
    let text = refused(KafkaInput::new(topic.follow()), Some(&before));
    assert!(text.contains(&topic.name), "{text}");
}

#[test]
fn a_pattern_finds_topics_also_later() {
    let first = Topic::new("pattern-one", 1);
    let stem = first.name.clone();
    first.send(&[Sent::of(0, "a")]);
    let topics = TopicSelection::Pattern(format!("^{stem}.*"));
    let config = KafkaInputConfig { topics: topics.clone(), ..first.follow() };
    let reading = open(KafkaInput::new(config).timed(CONNECT, REFRESH), None).unwrap();
    reading.extend();
    assert_eq!(reading.records(1)[0].value.as_deref(), Some(&b"a"[..]));
    let second = Topic::new(&format!("{stem}-two"), 2);
    second.send(&[Sent::of(0, "b"), Sent::of(1, "c")]);
    let mut values: Vec<_> = reading.records(2).into_iter().filter_map(|got| got.value).collect();
    values.sort();
    assert_eq!(values, [b"b", b"c"]);
    reading.holds(0).unwrap();
    let seek = reading.queue().unwrap().seek;
    let ids = seek["ids"].as_object().unwrap();
    assert!(ids.contains_key(&stem) && ids.contains_key(&second.name), "{seek}");
    drop(reading);
    let ended = KafkaInputConfig { topics, ..first.read() };
    assert_eq!(read_all(KafkaInput::new(ended)).len(), 3);
    let none = TopicSelection::Pattern("^nothing-is-called-this$".into());
    let text = refused(KafkaInput::new(KafkaInputConfig { topics: none, ..first.read() }), None);
    assert!(text.contains("none of the topics"), "{text}");
}
