//! Records for the tests: lines of files, lines with `\r\n`, rows with null and empty values.

use std::sync::Arc;

use bytes::Bytes;
use lockgate_core::{Batch, BatchBuilder, Framing, NewRecord, Partition};

/// The lines of a file.
pub(in super::super) fn lines(text: impl Into<Vec<u8>>) -> Batch {
    let text = text.into();
    let ends = text.split_inclusive(|byte| *byte == b'\n').scan(0, |end, line| {
        *end += line.len() as u32;
        Some(*end)
    });
    let ends = ends.collect();
    let file = Arc::new(Partition { source: "in/a.log".into(), number: None });
    Batch::adjoining(file, Framing::Lines, Bytes::from(text), 0, 0, ends)
}

/// The records of a topic.
pub(in super::super) fn rows(values: &[Option<&[u8]>]) -> Batch {
    let topic = Arc::new(Partition { source: "orders".into(), number: Some(3) });
    let mut builder = BatchBuilder::new(topic);
    for (offset, value) in (7..).zip(values) {
        builder.push(NewRecord { offset, value: *value, ..Default::default() }).unwrap();
    }
    builder.build()
}

/// Some of each kind: short lines, one that is larger than a write of its own and than a segment, the
/// last line of a file without its newline, `\r\n`, null and empty values.
pub(super) fn mixed() -> Vec<Batch> {
    let mut text = Vec::new();
    for i in 0..9 {
        text.extend_from_slice(format!("line {i} {}\n", "x".repeat(i * 11 % 31)).as_bytes());
    }
    text.extend_from_slice(&b"0123456789".repeat(2_000));
    text.extend_from_slice(b"\nthe last line has no newline");
    let large = b"9876543210".repeat(1_700);
    let values = [
        Some(&b"one"[..]),
        None,
        Some(&large),
        Some(b""),
        Some(b"\xff\xfe"),
        Some(b"two\nthree"),
        Some(b"four"),
    ];
    vec![lines(text), lines("a\r\n\r\nbb\r\nccc\n"), rows(&values), lines("five\nsix\n\nseven\n")]
}

/// The records of `batches` in steps of the given sizes; the last step has all the rest.
pub(super) fn cut(batches: &[Batch], sizes: &[usize]) -> Vec<Vec<Batch>> {
    let mut rest = batches.to_vec();
    let mut steps = Vec::new();
    for size in sizes {
        let (mut step, mut missing) = (Vec::new(), *size);
        for batch in &mut rest {
            let front = batch.take_front(missing);
            missing -= front.len();
            step.push(front);
        }
        steps.push(step);
    }
    steps.push(rest);
    steps
}
