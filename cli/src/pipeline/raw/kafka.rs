//! The kind `kafka` as it is typed.
//!
//! What is compared with the last run is said by the two `Serialize` below, each of which must decide about every key:
//! they make the list of [settings](super::super::settings), to which the values of properties are added apart.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::super::choice::{
    GroupProtocol, Kept, OnGone, PartitionChoice, ReadMode, StopAt, TimestampChoice,
};
use super::super::units::{ByteSize, Count, Span};
use super::OneOrMore;
use super::place::{Numbers, StartFrom};
use super::properties::Properties;

/// The property that decides which records are read.
pub(crate) const ISOLATION_LEVEL: &str = "isolation.level";
/// Its default.
pub(crate) const READ_COMMITTED: &str = "read_committed";
/// What `group` is listed under where the group is not joined.
pub(crate) const LAG_GROUP: &str = "lag_group";

/// The brokers, however they are written.
fn each(brokers: &OneOrMore) -> Vec<&str> {
    brokers.0.iter().flat_map(|text| text.split(',')).map(str::trim).collect()
}

/// Reads Kafka topics.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KafkaInput", extend("oneOf" = [{ "required": ["topic"] }, { "required": ["topics"] }]))]
pub(crate) struct RawKafkaInput {
    /// The brokers to ask first: `HOST:PORT`, several in a list or with commas between them.
    pub(crate) brokers: OneOrMore,
    /// The topic, or a regular expression that begins with `^` and matches whole names.
    pub(crate) topic: Option<String>,
    /// Several topics, in place of topic.
    pub(crate) topics: Option<OneOrMore>,
    /// Where the very first start begins; after that, reading goes on where it was.
    #[serde(default)]
    pub(crate) start_from: StartFrom,
    /// Where reading ends; when left out, never. Not with mode group.
    pub(crate) stop_at: Option<StopAt>,
    /// Only these partitions of each topic; when left out, all, also those that are added later.
    /// Not with mode group.
    pub(crate) partitions: Option<Numbers>,
    /// Who decides which partitions are read.
    #[serde(default)]
    pub(crate) mode: ReadMode,
    /// The consumer group. Needed by mode group; with mode assign the group is not joined, and
    /// positions are committed under its name so that tools can show the lag; then a change of it keeps positions.
    pub(crate) group: Option<String>,
    /// How partitions are dealt out; only with mode group.
    #[schemars(extend("default" = "cooperative_sticky"))]
    pub(crate) group_protocol: Option<GroupProtocol>,
    /// The member's own name in the group, which lets it keep its partitions over a restart; only
    /// with mode group.
    pub(crate) group_instance_id: Option<String>,
    /// The most records of one partition that are read and not yet part of a step.
    #[serde(default = "Count::of::<10_000>")]
    pub(crate) max_pending_records: Count,
    /// The most records that wait for a step.
    #[serde(default = "Count::of::<1_000_000>")]
    pub(crate) max_queued_records: Count,
    /// The most memory for records that wait for a step, half of it for those that the client fetches ahead, as it
    /// was at the start.
    /// Each partition can overshoot it by the batch that its producer sent. Many partitions with large batches are
    /// read faster with more of it.
    #[serde(default = "ByteSize::mebibytes::<16>")]
    pub(crate) max_queued_bytes: ByteSize,
    /// An input, or a list of them: this one is read when those have ended.
    pub(crate) start_after: Option<OneOrMore>,
    /// The most records of this input that enter steps within a second; when left out, any number.
    pub(crate) max_records_per_second: Option<Count>,
    /// What happens when retention has removed the next record.
    #[serde(default)]
    pub(crate) on_expired: OnGone,
    /// What happens when the log ends before the next record.
    #[serde(default)]
    pub(crate) on_truncated: OnGone,
    /// What happens when a topic was deleted and made anew.
    #[serde(default)]
    pub(crate) on_recreated: OnGone,
    /// What happens when a partition is not there any more.
    #[serde(default)]
    pub(crate) on_vanished: OnGone,
    /// Further properties of the client library, by its names. A change of `isolation.level` resets positions.
    #[serde(default)]
    pub(crate) properties: Properties,
}

impl RawKafkaInput {
    /// What stands under `topic`, or under `topics`.
    pub(crate) fn topics(&self) -> Vec<&str> {
        let several = self.topics.iter().flat_map(|topics| &topics.0);
        self.topic.iter().chain(several).map(String::as_str).collect()
    }
}

/// All but properties, in the same form for what means the same.
impl Serialize for RawKafkaInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            brokers,
            topic: _,
            topics: _,
            start_from,
            stop_at,
            partitions,
            mode,
            group,
            group_protocol,
            group_instance_id,
            max_pending_records,
            max_queued_records,
            max_queued_bytes,
            start_after,
            max_records_per_second,
            on_expired,
            on_truncated,
            on_recreated,
            on_vanished,
            properties,
        } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("brokers", &each(brokers))?;
        // In whatever order they are named, the same is read.
        let mut topics = self.topics();
        topics.sort_unstable();
        map.serialize_entry("topics", &topics)?;
        map.serialize_entry("start_from", start_from)?;
        map.serialize_entry("stop_at", stop_at)?;
        let mut partitions = partitions.clone();
        partitions.iter_mut().for_each(|numbers| numbers.0.sort_unstable());
        map.serialize_entry("partitions", &partitions)?;
        map.serialize_entry("mode", mode)?;
        let group_key = match mode {
            ReadMode::Group => "group",
            ReadMode::Assign => LAG_GROUP,
        };
        map.serialize_entry(group_key, group)?;
        map.serialize_entry("group_protocol", group_protocol)?;
        map.serialize_entry("group_instance_id", group_instance_id)?;
        map.serialize_entry("max_pending_records", max_pending_records)?;
        map.serialize_entry("max_queued_records", max_queued_records)?;
        map.serialize_entry("max_queued_bytes", max_queued_bytes)?;
        map.serialize_entry("start_after", start_after)?;
        map.serialize_entry("max_records_per_second", max_records_per_second)?;
        map.serialize_entry("on_expired", on_expired)?;
        map.serialize_entry("on_truncated", on_truncated)?;
        map.serialize_entry("on_recreated", on_recreated)?;
        map.serialize_entry("on_vanished", on_vanished)?;
        let level = properties.value(ISOLATION_LEVEL).unwrap_or(READ_COMMITTED);
        map.serialize_entry(ISOLATION_LEVEL, level)?;
        map.end()
    }
}

/// Writes to Kafka topics.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KafkaOutput")]
pub(crate) struct RawKafkaOutput {
    /// The brokers to ask first: `HOST:PORT`, several in a list or with commas between them.
    pub(crate) brokers: OneOrMore,
    /// The topic, which must exist. Or where its name comes from: `{from: source}`, the topic that
    /// the record was read from, or `{from: header, name: NAME}`.
    pub(crate) topic: RawTopic,
    /// Which partition a record is written to.
    #[serde(default)]
    pub(crate) partition: PartitionChoice,
    /// Which timestamp a written record has.
    #[serde(default)]
    pub(crate) timestamp: TimestampChoice,
    /// Whether the record's key is written.
    #[serde(default)]
    pub(crate) key: Kept,
    /// Whether the record's headers are written.
    #[serde(default)]
    pub(crate) headers: Kept,
    /// What happens to a record that is refused for good: stop the pipeline, skip it, or write it
    /// to another topic, `{dead_letter: TOPIC}`. All are counted.
    #[serde(default)]
    pub(crate) on_refused: OnRefused,
    /// Whether records are written in transactions; as delivery says, also by default.
    pub(crate) exactly_once: Option<bool>,
    /// How long a transaction is kept open for more.
    #[serde(default = "Span::milliseconds::<100>")]
    pub(crate) commit_interval: Span,
    /// Further properties of the client library, by its names.
    #[serde(default)]
    pub(crate) properties: Properties,
}

/// All but properties, and what only repeats delivery.
impl Serialize for RawKafkaOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            brokers,
            topic,
            partition,
            timestamp,
            key,
            headers,
            on_refused,
            // It agrees with delivery, or is refused.
            exactly_once: _,
            commit_interval,
            properties: _,
        } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("brokers", &each(brokers))?;
        map.serialize_entry("topic", topic)?;
        map.serialize_entry("partition", partition)?;
        map.serialize_entry("timestamp", timestamp)?;
        map.serialize_entry("key", key)?;
        map.serialize_entry("headers", headers)?;
        map.serialize_entry("on_refused", on_refused)?;
        map.serialize_entry("commit_interval", commit_interval)?;
        map.end()
    }
}

/// Which topic a record is written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "OutputTopic")]
pub(crate) enum RawTopic {
    /// This one.
    Fixed(String),
    /// The one that the record names.
    Named(TopicOfRecord),
}

/// The topic that a record names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopicOfRecord {
    /// What names it.
    pub(crate) from: NamedBy,
    /// The header whose value is the topic's name; only with `from: header`.
    pub(crate) name: Option<String>,
    /// An existing topic, under whose name the output keeps how far it is; needed by exactly_once.
    pub(crate) position_topic: Option<String>,
}

/// What names the topic of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NamedBy {
    /// The topic that it was read from.
    Source,
    /// One of its headers.
    Header,
}

struct TopicVisitor;

impl<'de> Visitor<'de> for TopicVisitor {
    type Value = RawTopic;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a topic's name, {from: source} or {from: header, name: NAME}")
    }

    fn visit_str<E>(self, topic: &str) -> Result<RawTopic, E> {
        Ok(RawTopic::Fixed(topic.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawTopic, A::Error> {
        TopicOfRecord::deserialize(MapAccessDeserializer::new(map)).map(RawTopic::Named)
    }
}

impl<'de> Deserialize<'de> for RawTopic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TopicVisitor)
    }
}

/// What happens to a record that is refused for good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnRefused {
    /// The pipeline stops, with nothing of the step visible.
    #[default]
    Stop,
    /// It is left out.
    Skip,
    /// It is written to this topic, with headers that say why.
    DeadLetter(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeadLetter {
    dead_letter: String,
}

struct OnRefusedVisitor;

impl<'de> Visitor<'de> for OnRefusedVisitor {
    type Value = OnRefused;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stop, skip or {dead_letter: TOPIC}")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<OnRefused, E> {
        match word {
            "stop" => Ok(OnRefused::Stop),
            "skip" => Ok(OnRefused::Skip),
            _ => Err(E::unknown_variant(word, &["stop", "skip", "{dead_letter: TOPIC}"])),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OnRefused, A::Error> {
        let DeadLetter { dead_letter } = DeadLetter::deserialize(MapAccessDeserializer::new(map))?;
        Ok(OnRefused::DeadLetter(dead_letter))
    }
}

impl<'de> Deserialize<'de> for OnRefused {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnRefusedVisitor)
    }
}
