//! Large records, many partitions, many parts.

use lockgate_core::{BatchBuilder, Header, NewRecord, PartDigest};

use super::samples::{from_topics, plain, topic};
use super::{Given, expect_front, record, scratch};
use crate::recording::part;
use crate::recording::write::Limits;
use crate::recording::{Part, Recording};

const LARGE: Limits = Limits { max_bytes: 32 << 20, max_rows: 1_000_000 };

#[test]
fn a_record_of_20_mb() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let partition = topic("t", Some(0));
    let noise: Vec<u8> =
        (0..20_000_000u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let mut builder = BatchBuilder::new(partition.clone());
    let headers = [Header { name: b"h", value: Some(&noise[..1_000_000]) }];
    for offset in 0..3 {
        let value = Some(&noise[..]);
        builder
            .push(NewRecord { offset, value, headers: &headers, ..NewRecord::default() })
            .unwrap();
        builder
            .push(NewRecord { offset: 10 + offset, value: Some(b"small"), ..NewRecord::default() })
            .unwrap();
    }
    let given = [
        (Some(1), vec![plain(&partition, 0, 5, 100)]),
        (Some(2), vec![builder.build()]),
        (Some(3), vec![plain(&partition, 100, 5, 100)]),
    ];
    record(&path, &from_topics(), LARGE, &given);
    assert_eq!(expect_front(&Recording::open(&path).unwrap(), &given), 3);
}

#[test]
fn ten_thousand_partitions() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let partitions: Vec<_> =
        (0..10_000).map(|number| topic(&format!("topic-{}", number % 100), Some(number))).collect();
    let part = |step: u64| -> Given {
        (Some(step), partitions.iter().map(|partition| plain(partition, 2 * step, 2, 10)).collect())
    };
    let given: Vec<Given> = (0..3).map(part).collect();
    record(&path, &from_topics(), LARGE, &given);
    let recording = Recording::open(&path).unwrap();
    assert_eq!((expect_front(&recording, &given), recording.records()), (3, 60_000));
}

/// The index of a million parts is 15 MB of text.
#[test]
fn a_million_parts() {
    let part = |step: u64| Part {
        step: Some(step),
        digest: PartDigest { records: step % 5000, hash: step.wrapping_mul(0x9e37_79b9_7f4a_7c15) },
    };
    let parts: Vec<Part> = (0..1_000_000).map(part).collect();
    let text = part::to_text(&parts);
    assert!(text.len() < 16_000_000, "{}", text.len());
    assert!(part::from_text(&text).unwrap() == parts);
}
