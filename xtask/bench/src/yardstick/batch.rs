//! The fastest way to read a topic that librdkafka has: whole batches of each partition, counted and thrown away.

use anyhow::Result;

use super::queues::Queues;
use super::tuned;

pub(super) fn run(topic: &str, records: u64) -> Result<()> {
    let mut queues = Queues::new(tuned()?.create()?, topic)?;
    let mut seen = 0;
    while seen < records {
        seen += queues.take(|message| {
            std::hint::black_box(message.value);
            Ok(())
        })?;
    }
    println!("{seen}");
    // Leaving in order is not what is measured.
    std::process::exit(0);
}
