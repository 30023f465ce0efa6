//! The pipeline file as it is typed.
//!
//! For the shape of the file: its keys, their types and defaults. The comments on the fields are
//! what an editor shows, by way of the JSON Schema. Deliberately not for rules that span several
//! keys, and not for anyone outside this module: those get the [checked](super::checked) pipeline.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;

use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::choice::{Compression, Delivery, InputFormat, OnStall, OutputFormat, Overlong, StartAt};
use super::options::mark;
use super::units::{ByteSize, Count, OR_VARIABLE, Span};

mod control;
mod kafka;
mod place;
mod properties;

pub(crate) use control::{RawControl, RawLog, RawTls};
pub(crate) use kafka::{
    ISOLATION_LEVEL, LAG_GROUP, NamedBy, OnRefused, READ_COMMITTED, RawKafkaInput, RawKafkaOutput,
    RawTopic,
};
pub(crate) use place::StartFrom;
pub(crate) use properties::{Properties, Property};

/// What a name may look like, for the JSON Schema; [`checked`](super::checked) has the same rule.
const NAME_PATTERN: &str = r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$";

/// A lockgate pipeline: what is read, where it is written, and what is promised about it. In
/// every text value `${VAR}` and `${VAR:-default}` stand for environment variables and `$$` for a
/// dollar sign.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "lockgate pipeline")]
pub(crate) struct RawPipeline {
    /// The pipeline's name: letters, digits, `-`, `_` and `.`, at most 64.
    #[schemars(extend("pattern" = NAME_PATTERN))]
    pub(crate) name: String,
    /// Where records come from, each under a name of its own. In a step, the records of an input
    /// that stands earlier come first.
    pub(crate) inputs: Endpoints<RawInput>,
    /// Where records go, each under a name of its own. Every output gets every record.
    pub(crate) outputs: Endpoints<RawOutput>,
    /// What a crash may do to the records.
    #[serde(default)]
    pub(crate) delivery: Delivery,
    /// The directory that remembers how far the pipeline is. Relative to the pipeline file; when
    /// left out, `.lockgate/` and the pipeline's name beside it.
    pub(crate) state: Option<String>,
    /// The time between two checkpoints; a restart repeats at most what came after the last one.
    #[serde(default = "Span::seconds::<10>")]
    pub(crate) checkpoint_interval: Span,
    /// A step is cut before max_buffering_delay is over when this many records are waiting. At
    /// most max_batch_records, also by default.
    #[schemars(extend("default" = 5_000))]
    pub(crate) min_batch_records: Option<Count>,
    /// The longest time a record waits for others before a step is cut.
    #[serde(default = "Span::milliseconds::<5>")]
    pub(crate) max_buffering_delay: Span,
    /// The most records an input hands over in one step. At least min_batch_records, also by
    /// default.
    #[schemars(extend("default" = 100_000))]
    pub(crate) max_batch_records: Option<Count>,
    /// An endpoint that does not answer for this long is reported as stalled.
    #[serde(default = "Span::seconds::<60>")]
    pub(crate) stall_timeout: Span,
    /// What happens when an endpoint is stalled.
    #[serde(default)]
    pub(crate) on_stall: OnStall,
    /// How long a stop waits for the last step and checkpoint.
    #[serde(default = "Span::seconds::<30>")]
    pub(crate) shutdown_timeout: Span,
    /// Where a running pipeline can be asked and steered; when left out, nowhere.
    pub(crate) control: Option<RawControl>,
    /// What is logged, and how.
    #[serde(default)]
    pub(crate) log: RawLog,
}

/// An input: one key, its kind.
//
// Here and below, serde's name for the type tells the decoder that a mapping with one key is
// wanted; it is `decode::ONE_KEY`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "one key", rename_all = "snake_case")]
#[schemars(rename = "Input")]
pub(crate) enum RawInput {
    /// Reads files.
    File(RawFileInput),
    /// Reads Kafka topics.
    Kafka(RawKafkaInput),
    /// Reads what was recorded of an input.
    Recording(RawRecordingInput),
}

impl RawInput {
    /// The key of its kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Kafka(_) => "kafka",
            Self::Recording(_) => "recording",
        }
    }

    /// What stands under `start_after`.
    pub(crate) fn start_after(&self) -> Option<&OneOrMore> {
        match self {
            Self::File(file) => file.start_after.as_ref(),
            Self::Kafka(kafka) => kafka.start_after.as_ref(),
            Self::Recording(recording) => recording.start_after.as_ref(),
        }
    }

    /// What stands under `max_records_per_second`.
    pub(crate) fn max_records_per_second(&self) -> Option<NonZeroU64> {
        let most = match self {
            Self::File(file) => file.max_records_per_second,
            Self::Kafka(kafka) => kafka.max_records_per_second,
            Self::Recording(recording) => recording.max_records_per_second,
        };
        most.and_then(|count| NonZeroU64::new(count.0))
    }
}

/// An output: one key, its kind.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "one key", rename_all = "snake_case")]
#[schemars(rename = "Output")]
pub(crate) enum RawOutput {
    /// Writes one file, or a row of segments.
    File(RawFileOutput),
    /// Writes to Kafka topics.
    Kafka(RawKafkaOutput),
    /// Writes to standard output. It cannot be rolled back, so it cannot be exactly_once.
    #[schemars(with = "Option<RawStdoutOutput>")]
    Stdout(RawStdoutOutput),
    /// Counts records and forgets them.
    #[schemars(with = "Option<RawNullOutput>")]
    Null(RawNullOutput),
}

/// Reads files: plain, gzip or zstd, told apart by their content.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FileInput")]
pub(crate) struct RawFileInput {
    /// A path or a glob, or a list of them. Relative to the pipeline file.
    pub(crate) paths: OneOrMore,
    /// How the bytes become records.
    #[serde(default)]
    pub(crate) format: InputFormat,
    /// The longest record, at most 64MiB.
    #[serde(default = "ByteSize::mebibytes::<1>")]
    pub(crate) max_record_bytes: ByteSize,
    /// What happens to a longer record.
    #[serde(default)]
    pub(crate) overlong: Overlong,
    /// Whether to wait for more at the end: appended data, rotated files, new files of a glob.
    #[serde(default)]
    pub(crate) follow: bool,
    /// Where the first start begins to read; `end` only together with follow.
    #[serde(default)]
    pub(crate) start_at: StartAt,
    /// The most records that wait for a step.
    #[serde(default = "Count::of::<1_000_000>")]
    pub(crate) max_queued_records: Count,
    /// The most bytes of records that wait for a step. At least max_record_bytes, also by
    /// default.
    #[schemars(extend("default" = "16MiB"))]
    pub(crate) max_queued_bytes: Option<ByteSize>,
    /// An input, or a list of them: this one is read when those have ended.
    pub(crate) start_after: Option<OneOrMore>,
    /// The most records of this input that enter steps within a second; when left out, any number.
    pub(crate) max_records_per_second: Option<Count>,
}

/// Reads what was recorded of an input, with the positions and timestamps that it had.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RecordingInput")]
pub(crate) struct RawRecordingInput {
    /// A recording, or the directory in which a run was recorded. Relative to the pipeline file.
    pub(crate) path: String,
    /// The input that was recorded; needed where a directory holds recordings of several.
    pub(crate) input: Option<String>,
    /// The most records that wait for a step.
    #[serde(default = "Count::of::<1_000_000>")]
    pub(crate) max_queued_records: Count,
    /// The most bytes of records that wait for a step. A single larger record waits alone.
    #[serde(default = "ByteSize::mebibytes::<16>")]
    pub(crate) max_queued_bytes: ByteSize,
    /// An input, or a list of them: this one is read when those have ended.
    pub(crate) start_after: Option<OneOrMore>,
    /// The most records of this input that enter steps within a second; when left out, any number.
    pub(crate) max_records_per_second: Option<Count>,
}

/// Writes one file, or a row of segments.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FileOutput")]
pub(crate) struct RawFileOutput {
    /// The file, relative to the pipeline file. With `{segment}` in the file's name, which stands
    /// for a counter, the output is a row of segments, each under its name once it is complete.
    pub(crate) path: String,
    /// How records are written.
    #[serde(default)]
    pub(crate) format: OutputFormat,
    /// A segment that holds this many bytes (before compression) is complete.
    pub(crate) segment_bytes: Option<ByteSize>,
    /// A segment that holds this many records is complete.
    pub(crate) segment_records: Option<Count>,
    /// How segments are compressed.
    #[serde(default)]
    pub(crate) compression: Compression,
}

/// Writes to standard output.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StdoutOutput")]
pub(crate) struct RawStdoutOutput {
    /// How records are written.
    #[serde(default)]
    pub(crate) format: OutputFormat,
}

/// Counts records and forgets them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NullOutput")]
pub(crate) struct RawNullOutput {}

/// Endpoints by name, in the file's order.
#[derive(Debug)]
pub(crate) struct Endpoints<T>(pub(crate) Vec<(String, T)>);

/// One text or a list of texts.
#[derive(Debug, Serialize)]
pub(crate) struct OneOrMore(pub(crate) Vec<String>);

/// The JSON Schema of [`RawPipeline`], with what a change of each option does.
pub(crate) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(RawPipeline);
    RecursiveTransform(or_variable).transform(&mut schema);
    let mut schema = schema.to_value();
    mark(&mut schema);
    schema
}

/// Lets a variable stand where a word or a truth value is wanted.
fn or_variable(schema: &mut Schema) {
    match schema.get_mut("oneOf") {
        Some(Value::Array(words)) if words.iter().any(|word| word.get("const").is_some()) => {
            words.push(json!({ "type": "string", "pattern": OR_VARIABLE }));
        }
        _ => {}
    }
    if schema.get("type").is_some_and(|kind| kind == "boolean") {
        schema.insert("type".to_owned(), json!(["boolean", "string"]));
        schema.insert("pattern".to_owned(), json!(OR_VARIABLE));
    }
}

struct EndpointsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EndpointsVisitor<T> {
    type Value = Endpoints<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping from names to endpoints")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut endpoints = Vec::new();
        while let Some(endpoint) = map.next_entry()? {
            endpoints.push(endpoint);
        }
        Ok(Endpoints(endpoints))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Endpoints<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EndpointsVisitor(PhantomData))
    }
}

impl<T: Serialize> Serialize for Endpoints<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, endpoint) in &self.0 {
            map.serialize_entry(name, endpoint)?;
        }
        map.end()
    }
}

impl<T: JsonSchema> JsonSchema for Endpoints<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}s", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "pattern": NAME_PATTERN },
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }
}

struct OneOrMoreVisitor;

impl<'de> Visitor<'de> for OneOrMoreVisitor {
    type Value = OneOrMore;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E>(self, text: &str) -> Result<OneOrMore, E> {
        Ok(OneOrMore(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMore, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(OneOrMore(texts))
    }
}

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMoreVisitor)
    }
}

impl JsonSchema for OneOrMore {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMore".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({ "type": "string", "minLength": 1 });
        json_schema!({
            "anyOf": [text, { "type": "array", "minItems": 1, "items": text }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key that a pipeline file can have is described, and so is every word.
    #[test]
    fn the_schema_names_and_describes_everything() {
        let schema = schema();
        let part = |pointer: &str| match schema.pointer(pointer) {
            Some(part) => part,
            None => panic!("no {pointer} in {schema:#}"),
        };
        let check = |properties: &str, expected: &[&str]| {
            let Value::Object(found) = part(properties) else { panic!("{properties}") };
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            let mut names: Vec<&str> = found.keys().map(String::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, expected);
            for (name, property) in found {
                assert!(property.get("description").is_some(), "{name} is not described");
            }
        };
        check(
            "/properties",
            &[
                "name",
                "inputs",
                "outputs",
                "delivery",
                "state",
                "checkpoint_interval",
                "min_batch_records",
                "max_buffering_delay",
                "max_batch_records",
                "stall_timeout",
                "on_stall",
                "shutdown_timeout",
                "control",
                "log",
            ],
        );
        check(
            "/$defs/FileInput/properties",
            &[
                "paths",
                "format",
                "max_record_bytes",
                "overlong",
                "follow",
                "start_at",
                "max_queued_records",
                "max_queued_bytes",
                "start_after",
                "max_records_per_second",
            ],
        );
        check(
            "/$defs/FileOutput/properties",
            &["path", "format", "segment_bytes", "segment_records", "compression"],
        );
        check(
            "/$defs/RecordingInput/properties",
            &[
                "path",
                "input",
                "max_queued_records",
                "max_queued_bytes",
                "start_after",
                "max_records_per_second",
            ],
        );
        check("/$defs/Control/properties", &["listen", "token_file", "tls"]);
        check("/$defs/Tls/properties", &["certificate", "key"]);
        check("/$defs/Log/properties", &["level", "targets", "format"]);
        check("/$defs/StdoutOutput/properties", &["format"]);
        check(
            "/$defs/KafkaInput/properties",
            &[
                "brokers",
                "topic",
                "topics",
                "start_from",
                "stop_at",
                "partitions",
                "mode",
                "group",
                "group_protocol",
                "group_instance_id",
                "max_pending_records",
                "max_queued_records",
                "max_queued_bytes",
                "start_after",
                "max_records_per_second",
                "on_expired",
                "on_truncated",
                "on_recreated",
                "on_vanished",
                "properties",
            ],
        );
        check(
            "/$defs/KafkaOutput/properties",
            &[
                "brokers",
                "topic",
                "partition",
                "timestamp",
                "key",
                "headers",
                "on_refused",
                "exactly_once",
                "commit_interval",
                "properties",
            ],
        );
        assert_eq!(part("/$defs/OnRefused/oneOf/3/pattern"), OR_VARIABLE);
        assert_eq!(part("/$defs/KafkaInput/properties/start_from/default"), "earliest");
        assert_eq!(part("/$defs/KafkaOutput/properties/commit_interval/default"), "100ms");
        let Value::Array(kinds) = part("/$defs/Output/oneOf") else { panic!("{schema:#}") };
        let kinds: Vec<&Value> = kinds.iter().map(|kind| &kind["required"][0]).collect();
        assert_eq!(kinds, ["file", "kafka", "stdout", "null"]);
        assert_eq!(part("/required"), &serde_json::json!(["name", "inputs", "outputs"]));
        assert_eq!(part("/additionalProperties"), false);
        assert_eq!(part("/properties/checkpoint_interval/default"), "10s");
        assert_eq!(part("/properties/min_batch_records/default"), 5000);
        assert_eq!(part("/properties/delivery/default"), "exactly_once");
        assert_eq!(part("/$defs/FileInput/properties/max_record_bytes/default"), "1MiB");
        assert_eq!(part("/$defs/Delivery/oneOf/1/const"), "at_least_once");
        assert_eq!(part("/$defs/Delivery/oneOf/3/pattern"), OR_VARIABLE);
        assert_eq!(part("/$defs/FileInput/properties/follow/type/0"), "boolean");
    }
}
