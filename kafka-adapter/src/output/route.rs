//! Where a record goes, and with which headers.
//!
//! Pure. Not here: whether the topic exists.

use std::str;

use lockgate_core::Record;
use rdkafka::message::{Header, OwnedHeaders};

use super::refusal::Refused;
use crate::config::{KafkaOutputConfig, Kept, PartitionChoice, TimestampChoice, TopicChoice};

/// Longest name that a topic may have.
const MAX_NAME: usize = 249;

/// The topic of a record.
///
/// # Errors
/// Why there is none.
pub(super) fn topic<'a>(choice: &'a TopicChoice, record: &Record<'a>) -> Result<&'a str, Refused> {
    let refused = |reason: String| Refused { topic: None, reason };
    let name = match choice {
        TopicChoice::Fixed(name) => return Ok(name),
        TopicChoice::FromRecord { header: None, .. } => record.partition.source.as_str(),
        TopicChoice::FromRecord { header: Some(wanted), .. } => {
            let found = record.headers.iter().find(|header| header.name == wanted.as_bytes());
            let Some(value) = found.and_then(|header| header.value) else {
                return Err(refused(format!("it has no header `{wanted}` that names one")));
            };
            str::from_utf8(value)
                .map_err(|_| refused(format!("its header `{wanted}` is no topic's name")))?
        }
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(fits)
        && name != "."
        && name != "..";
    if is_name { Ok(name) } else { Err(refused("what names its topic is no topic's name".into())) }
}

/// The partition of a record; `None`: by its key.
pub(super) fn partition(choice: PartitionChoice, record: &Record<'_>) -> Option<u32> {
    match choice {
        PartitionChoice::ByKey => None,
        PartitionChoice::Kept => Some(record.partition.number.unwrap_or(0)),
    }
}

/// The timestamp of a record, in milliseconds; `None`: the time of writing, which the client library also takes for
/// the timestamp 0.
pub(super) fn timestamp(config: &KafkaOutputConfig, record: &Record<'_>) -> Option<i64> {
    match config.timestamp {
        TimestampChoice::Kept => record.timestamp.map(|timestamp| timestamp.ms),
        TimestampChoice::Now => None,
    }
}

/// The headers of a record as the client takes them.
///
/// # Errors
/// Why they cannot be written.
pub(super) fn headers(kept: Kept, record: &Record<'_>) -> Result<Option<OwnedHeaders>, String> {
    if kept == Kept::Dropped || record.headers.is_empty() {
        return Ok(None);
    }
    let mut all = OwnedHeaders::new_with_capacity(record.headers.len());
    for header in record.headers.iter() {
        let key = name(header.name).ok_or_else(|| {
            "the name of one of its headers is not UTF-8 or has a zero byte".to_owned()
        })?;
        all = all.insert(Header { key, value: header.value });
    }
    Ok(Some(all))
}

/// The headers of a record in the dead letter topic: its own as far as they can be written, and why it is there.
pub(super) fn dead_letter_headers(reason: &str, record: &Record<'_>) -> OwnedHeaders {
    let mut all = OwnedHeaders::new_with_capacity(record.headers.len() + 3);
    for header in record.headers.iter() {
        if let Some(key) = name(header.name) {
            all = all.insert(Header { key, value: header.value });
        }
    }
    for (key, value) in [
        ("lockgate.reason", reason.to_owned()),
        ("lockgate.source", record.partition.to_string()),
        ("lockgate.offset", record.offset.to_string()),
    ] {
        all = all.insert(Header { key, value: Some(value.as_bytes()) });
    }
    all
}

/// A header's name as the protocol can carry it.
fn name(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok().filter(|name| !name.contains('\0'))
}

#[cfg(test)]
mod tests {
    use lockgate_core::{Batch, BatchBuilder, Header as CoreHeader, NewRecord, Partition};
    use rdkafka::message::Headers;

    use super::*;

    fn batch(source: &str, headers: &[CoreHeader<'_>]) -> Batch {
        let partition = Partition { source: source.into(), number: Some(2) };
        let mut builder = BatchBuilder::new(partition.into());
        builder.push(NewRecord { offset: 9, headers, ..NewRecord::default() }).unwrap();
        builder.build()
    }

    fn check(
        header: Option<&str>,
        source: &str,
        headers: &[CoreHeader<'_>],
        expected: Result<&str, &str>,
    ) {
        let choice =
            TopicChoice::FromRecord { header: header.map(str::to_owned), position_topic: None };
        let batch = batch(source, headers);
        let record = batch.iter().next().unwrap();
        match (topic(&choice, &record), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(refused), Err(text)) => assert!(refused.reason.contains(text), "{refused:?}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_topic_comes_from_the_source_or_from_a_header() {
        let named = |value| [CoreHeader { name: b"to", value }];
        check(None, "in", &[], Ok("in"));
        check(None, "in/a.log", &[], Err("no topic's name"));
        check(Some("to"), "in", &named(Some(b"out")), Ok("out"));
        check(Some("to"), "in", &named(None), Err("no header `to`"));
        check(Some("to"), "in", &[], Err("no header `to`"));
        check(Some("to"), "in", &named(Some(b"\xff")), Err("no topic's name"));
        check(Some("to"), "in", &named(Some(b"..")), Err("no topic's name"));
    }

    #[test]
    fn headers_keep_order_repeats_and_nulls() {
        let headers = [
            CoreHeader { name: b"a", value: Some(b"\xff\0") },
            CoreHeader { name: b"a", value: None },
            CoreHeader { name: b"", value: Some(b"") },
        ];
        let batch = batch("in", &headers);
        let record = batch.iter().next().unwrap();
        let owned = super::headers(Kept::Kept, &record).unwrap().unwrap();
        let found: Vec<_> = owned
            .iter()
            .map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)))
            .collect();
        let expected = [
            ("a".to_owned(), Some(vec![0xff, 0])),
            ("a".to_owned(), None),
            (String::new(), Some(vec![])),
        ];
        assert_eq!(found, expected);
        assert!(super::headers(Kept::Dropped, &record).unwrap().is_none());
    }

    #[test]
    fn a_name_that_cannot_be_written_is_refused_but_a_dead_letter_goes_without_it() {
        for name in [&b"\xff"[..], b"a\0b"] {
            let batch = batch("in", &[CoreHeader { name, value: None }]);
            let record = batch.iter().next().unwrap();
            assert!(super::headers(Kept::Kept, &record).unwrap_err().contains("headers"));
            let dead = dead_letter_headers("why", &record);
            let found: Vec<_> = dead.iter().map(|header| header.key.to_owned()).collect();
            assert_eq!(found, ["lockgate.reason", "lockgate.source", "lockgate.offset"]);
            assert_eq!(dead.get(1).value, Some(&b"in[2]"[..]));
        }
    }
}
