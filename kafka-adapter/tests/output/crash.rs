//! What is there after a crash, and who may go on.

use std::time::Duration;

use lockgate_core::{EndpointError, Output};
use lockgate_kafka_adapter::{KafkaOutput, KafkaOutputConfig};
use serde_json::json;

use crate::broker::Topic;
use crate::harness::{Writing, batch, committed_values, config, open, refused};

fn values(step: u64) -> Vec<String> {
    (0..10).map(|record| format!("{step}.{record}")).collect()
}

fn write(writing: &mut Writing, step: u64) {
    let values = values(step);
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    writing.write(step, &values);
}

/// Some transactions are committed when the output is dropped, some are open, some steps are still queued.
#[test]
fn after_a_crash_each_step_is_there_once() {
    let topic = Topic::new("crash", 1);
    let interval = Duration::from_millis(10);
    let config = KafkaOutputConfig { commit_interval: interval, ..config(&topic) };
    let mut writing = Writing::new(KafkaOutput::new(config.clone()));
    let (mut position, mut checkpoint, mut last) = (writing.position.clone(), 0, 0);
    for crash in 1..=8 {
        for step in last + 1..=last + 15 {
            write(&mut writing, step);
            if step % 10 == crash % 10 {
                (position, checkpoint) = (writing.prepare(), step);
            }
        }
        last += 15;
        drop(writing);
        writing = open(KafkaOutput::new(config.clone()), last, Some(&position)).unwrap();
        for step in checkpoint + 1..=last {
            write(&mut writing, step);
        }
    }
    writing.prepare();
    let expected: Vec<String> = (1..=last).flat_map(values).collect();
    assert_eq!(committed_values(&topic), expected);
}

/// C15: source and sink once disagreed about the last checkpoint.
#[test]
fn c15_an_older_copy_of_the_state_is_refused() {
    let topic = Topic::new("older", 1);
    let mut writing = Writing::new(KafkaOutput::new(config(&topic)));
    let older = writing.prepare();
    write(&mut writing, 1);
    write(&mut writing, 2);
    writing.prepare();
    drop(writing);
    let error = refused(KafkaOutput::new(config(&topic)), 1, Some(&older));
    let text = error.to_string();
    assert!(matches!(error, EndpointError::Data(_)), "{text}");
    assert!(text.contains("steps up to 2") && text.contains("up to 1"), "{text}");
    // The same position with everything that can be replayed is fine.
    let mut writing = open(KafkaOutput::new(config(&topic)), 2, Some(&older)).unwrap();
    write(&mut writing, 1);
    write(&mut writing, 2);
    write(&mut writing, 3);
    writing.prepare();
    assert_eq!(committed_values(&topic), (1..=3).flat_map(values).collect::<Vec<_>>());
}

#[test]
fn a_forgotten_last_step_is_refused_unless_the_checkpoint_covers_everything() {
    let topic = Topic::new("forgotten", 1);
    let id = format!("{:016x}", std::process::id());
    let position = json!({"version": 1, "id": id, "step": 3, "marker": 3});
    let text = refused(KafkaOutput::new(config(&topic)), 5, Some(&position)).to_string();
    assert!(text.contains("steps 4 to 5") && text.contains("offsets.retention.minutes"), "{text}");
    let mut writing = open(KafkaOutput::new(config(&topic)), 3, Some(&position)).unwrap();
    // From now on it is known again, before anything was written.
    drop(writing);
    writing = open(KafkaOutput::new(config(&topic)), 5, Some(&position)).unwrap();
    write(&mut writing, 3);
    write(&mut writing, 4);
    writing.prepare();
    assert_eq!(committed_values(&topic), values(4));
}

#[test]
fn a_second_process_with_the_same_state_stops_the_first() {
    let topic = Topic::new("zombie", 1);
    let mut first = Writing::new(KafkaOutput::new(config(&topic)));
    write(&mut first, 1);
    let position = first.prepare();
    // Its transaction is open when the second one comes.
    let interval = Duration::from_secs(50);
    let slow = KafkaOutputConfig { commit_interval: interval, ..config(&topic) };
    drop(first);
    let mut first = open(KafkaOutput::new(slow), 1, Some(&position)).unwrap();
    write(&mut first, 2);
    let mut second = open(KafkaOutput::new(config(&topic)), 1, Some(&position)).unwrap();
    second.output.write(2, &[batch(0, &["second"])]).unwrap();
    second.prepare();
    write(&mut first, 3);
    let error = first.failure();
    let text = error.to_string();
    assert!(matches!(error, EndpointError::Unavailable { .. }), "{text}");
    assert!(text.contains("another process writes with the same transactional id"), "{text}");
    let expected: Vec<String> = values(1).into_iter().chain(["second".to_owned()]).collect();
    assert_eq!(committed_values(&topic), expected);
}
