//! What brokers answer to single requests, on a cluster within the process that answers so on demand: what passes is
//! got over, and what does not is told with what is missing.

use std::time::{Duration, Instant};

use lockgate_kafka_adapter::KafkaInput;
use rdkafka::types::RDKafkaApiKey as Request;
use rdkafka::types::RDKafkaRespErr::{self as Answer, *};

use crate::harness::{Got, Reading, refused};
use crate::mock::{Cluster, opened};

const WAIT: Duration = Duration::from_secs(20);

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

/// Exactly these values, from this offset on.
#[track_caller]
fn follow(got: &[Got], first: u64, values: &[&str], case: &(Request, Answer)) {
    let got: Vec<(u64, &[u8])> =
        got.iter().map(|got| (got.offset, got.value.as_deref().unwrap())).collect();
    let values: Vec<(u64, &[u8])> = (first..).zip(values.iter().map(|v| v.as_bytes())).collect();
    assert_eq!(got, values, "{case:?}");
}

/// Turns of a member until so many records came; each is durable at once.
fn turns(member: &Reading, records: usize) -> Result<Vec<Got>, String> {
    // The cluster lets others join for some seconds.
    let mut got = Vec::new();
    while got.len() < records {
        member.holds(1)?;
        let (records, seek) = member.turn()?;
        got.extend(records);
        member.checkpointed(&seek);
    }
    Ok(got)
}

const LEADER: [Answer; 13] = [
    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
    RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
    RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
    RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE,
    RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
    RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE,
    RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH,
    RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
    RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
    RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION,
    RD_KAFKA_RESP_ERR_UNKNOWN,
    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
];

/// Among them a right that is taken away for a moment, as when rights are written anew.
#[test]
fn what_passes_while_reading_is_got_over() {
    let cases = LEADER.map(|answer| (Request::Fetch, answer));
    at_once(&cases, |case| {
        let cluster = Cluster::new();
        cluster.send(&["a"]);
        let reading = cluster.open();
        follow(&reading.records(1), 0, &["a"], case);
        cluster.answers(case.0, case.1, 3);
        cluster.send(&["b", "c"]);
        follow(&reading.records(2), 1, &["b", "c"], case);
        cluster.send(&["d"]);
        follow(&reading.records(1), 3, &["d"], case);
    });
}

#[test]
fn what_passes_while_opening_is_got_over() {
    let answers = [
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
        RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    ];
    at_once(&answers.map(|answer| (Request::ListOffsets, answer)), |case| {
        let cluster = Cluster::new();
        cluster.send(&["a", "b"]);
        cluster.answers(case.0, case.1, 3);
        follow(&cluster.open().records(2), 0, &["a", "b"], case);
    });
}

/// Leaders and whole topics are unknown for a while when brokers start.
#[test]
fn a_topic_that_is_not_led_yet_is_waited_for() {
    let cluster = Cluster::new();
    cluster.send(&["a"]);
    cluster.cluster.topic_error("t", RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE).unwrap();
    std::thread::scope(|scope| {
        let input = cluster.input();
        let opened = scope.spawn(|| opened(input));
        std::thread::park_timeout(Duration::from_millis(700));
        assert!(!opened.is_finished(), "it did not wait");
        cluster.cluster.topic_error("t", RD_KAFKA_RESP_ERR_NO_ERROR).unwrap();
        let case = (Request::Metadata, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE);
        follow(&opened.join().unwrap().records(1), 0, &["a"], &case);
    });
}

/// It joins, and commits what it read, whatever its coordinator says meanwhile.
#[test]
fn what_passes_in_a_group_is_got_over() {
    let coordinator = [
        RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
        RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
    ];
    let mut cases = Vec::new();
    for request in [Request::JoinGroup, Request::OffsetFetch, Request::OffsetCommit] {
        cases.extend(coordinator.map(|answer| (request, answer)));
    }
    cases.extend([
        (Request::FindCoordinator, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE),
        (Request::FindCoordinator, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT),
        (Request::SyncGroup, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS),
        (Request::SyncGroup, RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
        (Request::OffsetFetch, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT),
        (Request::OffsetCommit, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT),
        (Request::ListOffsets, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION),
    ]);
    at_once(&cases, |case| {
        let cluster = Cluster::new();
        cluster.send(&["a", "b"]);
        cluster.answers(case.0, case.1, 2);
        let member = cluster.join();
        let got = turns(&member, 2).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        follow(&got, 0, &["a", "b"], case);
        cluster.send(&["c"]);
        let got = turns(&member, 1).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        follow(&got, 2, &["c"], case);
        drop(member);
        assert_eq!(cluster.committed(), Some(3), "{case:?}");
    });
}

/// The same while it is at work; what it read is committed in the end.
#[test]
fn what_passes_in_a_group_at_work_is_got_over() {
    let cases = [
        (Request::Heartbeat, RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
        (Request::Heartbeat, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE),
        (Request::Heartbeat, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS),
        (Request::OffsetCommit, RD_KAFKA_RESP_ERR_NOT_COORDINATOR),
        (Request::OffsetCommit, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS),
        (Request::OffsetCommit, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS),
        (Request::OffsetCommit, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT),
        (Request::Fetch, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION),
        (Request::Fetch, RD_KAFKA_RESP_ERR_UNKNOWN),
    ];
    at_once(&cases, |case| {
        let cluster = Cluster::new();
        cluster.send(&["a"]);
        let member = cluster.join();
        turns(&member, 1).unwrap();
        cluster.answers(case.0, case.1, 2);
        cluster.send(&["b", "c"]);
        let got = turns(&member, 2).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        follow(&got, 1, &["b", "c"], case);
        let deadline = Instant::now() + WAIT;
        while cluster.committed() != Some(3) {
            assert!(Instant::now() < deadline, "{case:?}: {:?}", cluster.committed());
        }
    });
}

#[test]
fn what_is_not_allowed_is_told_while_opening() {
    let cases: [(Answer, &[&str]); 2] = [
        (
            RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
            &["asking the Kafka brokers", "topic t", "Topic authorization failed"],
        ),
        (RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, &["topic t", "does not exist"]),
    ];
    at_once(&cases, |(answer, parts)| {
        let cluster = Cluster::new();
        cluster.cluster.topic_error("t", *answer).unwrap();
        let begun = Instant::now();
        let text = refused(KafkaInput::new(cluster.input()), None);
        parts.iter().for_each(|part| assert!(text.contains(part), "{answer:?}: {text}"));
        assert!(begun.elapsed() < Duration::from_secs(10), "{answer:?}: {text}");
    });
    let cluster = Cluster::new();
    cluster.answers(Request::ListOffsets, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 20);
    let text = refused(KafkaInput::new(cluster.input()), None);
    let parts = ["offsets of the partitions", "Topic authorization failed"];
    parts.iter().for_each(|part| assert!(text.contains(part), "{text}"));
}

/// A right that is missing may be granted, so this is told and reading goes on; it is known which one it is.
#[test]
fn a_topic_that_may_not_be_read_any_more_is_told() {
    let cluster = Cluster::new();
    cluster.send(&["a"]);
    let reading = cluster.open();
    reading.records(1);
    cluster.answers(Request::Fetch, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 2);
    reading.reports(1);
    let errors = reading.errors();
    for part in ["t[0]", "offset 1", "Topic authorization failed"] {
        assert!(errors[0].contains(part), "{errors:?}");
    }
}

/// A member that is not allowed to join would wait without a word, and without an end.
#[test]
fn a_group_that_may_not_be_joined_is_told() {
    let cases = [
        (Request::FindCoordinator, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED),
        (Request::JoinGroup, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED),
    ];
    at_once(&cases, |case| {
        let cluster = Cluster::new();
        cluster.send(&["a"]);
        cluster.answers(case.0, case.1, 1000);
        let member = cluster.join();
        let text = member.failure();
        for part in ["group g", "Group authorization failed"] {
            assert!(text.contains(part), "{case:?}: {part} is not in: {text}");
        }
    });
}

/// It does not hear of it before it has to join anew.
#[test]
fn a_member_at_work_whose_group_may_not_be_read_any_more_stops() {
    let cluster = Cluster::new();
    cluster.send(&["a"]);
    let member = cluster.join();
    turns(&member, 1).unwrap();
    cluster.answers(Request::JoinGroup, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, 10);
    cluster.answers(Request::Heartbeat, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, 1);
    let text = member.failure();
    for part in ["group g", "Group authorization failed"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}
