//! Batches: many records in one shared arena of bytes with a compact index into it.
//!
//! Two layouts serve all sources. *Spans* are records that adjoin in the source (lines of a file): the
//! block that was read is the arena and the index is one `u32` per record. *Rows* are records with
//! fields of their own (Kafka): each was copied once into the arena. Cutting a batch in two costs O(1)
//! and copies nothing.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::record::{BufferSize, Header, HeaderSpan, Headers, Partition, Record, Span, Timestamp};

/// How a record's value lies inside its span of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The value is followed by `\n` or `\r\n`; the last record of a file may lack it.
    Lines,
    /// The value follows its length, four bytes, big endian.
    Length32,
}

impl Framing {
    fn value(self, span: &[u8]) -> &[u8] {
        match self {
            Framing::Lines => match span {
                [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
                line => line,
            },
            Framing::Length32 => span.get(4..).unwrap_or_default(),
        }
    }
}

/// Records of one partition, in order, sharing one arena. Cloning and splitting are O(1).
#[derive(Clone)]
pub struct Batch {
    partition: Arc<Partition>,
    arena: Bytes,
    layout: Layout,
    range: Range<usize>,
}

/// What it is about; never the records themselves, which may be large or secret.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} records of {} from {:?})", self.len(), self.partition, self.offset())
    }
}

#[derive(Clone)]
enum Layout {
    Spans(Spans),
    Rows { rows: Arc<Vec<Row>>, headers: Arc<Vec<HeaderSpan>> },
}

/// Record `i` occupies the arena from the end of record `i - 1` (or `start`) to `ends[i]`.
#[derive(Clone)]
struct Spans {
    framing: Framing,
    /// The source's offset of the arena's first byte.
    base_offset: u64,
    start: u32,
    ends: Arc<Vec<u32>>,
}

impl Spans {
    fn start_of(&self, i: usize) -> u32 {
        if i == 0 { self.start } else { self.ends[i - 1] }
    }
}

#[derive(Clone, Debug)]
struct Row {
    offset: u64,
    timestamp: Option<Timestamp>,
    leader_epoch: Option<i32>,
    /// Everything of this record in the arena lies before this.
    arena_end: u32,
    key: Option<Span>,
    value: Option<Span>,
    headers: Range<u32>,
}

/// Number of records in `batches`.
pub fn count(batches: &[Batch]) -> u64 {
    batches.iter().map(|batch| batch.len() as u64).sum()
}

/// Records and bytes in `batches`, each as [`Batch::size`] counts them.
pub fn size(batches: &[Batch]) -> BufferSize {
    batches.iter().map(Batch::size).fold(BufferSize::ZERO, BufferSize::plus)
}

impl Batch {
    /// Records that adjoin in their source, in place in the block that was read.
    ///
    /// `base_offset` is the source's offset of `arena[0]`, `start` the place in the arena where the
    /// first record begins, `ends` the places where each record ends (its framing included), rising.
    ///
    /// # Panics
    /// If `ends` does not rise from `start` within the arena.
    pub fn adjoining(
        partition: Arc<Partition>,
        framing: Framing,
        arena: Bytes,
        base_offset: u64,
        start: u32,
        ends: Vec<u32>,
    ) -> Self {
        debug_assert!(ends.is_sorted(), "record ends must rise");
        assert!(
            ends.first().is_none_or(|first| *first >= start)
                && ends.last().is_none_or(|last| *last as usize <= arena.len()),
            "record ends must lie in the arena"
        );
        let range = 0..ends.len();
        let ends = Arc::new(ends);
        let layout = Layout::Spans(Spans { framing, base_offset, start, ends });
        Self { partition, arena, layout, range }
    }

    /// Where the records come from.
    pub fn partition(&self) -> &Arc<Partition> {
        &self.partition
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Size in bytes: keys, values, headers and framing, without the index.
    pub fn bytes(&self) -> u64 {
        self.arena_range().len() as u64
    }

    /// Records and bytes together.
    pub fn size(&self) -> BufferSize {
        BufferSize { records: self.len() as u64, bytes: self.bytes() }
    }

    /// The first record's offset, `None` when empty.
    pub fn offset(&self) -> Option<u64> {
        self.iter().next().map(|record| record.offset)
    }

    /// The first offset after the last record, `None` when empty.
    pub fn end_offset(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.record(self.range.end - 1).end_offset)
    }

    /// The records in order.
    pub fn iter(&self) -> Records<'_> {
        Records { batch: self, range: self.range.clone() }
    }

    /// Takes the first `n` records out (all of them if there are fewer); `self` keeps the rest.
    #[must_use]
    pub fn take_front(&mut self, n: usize) -> Batch {
        let mut front = self.clone();
        let cut = self.range.start + n.min(self.len());
        front.range.end = cut;
        self.range.start = cut;
        front
    }

    /// The longest front of at most `max_bytes`, in records.
    pub fn records_within(&self, max_bytes: u64) -> usize {
        let start = self.arena_range().start as u64;
        let within = |end: u32| u64::from(end) - start <= max_bytes;
        match &self.layout {
            Layout::Spans(spans) => {
                spans.ends[self.range.clone()].partition_point(|end| within(*end))
            }
            Layout::Rows { rows, .. } => {
                rows[self.range.clone()].partition_point(|row| within(row.arena_end))
            }
        }
    }

    /// The framed bytes of all records, in one piece, and their framing, where they adjoin in the source.
    pub fn framed(&self) -> Option<(Framing, &[u8])> {
        match &self.layout {
            Layout::Spans(spans) => Some((spans.framing, &self.arena[self.arena_range()])),
            Layout::Rows { .. } => None,
        }
    }

    fn arena_range(&self) -> Range<usize> {
        if self.range.is_empty() {
            return 0..0;
        }
        let (first, last) = (self.range.start, self.range.end - 1);
        match &self.layout {
            Layout::Spans(spans) => spans.start_of(first) as usize..spans.ends[last] as usize,
            Layout::Rows { rows, .. } => {
                let start = if first == 0 { 0 } else { rows[first - 1].arena_end };
                start as usize..rows[last].arena_end as usize
            }
        }
    }

    fn record(&self, i: usize) -> Record<'_> {
        match &self.layout {
            Layout::Spans(spans) => {
                let (start, end) = (spans.start_of(i), spans.ends[i]);
                Record {
                    partition: &self.partition,
                    offset: spans.base_offset + u64::from(start),
                    end_offset: spans.base_offset + u64::from(end),
                    timestamp: None,
                    leader_epoch: None,
                    key: None,
                    value: Some(spans.framing.value(&self.arena[start as usize..end as usize])),
                    headers: Headers { arena: &[], spans: &[] },
                }
            }
            Layout::Rows { rows, headers } => {
                let row = &rows[i];
                let spans = &headers[row.headers.start as usize..row.headers.end as usize];
                Record {
                    partition: &self.partition,
                    offset: row.offset,
                    end_offset: row.offset + 1,
                    timestamp: row.timestamp,
                    leader_epoch: row.leader_epoch,
                    key: row.key.map(|key| key.of(&self.arena)),
                    value: row.value.map(|value| value.of(&self.arena)),
                    headers: Headers { arena: &self.arena, spans },
                }
            }
        }
    }
}

/// Iterator over the records of a batch.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    batch: &'a Batch,
    range: Range<usize>,
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        self.range.next().map(|i| self.batch.record(i))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl<'a> DoubleEndedIterator for Records<'a> {
    fn next_back(&mut self) -> Option<Record<'a>> {
        self.range.next_back().map(|i| self.batch.record(i))
    }
}

impl ExactSizeIterator for Records<'_> {}

/// A record to be copied into a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewRecord<'a> {
    /// Its offset; must be above that of the record before it.
    pub offset: u64,
    /// When it was made or stored.
    pub timestamp: Option<Timestamp>,
    /// The epoch of the partition's leader that stored it.
    pub leader_epoch: Option<i32>,
    /// The key; absent and empty differ.
    pub key: Option<&'a [u8]>,
    /// The value; absent and empty differ.
    pub value: Option<&'a [u8]>,
    /// The headers in order.
    pub headers: &'a [Header<'a>],
}

/// The arena of a batch holds at most 4 GiB; start another batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a batch holds at most 4 GiB; start another one")]
pub struct ArenaFull;

/// Copies records, once each, into the arena of a new batch.
#[derive(Debug)]
pub struct BatchBuilder {
    partition: Arc<Partition>,
    arena: Vec<u8>,
    rows: Vec<Row>,
    headers: Vec<HeaderSpan>,
}

impl BatchBuilder {
    /// An empty batch of `partition`.
    pub fn new(partition: Arc<Partition>) -> Self {
        Self { partition, arena: Vec::new(), rows: Vec::new(), headers: Vec::new() }
    }

    /// Number of records so far.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends a record.
    ///
    /// # Errors
    /// [`ArenaFull`] if it does not fit; the batch is as before.
    pub fn push(&mut self, record: NewRecord<'_>) -> Result<(), ArenaFull> {
        let fields = record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
        let headers: usize = (record.headers.iter())
            .map(|header| header.name.len() + header.value.map_or(0, <[u8]>::len))
            .sum();
        u32::try_from(self.arena.len() + fields + headers).map_err(|_| ArenaFull)?;

        let first_header = self.headers.len() as u32;
        let key = record.key.map(|key| self.copy(key));
        let value = record.value.map(|value| self.copy(value));
        for header in record.headers {
            let name = self.copy(header.name);
            let value = header.value.map(|value| self.copy(value));
            self.headers.push(HeaderSpan { name, value });
        }
        self.rows.push(Row {
            offset: record.offset,
            timestamp: record.timestamp,
            leader_epoch: record.leader_epoch,
            arena_end: self.arena.len() as u32,
            key,
            value,
            headers: first_header..self.headers.len() as u32,
        });
        Ok(())
    }

    /// The finished batch.
    pub fn build(self) -> Batch {
        Batch {
            partition: self.partition,
            arena: self.arena.into(),
            range: 0..self.rows.len(),
            layout: Layout::Rows { rows: Arc::new(self.rows), headers: Arc::new(self.headers) },
        }
    }

    fn copy(&mut self, bytes: &[u8]) -> Span {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(bytes);
        Span { start, len: bytes.len() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file() -> Arc<Partition> {
        Arc::new(Partition { source: "in/a.log".into(), number: None })
    }

    fn lines(text: &'static [u8]) -> Batch {
        let ends = text.split_inclusive(|byte| *byte == b'\n').scan(0, |end, line| {
            *end += line.len() as u32;
            Some(*end)
        });
        let ends = ends.collect();
        Batch::adjoining(file(), Framing::Lines, Bytes::from_static(text), 100, 0, ends)
    }

    fn values(batch: &Batch) -> Vec<Option<&[u8]>> {
        batch.iter().map(|record| record.value).collect()
    }

    #[test]
    fn lines_lose_their_framing_only() {
        let batch = lines(b"a\r\n\n\r\r\n\0\xff");
        assert_eq!(values(&batch), [Some(&b"a"[..]), Some(b""), Some(b"\r"), Some(b"\0\xff")]);
        assert_eq!(batch.offset(), Some(100));
        assert_eq!(batch.end_offset(), Some(109));
    }

    #[test]
    fn null_and_empty_differ_and_headers_repeat() {
        let topic = Arc::new(Partition { source: "orders".into(), number: Some(3) });
        let mut builder = BatchBuilder::new(topic);
        let headers = [
            Header { name: b"h", value: None },
            Header { name: b"h", value: Some(b"") },
            Header { name: b"\xff", value: Some(b"\xfe") },
        ];
        builder.push(NewRecord { offset: 4, key: Some(b""), ..Default::default() }).unwrap();
        let full =
            NewRecord { offset: 9, value: Some(b""), headers: &headers, ..Default::default() };
        builder.push(full).unwrap();
        let batch = builder.build();
        let records: Vec<_> = batch.iter().collect();
        assert_eq!((records[0].key, records[0].value), (Some(&b""[..]), None));
        assert_eq!((records[1].key, records[1].value), (None, Some(&b""[..])));
        assert!(records[0].headers.is_empty() && !records[1].headers.is_empty());
        assert_eq!(records[1].headers.len(), 3);
        assert_eq!(records[1].headers.iter().collect::<Vec<_>>(), headers);
        assert_eq!(batch.end_offset(), Some(10));
    }

    fn rows(values: &[&[u8]]) -> Batch {
        let mut builder = BatchBuilder::new(file());
        assert!(builder.is_empty());
        for (offset, value) in (0..).zip(values) {
            builder.push(NewRecord { offset, value: Some(value), ..NewRecord::default() }).unwrap();
            assert_eq!((builder.len() as u64, builder.is_empty()), (offset + 1, false));
        }
        builder.build()
    }

    #[test]
    fn sizes_follow_what_is_taken() {
        for mut batch in [lines(b"a\nbb\nccc\n"), rows(&[b"a\n", b"bb\n", b"ccc\n"])] {
            assert_eq!(batch.size(), BufferSize { records: 3, bytes: 9 });
            assert_eq!((batch.iter().len(), batch.iter().size_hint()), (3, (3, Some(3))));
            let front = batch.take_front(1);
            assert_eq!((front.bytes(), batch.bytes()), (2, 7));
            let middle = batch.take_front(1);
            assert_eq!((middle.bytes(), batch.bytes()), (3, 4));
            assert_eq!(count(&[front, middle.clone(), batch.clone()]), 3);
            assert_eq!((middle.records_within(2), middle.records_within(3)), (0, 1));
            assert!(!batch.is_empty());
            let _ = batch.take_front(9);
            assert!(batch.is_empty());
            assert_eq!((batch.size(), batch.offset(), batch.end_offset()), Default::default());
        }
    }

    #[test]
    fn what_adjoins_is_one_piece() {
        let mut batch = lines(b"a\nbb\nccc\n");
        let _ = batch.take_front(1);
        assert_eq!(batch.framed(), Some((Framing::Lines, &b"bb\nccc\n"[..])));
        assert_eq!(rows(&[b"a"]).framed(), None);
    }

    /// The length is checked before anything is copied.
    #[test]
    fn an_arena_holds_4_gib() {
        let huge = vec![0; u32::MAX as usize + 1];
        let mut builder = BatchBuilder::new(file());
        let value = NewRecord { value: Some(&huge), ..NewRecord::default() };
        assert_eq!(builder.push(value), Err(ArenaFull));
        let half = &huge[..huge.len() / 2];
        let both = NewRecord { key: Some(half), value: Some(half), ..NewRecord::default() };
        assert_eq!(builder.push(both), Err(ArenaFull));
        let header = [Header { name: half, value: Some(half) }];
        let header = NewRecord { headers: &header, ..NewRecord::default() };
        assert_eq!(builder.push(header), Err(ArenaFull));
        assert!(builder.is_empty());
    }

    proptest! {
        /// Taking part of a queued buffer once lost its rest: any split is the concatenation.
        #[test]
        fn any_split_is_the_whole(cuts in proptest::collection::vec(0usize..5, 0..12)) {
            let whole = lines(b"one\ntwo\nthree\n\nfive\r\nsix");
            let mut rest = whole.clone();
            let mut pieces: Vec<Batch> = cuts.iter().map(|n| rest.take_front(*n)).collect();
            pieces.push(rest);
            let joined: Vec<_> = pieces.iter().flat_map(values).collect();
            prop_assert_eq!(joined, values(&whole));
            prop_assert_eq!(pieces.iter().map(Batch::bytes).sum::<u64>(), whole.bytes());
        }

        #[test]
        fn records_within_is_the_longest_front(max in 0u64..40, skip in 0usize..4) {
            let mut batch = lines(b"one\ntwo\nthree\n\nfive\r\nsix");
            let _ = batch.take_front(skip);
            let n = batch.records_within(max);
            let size = |n| batch.clone().take_front(n).bytes();
            prop_assert!(size(n) <= max);
            prop_assert!(n == batch.len() || size(n + 1) > max);
        }
    }
}
