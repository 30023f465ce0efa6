//! Kafka topics as inputs of lockgate.

mod config;
mod input;

pub use config::{KafkaInputConfig, StartFrom, StopAt, TopicSelection};
pub use input::KafkaInput;
