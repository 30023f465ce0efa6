//! The fastest way to read a topic that librdkafka has: whole batches of each partition, counted and thrown away.

use std::time::Instant;

use anyhow::Result;

use super::queues::Queues;
use super::{Window, tuned};

/// Reads all records, or stops when the window has been seen: then it prints how many a second there were.
pub(super) fn run(topic: &str, records: u64, only_window: bool, beside: &[String]) -> Result<()> {
    let mut queues = Queues::new(tuned()?.create()?, topic, beside)?;
    let begun = Instant::now();
    let mut window = Window::new(records);
    let mut seen = 0;
    while seen < records {
        seen += queues.take(|message| {
            std::hint::black_box(message.value);
            Ok(())
        })?;
        if only_window && let Some(speed) = window.saw(begun.elapsed().as_secs_f64(), seen) {
            println!("{speed}");
            break;
        }
    }
    // Leaving in order is not what is measured.
    std::process::exit(0);
}
