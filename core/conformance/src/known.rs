//! The known data: what the source holds, as far as whoever tests the reader knows it.

use std::fmt;

use lockgate_core::{Partition, Record, Timestamp, TimestampKind};

/// A record that the source holds. Its partition and its value are always known; an offset, a timestamp,
/// a key and headers are compared only if they are stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub(crate) partition: Partition,
    value: Option<Vec<u8>>,
    offset: Option<u64>,
    timestamp: Option<Option<Timestamp>>,
    key: Option<Option<Vec<u8>>>,
    headers: Option<Vec<OwnedHeader>>,
}

type OwnedHeader = (Vec<u8>, Option<Vec<u8>>);

impl Known {
    /// A record with this value in the only partition of `source`.
    pub fn new(source: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        let mut known = Self::without_value(source);
        known.value = Some(value.into());
        known
    }

    /// A record whose value is absent, which is not the same as empty.
    pub fn without_value(source: impl Into<String>) -> Self {
        let partition = Partition { source: source.into(), number: None };
        Self { partition, value: None, offset: None, timestamp: None, key: None, headers: None }
    }

    /// The number of its partition.
    #[must_use]
    pub fn partition(mut self, number: u32) -> Self {
        self.partition.number = Some(number);
        self
    }

    /// Its offset.
    #[must_use]
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Its timestamp, or that it has none.
    #[must_use]
    pub fn timestamp(mut self, timestamp: Option<Timestamp>) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// Its key, or that it has none.
    #[must_use]
    pub fn key(mut self, key: Option<&[u8]>) -> Self {
        self.key = Some(key.map(<[u8]>::to_vec));
        self
    }

    /// All its headers, in order: names and values.
    #[must_use]
    pub fn headers<'a>(
        mut self,
        headers: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    ) -> Self {
        let owned =
            |(name, value): (&[u8], Option<&[u8]>)| (name.to_vec(), value.map(<[u8]>::to_vec));
        self.headers = Some(headers.into_iter().map(owned).collect());
        self
    }

    /// How many bytes of it are known.
    pub(crate) fn bytes(&self) -> u64 {
        let value = self.value.as_ref().map_or(0, Vec::len);
        let key = self.key.iter().flatten().map(Vec::len).sum::<usize>();
        (value + key) as u64
    }

    /// Whether `seen` is this record, as far as it is known.
    pub(crate) fn is(&self, seen: &Seen) -> bool {
        self.partition == seen.partition
            && self.value == seen.value
            && self.offset.is_none_or(|offset| offset == seen.offset)
            && self.timestamp.is_none_or(|timestamp| timestamp == seen.timestamp)
            && self.key.as_ref().is_none_or(|key| *key == seen.key)
            && self.headers.as_ref().is_none_or(|headers| *headers == seen.headers)
    }
}

fn write_timestamp(f: &mut fmt::Formatter<'_>, timestamp: Timestamp) -> fmt::Result {
    match timestamp.kind {
        TimestampKind::Create => write!(f, ", {} ms", timestamp.ms),
        TimestampKind::LogAppend => write!(f, ", {} ms by the log", timestamp.ms),
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.partition)?;
        if let Some(offset) = self.offset {
            write!(f, " at {offset}")?;
        }
        if let Some(Some(timestamp)) = self.timestamp {
            write_timestamp(f, timestamp)?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key {}", Field(key.as_deref()))?;
        }
        write!(f, ", value {}", Field(self.value.as_deref()))?;
        write_headers(f, self.headers.as_deref().unwrap_or_default())
    }
}

/// A record that was handed over, copied: the reader may need its arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) partition: Partition,
    offset: u64,
    timestamp: Option<Timestamp>,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<OwnedHeader>,
}

impl Seen {
    pub(crate) fn of(record: &Record<'_>) -> Self {
        let headers = record.headers.iter();
        let headers =
            headers.map(|header| (header.name.to_vec(), header.value.map(<[u8]>::to_vec)));
        Self {
            partition: record.partition.clone(),
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: headers.collect(),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.partition, self.offset)?;
        if let Some(timestamp) = self.timestamp {
            write_timestamp(f, timestamp)?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key {}", Field(Some(key)))?;
        }
        write!(f, ", value {}", Field(self.value.as_deref()))?;
        write_headers(f, &self.headers)
    }
}

fn write_headers(f: &mut fmt::Formatter<'_>, headers: &[OwnedHeader]) -> fmt::Result {
    for (name, value) in headers {
        write!(f, ", header {}: {}", Field(Some(name)), Field(value.as_deref()))?;
    }
    Ok(())
}

/// The beginning of a field, readable whatever its bytes.
struct Field<'a>(Option<&'a [u8]>);

/// More of a field would hide the rest of the line.
const SHOWN_BYTES: usize = 40;

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("absent"),
            Some(bytes) if bytes.len() <= SHOWN_BYTES => write!(f, "\"{}\"", bytes.escape_ascii()),
            Some(bytes) => {
                let shown = bytes[..SHOWN_BYTES].escape_ascii();
                write!(f, "\"{shown}\"... of {} bytes", bytes.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use lockgate_core::{BatchBuilder, Header, NewRecord};

    fn seen() -> Seen {
        let partition = Partition { source: "orders".into(), number: Some(2) };
        let mut batch = BatchBuilder::new(Arc::new(partition));
        let headers = [Header { name: b"a", value: None }, Header { name: b"a", value: Some(b"") }];
        let (key, value) = (Some(&b"key"[..]), Some(&b"\0value"[..]));
        let timestamp = Some(Timestamp::created(-1));
        let (offset, headers) = (7, &headers[..]);
        let record = NewRecord { offset, timestamp, key, value, headers, ..NewRecord::default() };
        batch.push(record).unwrap();
        let batch = batch.build();
        batch.iter().map(|record| Seen::of(&record)).next().unwrap()
    }

    #[test]
    fn what_is_stated_is_compared_and_nothing_else() {
        let known = Known::new("orders", "\0value").partition(2);
        let headers: [(&[u8], Option<&[u8]>); 2] = [(b"a", None), (b"a", Some(b""))];
        let fits = [
            known.clone(),
            known.clone().offset(7),
            known.clone().timestamp(Some(Timestamp::created(-1))),
            known.clone().key(Some(b"key")),
            known.clone().headers(headers),
        ];
        for known in fits {
            assert!(known.is(&seen()), "{known}");
        }
        let differs = [
            Known::new("orders", "\0value"),
            Known::new("other", "\0value").partition(2),
            Known::new("orders", "").partition(2),
            Known::without_value("orders").partition(2),
            known.clone().offset(8),
            known.clone().timestamp(None),
            known.clone().key(None),
            known.clone().headers([]),
            known.headers([headers[1], headers[0]]),
        ];
        for known in differs {
            assert!(!known.is(&seen()), "{known}");
        }
    }

    #[test]
    fn records_can_be_read_by_people() {
        let text = seen().to_string();
        let expected = "orders[2] at 7, -1 ms, key \"key\", value \"\\x00value\", header \"a\": absent, \
                        header \"a\": \"\"";
        assert_eq!(text, expected);
        let long = Known::new("orders", vec![b'x'; 1000]).to_string();
        assert!(long.ends_with("xxx\"... of 1000 bytes"), "{long}");
    }
}
