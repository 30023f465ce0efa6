//! What brokers answer to single requests, on a cluster within the process that answers so on demand: what passes is
//! got over, and what does not is told with what is missing.

use std::time::{Duration, Instant};

use lockgate_core::{EndpointError, Output};
use lockgate_kafka_adapter::{KafkaOutput, KafkaOutputConfig, TopicChoice};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::RDKafkaApiKey as Request;
use rdkafka::types::RDKafkaRespErr::{self as Answer, *};
use rdkafka::{Offset, TopicPartitionList};

use crate::harness::{WAIT, Writing, open, refused};

struct Cluster(MockCluster<'static, DefaultProducerContext>);

impl Cluster {
    fn new() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        Self(cluster)
    }

    fn output(&self) -> KafkaOutput {
        let servers = vec![self.0.bootstrap_servers()];
        let topic = TopicChoice::Fixed("t".into());
        let config = KafkaOutputConfig {
            // Nothing is committed before somebody waits for it.
            commit_interval: Duration::from_secs(50),
            ..KafkaOutputConfig::new(servers, "o", topic)
        };
        KafkaOutput::new(config).timed(WAIT)
    }

    /// Everything in the topic. Such clusters know no markers: what was aborted is there like the rest.
    fn values(&self) -> Vec<String> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.0.bootstrap_servers());
        config.set("group.id", "check").set("enable.partition.eof", "true");
        let consumer: BaseConsumer = config.create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset("t", 0, Offset::Beginning).unwrap();
        consumer.assign(&list).unwrap();
        let deadline = Instant::now() + WAIT;
        let mut values = Vec::new();
        loop {
            assert!(Instant::now() < deadline, "the topic has no end");
            match consumer.poll(Duration::from_millis(100)) {
                None => {}
                Some(Err(KafkaError::PartitionEOF(_))) => return values,
                Some(message) => {
                    let value = message.unwrap().payload().unwrap().to_vec();
                    values.push(String::from_utf8(value).unwrap());
                }
            }
        }
    }
}

/// Some at a time: each waits most of its time.
fn at_once<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) {
    for cases in cases.chunks(8) {
        std::thread::scope(|scope| {
            cases.iter().for_each(|case| {
                scope.spawn(|| check(case));
            });
        });
    }
}

/// Answers that say to try the same again.
const COORDINATOR: [Answer; 4] = [
    RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
    RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
    RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
    RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS,
];

const LEADER: [Answer; 9] = [
    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
    RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
    RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION,
    RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
    RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
    RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
    RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
];

/// Twice in a row. Nothing that was written is aborted for it.
#[test]
fn what_passes_is_got_over_within_the_transaction() {
    let mut cases: Vec<(Request, Answer)> = Vec::new();
    for request in [Request::AddPartitionsToTxn, Request::AddOffsetsToTxn, Request::EndTxn] {
        cases.extend(COORDINATOR.map(|answer| (request, answer)));
    }
    cases.extend(LEADER.map(|answer| (Request::Produce, answer)));
    cases.push((Request::AddPartitionsToTxn, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART));
    cases.push((Request::AddOffsetsToTxn, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT));
    at_once(&cases, |(request, answer)| {
        let cluster = Cluster::new();
        let mut writing = Writing::new(cluster.output());
        writing.write(1, &["a"]);
        writing.prepare();
        cluster.0.request_errors(*request, &[*answer, *answer]);
        writing.write(2, &["b", "c"]);
        writing.prepare();
        writing.write(3, &["d"]);
        let position = writing.prepare();
        assert_eq!(position["step"], 3, "{request:?} {answer:?}");
        let said = writing.heard.said();
        assert_eq!(cluster.values(), ["a", "b", "c", "d"], "{request:?} {answer:?}: {said:?}");
        assert_eq!(said.troubles.len(), said.recovered, "{request:?} {answer:?}: {said:?}");
    });
}

/// What was written before is aborted, and written again as it was.
#[test]
fn what_ends_only_the_transaction_is_written_again() {
    let cases = [
        (Request::AddPartitionsToTxn, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING),
        (Request::AddOffsetsToTxn, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION),
        (Request::TxnOffsetCommit, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION),
        (Request::TxnOffsetCommit, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID),
        (Request::Produce, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER),
        (Request::Produce, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID),
        (Request::Produce, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING),
        (Request::EndTxn, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID),
        (Request::EndTxn, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING),
        // These the library repeats only once for offsets.
        (Request::TxnOffsetCommit, RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
        (Request::TxnOffsetCommit, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE),
        (Request::TxnOffsetCommit, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS),
        (Request::TxnOffsetCommit, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
        (Request::TxnOffsetCommit, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT),
    ];
    at_once(&cases, |(request, answer)| {
        let cluster = Cluster::new();
        let mut writing = Writing::new(cluster.output());
        writing.write(1, &["a"]);
        writing.prepare();
        cluster.0.request_errors(*request, &[*answer; 2]);
        writing.write(2, &["b", "c"]);
        writing.prepare();
        writing.write(3, &["d"]);
        writing.prepare();
        let (values, said) = (cluster.values().join(""), writing.heard.said());
        let attempts = (1..=3).find(|attempts| values == format!("a{}d", "bc".repeat(*attempts)));
        assert!(attempts.is_some(), "{request:?} {answer:?}: {values}, {said:?}");
        let troubles = (said.troubles.len(), said.recovered);
        let is_told = troubles == (1, 1) || troubles == (0, 0) && attempts == Some(1);
        assert!(is_told, "{request:?} {answer:?}: {values}, {said:?}");
    });
}

/// A record was on its way when its leader died, and was given up with the transaction. The client gave its number to
/// the record again in the next transaction, so the brokers, who had it after all, took that for the same and dropped
/// it: lost, though every answer was good. Another producer has other numbers.
#[test]
fn what_was_given_up_on_its_way_is_written_by_another_producer() {
    let cluster = Cluster::new();
    let mut writing = Writing::new(cluster.output());
    writing.write(1, &["a"]);
    writing.prepare();
    // It is on its way for longer than the test takes.
    cluster.0.request_errors(Request::Produce, &[RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION; 500]);
    cluster.0.request_errors(Request::TxnOffsetCommit, &[RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION]);
    // By this it is known that another one begins.
    let begins = [RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT; 20];
    cluster.0.request_errors(Request::InitProducerId, &begins);
    let (tell, told) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        writing.write(2, &["b"]);
        let _ = tell.send(writing.output.prepare());
    });
    let ended =
        told.recv_timeout(WAIT).expect("the same producer goes on and waits for its leader");
    let text = ended.unwrap_err().to_string();
    assert!(text.contains("transaction.max.timeout.ms"), "{text}");
    waiting.join().unwrap();
}

#[test]
fn what_passes_while_opening_is_got_over() {
    let mut cases: Vec<(Request, Answer)> = Vec::new();
    for request in [Request::InitProducerId, Request::OffsetFetch] {
        cases.extend(COORDINATOR[..3].iter().map(|answer| (request, *answer)));
    }
    cases.push((Request::InitProducerId, RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS));
    cases.push((Request::InitProducerId, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT));
    cases.push((Request::OffsetFetch, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT));
    cases.push((Request::OffsetFetch, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT));
    cases.push((Request::FindCoordinator, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE));
    cases.push((Request::FindCoordinator, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT));
    at_once(&cases, |(request, answer)| {
        let cluster = Cluster::new();
        cluster.0.request_errors(*request, &[*answer, *answer]);
        let mut writing = open(cluster.output(), 0, None)
            .unwrap_or_else(|error| panic!("{request:?} {answer:?}: {error}"));
        writing.write(1, &["a"]);
        writing.prepare();
        assert_eq!(cluster.values(), ["a"], "{request:?} {answer:?}");
    });
}

/// Leaders and whole topics are unknown for a while when brokers start.
#[test]
fn a_topic_that_is_not_led_yet_is_waited_for() {
    let cluster = Cluster::new();
    cluster.0.topic_error("t", RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE).unwrap();
    std::thread::scope(|scope| {
        let output = cluster.output();
        let opened = scope.spawn(|| open(output, 0, None));
        std::thread::park_timeout(Duration::from_millis(700));
        assert!(!opened.is_finished(), "it did not wait");
        cluster.0.topic_error("t", RD_KAFKA_RESP_ERR_NO_ERROR).unwrap();
        let mut writing = opened.join().unwrap().unwrap();
        writing.write(1, &["a"]);
        writing.prepare();
    });
    assert_eq!(cluster.values(), ["a"]);
}

/// Each of these, and what its text names.
const STOPS: [(Request, Answer, &[&str]); 12] = [
    (
        Request::AddPartitionsToTxn,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        &["right is missing", "Write on the topics", "Topic authorization failed"],
    ),
    (
        Request::Produce,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        &["topic t", "may not be written to", "grant the right", "offset 200"],
    ),
    (
        Request::AddOffsetsToTxn,
        RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
        &["right is missing", "Read on the group", "Group authorization failed"],
    ),
    (
        Request::TxnOffsetCommit,
        RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
        &["right is missing", "Read on the group", "Group authorization failed"],
    ),
    (
        Request::TxnOffsetCommit,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        &["right is missing", "on the topic", "Topic authorization failed"],
    ),
    (
        Request::AddPartitionsToTxn,
        RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        &["right is missing", "transactional id o-", "Transactional Id authorization failed"],
    ),
    (
        Request::EndTxn,
        RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        &["right is missing", "transactional id o-", "Transactional Id authorization failed"],
    ),
    (
        Request::AddPartitionsToTxn,
        RD_KAFKA_RESP_ERR_PRODUCER_FENCED,
        &["another process", "transactional id o-"],
    ),
    (
        Request::Produce,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
        &["another process", "transactional id o-"],
    ),
    (
        Request::AddOffsetsToTxn,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
        &["another process", "transactional id o-"],
    ),
    (
        Request::EndTxn,
        RD_KAFKA_RESP_ERR_PRODUCER_FENCED,
        &["another process", "transactional id o-"],
    ),
    (
        Request::EndTxn,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
        &["another process", "transactional id o-"],
    ),
];

#[test]
fn what_does_not_pass_stops_with_what_is_missing() {
    at_once(&STOPS, |(request, answer, parts)| {
        let cluster = Cluster::new();
        let mut writing = Writing::new(cluster.output());
        writing.write(1, &["a"]);
        writing.prepare();
        cluster.0.request_errors(*request, &[*answer; 20]);
        writing.write(2, &["b"]);
        let begun = Instant::now();
        let Err(error) = writing.output.prepare() else {
            panic!("{request:?} {answer:?} stopped nothing: {:?}", writing.heard.said());
        };
        let text = names(&error, *request, *answer, parts);
        assert!(begun.elapsed() < Duration::from_secs(10), "{request:?} {answer:?}: {text}");
    });
}

#[test]
fn what_is_not_allowed_is_told_while_opening() {
    let cases: [(Request, Answer, &[&str]); 5] = [
        (
            Request::InitProducerId,
            RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            &["transactional id o-", "Transactional Id authorization failed"],
        ),
        (
            Request::FindCoordinator,
            RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            &["transactional id o-", "Transactional Id authorization failed"],
        ),
        (
            Request::InitProducerId,
            RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
            &["transactional id o-", "Cluster authorization failed"],
        ),
        (
            Request::OffsetFetch,
            RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
            &["last step of group o-", "Group authorization failed"],
        ),
        (
            Request::InitProducerId,
            RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT,
            &["transaction.timeout.ms", "transaction.max.timeout.ms"],
        ),
    ];
    at_once(&cases, |(request, answer, parts)| {
        let cluster = Cluster::new();
        cluster.0.request_errors(*request, &[*answer; 20]);
        let begun = Instant::now();
        let text = names(&refused(cluster.output(), 0, None), *request, *answer, parts);
        assert!(begun.elapsed() < Duration::from_secs(10), "{request:?} {answer:?}: {text}");
    });
}

/// The text of an error, in which each part is found.
fn names(error: &EndpointError, request: Request, answer: Answer, parts: &[&str]) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    for part in parts {
        assert!(text.contains(part), "{request:?} {answer:?}: {part} is not in: {text}");
    }
    text
}
