//! Records of all kinds.

use std::sync::Arc;

use bytes::Bytes;
use lockgate_core::{
    Batch, BatchBuilder, Framing, Header, NewRecord, Partition, Timestamp, TimestampKind,
};
use proptest::prelude::*;

use super::Given;
use crate::recording::About;

type Field = Option<Vec<u8>>;

/// A record with bytes of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flat {
    pub(super) partition: Partition,
    pub(super) offset: u64,
    pub(super) end_offset: u64,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) leader_epoch: Option<i32>,
    pub(super) key: Field,
    pub(super) value: Field,
    pub(super) headers: Vec<(Vec<u8>, Field)>,
}

/// The records of `batches`, all their fields.
pub(super) fn flat(batches: &[Batch]) -> Vec<Flat> {
    let records = batches.iter().flat_map(Batch::iter).map(|record| Flat {
        partition: record.partition.clone(),
        offset: record.offset,
        end_offset: record.end_offset,
        timestamp: record.timestamp,
        leader_epoch: record.leader_epoch,
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: (record.headers.iter())
            .map(|header| (header.name.to_vec(), header.value.map(<[u8]>::to_vec)))
            .collect(),
    });
    records.collect()
}

pub(super) fn topic(name: &str, number: Option<u32>) -> Arc<Partition> {
    Arc::new(Partition { source: name.into(), number })
}

pub(super) fn from_topics() -> About {
    let (program, source, origin) = ("0.1.0".into(), "kafka".into(), "orders, payments".into());
    About { program, source, origin, masked: vec!["value.email".into()], ..About::default() }
}

pub(super) fn from_files(framing: Framing) -> About {
    About { source: "file".into(), framing: Some(framing), ..from_topics() }
}

/// `count` records of `bytes` bytes each, from `offset` on.
pub(super) fn plain(partition: &Arc<Partition>, offset: u64, count: u64, bytes: usize) -> Batch {
    let mut builder = BatchBuilder::new(partition.clone());
    for offset in offset..offset + count {
        let mut value = format!("{offset} ").into_bytes();
        value.resize(bytes, b'a' + (offset % 23) as u8);
        let record = NewRecord { offset, value: Some(&value), ..NewRecord::default() };
        builder.push(record).unwrap();
    }
    builder.build()
}

/// Ten parts of three records, steps from 5 on.
pub(super) fn ten_parts() -> Vec<Given> {
    let partition = topic("orders", Some(3));
    let part = |i: u64| (Some(5 + i), vec![plain(&partition, 10 * i, 3, 20)]);
    (0..10).map(part).collect()
}

/// Lines of a file.
pub(super) fn lines(file: &str, base_offset: u64, text: &[u8]) -> Batch {
    let ends = text.split_inclusive(|byte| *byte == b'\n').scan(0, |end, line| {
        *end += line.len() as u32;
        Some(*end)
    });
    let (ends, arena) = (ends.collect(), Bytes::copy_from_slice(text));
    Batch::adjoining(topic(file, None), Framing::Lines, arena, base_offset, 0, ends)
}

/// Records after their lengths; `declared` is the length that stands there if it is not the value's.
pub(super) fn lengths(file: &str, base_offset: u64, values: &[(Vec<u8>, Option<u32>)]) -> Batch {
    let (mut arena, mut ends) = (Vec::new(), Vec::new());
    for (value, declared) in values {
        arena.extend_from_slice(&declared.unwrap_or(value.len() as u32).to_be_bytes());
        arena.extend_from_slice(value);
        ends.push(arena.len() as u32);
    }
    Batch::adjoining(topic(file, None), Framing::Length32, arena.into(), base_offset, 0, ends)
}

fn field() -> impl Strategy<Value = Field> {
    proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9))
}

fn timestamp() -> impl Strategy<Value = Option<Timestamp>> {
    let ms = prop_oneof![Just(0), Just(-1), Just(i64::MIN), Just(i64::MAX), any::<i64>()];
    let kind = prop_oneof![Just(TimestampKind::Create), Just(TimestampKind::LogAppend)];
    proptest::option::of((ms, kind).prop_map(|(ms, kind)| Timestamp { ms, kind }))
}

prop_compose! {
    fn any_flat()(
        gap in 0u64..3,
        timestamp in timestamp(),
        leader_epoch in any::<Option<i32>>(),
        key in field(),
        value in field(),
        headers in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..3), field()), 0..4),
    ) -> Flat {
        let partition = Partition { source: String::new(), number: None };
        Flat { partition, offset: gap, end_offset: 0, timestamp, leader_epoch, key, value, headers }
    }
}

fn build(partition: &Arc<Partition>, base: u64, records: &[Flat]) -> Batch {
    let mut builder = BatchBuilder::new(partition.clone());
    let mut next = base;
    for record in records {
        let offset = next + record.offset;
        next = offset + 1;
        let headers: Vec<_> = (record.headers.iter())
            .map(|(name, value)| Header { name, value: value.as_deref() })
            .collect();
        let new = NewRecord {
            offset,
            timestamp: record.timestamp,
            leader_epoch: record.leader_epoch,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &headers,
        };
        builder.push(new).unwrap();
    }
    builder.build()
}

fn any_step() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), Just(Some(0)), (0..=i64::MAX as u64).prop_map(Some)]
}

/// Any parts of any records of topics.
pub(super) fn any_topics() -> impl Strategy<Value = Vec<Given>> {
    let partition = prop_oneof![
        (0u32..3).prop_map(|number| topic("orders", Some(number))),
        Just(topic("", Some(i32::MAX as u32))),
        Just(topic("grüße", None)),
    ];
    let base = prop_oneof![Just(0), Just(1000), Just(i64::MAX as u64 - 100)];
    let batch = (partition, base, proptest::collection::vec(any_flat(), 0..6));
    let batch = batch.prop_map(|(partition, base, records)| build(&partition, base, &records));
    proptest::collection::vec((any_step(), proptest::collection::vec(batch, 0..5)), 0..8)
}

/// Any parts of any lines.
pub(super) fn any_lines() -> impl Strategy<Value = Vec<Given>> {
    let text = proptest::collection::vec(
        prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x'), any::<u8>()],
        0..40,
    );
    let batch = ("[ab]", prop_oneof![Just(0), 0u64..90], text, 0usize..3);
    let batch = batch.prop_map(|(file, base, text, skip)| {
        let mut batch = lines(&file, base, &text);
        let _ = batch.take_front(skip);
        batch
    });
    proptest::collection::vec((any_step(), proptest::collection::vec(batch, 0..5)), 0..8)
}

/// Any parts of any records after their lengths.
pub(super) fn any_lengths() -> impl Strategy<Value = Vec<Given>> {
    let value = (proptest::collection::vec(any::<u8>(), 0..9), any::<Option<u32>>());
    let batch = ("[ab]", 0u64..90, proptest::collection::vec(value, 0..6));
    let batch = batch.prop_map(|(file, base, values)| lengths(&file, base, &values));
    proptest::collection::vec((any_step(), proptest::collection::vec(batch, 0..5)), 0..8)
}
