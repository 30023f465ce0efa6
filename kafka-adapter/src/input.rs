//! Kafka topics as an input: assigned partitions, read for ever or to their end.
//!
//! [`KafkaInput`] opens a reader with a thread of its own. The parts, from the pure to those that touch the
//! client library: `position` is what is stored, `plan` holds it against the log, `queue` keeps what was read;
//! `properties` and `client` make clients, `ask` and `start` turn every place into a number, `native` takes
//! messages from the client, `source` copies them into batches, `replay` reads journaled steps again, `live`
//! reads on, `watch` looks for new partitions, `reader` drives.

mod ask;
mod client;
mod live;
mod native;
mod plan;
mod position;
mod properties;
mod queue;
mod reader;
mod replay;
mod source;
mod start;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::{EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader};
use serde_json::Value as JsonValue;

use crate::config::KafkaInputConfig;

/// Kafka topics as an input. Keeps every level of fault tolerance.
///
/// Positions are kept by whoever opens it, never by the brokers: nothing is committed, and no consumer group is
/// joined.
#[derive(Clone, Debug)]
pub struct KafkaInput {
    config: KafkaInputConfig,
    timing: reader::Timing,
}

impl KafkaInput {
    /// An input that reads what `config` says.
    pub fn new(config: KafkaInputConfig) -> Self {
        Self { config, timing: reader::Timing::default() }
    }

    /// For tests: gives up connecting after `connect`, and looks for new partitions every `refresh`.
    #[doc(hidden)]
    pub fn timed(mut self, connect: Duration, refresh: Duration) -> Self {
        self.timing = reader::Timing { connect, refresh };
        self
    }
}

impl InputEndpoint for KafkaInput {
    fn fault_tolerance(&self) -> FaultTolerance {
        FaultTolerance::ExactlyOnce
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        Ok(Box::new(reader::KafkaReader::open(&self.config, self.timing, level, consumer, resume)?))
    }
}
