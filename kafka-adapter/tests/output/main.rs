//! Kafka outputs write to a real broker, which the environment variable LOCKGATE_KAFKA names.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is test code, helpers included")]

#[path = "../input/broker.rs"]
#[allow(dead_code, reason = "the tests of inputs use the rest of it")]
mod broker;
mod broker_errors;
mod crash;
mod group;
mod harness;
mod keeping;
mod opening;
mod outage;
mod refused;
