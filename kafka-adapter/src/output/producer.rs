//! The producer: records in, deliveries counted, and the calls that make a transaction.
//!
//! Not here: what is done about a failure.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lockgate_core::EndpointError;
use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext, PurgeConfig,
};

use super::failure::Failure;
use super::native;
use super::offsets::Offsets;
use crate::client::{self, Reports};
use crate::properties::refused;

/// Most events that are looked at in one go.
const MAX_EVENTS: usize = 10_000;

/// A record whose delivery failed, by its number.
pub(super) type Failed = (usize, Code);

/// What the client says.
#[derive(Default)]
pub(super) struct Deliveries {
    delivered: AtomicUsize,
    failed: Mutex<Vec<Failed>>,
    reports: Reports,
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.reports.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.reports.error(error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        if let Err((error, _)) = result {
            let code = error.rdkafka_error_code().unwrap_or(Code::Unknown);
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).push((number, code));
        }
        self.delivered.fetch_add(1, Ordering::Release);
    }
}

/// What became of a record that was handed to the client.
pub(super) enum Sent {
    Taken,
    /// There is no room now.
    Full,
    /// It is refused for good.
    Refused(Code),
}

/// A producer, owned by one thread.
pub(super) struct Producer {
    client: BaseProducer<Deliveries>,
    /// How many records were taken.
    taken: usize,
}

impl Producer {
    /// Makes a producer, which connects by itself.
    pub(super) fn new(config: &ClientConfig) -> Result<Self, EndpointError> {
        let client = config.create_with_context(Deliveries::default()).map_err(refused)?;
        Ok(Self { client, taken: 0 })
    }

    pub(super) fn client(&self) -> &BaseProducer<Deliveries> {
        &self.client
    }

    /// Hands over a record under a number.
    ///
    /// # Errors
    /// If the producer or its transaction has failed.
    pub(super) fn send(
        &mut self,
        record: BaseRecord<'_, [u8], [u8], usize>,
    ) -> Result<Sent, Failure> {
        let Err((error, _)) = self.client.send(record) else {
            self.taken += 1;
            return Ok(Sent::Taken);
        };
        match error.rdkafka_error_code().unwrap_or(Code::Unknown) {
            Code::QueueFull => Ok(Sent::Full),
            code if super::refusal::verdict(code) != super::refusal::Verdict::Unrelated => {
                Ok(Sent::Refused(code))
            }
            _ => Err(self.failed_with(error.into())),
        }
    }

    /// The fatal error behind `failure`, if there is one.
    pub(super) fn failed_with(&self, failure: Failure) -> Failure {
        match self.client.client().fatal_error() {
            Some((code, text)) => Failure::fatal(code, text),
            None => failure,
        }
    }

    /// How many records are on their way.
    pub(super) fn outstanding(&self) -> usize {
        self.taken - self.client.context().delivered.load(Ordering::Acquire)
    }

    /// Lets the client tell what has happened; waits so long for more.
    pub(super) fn serve(&self, wait: Duration) {
        if !wait.is_zero() {
            self.client.poll(wait);
            return;
        }
        let delivered = || self.client.context().delivered.load(Ordering::Acquire);
        for _ in 0..MAX_EVENTS {
            let before = delivered();
            self.client.poll(Duration::ZERO);
            if delivered() == before {
                break;
            }
        }
    }

    /// What the client reported since the last call.
    pub(super) fn reports(&self) -> Vec<(Code, String)> {
        self.client.context().reports.take()
    }

    pub(super) fn has_failed_deliveries(&self) -> bool {
        !self.client.context().failed.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The deliveries that failed since the last call.
    pub(super) fn failed_deliveries(&self) -> Vec<Failed> {
        let failed = &self.client.context().failed;
        std::mem::take(&mut *failed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes on to get the transactional id, from whoever had it.
    pub(super) fn init(&self, timeout: Duration) -> Result<(), Failure> {
        self.told(self.client.init_transactions(timeout))
    }

    pub(super) fn begin(&self) -> Result<(), Failure> {
        self.told(self.client.begin_transaction())
    }

    /// Adds offsets to the transaction.
    pub(super) fn send_offsets(
        &self,
        offsets: &Offsets,
        member: &ConsumerGroupMetadata,
        timeout: Duration,
    ) -> Result<(), Failure> {
        let named = offsets.iter().flat_map(|(topic, numbers)| {
            numbers.iter().map(move |(number, offset)| (topic.as_str(), *number, *offset))
        });
        let list = client::offsets(named)?;
        self.told(self.client.send_offsets_to_transaction(&list, member, timeout))
    }

    /// Commits the transaction, or goes on with it.
    pub(super) fn commit(&self, timeout: Duration) -> Result<(), Failure> {
        native::commit(self.client.client(), timeout)
    }

    /// Aborts the transaction, or goes on with it.
    pub(super) fn abort(&self, timeout: Duration) -> Result<(), Failure> {
        self.told(self.client.abort_transaction(timeout))
    }

    fn told(&self, result: Result<(), KafkaError>) -> Result<(), Failure> {
        result.map_err(Failure::from)
    }

    /// Gives up everything on its way, so that each record has failed or been delivered.
    pub(super) fn purge(&self, patience: Duration) {
        self.client.purge(PurgeConfig::default().queue().inflight());
        let until = std::time::Instant::now() + patience;
        while self.outstanding() > 0 && std::time::Instant::now() < until {
            self.serve(Duration::from_millis(1));
        }
    }
}
