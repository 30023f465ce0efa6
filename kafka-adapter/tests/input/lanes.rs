//! Few busy partitions of many are read by a client of their own.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use lockgate_kafka_adapter::KafkaInput;
use tracing_subscriber::filter::LevelFilter;

use crate::broker::{Sent, Topic};
use crate::harness::{offsets, open};

const PARTITIONS: u32 = 80;
/// So many partitions are busy at a time, for so many rounds.
const BUSY: u32 = 3;
const ROUNDS: u32 = 25;
const RECORDS: u64 = 150;

/// What this process logs.
#[derive(Clone, Copy)]
struct Log(&'static Mutex<Vec<u8>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn of_this_process() -> Self {
        static LOG: OnceLock<Mutex<Vec<u8>>> = OnceLock::new();
        Self(LOG.get_or_init(|| {
            let subscriber = tracing_subscriber::fmt().with_max_level(LevelFilter::DEBUG);
            subscriber.with_ansi(false).with_writer(Self::of_this_process).init();
            Mutex::default()
        }))
    }

    /// How often partitions of the topic got into the other lane, and out of it.
    fn changes(self, topic: &str) -> (usize, usize) {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let of_topic = || log.lines().filter(|line| line.contains(topic));
        let count = |text| of_topic().filter(|line| line.contains(text)).count();
        (count("into_lane=true"), count("into_lane=false"))
    }
}

/// Records of transactions, some of them aborted: their marks are no records, and are passed over in either lane.
#[test]
fn every_record_comes_once_however_partitions_change_lanes() {
    let log = Log::of_this_process();
    let topic = Topic::new("lanes", PARTITIONS);
    let input = KafkaInput::new(topic.follow()).looking(Duration::from_millis(20));
    let reading = open(input, None).unwrap();
    reading.extend();
    let producer = Topic::producer(true);
    let mut ends = BTreeMap::<u32, u64>::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    for round in 0.. {
        let (into, out) = log.changes(&topic.name);
        if into >= 3 && out >= 3 {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "in round {round}: {into} times into the lane, {out} out"
        );
        let first = round / ROUNDS * 7;
        let busy = (first..first + BUSY).map(|partition| (partition, RECORDS));
        let mut amounts: BTreeMap<u32, u64> = busy.collect();
        amounts.entry(round * 13 % PARTITIONS).or_insert(1);
        amounts.retain(|partition, _| *partition < PARTITIONS);
        let mut sent = Vec::new();
        for (partition, amount) in &amounts {
            sent.extend((0..*amount).map(|n| Sent::of(*partition, n.to_string())));
        }
        let commits = round % 5 != 3;
        topic.transact(&producer, &sent, commits);
        let mut expected = BTreeMap::new();
        for (partition, amount) in amounts {
            let end = ends.entry(partition).or_default();
            expected.insert(partition, (*end..*end + amount).collect::<Vec<_>>());
            *end += amount + 1;
        }
        if commits {
            assert_eq!(offsets(&reading.records(sent.len())), expected, "in round {round}");
        }
    }
    assert_eq!(reading.errors(), Vec::<String>::new());
}
