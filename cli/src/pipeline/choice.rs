//! The settings that are one word out of a few.
//!
//! For the words alone, shared by the raw and the checked pipeline because there is nothing about
//! a word left to check. Deliberately not for what they make anyone do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a crash may do to the records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delivery {
    /// After any crash the outputs hold each record once, as if nothing had happened.
    #[default]
    ExactlyOnce,
    /// After a crash the outputs may hold some records twice; none is lost.
    AtLeastOnce,
    /// Nothing is remembered: every start begins anew.
    None,
}

/// What happens when an endpoint does not answer in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnStall {
    /// It is reported as stalled, and the pipeline waits for it.
    #[default]
    Wait,
    /// The pipeline stops with an error.
    Stop,
}

/// How the bytes of a file become records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputFormat {
    /// A record is a line; it ends with \n or \r\n.
    #[default]
    Lines,
    /// A record is preceded by its length: 4 bytes, big-endian.
    LengthDelimited,
}

/// What happens to a record that is longer than max_record_bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Overlong {
    /// Its first max_record_bytes are the record; it is counted.
    #[default]
    Truncate,
    /// It is left out; it is counted.
    Skip,
    /// The pipeline stops with an error.
    Stop,
}

/// Where reading begins when nothing was read before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartAt {
    /// At the first byte.
    #[default]
    Beginning,
    /// Behind what is there at the first start.
    End,
}

/// How records are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputFormat {
    /// The record's value and \n.
    #[default]
    Lines,
    /// One JSON object per line with position, timestamp, key, headers and value.
    Json,
}

/// How segments are compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Compression {
    /// Not at all.
    #[default]
    None,
    /// As gzip members.
    Gzip,
    /// As zstd frames.
    Zstd,
}

/// Who decides which partitions are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReadMode {
    /// The pipeline reads all of them, or those that it is told; positions are kept in its state.
    #[default]
    Assign,
    /// Kafka deals them out to the members of a consumer group; positions are the group's offsets.
    Group,
}

/// How partitions are dealt out to the members of a group; the same for all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GroupProtocol {
    /// Members keep what they need not give up.
    #[default]
    CooperativeSticky,
    /// Members give up everything at each change.
    Eager,
    /// The brokers deal (KIP-848, Kafka 4).
    Consumer,
}

/// Where an input ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopAt {
    /// At the end of every partition, as it is when the pipeline starts.
    End,
}

/// What happens when records are gone that were to be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnGone {
    /// The pipeline stops and says what is wanted, what is there and how much is lost.
    #[default]
    Refuse,
    /// It goes on with what is there; it is counted.
    Continue,
}

/// Which partition a record is written to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartitionChoice {
    /// By a hash of its key; records without a key go anywhere.
    #[default]
    ByKey,
    /// The one with the number of the partition that it was read from.
    Kept,
}

/// Which timestamp a written record has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimestampChoice {
    /// Its own; the time of writing if it has none.
    #[default]
    Kept,
    /// The time of writing.
    Now,
}

/// Whether a part of the record is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kept {
    /// It is.
    #[default]
    Kept,
    /// It is left out.
    Dropped,
}

/// How much is logged: what this says, and whatever is more important.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogLevel {
    /// What ended the run.
    Error,
    /// What may need someone.
    Warn,
    /// What happens once in a while.
    #[default]
    Info,
    /// What happens often.
    Debug,
    /// Everything.
    Trace,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}
