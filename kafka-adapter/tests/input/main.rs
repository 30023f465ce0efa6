//! Kafka inputs read from a real broker, which the environment variable LOCKGATE_KAFKA names.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is test code, helpers included")]

mod broker;
mod broker_errors;
mod conformance;
mod group;
mod harness;
mod lanes;
mod mock;
mod opening;
mod outage;
mod policies;
mod reading;
mod resuming;
