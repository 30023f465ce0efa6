//! What a Kafka output is told.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Shown;

/// A Kafka output. Its producer is idempotent always.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaOutputConfig {
    /// Bootstrap servers, each `HOST:PORT`.
    pub brokers: Vec<String>,
    /// Begins the transactional id and the name of the group under which the last step is kept, so that rights
    /// can be given by prefix: `lockgate-PIPELINE-OUTPUT`.
    pub id: String,
    /// Which topic a record goes to.
    pub topic: TopicChoice,
    /// Which partition of it.
    pub partition: PartitionChoice,
    /// The record's timestamp.
    pub timestamp: TimestampChoice,
    /// The record's key.
    pub key: Kept,
    /// The record's headers.
    pub headers: Kept,
    /// What to do about a record that the brokers or the client refuse for good.
    pub on_refused: OnRefused,
    /// Whether records are written in transactions, once each for those who read with `read_committed`.
    pub exactly_once: bool,
    /// How long a transaction is kept open for more.
    pub commit_interval: Duration,
    /// Further properties of the client library, by its names.
    pub properties: BTreeMap<String, String>,
}

impl KafkaOutputConfig {
    /// Writes to `topic` in transactions and keeps what can be kept; stops at a refused record.
    pub fn new(brokers: Vec<String>, id: impl Into<String>, topic: TopicChoice) -> Self {
        Self {
            brokers,
            id: id.into(),
            topic,
            partition: PartitionChoice::ByKey,
            timestamp: TimestampChoice::Kept,
            key: Kept::Kept,
            headers: Kept::Kept,
            on_refused: OnRefused::Stop,
            exactly_once: true,
            commit_interval: Duration::from_millis(100),
            properties: BTreeMap::new(),
        }
    }
}

/// Without the values of properties that may be secret.
impl fmt::Debug for KafkaOutputConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaOutputConfig")
            .field("brokers", &self.brokers)
            .field("id", &self.id)
            .field("topic", &self.topic)
            .field("partition", &self.partition)
            .field("timestamp", &self.timestamp)
            .field("key", &self.key)
            .field("headers", &self.headers)
            .field("on_refused", &self.on_refused)
            .field("exactly_once", &self.exactly_once)
            .field("commit_interval", &self.commit_interval)
            .field("properties", &Shown(&self.properties))
            .finish()
    }
}

/// Which topic a record goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicChoice {
    /// This one, which must exist.
    Fixed(String),
    /// The one that the record itself names.
    FromRecord {
        /// The header whose value is the topic's name; `None`: the topic that the record was read from.
        header: Option<String>,
        /// An existing topic, under whose name the last step is kept if the output is exactly once.
        position_topic: Option<String>,
    },
}

/// Which partition a record goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartitionChoice {
    /// By a hash of its key, equal keys to the same partition; records without a key anywhere.
    #[default]
    ByKey,
    /// To the partition with the number of the one it was read from; records of files to partition 0.
    Kept,
}

/// Which timestamp a record gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampChoice {
    /// Its own; the time of writing if it has none.
    #[default]
    Kept,
    /// The time of writing.
    Now,
}

/// Whether a part of the record is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// It is.
    #[default]
    Kept,
    /// It is left out.
    Dropped,
}

/// What to do about a record that is refused for good: it is too large, its topic does not exist, its topic may
/// not be written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnRefused {
    /// Stop the pipeline, with nothing of the step visible.
    #[default]
    Stop,
    /// Leave it out and count it.
    Skip,
    /// Write it to this topic instead, with headers that say why, and count it.
    DeadLetter(String),
}
