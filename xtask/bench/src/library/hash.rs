//! The hash of records, as the controller computes it for each part of a step.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use lockgate_core::{Batch, BatchBuilder, Framing, NewRecord, PartDigest, Partition};

use super::Layout;

/// Records of a part, about as many as a step has.
const PART: u32 = 5000;

/// Nanoseconds for each of so many records.
pub(super) fn run(layout: Layout, records: u64) -> Result<f64> {
    let partition = Arc::new(Partition { source: "bench".into(), number: Some(0) });
    let batch = match layout {
        Layout::Lines => {
            let line = [&[b'x'; 199][..], b"\n"].concat();
            let ends = (1..=PART).map(|number| number * 200).collect();
            let arena = line.repeat(PART as usize).into();
            Batch::adjoining(partition, Framing::Lines, arena, 0, 0, ends)
        }
        Layout::Rows => {
            let mut builder = BatchBuilder::new(partition);
            for offset in 0..u64::from(PART) {
                let value = Some(&[b'x'; 100][..]);
                builder.push(NewRecord { offset, value, ..NewRecord::default() })?;
            }
            builder.build()
        }
    };
    let parts = records.div_ceil(u64::from(PART));
    let part = [batch];
    let begun = Instant::now();
    for _ in 0..parts {
        black_box(PartDigest::of(black_box(&part)));
    }
    Ok(begun.elapsed().as_nanos() as f64 / (parts * u64::from(PART)) as f64)
}
