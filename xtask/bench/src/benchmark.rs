//! What is measured: one file for each benchmark, and the names by which they are asked for.

mod cost;
mod exactly_once;
mod file_file;
mod file_null;
mod idle;
mod kafka_kafka;
mod kafka_null;
mod latency;
mod peers;
mod replay;
mod start;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

use anyhow::Result;

use crate::broker::Topic;
use crate::report::Row;
use crate::site::Site;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Benchmark {
    FileNull,
    FileFile,
    KafkaNull,
    KafkaKafka,
    ExactlyOnce,
    Replay,
    Idle,
    Latency,
    Start,
    Cost,
    Peers,
}

impl Benchmark {
    pub(crate) const ALL: [Self; 11] = [
        Self::FileNull,
        Self::FileFile,
        Self::KafkaNull,
        Self::KafkaKafka,
        Self::ExactlyOnce,
        Self::Replay,
        Self::Idle,
        Self::Latency,
        Self::Start,
        Self::Cost,
        Self::Peers,
    ];

    /// Those that run without being asked for: peers have to be fetched first.
    pub(crate) fn usual() -> Vec<Self> {
        Self::ALL.into_iter().filter(|benchmark| *benchmark != Self::Peers).collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FileNull => "file-null",
            Self::FileFile => "file-file",
            Self::KafkaNull => "kafka-null",
            Self::KafkaKafka => "kafka-kafka",
            Self::ExactlyOnce => "exactly-once",
            Self::Replay => "replay",
            Self::Idle => "idle",
            Self::Latency => "latency",
            Self::Start => "start",
            Self::Cost => "cost",
            Self::Peers => "peers",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::FileNull => "lines of a file to null, to a loop that only splits them",
            Self::FileFile => "lines of a file to a file, to cat and sync",
            Self::KafkaNull => "a topic to null, to the batch call of librdkafka and to its poll",
            Self::KafkaKafka => {
                "a topic to a topic in transactions, to a bare loop that does the same"
            }
            Self::ExactlyOnce => "exactly_once, to delivery: none",
            Self::Replay => "replay after a crash, to first reading",
            Self::Idle => "one busy input beside idle partitions and inputs, to the same alone",
            Self::Latency => "10,000 records a second: from arrival to a written step",
            Self::Start => "starting, starting from a checkpoint, recovering a million records",
            Self::Cost => "hash, journal and empty step, in time and in instructions",
            Self::Peers => {
                "other programs that read a topic and drop it; fetches them (only if named)"
            }
        }
    }

    pub(crate) fn needs_broker(self) -> bool {
        match self {
            Self::FileNull | Self::FileFile | Self::ExactlyOnce | Self::Replay | Self::Cost => {
                false
            }
            Self::KafkaNull | Self::KafkaKafka | Self::Idle | Self::Latency | Self::Start => true,
            Self::Peers => true,
        }
    }

    pub(crate) fn measure(self, site: &Site, topics: &mut Topics) -> Result<Vec<Row>> {
        match self {
            Self::FileNull => file_null::measure(site),
            Self::FileFile => file_file::measure(site),
            Self::KafkaNull => kafka_null::measure(site, topics),
            Self::KafkaKafka => kafka_kafka::measure(site, topics),
            Self::ExactlyOnce => exactly_once::measure(site),
            Self::Replay => replay::measure(site),
            Self::Idle => idle::measure(site, topics),
            Self::Latency => latency::measure(site),
            Self::Start => start::measure(site),
            Self::Cost => cost::measure(site),
            Self::Peers => peers::measure(site, topics),
        }
    }
}

/// The benchmark of that name.
pub(crate) fn named(typed: &str) -> Result<Benchmark, String> {
    let found = Benchmark::ALL.into_iter().find(|benchmark| benchmark.name() == typed);
    found.ok_or_else(|| {
        let names = Benchmark::ALL.map(Benchmark::name).join(", ");
        format!("there is no such benchmark; there are {names}")
    })
}

/// The names and what they are, for the help.
pub(crate) fn list() -> String {
    let mut text = "Benchmarks:\n".to_owned();
    for benchmark in Benchmark::ALL {
        let _ = writeln!(text, "  {:<14}{}", benchmark.name(), benchmark.about());
    }
    text + "\nWhat each is compared with, and how to read it, is in docs/performance.md."
}

/// Topics with records, each filled once for all benchmarks of a run.
#[derive(Default)]
pub(crate) struct Topics(BTreeMap<(u64, usize), Rc<Topic>>);

impl Topics {
    /// One with so many records of so many bytes.
    pub(crate) fn filled(&mut self, records: u64, bytes: usize) -> Result<Rc<Topic>> {
        if let Some(topic) = self.0.get(&(records, bytes)) {
            return Ok(topic.clone());
        }
        let topic = Rc::new(Topic::filled(&format!("{bytes}"), records, bytes)?);
        self.0.insert((records, bytes), topic.clone());
        Ok(topic)
    }

    /// The one with 100 bytes each that several benchmarks read.
    pub(crate) fn small_records(&mut self, site: &Site) -> Result<Rc<Topic>> {
        self.filled(site.scaled(20_000_000), 100)
    }
}

/// The section `inputs` with one topic that is read to its end.
fn topic_to_its_end(topic: &Topic) -> Result<String> {
    let servers = crate::broker::servers()?;
    let name = &topic.name;
    Ok(format!(
        "inputs: {{in: {{kafka: {{brokers: \"{servers}\", topic: {name}, stop_at: end}}}}}}\n"
    ))
}

/// The section `outputs` that throws all away.
const TO_NULL: &str = "outputs: {out: {null: {}}}\n";
