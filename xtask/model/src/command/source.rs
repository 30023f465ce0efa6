//! What a reader reads: records that are told apart by their place, in every cut that may be asked for.

use std::sync::Arc;

use lockgate_core::{Batch, BatchBuilder, NewRecord, PartDigest, Partition};

/// Records `from..to` of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// The first.
    pub from: u8,
    /// The first that is not of it.
    pub to: u8,
}

/// What each input gave to a step; an input that was not asked gave no cut.
pub(super) type Content = [Option<Cut>; 2];

/// A source of few records; its cuts are made once.
#[derive(Debug)]
pub(super) struct Source {
    /// By `from` and `to`.
    cuts: Vec<Vec<(Vec<Batch>, PartDigest)>>,
}

impl Source {
    pub(super) fn new(number: u32, records: u8) -> Self {
        let partition = Arc::new(Partition { source: "source".into(), number: Some(number) });
        let cut = |from: u8, to: u8| {
            let mut batch = BatchBuilder::new(partition.clone());
            for offset in from..to {
                let record = NewRecord {
                    offset: u64::from(offset),
                    value: Some(b"."),
                    ..NewRecord::default()
                };
                // A few bytes always fit.
                let _ = batch.push(record);
            }
            let batches = if from < to { vec![batch.build()] } else { Vec::new() };
            let digest = PartDigest::of(&batches);
            (batches, digest)
        };
        let cuts = (0..=records).map(|from| (0..=records).map(|to| cut(from, to)).collect());
        Self { cuts: cuts.collect() }
    }

    pub(super) fn batches(&self, cut: Cut) -> Vec<Batch> {
        self.cuts[usize::from(cut.from)][usize::from(cut.to)].0.clone()
    }

    pub(super) fn digest(&self, cut: Cut) -> PartDigest {
        self.cuts[usize::from(cut.from)][usize::from(cut.to)].1
    }
}
