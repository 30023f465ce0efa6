//! A record as its users see it, and the units in which records are counted.
//!
//! Not here: how records are stored ([`Batch`](crate::Batch)).

use std::fmt;

/// One ordered sequence of records: a file, or one partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition {
    /// The file's path or the topic's name, as the source knows it.
    pub source: String,
    /// The partition's number; `None` where the source has only one (a file).
    pub number: Option<u32>,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{}[{number}]", self.source),
            None => f.write_str(&self.source),
        }
    }
}

/// A borrowed view of one record; its bytes live in the batch's arena.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where the record comes from.
    pub partition: &'a Partition,
    /// Its place in the partition: a Kafka offset, or the byte at which it begins in a file.
    pub offset: u64,
    /// The first offset after it. For files the byte after the last one held of this record.
    pub end_offset: u64,
    /// When the record was made or stored, if the source says so.
    pub timestamp: Option<Timestamp>,
    /// The epoch of the partition's leader that stored the record, if the source has one (Kafka).
    pub leader_epoch: Option<i32>,
    /// The key; absent and empty differ.
    pub key: Option<&'a [u8]>,
    /// The value; absent (a tombstone) and empty differ.
    pub value: Option<&'a [u8]>,
    /// The headers in their order; names may repeat.
    pub headers: Headers<'a>,
}

/// A point in time, and who set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp {
    /// Milliseconds since the Unix epoch; may be negative.
    pub ms: i64,
    /// Who set it.
    pub kind: TimestampKind,
}

impl Timestamp {
    /// The time at which the record was made.
    pub fn created(ms: i64) -> Self {
        Self { ms, kind: TimestampKind::Create }
    }
}

/// Who set a [`Timestamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimestampKind {
    /// Whoever made the record.
    Create,
    /// The log, when it stored the record.
    LogAppend,
}

impl TimestampKind {
    /// Its name in what is written: `create` or `log_append`.
    pub fn name(self) -> &'static str {
        match self {
            TimestampKind::Create => "create",
            TimestampKind::LogAppend => "log_append",
        }
    }
}

/// One header of a record: bytes as they came, never decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name; may repeat within a record.
    pub name: &'a [u8],
    /// The value; absent and empty differ.
    pub value: Option<&'a [u8]>,
}

/// A slice of an arena; lengths of one arena fit 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    pub(crate) fn of(self, arena: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &arena[start..start + self.len as usize]
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderSpan {
    pub(crate) name: Span,
    pub(crate) value: Option<Span>,
}

/// The headers of one record, in order.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    pub(crate) arena: &'a [u8],
    pub(crate) spans: &'a [HeaderSpan],
}

impl<'a> Headers<'a> {
    /// How many headers there are, repeats included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The headers in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Header<'a>> + use<'a> {
        let arena = self.arena;
        self.spans.iter().map(move |span| Header {
            name: span.name.of(arena),
            value: span.value.map(|value| value.of(arena)),
        })
    }
}

/// An amount of buffered input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BufferSize {
    /// Number of records.
    pub records: u64,
    /// Their size in bytes as [`Batch::bytes`](crate::Batch::bytes) counts it.
    pub bytes: u64,
}

impl BufferSize {
    /// Both counts at zero.
    pub const ZERO: Self = Self { records: 0, bytes: 0 };

    /// The sum of both amounts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { records: self.records + other.records, bytes: self.bytes + other.bytes }
    }

    /// What is left after taking `other` out, or `None` if there is less than that.
    pub fn minus(self, other: Self) -> Option<Self> {
        Some(Self {
            records: self.records.checked_sub(other.records)?,
            bytes: self.bytes.checked_sub(other.bytes)?,
        })
    }
}

/// How much a reader may hold that has not been handed over yet. Both are hard bounds; a single record
/// larger than `max_queued_bytes` is the only thing that may be held beyond it, and then alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueueLimits {
    /// Largest number of buffered records.
    pub max_queued_records: u64,
    /// Largest number of buffered bytes.
    pub max_queued_bytes: u64,
}

impl QueueLimits {
    /// Whether `held` keeps both bounds.
    pub fn allow(&self, held: BufferSize) -> bool {
        held.records <= self.max_queued_records
            && (held.bytes <= self.max_queued_bytes || held.records == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_have_names() {
        let file = Partition { source: "in/a.log".into(), number: None };
        let topic = Partition { source: "orders".into(), number: Some(3) };
        assert_eq!(format!("{file} {topic}"), "in/a.log orders[3]");
    }

    #[test]
    fn amounts_add_up() {
        let size = |records, bytes| BufferSize { records, bytes };
        assert_eq!(size(1, 10).plus(size(2, 20)), size(3, 30));
        assert_eq!(size(3, 30).minus(size(1, 10)), Some(size(2, 20)));
        assert_eq!(size(3, 30).minus(size(4, 0)), None);
        assert_eq!(size(3, 30).minus(size(0, 31)), None);
    }

    #[test]
    fn both_limits_are_hard_but_for_one_record() {
        let limits = QueueLimits { max_queued_records: 2, max_queued_bytes: 10 };
        let allows = |records, bytes| limits.allow(BufferSize { records, bytes });
        assert!(allows(2, 10) && allows(1, 11));
        assert!(!allows(3, 3) && !allows(2, 11));
    }
}
