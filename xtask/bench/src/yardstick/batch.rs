//! The fastest way to read a topic that librdkafka has: whole batches of each partition, counted and thrown away.

use std::time::Instant;

use anyhow::Result;

use super::queues::Queues;
use super::tuned;

/// The parts of the records between which the time is taken that is printed, so that connecting does not count.
pub(crate) const FROM: f64 = 0.1;
/// See [`FROM`].
pub(crate) const TO: f64 = 0.85;

/// Prints how many records a second there were in the middle.
pub(super) fn run(topic: &str, records: u64, beside: &[String]) -> Result<()> {
    let mut queues = Queues::new(tuned()?.create()?, topic, beside)?;
    let part = |part: f64| (records as f64 * part) as u64;
    let (mut from, mut to) = (None, None);
    let mut seen = 0;
    while seen < records {
        seen += queues.take(|message| {
            std::hint::black_box(message.value);
            Ok(())
        })?;
        if from.is_none() && seen >= part(FROM) {
            from = Some((Instant::now(), seen));
        }
        if to.is_none() && seen >= part(TO) {
            to = Some((Instant::now(), seen));
        }
    }
    if let (Some((begun, before)), Some((ended, after))) = (from, to) {
        println!("{}", (after - before) as f64 / (ended - begun).as_secs_f64());
    }
    // Leaving in order is not what is measured.
    std::process::exit(0);
}
