//! The usual way to read a topic: a poll for each record, which is counted and thrown away.

use std::time::Duration;

use anyhow::{Context, Result};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Message, Offset, TopicPartitionList};

use super::{defaults, tuned};
use crate::broker::PARTITIONS;

const WAIT: Duration = Duration::from_secs(30);

pub(super) fn run(topic: &str, records: u64, with_defaults: bool) -> Result<()> {
    let config = if with_defaults { defaults()? } else { tuned()? };
    let consumer: BaseConsumer = config.create()?;
    read_all(&consumer, topic)?;
    for _ in 0..records {
        let message = consumer.poll(WAIT).context("nothing came")??;
        std::hint::black_box(message.payload());
    }
    println!("{records}");
    // Leaving in order is not what is measured.
    std::process::exit(0);
}

/// All partitions are to be read, from their beginning.
pub(super) fn read_all(consumer: &BaseConsumer, topic: &str) -> Result<()> {
    let mut list = TopicPartitionList::new();
    for number in 0..i32::try_from(PARTITIONS)? {
        list.add_partition_offset(topic, number, Offset::Beginning)?;
    }
    Ok(consumer.assign(&list)?)
}
