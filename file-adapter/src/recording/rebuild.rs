//! From rows back to batches.
//!
//! Pure. The batches are not those that were recorded, but hold the same records, and have the same digest.

use std::collections::HashMap;
use std::sync::Arc;

use lockgate_core::{Batch, BatchBuilder, Framing, NewRecord, Partition};

use super::row::Row;

/// A batch is handed over when it has this many bytes: about what readers make.
const BATCH_BYTES: usize = 1024 * 1024;

/// More partitions than this are not remembered, so that a long recording of many files does not add up.
const KEPT_PARTITIONS: usize = 65_536;

/// Why a row is none that a reader can have delivered.
pub(super) type Nonsense = &'static str;

/// Puts rows together to batches.
pub(super) struct Rebuild {
    framing: Option<Framing>,
    partitions: HashMap<Vec<u8>, HashMap<Option<u32>, Arc<Partition>>>,
    partitions_kept: usize,
    open: Option<Open>,
    done: Vec<Batch>,
}

/// The batch that the next row may continue.
struct Open {
    partition: Arc<Partition>,
    records: Records,
}

enum Records {
    Rows { builder: BatchBuilder, bytes: usize },
    Spans { framing: Framing, offset: u64, end_offset: u64, arena: Vec<u8>, ends: Vec<u32> },
}

impl Rebuild {
    pub(super) fn new(framing: Option<Framing>) -> Self {
        let partitions = HashMap::new();
        Self { framing, partitions, partitions_kept: 0, open: None, done: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &Row<'_>) -> Result<(), Nonsense> {
        const LAST: u64 = i64::MAX as u64;
        if row.offset > LAST || row.end_offset > LAST || row.end_offset < row.offset {
            return Err("its offsets are negative or not in order");
        }
        match self.framing {
            None => self.push_row(row),
            Some(framing) => self.push_span(framing, row),
        }
    }

    /// The batches that are complete.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Batch> + '_ {
        self.done.drain(..)
    }

    /// All batches; the next row begins another part.
    pub(super) fn finish(&mut self) -> Vec<Batch> {
        self.close();
        std::mem::take(&mut self.done)
    }

    fn push_row(&mut self, row: &Row<'_>) -> Result<(), Nonsense> {
        let record = NewRecord {
            offset: row.offset,
            timestamp: row.timestamp,
            leader_epoch: row.leader_epoch,
            key: row.key,
            value: row.value,
            headers: row.headers,
        };
        let continues = self.open.as_ref().is_some_and(|open| match &open.records {
            Records::Rows { bytes, .. } => *bytes < BATCH_BYTES && is_of(&open.partition, row),
            Records::Spans { .. } => false,
        });
        if !continues {
            self.close();
            let partition = self.partition(row)?;
            let records = Records::Rows { builder: BatchBuilder::new(partition.clone()), bytes: 0 };
            self.open = Some(Open { partition, records });
        }
        if let Some(Open { records: Records::Rows { builder, bytes }, .. }) = &mut self.open {
            builder.push(record).map_err(|_| "it is larger than a batch can be")?;
            *bytes += row.bytes();
        }
        Ok(())
    }

    fn push_span(&mut self, framing: Framing, row: &Row<'_>) -> Result<(), Nonsense> {
        let value = row.value.ok_or("it has no value, which a record of a file has")?;
        let len = row.end_offset - row.offset;
        let beyond =
            len.checked_sub(value.len() as u64).ok_or("it is longer than its span of the file")?;
        if u32::try_from(len).is_err() {
            return Err("it is larger than a batch can be");
        }
        let declared = row.declared_length.unwrap_or(value.len() as u32).to_be_bytes();
        let (before, after): (&[u8], &[u8]) = match (framing, beyond) {
            (Framing::Lines, 0) => (b"", b""),
            (Framing::Lines, 1) => (b"", b"\n"),
            (Framing::Lines, 2) => (b"", b"\r\n"),
            (Framing::Length32, 4) => (&declared, b""),
            _ => return Err("its span of the file does not fit its framing"),
        };
        let continues = self.open.as_ref().is_some_and(|open| match &open.records {
            Records::Spans { end_offset, arena, .. } => {
                *end_offset == row.offset
                    && arena.len() < BATCH_BYTES
                    && is_of(&open.partition, row)
                    && u32::try_from(arena.len() as u64 + len).is_ok()
            }
            Records::Rows { .. } => false,
        });
        if !continues {
            self.close();
            let partition = self.partition(row)?;
            let (offset, end_offset) = (row.offset, row.offset);
            let records =
                Records::Spans { framing, offset, end_offset, arena: Vec::new(), ends: Vec::new() };
            self.open = Some(Open { partition, records });
        }
        if let Some(Open { records: Records::Spans { end_offset, arena, ends, .. }, .. }) =
            &mut self.open
        {
            arena.extend_from_slice(before);
            arena.extend_from_slice(value);
            arena.extend_from_slice(after);
            ends.push(arena.len() as u32);
            *end_offset = row.end_offset;
        }
        Ok(())
    }

    fn close(&mut self) {
        let Some(Open { partition, records }) = self.open.take() else { return };
        self.done.push(match records {
            Records::Rows { builder, .. } => builder.build(),
            Records::Spans { framing, offset, arena, ends, .. } => {
                Batch::adjoining(partition, framing, arena.into(), offset, 0, ends)
            }
        });
    }

    fn partition(&mut self, row: &Row<'_>) -> Result<Arc<Partition>, Nonsense> {
        let known = self.partitions.get(row.source).and_then(|numbers| numbers.get(&row.number));
        if let Some(partition) = known {
            return Ok(partition.clone());
        }
        let source =
            std::str::from_utf8(row.source).map_err(|_| "the name of its source is not UTF-8")?;
        let partition = Arc::new(Partition { source: source.into(), number: row.number });
        if self.partitions_kept == KEPT_PARTITIONS {
            self.partitions.clear();
            self.partitions_kept = 0;
        }
        let numbers = self.partitions.entry(row.source.to_vec()).or_default();
        numbers.insert(row.number, partition.clone());
        self.partitions_kept += 1;
        Ok(partition)
    }
}

fn is_of(partition: &Partition, row: &Row<'_>) -> bool {
    partition.number == row.number && partition.source.as_bytes() == row.source
}
