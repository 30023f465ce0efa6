//! Where each partition is read from: what is wanted, held against what the log holds.
//!
//! Pure. A place that is no longer in the log is refused with numbers, never replaced by another one.

use std::collections::BTreeMap;

use lockgate_core::EndpointError;

use super::ask::Name;
use super::position::Seek;

/// What the log of a partition holds: the offsets from `first` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) first: u64,
    pub(super) end: u64,
}

/// A stored position, completed: partitions that it does not name appeared later and are read from their
/// beginning.
///
/// # Errors
/// If it names a partition that is not there, or an offset that is not in its log.
pub(super) fn resumed(stored: &Seek, logs: &BTreeMap<Name, Log>) -> Result<Seek, EndpointError> {
    for (topic, partition, offset) in stored.iter() {
        if !logs.contains_key(&(topic.to_owned(), partition)) {
            return Err(EndpointError::Data(format!(
                "the stored position is at offset {offset} of {topic}[{partition}], which is not among the \
                 partitions that are read: it was deleted, or the configuration no longer names it"
            )));
        }
    }
    at(logs, |topic, partition| stored.offset(topic, partition))
}

/// Refuses topics that are not the ones of a stored position: their offsets mean something else. `ids` are those
/// of the topics that are read, as far as the brokers say them.
///
/// # Errors
/// Names the first one.
pub(super) fn same_topics(
    stored: &Seek,
    ids: &BTreeMap<String, Option<String>>,
) -> Result<(), EndpointError> {
    for (topic, id) in &stored.ids {
        match ids.get(topic) {
            Some(Some(now)) if now != id => return Err(recreated(topic, id, now)),
            Some(None) => {
                return Err(EndpointError::Data(format!(
                    "topic {topic} had the id {id}, and the brokers do not say now which one it has: whether it \
                     is still the same one is not known"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A topic is another one than it was.
pub(super) fn recreated(topic: &str, before: &str, now: &str) -> EndpointError {
    EndpointError::Data(format!(
        "topic {topic} was deleted and made anew: its id is {now}, and the one that was read had {before}; its \
         offsets no longer mean the same records"
    ))
}

/// The offsets given by `wanted`, checked; the beginning where it gives none.
///
/// # Errors
/// If one is not in its log.
pub(super) fn at(
    logs: &BTreeMap<Name, Log>,
    wanted: impl Fn(&str, u32) -> Option<u64>,
) -> Result<Seek, EndpointError> {
    let mut seek = Seek::default();
    for ((topic, partition), log) in logs {
        let offset = wanted(topic, *partition).unwrap_or(log.first);
        check(topic, *partition, offset, *log)?;
        seek.set(topic, *partition, offset);
    }
    Ok(seek)
}

fn check(topic: &str, partition: u32, wanted: u64, log: Log) -> Result<(), EndpointError> {
    let Log { first, end } = log;
    let why = if wanted < first {
        let lost = first - wanted;
        format!("the first {lost} of them are no longer there and would be lost")
    } else if wanted > end {
        let beyond = wanted - end;
        format!("that is {beyond} beyond its end: it was truncated, or the topic was made anew")
    } else {
        return Ok(());
    };
    Err(EndpointError::Data(format!(
        "{topic}[{partition}] is wanted from offset {wanted} on, but its log holds the offsets from {first} to \
         {end}: {why}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(logs: &[(u32, u64, u64)]) -> BTreeMap<Name, Log> {
        let log = |(partition, first, end): &(u32, u64, u64)| {
            (("orders".to_owned(), *partition), Log { first: *first, end: *end })
        };
        logs.iter().map(log).collect()
    }

    fn stored(offsets: &[(u32, u64)]) -> Seek {
        let mut seek = Seek::default();
        offsets.iter().for_each(|(partition, offset)| seek.set("orders", *partition, *offset));
        seek
    }

    fn check_refused(offsets: &[(u32, u64)], expected: &[&str]) {
        let text = resumed(&stored(offsets), &logs(&[(0, 5, 9)])).unwrap_err().to_string();
        for part in expected {
            assert!(text.contains(part), "{text}");
        }
    }

    /// K10: partitions added while down were once read from their end.
    #[test]
    fn k10_a_partition_that_is_new_is_read_from_its_beginning() {
        let seek = resumed(&stored(&[(0, 7)]), &logs(&[(0, 5, 9), (1, 3, 4)])).unwrap();
        assert_eq!(seek, stored(&[(0, 7), (1, 3)]));
    }

    /// K11: a topic of the same name is not the same topic.
    #[test]
    fn k11_another_id_is_another_topic() {
        let ids = |id: Option<&str>| BTreeMap::from([("orders".into(), id.map(str::to_owned))]);
        let mut seek = stored(&[(0, 7)]);
        same_topics(&seek, &ids(Some("a"))).unwrap();
        seek.ids.insert("orders".into(), "a".into());
        same_topics(&seek, &ids(Some("a"))).unwrap();
        assert!(same_topics(&seek, &ids(Some("b"))).unwrap_err().to_string().contains("made anew"));
        assert!(same_topics(&seek, &ids(None)).unwrap_err().to_string().contains("id a"));
    }

    #[test]
    fn k12_k13_what_is_not_in_the_log_is_refused_with_numbers() {
        check_refused(&[(0, 2)], &["orders[0]", "offset 2", "from 5 to 9", "first 3"]);
        check_refused(&[(0, 12)], &["offset 12", "from 5 to 9", "3 beyond its end"]);
        check_refused(&[(0, 5), (3, 1)], &["orders[3]"]);
        resumed(&stored(&[(0, 5)]), &logs(&[(0, 5, 9)])).unwrap();
        resumed(&stored(&[(0, 9)]), &logs(&[(0, 5, 9)])).unwrap();
    }
}
