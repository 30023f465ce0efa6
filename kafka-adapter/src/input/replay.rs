//! Reads the ranges of journaled steps again.
//!
//! A step that follows on the one before is read without moving: what came after it stays taken. That the
//! records are the same is checked by count here and by hash where the steps are kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate_core::{Batch, EndpointError, InputConsumer};

use super::native::MAX_TAKEN;
use super::position::Range;
use super::source::Source;

/// Looks around at least so often, also when nothing wakes the thread.
const NAP: Duration = Duration::from_millis(500);

/// The records of a step; `None` if the reader was disconnected meanwhile.
///
/// # Errors
/// If a range cannot be read, or holds another number of records.
pub(super) fn replay(
    source: &mut Source,
    ranges: &[Range],
    consumer: &dyn InputConsumer,
    stop: &AtomicBool,
) -> Result<Option<Vec<Batch>>, EndpointError> {
    let mut places = Vec::new();
    for range in ranges {
        let index = source
            .find(&range.topic, range.partition)
            .ok_or_else(|| refuse(range, "the partition is not among those that are read"))?;
        if source.parts[index].lost.is_some() {
            return Err(refuse(range, "the log was truncated before them"));
        }
        if range.from < range.to {
            places.push((index, range.from));
        }
    }
    source.read_from(&places)?;
    let mut batches = Vec::new();
    for range in ranges.iter().filter(|range| range.from < range.to) {
        let index = source.find(&range.topic, range.partition).unwrap_or_default();
        let mut count = 0;
        while source.parts[index].position < range.to {
            if stop.load(Ordering::Acquire) {
                return Ok(None);
            }
            source.listen(consumer)?;
            let part = &mut source.parts[index];
            if part.queue.is_used_up() {
                part.queue.take(MAX_TAKEN);
            }
            let is_idle = part.queue.is_used_up();
            let copied = part.copy(Some(range.to), consumer, |_| true)?;
            count += copied.offsets.len() as u64;
            batches.extend(copied.batch);
            if let Some(end) = part.seen_end.filter(|_| part.position < range.to)
                && end == part.position
            {
                return Err(refuse(range, &format!("the log ends at {end} now")));
            }
            if is_idle && !source.parts[index].queue.is_raised() {
                std::thread::park_timeout(NAP);
            }
        }
        if count != range.count {
            let wanted = range.count;
            return Err(refuse(range, &format!("it holds {count} records now, not {wanted}")));
        }
    }
    Ok(Some(batches))
}

fn refuse(range: &Range, why: &str) -> EndpointError {
    let Range { topic, partition, from, to, count } = range;
    EndpointError::Data(format!(
        "{topic}[{partition}]: a journaled step consists of {count} records at offsets {from} to {to}, which \
         cannot be read again: {why}"
    ))
}
