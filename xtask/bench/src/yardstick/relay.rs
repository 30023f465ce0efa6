//! Consume, produce, commit: a topic is copied to another in transactions that carry the offsets, one every 100 ms, as
//! long as those of lockgate are by default.

use std::time::{Duration, Instant};

use anyhow::Result;
use rdkafka::consumer::Consumer;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::{Offset, TopicPartitionList};

use super::queues::Queues;
use super::tuned;
use crate::broker::{self, PARTITIONS};

const TRANSACTION: Duration = Duration::from_millis(100);
const WAIT: Duration = Duration::from_secs(60);

pub(super) fn run(from: &str, to: &str, records: u64) -> Result<()> {
    let mut config = broker::client()?;
    config.set("transactional.id", format!("bench-{to}"));
    config.set("linger.ms", "5");
    config.set("queue.buffering.max.kbytes", "65536");
    let producer: BaseProducer = config.create()?;
    producer.init_transactions(WAIT)?;
    let mut queues = Queues::new(tuned()?.create()?, from, &[])?;
    let group = queues.consumer().group_metadata();
    let mut next = [0; PARTITIONS as usize];
    let mut seen = 0;
    while seen < records {
        producer.begin_transaction()?;
        let begun = Instant::now();
        while begun.elapsed() < TRANSACTION && seen < records {
            seen += queues.take(|message| {
                next[message.partition as usize] = message.offset + 1;
                broker::send(&producer, to, message.partition, message.value)
            })?;
            producer.poll(Duration::ZERO);
        }
        if let Some(group) = &group {
            let mut offsets = TopicPartitionList::new();
            for (partition, next) in (0..).zip(next) {
                offsets.add_partition_offset(from, partition, Offset::Offset(next))?;
            }
            producer.send_offsets_to_transaction(&offsets, group, WAIT)?;
        }
        producer.commit_transaction(WAIT)?;
    }
    println!("{seen}");
    // Leaving in order is not what is measured.
    std::process::exit(0);
}
