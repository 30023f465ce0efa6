//! Kafka topics as an output: in transactions that carry the number of the last step, or the offsets of the group
//! that is read; or without them, at least once.
//!
//! [`KafkaOutput`] has a thread of its own that owns the producer. The parts, from the pure to those that touch the
//! client library: `position` is what is stored and what it says about where to go on, `window` keeps the open
//! transaction, `offsets` says what groups are to be told, `failure` and `refusal` sort errors, `route` says where
//! records go; `properties` and `start` make clients, `producer` and `native` are the calls, `topics` knows which
//! topics there are, `desk` joins the output with its thread, `attempt` writes a transaction once, `writer` drives.

mod attempt;
mod desk;
#[cfg(test)]
mod desk_tests;
mod failure;
mod native;
mod offsets;
mod position;
mod producer;
mod properties;
mod refusal;
mod route;
mod start;
mod topics;
mod window;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::{Batch, EndpointError, InputPosition, Output, OutputReporter};
use rdkafka::consumer::ConsumerGroupMetadata;
use serde_json::Value as JsonValue;

use crate::config::{KafkaOutputConfig, TopicChoice};
use crate::group::{GroupCommits, GroupSeek};
use desk::Desk;
use position::{Position, go_on};
use start::{Maker, Marker};
use window::Queued;
use writer::{Writer, WriterTiming};

/// How long opening waits for the brokers.
const CONNECT: Duration = Duration::from_secs(15);
/// How long dropping waits for the thread.
const DROP: Duration = Duration::from_secs(1);

/// Writes to Kafka topics.
pub struct KafkaOutput {
    config: KafkaOutputConfig,
    groups: BTreeMap<usize, GroupCommits>,
    connect: Duration,
    held_open: Option<Duration>,
    last_step: u64,
    reporter: Arc<dyn OutputReporter>,
    /// Where the attached inputs stand after the step that is written next.
    seeks: Result<Vec<(usize, GroupSeek)>, EndpointError>,
    open: Option<Open>,
}

/// What there is once it is open.
struct Open {
    desk: Arc<Desk>,
    id: String,
    /// The last step that is there already: nothing up to it is written again.
    written: u64,
    /// The last step, and the last one with records.
    step: u64,
    marker: u64,
}

/// Nobody is told.
struct Silent;

impl OutputReporter for Silent {
    fn trouble(&self, error: EndpointError) {
        tracing::warn!("{error}");
    }

    fn recovered(&self) {}

    fn policy_applied(&self, policy: &'static str, text: String) {
        tracing::warn!(policy, "{text}");
    }
}

impl KafkaOutput {
    /// An output that writes what `config` says.
    pub fn new(config: KafkaOutputConfig) -> Self {
        Self {
            config,
            groups: BTreeMap::new(),
            connect: CONNECT,
            held_open: None,
            last_step: 0,
            reporter: Arc::new(Silent),
            seeks: Ok(Vec::new()),
            open: None,
        }
    }

    /// Commits the offsets of the group that the input with place `input` in the pipeline reads, in the
    /// transactions with the records. Then nothing else says what is written already: after a crash the group's
    /// offsets do.
    pub fn committing(mut self, input: usize, commits: GroupCommits) -> Self {
        self.groups.insert(input, commits);
        self
    }

    /// For tests: gives up connecting after `connect`.
    #[doc(hidden)]
    pub fn timed(mut self, connect: Duration) -> Self {
        self.connect = connect;
        self
    }

    /// For tests: keeps transactions open so long, also beyond what the brokers allow.
    #[doc(hidden)]
    pub fn held_open(mut self, interval: Duration) -> Self {
        self.held_open = Some(interval);
        self
    }

    /// For tests without a reader: the group knows its reader as `member` from now on.
    #[doc(hidden)]
    pub fn publish_member(commits: &GroupCommits, member: Option<ConsumerGroupMetadata>) {
        commits.publish(member);
    }

    /// For tests without a reader: the last turn whose offsets are committed.
    #[doc(hidden)]
    pub fn committed_turn(commits: &GroupCommits) -> u64 {
        commits.committed()
    }

    /// Checks what can be checked without the brokers.
    ///
    /// # Errors
    /// If a property is unknown or may not be set, or settings contradict each other.
    pub fn check(&self) -> Result<(), EndpointError> {
        self.checked().map(|_| ())
    }

    /// How long the brokers let a transaction be open, if everything else is right too.
    fn checked(&self) -> Result<Duration, EndpointError> {
        let config = &self.config;
        let wrong = |text: String| Err(EndpointError::Configuration(text));
        properties::check(config)?;
        if config.brokers.is_empty() || config.id.is_empty() {
            return wrong("a Kafka output needs brokers and a name".into());
        }
        if !config.exactly_once && !self.groups.is_empty() {
            return wrong(
                "the offsets of a group travel in transactions, so the output must be exactly once"
                    .into(),
            );
        }
        let timeout = properties::transaction_timeout(&config.properties)?;
        if config.exactly_once && config.commit_interval >= timeout {
            return wrong(format!(
                "commit_interval: {:?} is no less than transaction.timeout.ms ({timeout:?}), after which the \
                 brokers give a transaction up",
                config.commit_interval
            ));
        }
        if self.keeps_marker() && self.marker_topic().is_none() {
            return wrong(
                "position_topic: needed, because topics come from records: the last step is kept under the name \
                 of an existing topic"
                    .into(),
            );
        }
        Ok(timeout)
    }

    /// Whether the last step travels in the transactions.
    fn keeps_marker(&self) -> bool {
        self.config.exactly_once && self.groups.is_empty()
    }

    fn marker_topic(&self) -> Option<&String> {
        match &self.config.topic {
            TopicChoice::Fixed(topic) => Some(topic),
            TopicChoice::FromRecord { position_topic, .. } => position_topic.as_ref(),
        }
    }

    /// Ends the thread, and says whether it has ended in time.
    fn close(&mut self) -> bool {
        let Some(open) = self.open.take() else { return true };
        open.desk.stop();
        open.desk.ends_within(DROP)
    }
}

fn unopened() -> EndpointError {
    EndpointError::Bug("a Kafka output was used before it was recovered".into())
}

impl Output for KafkaOutput {
    fn attach(&mut self, last_step: u64, reporter: Arc<dyn OutputReporter>) {
        (self.last_step, self.reporter) = (last_step, reporter);
    }

    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        self.close();
        self.seeks = Ok(Vec::new());
        let transaction = self.checked()?;
        let position = position.map(Position::from_json).transpose()?;
        let id = position.as_ref().map_or_else(start::new_id, |position| position.id.clone());
        let name = format!("{}-{id}", self.config.id);
        let maker = Maker {
            config: self.config.clone(),
            transactional_id: self.config.exactly_once.then(|| name.clone()),
        };

        let never = || false;
        let producer = maker.producer(false)?;
        // Missing topics are told without waiting for a coordinator.
        maker.check_topics(&producer, self.connect)?;
        maker.init(&producer, self.connect, &never)?;

        let desk = Arc::new(Desk::default());
        let timing = WriterTiming {
            interval: self.held_open.unwrap_or(self.config.commit_interval),
            transaction,
        };
        let mut writer = Writer::new(maker, desk.clone(), self.reporter.clone(), producer, timing);
        writer.groups = self.groups.clone();
        let mut written = 0;
        if let Some(topic) = self.marker_topic().filter(|_| self.keeps_marker()) {
            let marker = Marker::new(&self.config, name, topic.clone())?;
            let found = marker.read(self.connect, &never)?;
            let go_on = go_on(position.as_ref(), self.last_step, found, &marker.group)?;
            if go_on.must_mark {
                writer.mark(&marker, go_on.written, self.connect)?;
            }
            written = go_on.written;
            (writer.committed, writer.attempted) = (written, written);
            writer.marker = Some(marker);
        }

        let (step, marker) =
            position.map_or((written, written), |position| (position.step, position.marker));
        let thread = std::thread::Builder::new().name("kafka-output".into());
        thread.spawn(move || writer.run()).map_err(|error| EndpointError::Unavailable {
            what: "starting the thread of a Kafka output".into(),
            source: error.into(),
        })?;
        let json = Position::new(id.clone(), step, marker).to_json();
        self.open = Some(Open { desk, id, written, step, marker });
        Ok(json)
    }

    fn positions(&mut self, _step: u64, positions: &[InputPosition]) {
        let groups = &self.groups;
        let attached = positions.iter().filter(|position| groups.contains_key(&position.input));
        self.seeks = attached
            .filter_map(|position| Some((position.input, position.seek.as_ref()?)))
            .map(|(input, seek)| Ok((input, GroupSeek::from_json(seek.json())?)))
            .collect();
    }

    fn write(&mut self, step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        let seeks = std::mem::replace(&mut self.seeks, Ok(Vec::new()))?;
        let open = self.open.as_mut().ok_or_else(unopened)?;
        open.step = open.step.max(step);
        let batches: Vec<Batch> =
            batches.iter().filter(|batch| !batch.is_empty()).cloned().collect();
        if !batches.is_empty() {
            open.marker = open.marker.max(step);
        }
        if step <= open.written || (batches.is_empty() && seeks.is_empty()) {
            return Ok(());
        }
        open.desk.push(Queued { step, batches, seeks })
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        let open = self.open.as_ref().ok_or_else(unopened)?;
        open.desk.flush()?;
        Ok(Position::new(open.id.clone(), open.step, open.marker).to_json())
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), EndpointError> {
        self.open.as_ref().ok_or_else(unopened)?.desk.flush()
    }
}

impl Drop for KafkaOutput {
    fn drop(&mut self) {
        if !self.close() {
            tracing::debug!("the thread of a Kafka output is left behind: no broker answers");
        }
    }
}
