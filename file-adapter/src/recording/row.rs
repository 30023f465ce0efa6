//! One record as it stands in a recording, whatever the layout of the batch it came in.

use lockgate_core::{Framing, Header, Record, Timestamp, TimestampKind};

/// A record with borrowed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub(super) source: &'a [u8],
    pub(super) number: Option<u32>,
    pub(super) offset: u64,
    pub(super) end_offset: u64,
    pub(super) declared_length: Option<u32>,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) leader_epoch: Option<i32>,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: &'a [Header<'a>],
}

impl<'a> Row<'a> {
    /// `headers` are those of `record`. `prefix` is the length that stands before the value, if one does.
    pub(super) fn new(record: &Record<'a>, headers: &'a [Header<'a>], prefix: Option<u32>) -> Self {
        let len = record.value.map_or(0, <[u8]>::len);
        Self {
            source: record.partition.source.as_bytes(),
            number: record.partition.number,
            offset: record.offset,
            end_offset: record.end_offset,
            declared_length: prefix.filter(|prefix| *prefix as usize != len),
            timestamp: record.timestamp,
            leader_epoch: record.leader_epoch,
            key: record.key,
            value: record.value,
            headers,
        }
    }

    /// How many bytes the record has in its columns of bytes.
    pub(super) fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|header| header.name.len() + len(header.value));
        len(self.key) + len(self.value) + headers.sum::<usize>()
    }
}

fn len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(0, <[u8]>::len)
}

/// Walks along the framed bytes of adjoining records to find what the records themselves do not say.
pub(super) struct Prefixes<'a> {
    framed: Option<(Framing, &'a [u8])>,
}

impl<'a> Prefixes<'a> {
    pub(super) fn new(framed: Option<(Framing, &'a [u8])>) -> Self {
        Self { framed }
    }

    /// The length that stands before the value of `record`, the next one.
    pub(super) fn next(&mut self, record: &Record<'_>) -> Option<u32> {
        let (Framing::Length32, bytes) = self.framed.as_mut()? else { return None };
        let len = (record.end_offset - record.offset) as usize;
        let (span, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        span.first_chunk().map(|prefix| u32::from_be_bytes(*prefix))
    }
}

/// The kind that has this name.
pub(super) fn kind_named(name: &[u8]) -> Option<TimestampKind> {
    let kinds = [TimestampKind::Create, TimestampKind::LogAppend];
    kinds.into_iter().find(|kind| kind.name().as_bytes() == name)
}
