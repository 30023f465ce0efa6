//! Whether a log still holds what was read before a position: offsets alone do not tell where it was truncated and
//! has grown since.
//!
//! The client asks the leader where the epoch ends of the last record that was read. It gives no record before the
//! answer, so what is not answered in time while an input is opened is answered while it reads.

use std::time::{Duration, Instant};

use lockgate_core::EndpointError;
use rdkafka::error::RDKafkaErrorCode as Code;

use super::native::Arrival;
use super::plan::Cut;
use super::position::{Epoch, Seek};
use super::source::{Lost, Part, Source};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// In which logs something else lies before the position. The client goes on to read the others.
///
/// # Errors
/// If the client does not ask.
pub(super) fn cuts(
    source: &mut Source,
    seek: &Seek,
    patience: Duration,
) -> Result<Vec<Cut>, EndpointError> {
    let mut asked = Vec::new();
    for (index, part) in source.parts.iter_mut().enumerate() {
        part.epoch = seek.epoch(part.topic(), part.number());
        asked.extend(part.epoch.map(|epoch| (index, epoch)));
    }
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let until = Instant::now() + patience;
    source.read_after(&asked, patience)?;
    let mut cuts = Vec::new();
    let mut waiting: Vec<usize> = asked.into_iter().map(|(index, _)| index).collect();
    loop {
        let mut unknown = Vec::new();
        for index in waiting {
            let part = &mut source.parts[index];
            match answer(part) {
                None => unknown.push(index),
                Some(Answer::Whole) => {}
                Some(Answer::Cut(common)) => {
                    part.lost = Some(Lost::Truncated);
                    let (topic, partition) = part.name();
                    cuts.push(Cut { topic, partition, common });
                    source.leave(index)?;
                }
            }
        }
        if unknown.is_empty() || Instant::now() >= until {
            return Ok(cuts);
        }
        waiting = unknown;
        std::thread::sleep(PAUSE);
    }
}

/// What the client has learned about the log of a partition.
enum Answer {
    Whole,
    Cut(Option<Epoch>),
}

/// `None` if there is no answer yet.
fn answer(part: &mut Part) -> Option<Answer> {
    if part.queue.is_used_up() {
        part.queue.take(1);
    }
    let cut = match part.queue.front()? {
        Arrival::Failed(Code::AutoOffsetReset, reason) => common_end(&reason),
        // Any other failure is told when the partition is read.
        _ => None,
    };
    Some(match cut {
        None => Answer::Whole,
        Some(common) => {
            part.queue.pop();
            Answer::Cut(common)
        }
    })
}

/// Where a log was cut, from what the library says about a position that it does not go on from; `None` if it was
/// not. That it was cut has no code of its own, nor have the numbers another way.
pub(super) fn common_end(reason: &str) -> Option<Option<Epoch>> {
    let is_cut = reason.contains("Partition log truncation detected");
    is_cut.then(|| {
        let (_, rest) = reason.split_once("broker end offset is ")?;
        let (end, rest) = rest.split_once(" (offset leader epoch ")?;
        let (number, _) = rest.split_once(')')?;
        let number = number.parse().ok().filter(|number| *number >= 0)?;
        Some(Epoch { number, end: end.parse().ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the words of the library.
    #[test]
    fn the_library_says_where_a_log_was_cut() {
        let cut = "Partition log truncation detected at offset 100 (leader epoch 3): broker end offset is 60 (offset \
                   leader epoch 1). Reset to INVALID.: Local: Partition log truncation detected (broker 2)";
        assert_eq!(common_end(cut), Some(Some(Epoch { number: 1, end: 60 })));
        let unknown = "No epoch found less or equal to offset 100 (leader epoch 3): broker end offset is -1 (offset \
                       leader epoch -1). Reset using configured policy.: Local: Partition log truncation detected \
                       (broker 2)";
        assert_eq!(common_end(unknown), Some(None));
        let beyond = "fetch failed due to requested offset not available on the broker: Broker: Offset out of range \
                      (broker 1)";
        assert_eq!(common_end(beyond), None);
    }
}
