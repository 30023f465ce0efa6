//! What is kept of a record, and that a position claims nothing that is not there.

use lockgate_core::{EndpointError, Header, NewRecord, Output, Timestamp};
use lockgate_kafka_adapter::{
    KafkaOutput, KafkaOutputConfig, Kept, PartitionChoice, TimestampChoice,
};

use crate::broker::Topic;
use crate::harness::{Got, Writing, batch, batch_of, committed, committed_values, config};

/// K5, K7: null and empty once became the same, and header bytes were decoded as text.
#[test]
fn everything_of_a_record_is_kept() {
    let topic = Topic::with("kept", 3, &[("retention.ms", "-1")]);
    let headers = [
        Header { name: b"a", value: Some(b"\xff\0\xfe") },
        Header { name: b"b", value: None },
        Header { name: b"a", value: Some(b"") },
    ];
    let config = KafkaOutputConfig { partition: PartitionChoice::Kept, ..config(&topic) };
    let mut writing = Writing::new(KafkaOutput::new(config));
    let at = |ms| Some(Timestamp::created(ms));
    let records = [
        NewRecord { timestamp: at(1000), key: Some(b"k"), value: None, ..NewRecord::default() },
        NewRecord { timestamp: at(2000), key: None, value: Some(b""), ..NewRecord::default() },
        NewRecord {
            timestamp: at(3000),
            key: Some(b""),
            headers: &headers,
            ..NewRecord::default()
        },
    ];
    writing.output.write(1, &[batch_of(2, 0, records)]).unwrap();
    writing.prepare();
    let got = |timestamp, key: Option<&[u8]>, value: Option<&[u8]>| Got {
        partition: 2,
        timestamp: Some(timestamp),
        key: key.map(<[u8]>::to_vec),
        value: value.map(<[u8]>::to_vec),
        headers: Vec::new(),
    };
    let headers = vec![
        ("a".to_owned(), Some(b"\xff\0\xfe".to_vec())),
        ("b".to_owned(), None),
        ("a".to_owned(), Some(Vec::new())),
    ];
    let expected = [
        got(1000, Some(b"k"), None),
        got(2000, None, Some(b"")),
        Got { headers, ..got(3000, Some(b""), None) },
    ];
    assert_eq!(committed(&topic), expected);
}

#[test]
fn what_is_to_be_left_out_is() {
    let topic = Topic::new("dropped", 1);
    let config = KafkaOutputConfig {
        key: Kept::Dropped,
        headers: Kept::Dropped,
        timestamp: TimestampChoice::Now,
        ..config(&topic)
    };
    let mut writing = Writing::new(KafkaOutput::new(config));
    let headers = [Header { name: b"a", value: None }];
    let timestamp = Some(Timestamp::created(1000));
    let record =
        NewRecord { timestamp, key: Some(b"k"), headers: &headers, ..NewRecord::default() };
    writing.output.write(1, &[batch_of(0, 0, [record])]).unwrap();
    writing.prepare();
    let got = committed(&topic).remove(0);
    assert_eq!((got.key, got.headers), (None, Vec::new()));
    assert!(got.timestamp.unwrap() > 1_500_000_000_000, "{:?}", got.timestamp);
}

#[test]
fn equal_keys_go_to_the_partition_that_other_clients_choose() {
    let topic = Topic::new("keyed", 3);
    let mut writing = Writing::new(KafkaOutput::new(config(&topic)));
    let keyed = |key| NewRecord { key: Some(key), ..NewRecord::default() };
    let keys: [&[u8]; 6] = [b"a", b"b", b"foobar", b"a", b"b", b"foobar"];
    writing.output.write(1, &[batch_of(0, 0, keys.map(keyed))]).unwrap();
    writing.prepare();
    let mut found: Vec<(Vec<u8>, i32)> =
        committed(&topic).into_iter().map(|got| (got.key.unwrap(), got.partition)).collect();
    found.sort();
    // What the Java client's murmur2 makes of them, modulo 3: that of `foobar` is -790332482, without its sign
    // 1357151166.
    let of = |key: &[u8], partition| [(key.to_vec(), partition), (key.to_vec(), partition)];
    let expected = [of(b"a", 1), of(b"b", 2), of(b"foobar", 0)].concat();
    assert_eq!(found, expected);
}

#[test]
fn a_position_claims_only_what_is_committed() {
    let topic = Topic::new("prepared", 1);
    let interval = std::time::Duration::from_secs(50);
    let config = KafkaOutputConfig { commit_interval: interval, ..config(&topic) };
    let mut writing = Writing::new(KafkaOutput::new(config));
    assert_eq!(writing.position["step"], 0);
    writing.write(1, &["a", "b"]);
    writing.write(2, &["c"]);
    writing.output.write(3, &[]).unwrap();
    assert_eq!(committed_values(&topic), Vec::<String>::new());
    let position = writing.prepare();
    assert_eq!((&position["step"], &position["marker"]), (&3.into(), &2.into()));
    assert_eq!(committed_values(&topic), ["a", "b", "c"]);
    writing.output.checkpointed().unwrap();
    writing.write(4, &["d"]);
    writing.output.finish().unwrap();
    assert_eq!(committed_values(&topic), ["a", "b", "c", "d"]);
}

#[test]
fn a_transaction_is_committed_when_it_is_due() {
    let topic = Topic::new("due", 1);
    let mut writing = Writing::new(KafkaOutput::new(config(&topic)));
    writing.write(1, &["a"]);
    let deadline = std::time::Instant::now() + crate::harness::WAIT;
    while committed_values(&topic) != ["a"] {
        assert!(std::time::Instant::now() < deadline, "it was never committed");
    }
}

#[test]
fn at_least_once_writes_without_transactions() {
    let topic = Topic::new("plain", 1);
    let config = KafkaOutputConfig { exactly_once: false, ..config(&topic) };
    let mut writing = Writing::new(KafkaOutput::new(config.clone()));
    for step in 1..=20 {
        writing.write(step, &["a", "b"]);
    }
    let position = writing.prepare();
    assert_eq!(committed_values(&topic).len(), 40);
    drop(writing);
    let mut writing = crate::harness::open(KafkaOutput::new(config), 20, Some(&position)).unwrap();
    writing.output.write(21, &[batch(0, &["c"])]).unwrap();
    writing.prepare();
    assert_eq!(committed_values(&topic).len(), 41);
}

#[test]
fn an_output_that_was_not_opened_is_not_used() {
    let topic = Topic::new("unopened", 1);
    let mut output = KafkaOutput::new(config(&topic));
    let error = output.write(1, &[]).unwrap_err();
    assert!(matches!(error, EndpointError::Bug(_)), "{error}");
}
