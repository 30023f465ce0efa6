//! A client of the brokers: how it is made, and what it reports besides records.
//!
//! Not here: which properties it is made with, and what is asked of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockgate_core::EndpointError;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, Message, Offset, TopicPartitionList};
use tracing::{debug, error, info, warn};

use crate::properties;

/// A topic is looked for so long: brokers learn one after the other that it was made.
pub(crate) const NEW_TOPIC: Duration = Duration::from_secs(2);

/// A client whose events are kept until somebody asks.
pub(crate) type Client = BaseConsumer<Reports>;

/// A partition of a topic.
pub(crate) type Name = (String, u32);

/// What a client reported since it was last asked.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    said: Mutex<Events>,
    /// Whether the client is being closed: nobody will answer a rebalance any more.
    closing: AtomicBool,
}

impl Reports {
    fn said(&self) -> MutexGuard<'_, Events> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on what the group asks for is granted at once.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }
}

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error => error!(facility, "{message}"),
            RDKafkaLogLevel::Warning => warn!(facility, "{message}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => info!(facility, "{message}"),
            RDKafkaLogLevel::Debug => debug!(facility, "{message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        self.said().reports.push((code, reason.to_owned()));
    }
}

impl ConsumerContext for Reports {
    /// Only writes down what the group wants: the library waits until it is answered.
    fn rebalance(
        &self,
        client: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        if self.closing.load(Ordering::Acquire) {
            let given_up = match client.rebalance_protocol() {
                RebalanceProtocol::Cooperative => client.incremental_unassign(partitions),
                _ => client.unassign(),
            };
            if let Err(error) = given_up {
                debug!("giving partitions up while closing: {error}");
            }
            return;
        }
        let names = partitions.elements().into_iter();
        let names = names.map(|part| (part.topic().to_owned(), part.partition().unsigned_abs()));
        let names: Vec<Name> = names.collect();
        self.said().rebalances.push(match what {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => Rebalance::Assigned(names),
            _ => Rebalance::Revoked { partitions: names, lost: client.assignment_lost() },
        });
    }
}

/// What a consumer group wants of its member.
#[derive(Debug)]
pub(crate) enum Rebalance {
    /// These partitions become its own.
    Assigned(Vec<Name>),
    /// These are to be given up; `lost` if somebody else may own them already.
    Revoked { partitions: Vec<Name>, lost: bool },
}

impl Reports {
    /// What was reported since the last call.
    pub(crate) fn take(&self) -> Vec<(RDKafkaErrorCode, String)> {
        std::mem::take(&mut self.said().reports)
    }
}

/// Makes a client; it connects when it is first asked for something.
pub(crate) fn create(config: &ClientConfig) -> Result<Client, EndpointError> {
    config.create_with_context(Reports::default()).map_err(properties::refused)
}

/// Offsets, each of a topic and a partition, as the library takes them.
pub(crate) fn offsets<'a>(
    offsets: impl IntoIterator<Item = (&'a str, u32, u64)>,
) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (topic, number, offset) in offsets {
        add(&mut list, topic, number, at(offset))?;
    }
    Ok(list)
}

/// An offset as the library takes it.
pub(crate) fn at(offset: u64) -> Offset {
    Offset::Offset(i64::try_from(offset).unwrap_or(i64::MAX))
}

/// Adds a partition with an offset. The call of the safe crate looks for what it has just added: a list of thousands takes
/// seconds.
pub(crate) fn add(
    list: &mut TopicPartitionList,
    topic: &str,
    number: u32,
    offset: Offset,
) -> KafkaResult<()> {
    list.add_partition(topic, i32::try_from(number).unwrap_or(-1)).set_offset(offset)
}

/// Most events that are looked at in one go.
const MAX_EVENTS: usize = 100;

/// What a client has to say besides records.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) reports: Vec<(RDKafkaErrorCode, String)>,
    pub(crate) rebalances: Vec<Rebalance>,
    /// The place of a record that came in the queue of the client: there should be none.
    pub(crate) stray: Option<String>,
}

/// Lets a client tell what has happened, without waiting.
pub(crate) fn events(client: &Client) -> Events {
    let mut stray = None;
    // A poll that gave nothing may have served a log line, and does not say so.
    for _ in 0..MAX_EVENTS {
        if let Some(Ok(message)) = client.poll(Duration::ZERO) {
            let (topic, number, offset) = (message.topic(), message.partition(), message.offset());
            stray = Some(format!("{topic}[{number}] at offset {offset}"));
        }
    }
    let said = std::mem::take(&mut *client.context().said());
    Events { stray, ..said }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a broker may ask for must be in the library that is built.
    #[test]
    fn the_client_knows_tls_and_the_usual_ways_to_log_in() {
        let config = ClientConfig::new().create_native_config().unwrap();
        let features = config.get("builtin.features").unwrap();
        for feature in ["ssl", "sasl_plain", "sasl_scram", "sasl_oauthbearer", "zstd", "lz4"] {
            assert!(features.split(',').any(|built| built == feature), "{feature}: {features}");
        }
    }
}
