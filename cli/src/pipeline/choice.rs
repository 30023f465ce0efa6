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
