//! Kafka topics as inputs and outputs of lockgate.
//!
//! `config` is what they are told, `client`, `code` and `properties` are what their clients have in common, `group` joins the
//! reader of a consumer group with the output that commits its offsets.

mod client;
mod code;
mod config;
mod group;
mod input;
mod output;
mod properties;
mod sync;
mod waker;

pub use config::{
    GroupConfig, GroupProtocol, KafkaInputConfig, KafkaOutputConfig, Kept, OnGone, OnRefused,
    PartitionChoice, ReadMode, StartFrom, StopAt, TimestampChoice, TopicChoice, TopicSelection,
};
pub use group::GroupCommits;
pub use input::KafkaInput;
pub use output::KafkaOutput;
