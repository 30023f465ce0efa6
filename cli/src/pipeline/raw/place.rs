//! Places in a log as they are typed: partitions, offsets, timestamps, and where a start begins.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::UNIX_EPOCH;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The highest number of a partition.
const LAST_PARTITION: u64 = i32::MAX as u64;

/// Where the very first start begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartFrom {
    /// At the first record of every partition.
    #[default]
    Earliest,
    /// At the end of every partition.
    Latest,
    /// At the first record that is not older than this.
    Timestamp(Timestamp),
    /// At these offsets, by topic and partition; elsewhere at the first record.
    Offsets(BTreeMap<String, BTreeMap<Partition, Offset>>),
}

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Timestamp(pub(crate) i64);

/// The number of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Partition(pub(crate) u32);

/// An offset in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Offset(pub(crate) u64);

/// Numbers of partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Numbers(pub(crate) Vec<Partition>);

/// The forms of [`StartFrom`] that are mappings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    timestamp: Option<Timestamp>,
    offsets: Option<BTreeMap<String, BTreeMap<Partition, Offset>>>,
}

struct StartFromVisitor;

impl<'de> Visitor<'de> for StartFromVisitor {
    type Value = StartFrom;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "earliest, latest, {timestamp: TIME} or {offsets: {TOPIC: {PARTITION: OFFSET}}}",
        )
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<StartFrom, E> {
        const KNOWN: &[&str] =
            &["earliest", "latest", "{timestamp: TIME}", "{offsets: {TOPIC: {PARTITION: OFFSET}}}"];
        match word {
            "earliest" => Ok(StartFrom::Earliest),
            "latest" => Ok(StartFrom::Latest),
            _ => Err(E::unknown_variant(word, KNOWN)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StartFrom, A::Error> {
        match At::deserialize(MapAccessDeserializer::new(map))? {
            At { timestamp: Some(at), offsets: None } => Ok(StartFrom::Timestamp(at)),
            At { timestamp: None, offsets: Some(offsets) } => Ok(StartFrom::Offsets(offsets)),
            _ => Err(A::Error::custom("exactly one key is expected, timestamp or offsets")),
        }
    }
}

impl<'de> Deserialize<'de> for StartFrom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StartFromVisitor)
    }
}

impl JsonSchema for StartFrom {
    fn schema_name() -> Cow<'static, str> {
        "StartFrom".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one_key = |key: &str, value: Schema| {
            json_schema!({
                "type": "object",
                "properties": { key: value },
                "required": [key],
                "additionalProperties": false,
            })
        };
        let timestamp = json_schema!({
            "description": "A time in UTC such as 2026-01-31T12:00:00Z, or milliseconds since the \
                Unix epoch.",
            "type": ["string", "integer"],
        });
        let offsets = json_schema!({
            "description": "Offsets by topic and partition.",
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "propertyNames": { "pattern": "^[0-9]+$" },
                "additionalProperties": { "type": ["integer", "string"], "minimum": 0 },
            },
        });
        json_schema!({
            "anyOf": [
                { "description": "At the first record of every partition.", "const": "earliest" },
                { "description": "At the end of every partition.", "const": "latest" },
                { "type": "string", "pattern": super::OR_VARIABLE },
                one_key("timestamp", timestamp),
                one_key("offsets", offsets),
            ],
        })
    }
}

struct TimestampVisitor;

impl Visitor<'_> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a time in UTC such as 2026-01-31T12:00:00Z, or milliseconds since the Unix epoch",
        )
    }

    fn visit_u64<E: Error>(self, ms: u64) -> Result<Timestamp, E> {
        match i64::try_from(ms) {
            Ok(ms) => Ok(Timestamp(ms)),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(ms), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
        if let Ok(ms) = text.parse() {
            return self.visit_u64(ms);
        }
        let time = humantime::parse_rfc3339_weak(text).ok();
        let ms = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        match ms.and_then(|ms| i64::try_from(ms.as_millis()).ok()) {
            Some(ms) => Ok(Timestamp(ms)),
            None => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimestampVisitor)
    }
}

struct PartitionVisitor;

impl Visitor<'_> for PartitionVisitor {
    type Value = Partition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the number of a partition, from 0 on")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Partition, E> {
        match u32::try_from(number) {
            Ok(small) if number <= LAST_PARTITION => Ok(Partition(small)),
            _ => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }

    /// As a key, or out of a variable.
    fn visit_str<E: Error>(self, text: &str) -> Result<Partition, E> {
        match text.parse() {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Partition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(PartitionVisitor)
    }
}

struct OffsetVisitor;

impl Visitor<'_> for OffsetVisitor {
    type Value = Offset;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an offset, a whole number from 0 on")
    }

    fn visit_u64<E: Error>(self, offset: u64) -> Result<Offset, E> {
        if i64::try_from(offset).is_ok() {
            Ok(Offset(offset))
        } else {
            Err(E::invalid_value(Unexpected::Unsigned(offset), &self))
        }
    }
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(OffsetVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of the numbers of partitions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element()? {
            numbers.push(number);
        }
        Ok(Numbers(numbers))
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor)
    }
}

impl JsonSchema for Numbers {
    fn schema_name() -> Cow<'static, str> {
        "Partitions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "minItems": 1,
            "items": { "type": ["integer", "string"], "minimum": 0, "maximum": LAST_PARTITION },
        })
    }
}
