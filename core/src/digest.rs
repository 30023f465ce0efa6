//! The hash of one input's part of a step.
//!
//! xxh3 (64 bit) over the records' content and positions. It depends on the records alone, not on the
//! batches they came in: whatever adjoins in the source is one run, however it was cut. For a file a run
//! is hashed as it lies in memory, at the speed of xxh3 over large blocks.

use std::hash::Hasher;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::batch::{Batch, Framing};
use crate::record::{Partition, Record, TimestampKind};

/// How many small pieces are gathered before they are hashed.
const SMALL_BYTES: usize = 4096;

/// Count and hash of one input's part of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartDigest {
    /// Number of records.
    pub records: u64,
    /// xxh3 over their content and positions.
    pub hash: u64,
}

impl PartDigest {
    /// The digest of `batches` taken as one sequence.
    pub fn of(batches: &[Batch]) -> Self {
        let mut hasher = PartHasher::default();
        batches.iter().for_each(|batch| hasher.update(batch));
        hasher.finish()
    }
}

/// Computes a [`PartDigest`] batch by batch.
#[derive(Default)]
pub struct PartHasher {
    state: XxHash3_64,
    /// Small pieces, gathered because a call of the hash costs more than a short copy.
    small: Vec<u8>,
    records: u64,
    /// The run that the next record may continue.
    run: Option<Run>,
}

struct Run {
    partition: Arc<Partition>,
    /// `None` for rows, which carry their own offsets.
    spans: Option<SpanRun>,
}

struct SpanRun {
    framing: Framing,
    start: u64,
    end: u64,
}

impl PartHasher {
    /// Adds the records of `batch`.
    pub fn update(&mut self, batch: &Batch) {
        let Some(offset) = batch.offset() else { return };
        self.records += batch.len() as u64;
        match batch.framed() {
            Some((framing, bytes)) => {
                self.continue_spans(batch.partition(), framing, offset, bytes.len() as u64);
                self.feed(bytes);
            }
            None => {
                self.continue_rows(batch.partition());
                batch.iter().for_each(|record| self.row(&record));
            }
        }
    }

    /// The digest of everything added.
    pub fn finish(mut self) -> PartDigest {
        self.end_run();
        self.feed(&self.records.to_le_bytes());
        self.flush();
        PartDigest { records: self.records, hash: self.state.finish() }
    }

    fn continue_spans(&mut self, partition: &Arc<Partition>, framing: Framing, at: u64, len: u64) {
        if let Some(Run { partition: current, spans: Some(run) }) = &mut self.run
            && run.end == at
            && run.framing == framing
            && same(current, partition)
        {
            run.end += len;
            return;
        }
        let tag = match framing {
            Framing::Lines => 1,
            Framing::Length32 => 2,
        };
        self.begin_run(partition, tag);
        self.feed(&at.to_le_bytes());
        let spans = Some(SpanRun { framing, start: at, end: at + len });
        self.run = Some(Run { partition: partition.clone(), spans });
    }

    fn continue_rows(&mut self, partition: &Arc<Partition>) {
        if let Some(Run { partition: current, spans: None }) = &self.run
            && same(current, partition)
        {
            return;
        }
        self.begin_run(partition, 3);
        self.run = Some(Run { partition: partition.clone(), spans: None });
    }

    fn begin_run(&mut self, partition: &Partition, tag: u8) {
        self.end_run();
        self.feed(&[tag]);
        self.field(Some(partition.source.as_bytes()));
        self.feed(&partition.number.map_or(u64::MAX, u64::from).to_le_bytes());
    }

    fn end_run(&mut self) {
        if let Some(Run { spans: Some(run), .. }) = self.run.take() {
            self.feed(&(run.end - run.start).to_le_bytes());
        }
    }

    fn row(&mut self, record: &Record<'_>) {
        // All that has the same size for every record at once.
        let mut head = [0; 25];
        head[..8].copy_from_slice(&record.offset.to_le_bytes());
        // Not the leader epoch: it belongs to the cluster that stored the record, not to the record.
        head[8] = match record.timestamp.map(|timestamp| timestamp.kind) {
            None => 0,
            Some(TimestampKind::Create) => 1,
            Some(TimestampKind::LogAppend) => 2,
        };
        let ms = record.timestamp.map_or(0, |timestamp| timestamp.ms);
        head[9..17].copy_from_slice(&ms.to_le_bytes());
        head[17..].copy_from_slice(&length(record.key).to_le_bytes());
        self.feed(&head);
        if let Some(key) = record.key {
            self.feed(key);
        }
        self.field(record.value);
        self.feed(&(record.headers.len() as u64).to_le_bytes());
        for header in record.headers.iter() {
            self.field(Some(header.name));
            self.field(header.value);
        }
    }

    #[inline]
    fn feed(&mut self, bytes: &[u8]) {
        if self.small.len() + bytes.len() <= SMALL_BYTES {
            self.small.extend_from_slice(bytes);
        } else {
            self.flush();
            self.state.write(bytes);
        }
    }

    fn flush(&mut self) {
        self.state.write(&self.small);
        self.small.clear();
    }

    /// Length first, so that neighbouring fields cannot trade bytes.
    fn field(&mut self, bytes: Option<&[u8]>) {
        self.feed(&length(bytes).to_le_bytes());
        self.feed(bytes.unwrap_or_default());
    }
}

/// An absent field has a length of its own.
fn length(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(u64::MAX, |bytes| bytes.len() as u64)
}

fn same(a: &Arc<Partition>, b: &Arc<Partition>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchBuilder, NewRecord};
    use crate::record::Timestamp;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn lines(base_offset: u64, text: &[u8]) -> Batch {
        let mut end = 0;
        let ends = text.split_inclusive(|byte| *byte == b'\n').map(|line| {
            end += line.len() as u32;
            end
        });
        let ends = ends.collect();
        let file = Arc::new(Partition { source: "a".into(), number: None });
        Batch::adjoining(file, Framing::Lines, Bytes::copy_from_slice(text), base_offset, 0, ends)
    }

    fn rows(values: &[(u64, Option<&[u8]>)]) -> Batch {
        let topic = Arc::new(Partition { source: "t".into(), number: Some(0) });
        let mut builder = BatchBuilder::new(topic);
        for (offset, value) in values {
            builder
                .push(NewRecord { offset: *offset, value: *value, ..Default::default() })
                .unwrap();
        }
        builder.build()
    }

    /// A record whose time is 0.
    fn stamped(kind: TimestampKind) -> Batch {
        let topic = Arc::new(Partition { source: "t".into(), number: Some(0) });
        let mut builder = BatchBuilder::new(topic);
        let timestamp = Some(Timestamp { ms: 0, kind });
        let record = NewRecord { value: Some(b""), timestamp, ..NewRecord::default() };
        builder.push(record).unwrap();
        builder.build()
    }

    #[test]
    fn content_position_and_absence_count() {
        let digests = [
            PartDigest::of(&[lines(0, b"a\nb\n")]),
            PartDigest::of(&[lines(1, b"a\nb\n")]),
            PartDigest::of(&[lines(0, b"a\nc\n")]),
            PartDigest::of(&[lines(0, b"a\n"), lines(7, b"b\n")]),
            PartDigest::of(&[rows(&[(0, None)])]),
            PartDigest::of(&[rows(&[(0, Some(b""))])]),
            PartDigest::of(&[rows(&[(1, Some(b""))])]),
            PartDigest::of(&[stamped(TimestampKind::Create)]),
            PartDigest::of(&[stamped(TimestampKind::LogAppend)]),
            PartDigest::of(&[]),
        ];
        for (i, a) in digests.iter().enumerate() {
            assert!(digests[i + 1..].iter().all(|b| a.hash != b.hash), "{i}: {digests:?}");
        }
    }

    /// Where records come from counts, and how they are framed, and where a run of them ends.
    #[test]
    fn partition_framing_and_runs_count() {
        let named = |source: &str, number, framing, base_offset, ends: Vec<u32>| {
            let partition = Arc::new(Partition { source: source.into(), number });
            let arena = Bytes::from_static(b"\0\0\0\x01\n\0\0\0\0\n");
            Batch::adjoining(partition, framing, arena, base_offset, 0, ends)
        };
        let whole = |source, number, framing| vec![named(source, number, framing, 0, vec![5, 10])];
        let cut = |second: &str| {
            let mut rest = named(second, None, Framing::Lines, 0, vec![5, 10]);
            let _ = rest.take_front(1);
            vec![named("a", None, Framing::Lines, 0, vec![5]), rest]
        };
        let row = |number| {
            let topic = Arc::new(Partition { source: "t".into(), number: Some(number) });
            let mut builder = BatchBuilder::new(topic);
            builder.push(NewRecord { value: Some(b"v"), ..NewRecord::default() }).unwrap();
            builder.build()
        };
        let different = [
            whole("a", None, Framing::Lines),
            whole("b", None, Framing::Lines),
            whole("a", Some(0), Framing::Lines),
            whole("a", None, Framing::Length32),
            cut("b"),
            vec![named("a", None, Framing::Lines, 0, vec![5])],
            vec![row(0)],
            vec![row(1)],
            vec![row(0), row(1)],
            vec![row(1), row(0)],
        ];
        let digests = different.each_ref().map(|batches| PartDigest::of(batches));
        for (i, a) in digests.iter().enumerate() {
            assert!(digests[i + 1..].iter().all(|b| a.hash != b.hash), "{i}: {digests:?}");
        }
        assert_eq!(digests.map(|digest| digest.records), [2, 2, 2, 2, 2, 1, 1, 1, 2, 2]);
        assert_eq!(PartDigest::of(&cut("a")), digests[0], "one run, however it was cut");
    }

    /// Records longer than what is gathered, and shorter ones between them.
    #[test]
    fn long_records_are_hashed_in_their_place() {
        let long = vec![b'x'; 2 * SMALL_BYTES];
        let values = [&b"a"[..], &long, b"b", b"", &long[..SMALL_BYTES - 1], b"c"];
        let digest = |order: [usize; 6]| {
            let numbered: Vec<_> = (0..).zip(order).map(|(n, i)| (n, Some(values[i]))).collect();
            PartDigest::of(&[rows(&numbered)])
        };
        let straight = digest([0, 1, 2, 3, 4, 5]);
        assert_eq!(straight, digest([0, 1, 2, 3, 4, 5]));
        for other in [[1, 0, 2, 3, 4, 5], [0, 1, 2, 3, 5, 4], [2, 1, 0, 3, 4, 5]] {
            assert_ne!(straight, digest(other));
        }
    }

    proptest! {
        #[test]
        fn batching_does_not_count(cuts in proptest::collection::vec(0usize..4, 0..9)) {
            let offsets = [0, 1, 2, 5, 6, 9].map(|offset| (offset, Some(&b"value"[..])));
            for whole in [lines(3, b"a\nbb\n\nccc\r\nd\ne"), rows(&offsets)] {
                let mut rest = whole.clone();
                let mut pieces: Vec<_> = cuts.iter().map(|n| rest.take_front(*n)).collect();
                pieces.push(rest);
                prop_assert_eq!(PartDigest::of(&pieces), PartDigest::of(&[whole]));
            }
        }
    }
}
