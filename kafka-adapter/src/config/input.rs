//! What a Kafka input is told.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use super::Shown;

/// A Kafka input.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaInputConfig {
    /// Bootstrap servers, each `HOST:PORT`.
    pub brokers: Vec<String>,
    /// Which topics.
    pub topics: TopicSelection,
    /// Who decides which partitions are read.
    pub mode: ReadMode,
    /// Where the very first start begins; a resumed input always goes on where it was.
    pub start_from: StartFrom,
    /// Where to end; `None`: never.
    pub stop_at: Option<StopAt>,
    /// How many records of one partition may be read and not yet handed over.
    pub max_pending_records: NonZeroU32,
    /// A position is no longer in the log: retention has passed it.
    pub on_expired: OnGone,
    /// A position lies beyond the end of the log, or behind the end of the leader epoch in which it was read: the
    /// log was truncated.
    pub on_truncated: OnGone,
    /// The topic was deleted and made anew.
    pub on_recreated: OnGone,
    /// A partition that was read is not there any more.
    pub on_vanished: OnGone,
    /// Further properties of the client library, by its names.
    pub properties: BTreeMap<String, String>,
}

impl KafkaInputConfig {
    /// A configuration that reads everything of `topics`, for ever.
    pub fn new(brokers: Vec<String>, topics: TopicSelection) -> Self {
        Self {
            brokers,
            topics,
            mode: ReadMode::Assign { partitions: None, offsets_group: None },
            start_from: StartFrom::Earliest,
            stop_at: None,
            max_pending_records: NonZeroU32::new(10_000).unwrap_or(NonZeroU32::MIN),
            on_expired: OnGone::Refuse,
            on_truncated: OnGone::Refuse,
            on_recreated: OnGone::Refuse,
            on_vanished: OnGone::Refuse,
            properties: BTreeMap::new(),
        }
    }
}

/// Without the values of properties that may be secret.
impl fmt::Debug for KafkaInputConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaInputConfig")
            .field("brokers", &self.brokers)
            .field("topics", &self.topics)
            .field("mode", &self.mode)
            .field("start_from", &self.start_from)
            .field("stop_at", &self.stop_at)
            .field("max_pending_records", &self.max_pending_records)
            .field("on_expired", &self.on_expired)
            .field("on_truncated", &self.on_truncated)
            .field("on_recreated", &self.on_recreated)
            .field("on_vanished", &self.on_vanished)
            .field("properties", &Shown(&self.properties))
            .finish()
    }
}

/// Which topics an input reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicSelection {
    /// These, all of which must exist.
    Names(Vec<String>),
    /// Those whose whole names match this regular expression, which begins with `^`; also those that are made
    /// later.
    Pattern(String),
}

/// Who decides which partitions are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// This process reads what it is told; positions live in checkpoints.
    Assign {
        /// Only these partitions of each topic; `None`: all, also those that are added later.
        partitions: Option<Vec<u32>>,
        /// The group under whose name positions are committed after each checkpoint, so that tools can show how
        /// far the input is behind; `None`: nothing is committed. The group is not joined.
        offsets_group: Option<String>,
    },
    /// Kafka deals the partitions out to the members of a consumer group; positions are the group's offsets.
    Group(GroupConfig),
}

/// Membership of a consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// The group's name.
    pub id: String,
    /// How partitions are dealt out.
    pub protocol: GroupProtocol,
    /// The member's own name in the group (static membership): it keeps its partitions over a restart.
    pub instance_id: Option<String>,
}

/// How partitions are dealt out to the members of a group; the same for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupProtocol {
    /// Members keep what they need not give up (classic protocol, `cooperative-sticky`).
    #[default]
    CooperativeSticky,
    /// Members give up everything at each change (classic protocol, `range,roundrobin`).
    Eager,
    /// The brokers deal (KIP-848).
    Consumer,
}

/// What to do about records that are gone. Inside a journaled step it is always refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnGone {
    /// Stop, and say what is wanted, what is there and how much is lost.
    #[default]
    Refuse,
    /// Go on with what is there, and count it.
    Continue,
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
    /// At this offset of every partition.
    Offset(u64),
    /// So many offsets before the end of every partition, as it is then, or at its first record.
    BeforeEnd(u64),
    /// At the offset of every partition that the group has committed, which is the one whose name the input's
    /// positions are shown under.
    Committed,
    /// At these offsets, by topic and partition; at the first record of those that are not named.
    Offsets(BTreeMap<String, BTreeMap<u32, u64>>),
}

/// Where an input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAt {
    /// At the end of every partition, as it is when the input is opened. With `isolation.level`
    /// `read_committed` that is before the first transaction that is not decided.
    End,
    /// Before this offset of every partition, at that end at the latest.
    Offset(u64),
    /// So many offsets before that end.
    BeforeEnd(u64),
    /// Before the first record of every partition whose timestamp is this or later, in milliseconds since the Unix
    /// epoch; at that end where there is none.
    Timestamp(i64),
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
