//! The column `check`: a chain of hashes through a part, to find the record at which it fails.
//!
//! Pure. Not a proof, which is the part's digest: 32 bits only locate.
//!
//! The check of a record is the low half of xxh3 (64 bit) over, all little endian: the check of the record
//! before it (`u32`, 0 at the part's start); the xxh3 of its partition (its number as `u64`, all ones where
//! there is none, then the source's name); offset, end offset and declared length (`u64`, all ones where there
//! is none); the timestamp's kind (`u8`: 0 none, 1 create, 2 log append) and milliseconds (`i64`, 0 where there
//! is none); key and value, each after its length (`u64`, all ones where it is absent); the number of headers
//! (`u64`), and name and value of each like key and value. As in the part's digest, the leader epoch is left
//! out: it belongs to the cluster that stored the record.

use lockgate_core::TimestampKind;
use twox_hash::XxHash3_64;

use super::row::Row;

/// A buffer that has grown beyond this is given back: a single record may be large.
const KEPT_BYTES: usize = 64 * 1024;

/// Computes the checks of one part, record by record.
#[derive(Default)]
pub(super) struct Chain {
    last: u32,
    partition: Partition,
    buffer: Vec<u8>,
}

/// The partition of the last record, and its hash: it seldom changes from one record to the next.
#[derive(Default)]
struct Partition {
    number: Option<u32>,
    source: Vec<u8>,
    hash: Option<u64>,
}

impl Chain {
    /// From now on the records of another part come.
    pub(super) fn restart(&mut self) {
        self.last = 0;
    }

    /// The check of the next record.
    pub(super) fn next(&mut self, row: &Row<'_>) -> u32 {
        let partition = self.partition.hash(row);
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.shrink_to(KEPT_BYTES);
        buffer.extend_from_slice(&self.last.to_le_bytes());
        let (kind, ms) = match row.timestamp {
            None => (0, 0),
            Some(timestamp) => (
                match timestamp.kind {
                    TimestampKind::Create => 1,
                    TimestampKind::LogAppend => 2,
                },
                timestamp.ms,
            ),
        };
        let declared = row.declared_length.map_or(u64::MAX, u64::from);
        for number in [partition, row.offset, row.end_offset, declared] {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        buffer.push(kind);
        buffer.extend_from_slice(&ms.to_le_bytes());
        field(buffer, row.key);
        field(buffer, row.value);
        buffer.extend_from_slice(&(row.headers.len() as u64).to_le_bytes());
        for header in row.headers {
            field(buffer, Some(header.name));
            field(buffer, header.value);
        }
        self.last = XxHash3_64::oneshot(buffer) as u32;
        self.last
    }
}

impl Partition {
    fn hash(&mut self, row: &Row<'_>) -> u64 {
        if let Some(hash) = self.hash
            && self.number == row.number
            && self.source == row.source
        {
            return hash;
        }
        let number = row.number.map_or(u64::MAX, u64::from).to_le_bytes();
        let hash = XxHash3_64::oneshot(&[&number, row.source].concat());
        self.source.clear();
        self.source.extend_from_slice(row.source);
        self.number = row.number;
        self.hash = Some(hash);
        hash
    }
}

fn field(buffer: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let len = bytes.map_or(u64::MAX, |bytes| bytes.len() as u64);
    buffer.extend_from_slice(&len.to_le_bytes());
    buffer.extend_from_slice(bytes.unwrap_or_default());
}
