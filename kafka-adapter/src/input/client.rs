//! A client of the brokers: how it is made, and what it reports besides records.
//!
//! Not here: which properties it is made with, and what is asked of it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use lockgate_core::EndpointError;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientContext, Message};
use tracing::{debug, error, info, warn};

use super::properties;

/// A client whose events are kept until somebody asks.
pub(super) type Client = BaseConsumer<Reports>;

/// What a client reported since it was last asked.
#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<Vec<(RDKafkaErrorCode, String)>>);

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((code, reason.to_owned()));
    }
}

impl ConsumerContext for Reports {}

/// Makes a client; it connects when it is first asked for something.
pub(super) fn create(config: &ClientConfig) -> Result<Client, EndpointError> {
    config.create_with_context(Reports::default()).map_err(properties::refused)
}

/// Most events that are looked at in one go.
const MAX_EVENTS: usize = 100;

/// What a client has to say besides records.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) reports: Vec<(RDKafkaErrorCode, String)>,
    /// The place of a record that came in the queue of the client: there should be none.
    pub(super) stray: Option<String>,
}

/// Lets a client tell what has happened, without waiting.
pub(super) fn events(client: &Client) -> Events {
    let mut stray = None;
    // A poll that gave nothing may have served a log line, and does not say so.
    for _ in 0..MAX_EVENTS {
        if let Some(Ok(message)) = client.poll(Duration::ZERO) {
            let (topic, number, offset) = (message.topic(), message.partition(), message.offset());
            stray = Some(format!("{topic}[{number}] at offset {offset}"));
        }
    }
    let reports = &client.context().0;
    let reports = std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner));
    Events { reports, stray }
}

/// Wakes the thread of a reader.
#[derive(Clone, Debug, Default)]
pub(super) struct Waker(Arc<OnceLock<Thread>>);

impl Waker {
    /// This thread is the one to wake.
    pub(super) fn wakes_this_thread(&self) {
        // Nobody else sets it.
        let _ = self.0.set(std::thread::current());
    }

    /// Wakes it, or its next sleep at once. Nothing is lost before it has begun: it looks before it sleeps.
    pub(super) fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}
