//! Bare loops to compare with: each does the least that can be done with the same data, as a process of its own.

mod arrivals;
mod batch;
mod poll;
mod queues;
mod relay;
mod split;
mod window;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use rdkafka::config::ClientConfig;

use crate::broker;

pub(crate) use arrivals::stamp;
pub(crate) use window::Window;

/// Which one.
#[derive(Subcommand)]
pub(crate) enum Yardstick {
    /// Splits a file into lines and counts them.
    Split { file: PathBuf },
    /// Counts the records of a topic by the batch call.
    Batch {
        topic: String,
        records: u64,
        /// Print how fast the middle was, and stop behind it.
        #[arg(long)]
        window: bool,
        /// Topics without records that are read, too.
        beside: Vec<String>,
    },
    /// Counts the records of a topic by a poll for each.
    Poll {
        topic: String,
        records: u64,
        /// With the properties that librdkafka has by default.
        #[arg(long)]
        defaults: bool,
    },
    /// Copies a topic to another in transactions.
    Relay { from: String, to: String, records: u64 },
    /// How long records take from being sent to being polled.
    Arrivals { topic: String, records: u64 },
}

impl Yardstick {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Split { file } => split::run(&file),
            Self::Batch { topic, records, window, beside } => {
                batch::run(&topic, records, window, &beside)
            }
            Self::Poll { topic, records, defaults } => poll::run(&topic, records, defaults),
            Self::Relay { from, to, records } => relay::run(&from, &to, records),
            Self::Arrivals { topic, records } => arrivals::run(&topic, records),
        }
    }
}

/// A consumer's properties: those that make a bare loop fastest, and no more memory than lockgate takes by default.
fn tuned() -> Result<ClientConfig> {
    let mut config = defaults()?;
    let kbytes = 16 * 1024 / broker::PARTITIONS;
    config.set("fetch.queue.backoff.ms", "2");
    config.set("fetch.wait.max.ms", "50");
    config.set("queued.min.messages", "20000");
    config.set("queued.max.messages.kbytes", kbytes.to_string());
    Ok(config)
}

/// A consumer's properties, but for what none can do without.
fn defaults() -> Result<ClientConfig> {
    let mut config = broker::client()?;
    config.set("group.id", "bench-bare");
    config.set("enable.auto.commit", "false");
    config.set("enable.auto.offset.store", "false");
    Ok(config)
}
