//! The program between real Kafka topics: real processes, real brokers, real signals.
//!
//! Small here; `cargo xtask prove` runs the same with millions of records and for minutes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

#[path = "../end_to_end/api.rs"]
#[allow(dead_code, reason = "not all that other tests need is needed here")]
mod api;
#[path = "../end_to_end/data.rs"]
#[allow(dead_code, reason = "not all that other tests need is needed here")]
mod data;
#[path = "../end_to_end/site.rs"]
#[allow(dead_code, reason = "not all that other tests need is needed here")]
mod site;

mod cluster;
mod compaction;
mod debugger;
mod group;
mod kills;
mod many;
mod outage;
mod recording;
mod reload;
mod rows;
mod secrets;
mod truncated;

/// Whether the long form is wanted.
fn is_full() -> bool {
    std::env::var("LOCKGATE_PROOF").is_ok_and(|form| form == "full")
}

/// The one for the long form, or the one for the short.
fn scaled<T>(full: T, small: T) -> T {
    if is_full() { full } else { small }
}
