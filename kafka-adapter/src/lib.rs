//! Kafka topics as inputs and outputs of lockgate.

mod config;
mod group;
mod input;
mod output;

pub use config::{
    GroupConfig, GroupProtocol, KafkaInputConfig, KafkaOutputConfig, Kept, OnGone, OnRefused,
    PartitionChoice, ReadMode, StartFrom, StopAt, TimestampChoice, TopicChoice, TopicSelection,
};
pub use group::GroupCommits;
pub use input::KafkaInput;
pub use output::KafkaOutput;
