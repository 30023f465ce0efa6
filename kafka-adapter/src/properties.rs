//! What properties of a client have in common, whoever makes it.

use std::collections::BTreeMap;

use lockgate_core::EndpointError;
use rdkafka::error::KafkaError;

use crate::config::is_secret;

/// Refuses properties that a user has set and may not: `forbidden` has their names, each with the reason.
pub(crate) fn refuse_set(
    properties: &BTreeMap<String, String>,
    forbidden: &[(&str, &str)],
) -> Result<(), EndpointError> {
    match forbidden.iter().find(|(name, _)| properties.contains_key(*name)) {
        Some((name, why)) => {
            Err(EndpointError::Configuration(format!("properties: `{name}` cannot be set: {why}")))
        }
        None => Ok(()),
    }
}

/// Why no client could be made, without values that may be secret.
pub(crate) fn refused(error: KafkaError) -> EndpointError {
    EndpointError::Configuration(match error {
        KafkaError::ClientConfig(_, _, name, _) if is_secret(&name) => {
            format!("properties: the value of `{name}` is refused by the Kafka client")
        }
        KafkaError::ClientConfig(_, why, name, _) => format!("properties: `{name}`: {why}"),
        KafkaError::ClientCreation(why) => format!("properties: {why}"),
        other => format!("properties: {other}"),
    })
}
