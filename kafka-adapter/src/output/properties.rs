//! The properties of the producer: ours, and what the user adds.
//!
//! Pure, except that the client library is asked whether it knows a property. Not here: connecting.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::EndpointError;
use rdkafka::config::ClientConfig;

use super::desk::BUDGET;
use crate::config::KafkaOutputConfig;
use crate::properties::{refuse_set, refused};

/// What a user may not set, and why.
const FORBIDDEN: [(&str, &str); 20] = [
    ("bootstrap.servers", "it is set by `brokers`"),
    ("metadata.broker.list", "it is set by `brokers`"),
    ("transactional.id", "it is made of the output's name and an id of the state directory"),
    ("enable.idempotence", "it is always on: without it records would be doubled or change places"),
    ("enable.gapless.guarantee", "what fails is written again"),
    ("acks", "idempotence needs an answer of all replicas"),
    ("request.required.acks", "idempotence needs an answer of all replicas"),
    ("message.timeout.ms", "a record is tried until the transaction is given up, or for ever"),
    ("delivery.timeout.ms", "a record is tried until the transaction is given up, or for ever"),
    ("group.id", "an output joins no consumer group"),
    ("group.instance.id", "an output joins no consumer group"),
    ("isolation.level", "an output reads nothing"),
    ("allow.auto.create.topics", "a misspelled topic would be created instead of reported"),
    ("connections.max.idle.ms", "idle connections are closed after 10 s, which is relied on"),
    (
        "partitioner",
        "`partition` says where a record goes, and records of one key must stay together",
    ),
    ("statistics.interval.ms", "nobody would read the statistics"),
    ("delivery.report.only.error", "deliveries are counted"),
    ("queuing.strategy", "records keep their order"),
    ("topic.blacklist", "a topic is there or it is not"),
    ("test.mock.num.brokers", "it is for tests of the client library"),
];

/// The client library's own default.
const TRANSACTION_TIMEOUT_MS: u64 = 60_000;

/// A client that sends offsets waits for the group's coordinator without end if it is told of none while all its
/// connections stay as they are (librdkafka#5456). A connection that is closed because nothing happens wakes it.
const MAX_IDLE_MS: &str = "10000";

/// What concerns the connection, and so every client of an output.
const CONNECTION: [&str; 8] =
    ["api.version.", "broker.", "client.", "debug", "reconnect.", "sasl.", "security.", "socket."];

/// Refuses what may not be set, and what the client does not know.
pub(super) fn check(config: &KafkaOutputConfig) -> Result<(), EndpointError> {
    refuse_set(&config.properties, &FORBIDDEN)?;
    transaction_timeout(&config.properties)?;
    producing(config, None, false).create_native_config().map(|_| ()).map_err(refused)
}

/// How long the brokers let a transaction be open.
///
/// # Errors
/// If it is not a number of milliseconds.
pub(super) fn transaction_timeout(
    properties: &BTreeMap<String, String>,
) -> Result<Duration, EndpointError> {
    let Some(text) = properties.get("transaction.timeout.ms") else {
        return Ok(Duration::from_millis(TRANSACTION_TIMEOUT_MS));
    };
    text.parse().map(Duration::from_millis).map_err(|_| {
        EndpointError::Configuration(format!(
            "properties: transaction.timeout.ms is a number of milliseconds, not `{text}`"
        ))
    })
}

/// What a producer is made with: a transactional one if it has an id. A `careful` one puts every record into a
/// request of its own, so that an answer concerns no other.
pub(super) fn producing(
    config: &KafkaOutputConfig,
    transactional_id: Option<&str>,
    careful: bool,
) -> ClientConfig {
    let mut client = ClientConfig::new();
    for (name, value) in [
        ("bootstrap.servers", config.brokers.join(",").as_str()),
        ("client.id", "lockgate"),
        ("enable.idempotence", "true"),
        ("allow.auto.create.topics", "false"),
        ("connections.max.idle.ms", MAX_IDLE_MS),
        ("linger.ms", "5"),
        ("partitioner", "murmur2_random"),
        ("queue.buffering.max.kbytes", (BUDGET / 1024 * 2).to_string().as_str()),
        ("topic.metadata.propagation.max.ms", "5000"),
    ] {
        client.set(name, value);
    }
    match transactional_id {
        Some(id) => client.set("transactional.id", id),
        None => client.set("message.timeout.ms", "0"),
    };
    for (name, value) in &config.properties {
        let is_other_mode = transactional_id.is_none() && name == "transaction.timeout.ms";
        if !is_other_mode {
            client.set(name, value);
        }
    }
    if careful {
        client.set("batch.num.messages", "1").set("linger.ms", "0");
    }
    client
}

/// What the client is made with that reads the last step of `group`.
pub(super) fn asking(config: &KafkaOutputConfig, group: &str) -> ClientConfig {
    let mut client = ClientConfig::new();
    for (name, value) in [
        ("bootstrap.servers", config.brokers.join(",").as_str()),
        ("client.id", "lockgate"),
        ("group.id", group),
        ("isolation.level", "read_committed"),
        ("enable.auto.commit", "false"),
        ("allow.auto.create.topics", "false"),
    ] {
        client.set(name, value);
    }
    let concerns = |name: &str| {
        name.starts_with("ssl.") || CONNECTION.iter().any(|prefix| name.starts_with(prefix))
    };
    for (name, value) in config.properties.iter().filter(|(name, _)| concerns(name)) {
        client.set(name, value);
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TopicChoice;

    fn config(properties: &[(&str, &str)]) -> KafkaOutputConfig {
        let topic = TopicChoice::Fixed("orders".into());
        let mut config = KafkaOutputConfig::new(vec!["127.0.0.1:1".into()], "lockgate-p-o", topic);
        config.properties =
            properties.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        config
    }

    fn text(properties: &[(&str, &str)]) -> String {
        check(&config(properties)).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_may_not_be_set_is_refused_with_the_reason() {
        for (name, why) in FORBIDDEN {
            let text = text(&[(name, "x")]);
            assert!(text.contains(name) && text.contains(why), "{text}");
        }
        assert_eq!(text(&[("transaction.timeout.ms", "1000"), ("compression.type", "zstd")]), "");
        assert!(text(&[("transaction.timeout.ms", "1s")]).contains("milliseconds"));
    }

    #[test]
    fn an_unknown_property_is_named_and_a_secret_is_not_shown() {
        let unknown = text(&[("linger.sm", "5")]);
        assert!(unknown.contains("linger.sm"), "{unknown}");
        let secret = text(&[("ssl.key.pasword", "hunter2")]);
        assert!(secret.contains("ssl.key.pasword") && !secret.contains("hunter2"), "{secret}");
    }

    #[test]
    fn the_client_that_asks_has_what_concerns_the_connection() {
        let config = config(&[("sasl.username", "u"), ("compression.type", "zstd")]);
        let client = asking(&config, "g");
        assert_eq!(client.get("sasl.username"), Some("u"));
        assert_eq!(client.get("compression.type"), None);
    }
}
