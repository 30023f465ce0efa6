//! Readers that keep every rule, at every level that they have.

use std::sync::Arc;

use lockgate_conformance::{Conformance, Known};
use lockgate_core::{
    EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader, MemoryInput,
    MemoryRecord, Timestamp,
};
use serde_json::Value as JsonValue;

use crate::custom_input::Counter;
use crate::threaded::Threaded;

/// Records of three partitions with everything that a record can have or lack.
pub(crate) fn memory_records(n: u32) -> Vec<MemoryRecord> {
    let record = |i: u32| MemoryRecord {
        partition: i / 3 % 3,
        timestamp: (!i.is_multiple_of(4)).then(|| Timestamp::created(1_000 * i64::from(i) - 5_000)),
        key: (!i.is_multiple_of(5)).then(|| format!("key {}", i % 7).into_bytes()),
        // Absent, empty, short and long.
        value: (!i.is_multiple_of(6)).then(|| "x".repeat((i * i % 40) as usize).into_bytes()),
        headers: (0..i % 3)
            .map(|_| (b"trace".to_vec(), i.is_multiple_of(2).then(Vec::new)))
            .collect(),
    };
    (0..n).map(record).collect()
}

/// What a [`MemoryInput`] called `memory` gives of `records`.
pub(crate) fn known(records: &[MemoryRecord]) -> Vec<Known> {
    let known = |(offset, record): (usize, &MemoryRecord)| {
        let known = match &record.value {
            Some(value) => Known::new("memory", value.clone()),
            None => Known::without_value("memory"),
        };
        let headers = record.headers.iter().map(|(name, value)| (&name[..], value.as_deref()));
        known
            .partition(record.partition)
            .offset(offset as u64)
            .timestamp(record.timestamp)
            .key(record.key.as_deref())
            .headers(headers)
    };
    records.iter().enumerate().map(known).collect()
}

#[test]
fn the_reference_keeps_the_rules() {
    let records = memory_records(60);
    for seek_every in [1, 4, 7, 100] {
        let open = || MemoryInput::new("memory", records.clone()).seek_every(seek_every);
        let summary =
            Conformance::new(open).holds(known(&records)).answers_at_once().schedules(300).run();
        let summary = summary.unwrap_or_else(|report| panic!("{report}"));
        assert!(summary.schedules >= 900, "{summary}");
        assert!(summary.crashes > 1000 && summary.replays > 1000, "{summary}");
        assert!(seek_every == 100 || summary.checkpoints > 500, "{summary}");
    }
}

#[test]
fn an_empty_source_keeps_the_rules() {
    Conformance::new(|| MemoryInput::new("memory", Vec::new())).answers_at_once().check();
}

/// A [`MemoryInput`] that promises less.
struct Weaker(MemoryInput, FaultTolerance);

impl InputEndpoint for Weaker {
    fn fault_tolerance(&self) -> FaultTolerance {
        self.1
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        assert!(level <= self.1, "opened with {level:?}");
        Box::new(self.0).open(level, consumer, resume)
    }
}

#[test]
fn readers_are_opened_with_the_levels_that_they_have() {
    let records = memory_records(20);
    for level in [FaultTolerance::None, FaultTolerance::AtLeastOnce] {
        let open = || Weaker(MemoryInput::new("memory", records.clone()), level);
        let summary =
            Conformance::new(open).holds(known(&records)).answers_at_once().run().unwrap();
        assert_eq!(summary.replays, 0, "{level:?}: {summary}");
        assert_eq!(summary.crashes > 0, level > FaultTolerance::None, "{level:?}: {summary}");
    }
}

#[test]
fn the_example_keeps_the_rules() {
    let numbers = (0..500u64).map(|n| Known::new("counter", n.to_be_bytes()).offset(n));
    Conformance::new(|| Counter { end: 500 }).holds(numbers).answers_at_once().check();
}

#[test]
fn a_reader_with_a_thread_keeps_the_rules() {
    let records = memory_records(60);
    let open = || Threaded(MemoryInput::new("memory", records.clone()).seek_every(4));
    Conformance::new(open).holds(known(&records)).schedules(100).check();
}
