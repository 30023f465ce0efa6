//! Kafka topics as an input: assigned partitions, read for ever or to their end, or what a consumer group deals out.
//!
//! [`KafkaInput`] opens a reader with a thread of its own. The parts, from the pure to those that touch the
//! client library: `position` is what is stored, `plan` holds it against the log, `queue` keeps what was read;
//! `properties` says what clients are made with; `topics`, `ask` and `start` turn every place into a number, `epochs`
//! asks whether the log before it is still the same; `native` takes messages from the client, `source` copies them
//! into batches, `replay` reads journaled steps again, `reading` is what goes on then: by `live` for assigned
//! partitions, with `watch` looking for new ones and `lane` for busy ones, and by `member` in a group, with `begin`
//! saying where partitions begin. `reader` opens and drives, `gauges` shows people where it stands.

mod ask;
mod begin;
mod epochs;
mod gauges;
mod lane;
mod live;
mod member;
mod native;
mod plan;
mod position;
mod properties;
mod queue;
mod reader;
mod reading;
mod replay;
mod signal;
mod source;
mod start;
mod topics;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::{EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader};
use serde_json::Value as JsonValue;

use crate::client::{self, Name};
use crate::config::{KafkaInputConfig, ReadMode};
use crate::group::GroupCommits;

/// Kafka topics as an input.
///
/// With assigned partitions it keeps every level of fault tolerance, and positions are kept by whoever opens it. As
/// the member of a consumer group it keeps at-least-once at most, and the group's committed offsets are what counts.
#[derive(Clone, Debug)]
pub struct KafkaInput {
    config: KafkaInputConfig,
    timing: reader::Timing,
    commits: Option<GroupCommits>,
}

impl KafkaInput {
    /// An input that reads what `config` says.
    pub fn new(config: KafkaInputConfig) -> Self {
        Self { config, timing: reader::Timing::default(), commits: None }
    }

    /// The offsets of the consumer group are committed by the output that is given what comes back, in one
    /// transaction with the records: then everything is written once.
    pub fn committed_by_output(mut self) -> (Self, GroupCommits) {
        let commits = GroupCommits::default();
        self.commits = Some(commits.clone());
        (self, commits)
    }

    /// Checks what can be checked without the brokers.
    ///
    /// # Errors
    /// If a property is unknown or may not be set, no broker is named, or a pattern is none.
    pub fn check(&self) -> Result<(), EndpointError> {
        let config = &self.config;
        properties::check(config)?;
        if config.brokers.is_empty() {
            return Err(EndpointError::Configuration("brokers: name at least one".into()));
        }
        topics::Topics::new(&config.topics).map(|_| ())
    }

    /// How many offsets a first start would read as the topics are now, `None` if it has no end. There may be fewer
    /// records: markers and what was compacted have offsets too.
    ///
    /// # Errors
    /// As opening it.
    pub fn extent(&self) -> Result<Option<u64>, EndpointError> {
        self.check()?;
        let topics = topics::Topics::new(&self.config.topics)?;
        let client = client::create(&properties::base(&self.config))?;
        let brokers = self.config.brokers.join(",");
        let patience = self.timing.connect;
        let questions = ask::Questions { client: &client, brokers: &brokers, patience };
        let start = start::start(&self.config, &topics, &questions, None)?;
        let length = |ends: BTreeMap<Name, u64>| {
            let length = |(topic, number, from): (&str, u32, u64)| {
                let end = ends.get(&(topic.to_owned(), number)).copied().unwrap_or(from);
                end.saturating_sub(from)
            };
            start.seek.iter().map(length).sum()
        };
        Ok(start.ends.map(length))
    }

    /// For tests: gives up connecting after `connect`, and looks for new partitions every `refresh`.
    #[doc(hidden)]
    pub fn timed(mut self, connect: Duration, refresh: Duration) -> Self {
        self.timing = reader::Timing { connect, refresh, ..self.timing };
        self
    }

    /// For tests: looks every `look` which partitions are busy.
    #[doc(hidden)]
    pub fn looking(mut self, look: Duration) -> Self {
        self.timing.look = look;
        self
    }
}

impl InputEndpoint for KafkaInput {
    fn fault_tolerance(&self) -> FaultTolerance {
        match self.config.mode {
            ReadMode::Assign { .. } => FaultTolerance::ExactlyOnce,
            // What another member has read cannot be read again here.
            ReadMode::Group(_) => FaultTolerance::AtLeastOnce,
        }
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        Ok(Box::new(reader::KafkaReader::open(&self, level, consumer, resume)?))
    }
}
