//! Committing a transaction, as the safe crate cannot: it flushes first, and a transaction that has failed keeps
//! its records, so that it would wait for ever.
#![allow(
    unsafe_code,
    reason = "the safe crate's commit does not say that a transaction has failed"
)]

use std::ffi::CStr;
use std::time::Duration;

use rdkafka::bindings as sys;
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::RDKafkaErrorCode;

use super::failure::Failure;
use crate::code;

/// Commits, or goes on with it: a retriable failure says that the outcome is not known yet, and that the same call
/// is to be made again.
pub(super) fn commit<C: ClientContext>(
    client: &Client<C>,
    timeout: Duration,
) -> Result<(), Failure> {
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the client is alive during the call. The error is null or ours, its text lives as long as it does
    // and ends with a zero byte, and it is destroyed once, after its last use.
    unsafe {
        let error = sys::rd_kafka_commit_transaction(client.native_ptr(), timeout_ms);
        if error.is_null() {
            return Ok(());
        }
        let failure = Failure {
            code: code::of_error(error).unwrap_or(RDKafkaErrorCode::Unknown),
            text: CStr::from_ptr(sys::rd_kafka_error_string(error)).to_string_lossy().into_owned(),
            is_fatal: sys::rd_kafka_error_is_fatal(error) != 0,
            is_retriable: sys::rd_kafka_error_is_retriable(error) != 0,
            needs_abort: sys::rd_kafka_error_txn_requires_abort(error) != 0,
        };
        sys::rd_kafka_error_destroy(error);
        Err(failure)
    }
}
