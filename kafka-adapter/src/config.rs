//! Checked configuration of Kafka inputs. What was typed is checked before it gets here; what only the client
//! library can judge (its properties) is checked when an input is opened.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

/// A Kafka input that reads assigned partitions: no consumer group deals them out.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaInputConfig {
    /// Bootstrap servers, each `HOST:PORT`.
    pub brokers: Vec<String>,
    /// Which topics.
    pub topics: TopicSelection,
    /// Only these partitions of each topic; `None`: all, also those that are added later.
    pub partitions: Option<Vec<u32>>,
    /// Where the very first start begins; a resumed input always goes on where it was.
    pub start_from: StartFrom,
    /// Where to end; `None`: never.
    pub stop_at: Option<StopAt>,
    /// How many records of one partition may be read and not yet handed over.
    pub max_pending_records: NonZeroU32,
    /// Further properties of the client library, by its names.
    pub properties: BTreeMap<String, String>,
}

impl KafkaInputConfig {
    /// A configuration that reads everything of `topics`, for ever.
    pub fn new(brokers: Vec<String>, topics: TopicSelection) -> Self {
        Self {
            brokers,
            topics,
            partitions: None,
            start_from: StartFrom::Earliest,
            stop_at: None,
            max_pending_records: NonZeroU32::new(10_000).unwrap_or(NonZeroU32::MIN),
            properties: BTreeMap::new(),
        }
    }
}

/// Without the values of properties that may be secret.
impl fmt::Debug for KafkaInputConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value)| (name, if is_secret(name) { "***" } else { value });
        let pairs = self.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let properties: BTreeMap<&str, &str> = pairs.map(shown).collect();
        f.debug_struct("KafkaInputConfig")
            .field("brokers", &self.brokers)
            .field("topics", &self.topics)
            .field("partitions", &self.partitions)
            .field("start_from", &self.start_from)
            .field("stop_at", &self.stop_at)
            .field("max_pending_records", &self.max_pending_records)
            .field("properties", &properties)
            .finish()
    }
}

/// Whether the value of a property is never shown.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "secret", "key", "token", "jaas"].iter().any(|part| name.contains(part))
}

/// Which topics an input reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicSelection {
    /// These, all of which must exist.
    Names(Vec<String>),
}

/// Where the very first start begins. It becomes an offset of each partition before anything is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartFrom {
    /// At the first record of every partition.
    Earliest,
    /// At the end of every partition, as it is then.
    Latest,
    /// At the first record of every partition whose timestamp is this or later, in milliseconds since the Unix
    /// epoch; at the end of the partitions that have none.
    Timestamp(i64),
    /// At these offsets, by topic and partition; at the first record of those that are not named.
    Offsets(BTreeMap<String, BTreeMap<u32, u64>>),
}

/// Where an input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAt {
    /// At the end of every partition, as it is when the input is opened. With `isolation.level`
    /// `read_committed` that is before the first transaction that is not decided.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let topics = TopicSelection::Names(vec!["orders".into()]);
        let mut config = KafkaInputConfig::new(vec!["127.0.0.1:9092".into()], topics);
        let secret =
            ["sasl.password", "ssl.key.pem", "SASL.JAAS.config", "oauth.TOKEN", "x.Secret"];
        for name in secret {
            config.properties.insert(name.into(), "hunter2".into());
        }
        config.properties.insert("sasl.username".into(), "reader".into());
        let text = format!("{config:?}");
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("reader") && text.contains("***"), "{text}");
    }
}
