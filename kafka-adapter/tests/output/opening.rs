//! What is refused before anything is written.

use std::time::{Duration, Instant};

use lockgate_core::EndpointError;
use lockgate_kafka_adapter::{
    GroupCommits, KafkaOutput, KafkaOutputConfig, OnRefused, TopicChoice,
};

use crate::broker::{Topic, brokers};
use crate::harness::{config, refused};

fn check(config: KafkaOutputConfig, parts: &[&str]) {
    let error = refused(KafkaOutput::new(config), 0, None);
    assert!(matches!(error, EndpointError::Configuration(_)), "{error}");
    let text = error.to_string();
    parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
}

#[test]
fn topics_that_do_not_exist_are_named_and_not_made() {
    let topic = Topic::new("there", 1);
    let missing = format!("{}-missing", topic.name);
    let parts = [missing.as_str(), &brokers(), "does not exist", "--create"];
    let fixed = TopicChoice::Fixed(missing.clone());
    check(KafkaOutputConfig { topic: fixed.clone(), ..config(&topic) }, &parts);
    let plain = KafkaOutputConfig { topic: fixed, exactly_once: false, ..config(&topic) };
    check(plain, &parts);
    let dead = OnRefused::DeadLetter(missing.clone());
    check(KafkaOutputConfig { on_refused: dead, ..config(&topic) }, &parts);
    let position_topic = Some(missing.clone());
    let named = TopicChoice::FromRecord { header: None, position_topic };
    check(KafkaOutputConfig { topic: named, ..config(&topic) }, &parts);
}

#[test]
fn what_cannot_work_is_refused() {
    let topic = Topic::new("refuses", 1);
    let nameless = TopicChoice::FromRecord { header: None, position_topic: None };
    check(KafkaOutputConfig { topic: nameless, ..config(&topic) }, &["position_topic"]);
    let slow = Duration::from_secs(60);
    check(KafkaOutputConfig { commit_interval: slow, ..config(&topic) }, &["commit_interval"]);
    let mut unknown = config(&topic);
    unknown.properties.insert("linger.sm".into(), "1".into());
    check(unknown, &["linger.sm"]);
    let mut long = config(&topic);
    long.properties.insert("transaction.timeout.ms".into(), "2000000000".into());
    check(long, &["transaction.timeout.ms", "transaction.max.timeout.ms"]);
    let plain = KafkaOutputConfig { exactly_once: false, ..config(&topic) };
    let output = KafkaOutput::new(plain).committing(0, GroupCommits::default());
    let text = refused(output, 0, None).to_string();
    assert!(text.contains("exactly once"), "{text}");
}

#[test]
fn brokers_that_do_not_answer_are_named_with_the_reason() {
    let topic = Topic::new("away", 1);
    for exactly_once in [true, false] {
        let brokers = vec!["127.0.0.1:1".to_owned()];
        let mut config = KafkaOutputConfig { brokers, exactly_once, ..config(&topic) };
        config.properties.insert("sasl.password".into(), "hunter2".into());
        let begun = Instant::now();
        let output = KafkaOutput::new(config).timed(Duration::from_millis(700));
        let error = refused(output, 0, None);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let text = error.to_string();
        assert!(matches!(error, EndpointError::Unavailable { .. }), "{text}");
        assert!(text.contains("127.0.0.1:1") && text.contains("refused"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
