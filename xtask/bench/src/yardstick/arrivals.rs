//! How long a record takes from being sent to being polled by a bare consumer on the same machine.
//!
//! A record holds the time at which it was sent ([`stamp`]). Those that do not are there to say that everything is
//! connected: when all partitions have given theirs, `ready` is printed.

use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use rdkafka::Message;
use rdkafka::consumer::BaseConsumer;
use serde_json::json;

use super::poll::read_all;
use super::tuned;
use crate::broker::PARTITIONS;

const WAIT: Duration = Duration::from_secs(60);

/// Now, as it is put into a record.
pub(crate) fn stamp() -> [u8; 8] {
    now().to_le_bytes()
}

fn now() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |elapsed| u64::try_from(elapsed.as_nanos()).unwrap_or(0))
}

pub(super) fn run(topic: &str, records: u64) -> Result<()> {
    let consumer: BaseConsumer = tuned()?.create()?;
    read_all(&consumer, topic)?;
    let mut missing = PARTITIONS;
    let mut took = Vec::new();
    while (took.len() as u64) < records {
        let message = consumer.poll(WAIT).context("nothing came")??;
        let sent = message.payload().and_then(|value| value.first_chunk()).copied();
        let sent = sent.map_or(0, u64::from_le_bytes);
        if sent > 0 {
            took.push(now().saturating_sub(sent));
            continue;
        }
        missing = missing.saturating_sub(1);
        if missing == 0 {
            println!("ready");
        }
    }
    took.sort_unstable();
    let ms = |share: f64| {
        let place = (took.len() as f64 * share) as usize;
        took.get(place.min(took.len() - 1)).map_or(0.0, |ns| *ns as f64 / 1e6)
    };
    println!("{}", json!({ "p50": ms(0.5), "p99": ms(0.99), "max": ms(1.0) }));
    Ok(())
}
