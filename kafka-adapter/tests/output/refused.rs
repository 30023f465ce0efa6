//! Records that are refused for good, by the client and by the brokers, and what each policy does.

use lockgate_core::{EndpointError, Header, NewRecord, Output};
use lockgate_kafka_adapter::{
    KafkaOutput, KafkaOutputConfig, OnRefused, PartitionChoice, TopicChoice,
};

use crate::broker::Topic;
use crate::harness::{Writing, batch_of, committed, committed_values, config};

/// Who refuses large records.
#[derive(Clone, Copy)]
enum By {
    Client,
    Broker,
}

/// A topic and a configuration whose records are at most about 2000 bytes.
fn small(by: By, on_refused: OnRefused, exactly_once: bool) -> (Topic, KafkaOutputConfig) {
    let settings: &[(&str, &str)] = match by {
        By::Client => &[],
        By::Broker => &[("max.message.bytes", "2000")],
    };
    let topic = Topic::with("small", 1, settings);
    let mut config = KafkaOutputConfig { on_refused, exactly_once, ..config(&topic) };
    if let By::Client = by {
        config.properties.insert("message.max.bytes".into(), "2000".into());
    }
    (topic, config)
}

/// One large record among small ones, in the second of three steps.
fn write(writing: &mut Writing) {
    let large = "secret".repeat(1000);
    writing.write(1, &["a", "b"]);
    writing.write(2, &["c", &large, "d"]);
    writing.write(3, &["e"]);
}

/// K21: a record that the destination refused was once dropped, and its offset passed.
#[test]
fn k21_a_refused_record_stops_the_pipeline_with_nothing_of_its_step_visible() {
    for by in [By::Client, By::Broker] {
        let (topic, config) = small(by, OnRefused::Stop, true);
        let mut writing = Writing::new(KafkaOutput::new(config));
        let large = "secret".repeat(1000);
        writing.write(1, &["a"]);
        writing.prepare();
        writing.write(2, &["c", &large]);
        let error = writing.failure();
        let text = error.to_string();
        assert!(matches!(error, EndpointError::Data(_)), "{text}");
        for part in [topic.name.as_str(), "in[0]", "offset 201", "too large", "max.message.bytes"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(committed_values(&topic), ["a"]);
    }
}

#[test]
fn k21_a_refused_record_is_skipped_alone_and_counted_once() {
    for (by, exactly_once) in
        [(By::Client, true), (By::Broker, true), (By::Client, false), (By::Broker, false)]
    {
        let (topic, config) = small(by, OnRefused::Skip, exactly_once);
        let mut writing = Writing::new(KafkaOutput::new(config));
        write(&mut writing);
        writing.prepare();
        let mut values = committed_values(&topic);
        if !exactly_once {
            // What shares a request with it is written again after it.
            values.sort();
        }
        assert_eq!(values, ["a", "b", "c", "d", "e"]);
        let policies = writing.heard.said().policies;
        assert_eq!(policies.len(), 1, "{policies:?}");
        let (policy, text) = &policies[0];
        assert_eq!(*policy, "refused_skipped");
        assert!(text.contains("in[0] at offset 201") && !text.contains("secret"), "{text}");
        // The next transaction is an ordinary one.
        writing.write(4, &["f"]);
        writing.prepare();
        assert_eq!(writing.heard.said().policies.len(), 1);
        assert_eq!(committed_values(&topic).len(), 6);
    }
}

#[test]
fn k21_a_refused_record_goes_to_the_dead_letter_topic_with_the_reason() {
    let dead = Topic::new("dead", 1);
    let policy = OnRefused::DeadLetter(dead.name.clone());
    let (topic, config) = small(By::Broker, policy, true);
    let mut writing = Writing::new(KafkaOutput::new(config));
    let large = vec![b'x'; 5000];
    let headers = [Header { name: b"h", value: Some(b"1") }];
    let records = [
        NewRecord { value: Some(b"a"), ..NewRecord::default() },
        NewRecord {
            key: Some(b"k"),
            value: Some(&large),
            headers: &headers,
            ..NewRecord::default()
        },
        NewRecord { value: Some(b"b"), ..NewRecord::default() },
    ];
    writing.output.write(1, &[batch_of(7, 40, records)]).unwrap();
    writing.prepare();
    assert_eq!(committed_values(&topic), ["a", "b"]);
    let got = committed(&dead);
    assert_eq!(got.len(), 1);
    assert_eq!((got[0].key.as_deref(), got[0].value.as_ref()), (Some(&b"k"[..]), Some(&large)));
    let header = |name: &str| {
        let found = got[0].headers.iter().find(|(found, _)| found == name);
        String::from_utf8(found.unwrap().1.clone().unwrap()).unwrap()
    };
    assert_eq!(header("h"), "1");
    assert!(header("lockgate.reason").contains("too large"), "{}", header("lockgate.reason"));
    assert_eq!(
        (header("lockgate.source"), header("lockgate.offset")),
        ("in[7]".into(), "41".into())
    );
    let policies = writing.heard.said().policies;
    assert_eq!(policies.len(), 1, "{policies:?}");
    assert_eq!(policies[0].0, "refused_dead_letter");
}

#[test]
fn a_record_that_the_dead_letter_topic_refuses_too_stops_the_pipeline() {
    let dead = Topic::with("dead", 1, &[("max.message.bytes", "2000")]);
    let (_topic, config) = small(By::Broker, OnRefused::DeadLetter(dead.name.clone()), true);
    let mut writing = Writing::new(KafkaOutput::new(config));
    writing.write(1, &[&"x".repeat(5000)]);
    let text = writing.failure().to_string();
    assert!(text.contains("nor to the dead letter topic") && text.contains(&dead.name), "{text}");
}

#[test]
fn topics_from_headers_are_looked_up_and_never_made() {
    let (topic, other) = (Topic::new("named", 1), Topic::new("other", 1));
    let missing = format!("{}-missing", topic.name);
    let config = KafkaOutputConfig {
        topic: TopicChoice::FromRecord {
            header: Some("to".into()),
            position_topic: Some(topic.name.clone()),
        },
        on_refused: OnRefused::Skip,
        ..config(&topic)
    };
    let mut writing = Writing::new(KafkaOutput::new(config));
    let to = |name: &'static str, topic: &'static str| {
        [Header { name: name.as_bytes(), value: Some(topic.as_bytes()) }]
    };
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let headers = [
        to("to", leak(&topic.name)),
        to("to", leak(&missing)),
        to("to", leak(&other.name)),
        to("elsewhere", ""),
    ];
    let records = headers.iter().zip(["a", "b", "c", "d"]).map(|(headers, value)| NewRecord {
        value: Some(value.as_bytes()),
        headers,
        ..NewRecord::default()
    });
    writing.output.write(1, &[batch_of(0, 0, records)]).unwrap();
    writing.prepare();
    assert_eq!(committed_values(&topic), ["a"]);
    assert_eq!(committed_values(&other), ["c"]);
    let policies = writing.heard.said().policies;
    assert_eq!(policies.len(), 2, "{policies:?}");
    assert!(policies[0].1.contains(&missing) && policies[0].1.contains("does not exist"));
    assert!(policies[1].1.contains("no header `to`"), "{}", policies[1].1);
}

#[test]
fn a_partition_that_is_not_there_is_refused() {
    let topic = Topic::new("narrow", 2);
    let config = KafkaOutputConfig {
        partition: PartitionChoice::Kept,
        on_refused: OnRefused::Skip,
        ..config(&topic)
    };
    let mut writing = Writing::new(KafkaOutput::new(config));
    let record = |value: &'static [u8]| [NewRecord { value: Some(value), ..NewRecord::default() }];
    let batches = [batch_of(1, 0, record(b"a")), batch_of(2, 0, record(b"b"))];
    writing.output.write(1, &batches).unwrap();
    writing.prepare();
    assert_eq!(committed_values(&topic), ["a"]);
    let policies = writing.heard.said().policies;
    assert!(policies[0].1.contains("no partition 2, only 2"), "{policies:?}");
}

#[test]
fn a_header_name_that_cannot_be_written_is_refused() {
    let topic = Topic::new("headers", 1);
    let mut writing = Writing::new(KafkaOutput::new(config(&topic)));
    let headers = [Header { name: b"\xff", value: None }];
    let record = NewRecord { headers: &headers, ..NewRecord::default() };
    writing.output.write(1, &[batch_of(0, 0, [record])]).unwrap();
    let text = writing.failure().to_string();
    assert!(text.contains("headers"), "{text}");
}
