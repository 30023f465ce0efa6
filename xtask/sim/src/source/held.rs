//! What a reader has fetched and not handed over, and where it stands.

use std::collections::VecDeque;
use std::sync::Arc;

use fastrand::Rng;
use lockgate_core::{
    Batch, BatchBuilder, BufferSize, EndpointError, FaultTolerance, InputConsumer, NewRecord,
    Partition, Position, Resume, Tickets,
};
use serde_json::{Map, Value as JsonValue, json};

use crate::plan::{InputPlan, Kind};
use crate::world::{RECORD_BYTES, Upstream, value};

/// A record that was fetched.
#[derive(Clone, Debug)]
pub(super) struct Fetched {
    pub(super) partition: u32,
    pub(super) n: u32,
    /// Where its partition has a context.
    pub(super) tickets: Option<Tickets>,
}

pub(super) struct Held {
    seed: u64,
    input: usize,
    records: u32,
    level: FaultTolerance,
    /// So many records after each other have to be read as a whole.
    barrier_every: u32,
    gives_changes: bool,
    has_position: bool,
    fetched: VecDeque<Fetched>,
    /// Those at the end of it that were not announced.
    unannounced: u64,
    /// Of each partition, the first record that was not handed over.
    next: Vec<u32>,
    /// Of each partition, the first record that was not fetched.
    behind: Vec<u32>,
}

/// An answer to `Queue`.
pub(super) struct Taken {
    pub(super) batches: Vec<Batch>,
    pub(super) resume: Resume,
    pub(super) taken: Vec<Fetched>,
}

/// Where each partition goes on, from a position that was stored.
///
/// # Errors
/// If it is none of ours.
pub(super) fn places(seek: &JsonValue, plan: &InputPlan) -> Result<Vec<u32>, EndpointError> {
    let place = |partition: u32| {
        let place = seek.get(partition.to_string()).and_then(JsonValue::as_u64);
        place.and_then(|place| u32::try_from(place).ok()).filter(|place| *place <= plan.records)
    };
    let places: Option<Vec<u32>> = (0..plan.partitions).map(place).collect();
    places.ok_or_else(|| EndpointError::Data(format!("{seek} is not a position")))
}

impl Held {
    pub(super) fn new(
        seed: u64,
        input: usize,
        next: Vec<u32>,
        level: FaultTolerance,
        plan: &InputPlan,
    ) -> Self {
        Self {
            seed,
            input,
            records: plan.records,
            level,
            barrier_every: if plan.kind == Kind::Log { plan.barrier_every } else { 1 },
            gives_changes: plan.kind == Kind::Topic,
            has_position: false,
            fetched: VecDeque::new(),
            unannounced: 0,
            behind: next.clone(),
            next,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fetched.is_empty()
    }

    pub(super) fn size(&self) -> BufferSize {
        let records = self.fetched.len() as u64;
        BufferSize { records, bytes: records * RECORD_BYTES }
    }

    /// Whether there is nothing left to fetch.
    pub(super) fn has_all(&self) -> bool {
        self.behind.iter().all(|behind| *behind == self.records)
    }

    /// The next record of the partition, if there is one.
    pub(super) fn following(&self, partition: u32) -> Option<u32> {
        let n = self.behind[partition as usize];
        (n < self.records).then_some(n)
    }

    /// Fetches one record of the partition, if there is one.
    pub(super) fn fetch(&mut self, partition: u32) -> bool {
        self.fetch_with(partition, None)
    }

    pub(super) fn fetch_with(&mut self, partition: u32, tickets: Option<Tickets>) -> bool {
        let Some(n) = self.following(partition) else { return false };
        self.behind[partition as usize] += 1;
        self.fetched.push_back(Fetched { partition, n, tickets });
        self.unannounced += 1;
        true
    }

    /// Announces what was fetched since it was last called.
    pub(super) fn announce(&mut self, consumer: &dyn InputConsumer) {
        let records = std::mem::take(&mut self.unannounced);
        if records > 0 {
            consumer.buffered(BufferSize { records, bytes: records * RECORD_BYTES });
        }
    }

    /// The partition is read from here on; what is held of it is dropped.
    pub(super) fn begin(&mut self, partition: u32, at: u32) {
        (self.next[partition as usize], self.behind[partition as usize]) = (at, at);
    }

    /// Lets go of what is held of these partitions. How much that was, and its tickets.
    pub(super) fn drop_all(&mut self, partitions: &[u32]) -> (BufferSize, Vec<Tickets>) {
        let before = self.size();
        let mut tickets = Vec::new();
        self.fetched.retain(|fetched| {
            let goes = partitions.contains(&fetched.partition);
            tickets.extend(fetched.tickets.filter(|_| goes));
            !goes
        });
        (before.minus(self.size()).unwrap_or(BufferSize::ZERO), tickets)
    }

    /// Answers `Queue`.
    pub(super) fn take(&mut self, max: usize, checkpoint_requested: bool, rng: &mut Rng) -> Taken {
        let mut amount = max.min(self.fetched.len());
        if checkpoint_requested && self.level == FaultTolerance::AtLeastOnce {
            let good = |amount: &usize| self.is_good(self.next[0] + *amount as u32);
            amount = (0..=amount).find(good).unwrap_or(amount);
        }
        let mut taken: Vec<Fetched> = self.fetched.drain(..amount).collect();
        // Partition by partition, so that a replay need not know in which order they came.
        taken.sort_by_key(|fetched| fetched.partition);
        let mut ranges: Vec<[u32; 3]> = Vec::new();
        for Fetched { partition, n, .. } in &taken {
            match ranges.last_mut() {
                Some([p, _, to]) if p == partition && to == n => *to += 1,
                _ => ranges.push([*partition, *n, n + 1]),
            }
            self.next[*partition as usize] = n + 1;
        }
        Taken { batches: self.batches(&ranges, rng), resume: self.resume(&ranges), taken }
    }

    fn is_good(&self, place: u32) -> bool {
        self.barrier_every == 1 || place.is_multiple_of(self.barrier_every) || place == self.records
    }

    fn resume(&mut self, ranges: &[[u32; 3]]) -> Resume {
        let of = |partitions: &mut dyn Iterator<Item = u32>| {
            let place = |p: u32| (p.to_string(), json!(self.next[p as usize]));
            JsonValue::Object(partitions.map(place).collect::<Map<_, _>>())
        };
        let seek = if self.gives_changes && self.has_position {
            Position::Change(of(&mut ranges.iter().map(|range| range[0])))
        } else {
            Position::Whole(of(&mut (0..self.next.len() as u32)))
        };
        if self.level == FaultTolerance::ExactlyOnce {
            self.has_position = true;
            let range =
                |range: &[u32; 3]| rmpv::Value::Array(range.map(rmpv::Value::from).to_vec());
            return Resume::Replay {
                seek,
                replay: rmpv::Value::Array(ranges.iter().map(range).collect()),
            };
        }
        if !self.is_good(self.next[0]) {
            return Resume::Barrier;
        }
        self.has_position = true;
        Resume::Seek { seek }
    }

    /// Answers `Replay`.
    ///
    /// # Errors
    /// If the data is none of ours.
    pub(super) fn replay(
        &mut self,
        data: &rmpv::Value,
        rng: &mut Rng,
    ) -> Result<Vec<Batch>, EndpointError> {
        let range = |value: &rmpv::Value| {
            let numbers = value.as_array()?.iter();
            let numbers: Option<Vec<u32>> =
                numbers.map(|n| n.as_u64().and_then(|n| u32::try_from(n).ok())).collect();
            let range = <[u32; 3]>::try_from(numbers?).ok()?;
            let [partition, from, to] = range;
            let fits = (partition as usize) < self.next.len() && from < to && to <= self.records;
            fits.then_some(range)
        };
        let ranges: Option<Vec<_>> =
            data.as_array().and_then(|ranges| ranges.iter().map(range).collect());
        let ranges = ranges.ok_or_else(|| EndpointError::Data(format!("{data} is not a step")))?;
        for [partition, _, to] in &ranges {
            self.begin(*partition, *to);
        }
        Ok(self.batches(&ranges, rng))
    }

    /// The records, cut anywhere.
    fn batches(&self, ranges: &[[u32; 3]], rng: &mut Rng) -> Vec<Batch> {
        let mut batches = Vec::new();
        for [partition, from, to] in ranges {
            let number = Some(*partition);
            let of = Arc::new(Partition { source: format!("s{}", self.input), number });
            let mut batch = BatchBuilder::new(of.clone());
            for n in *from..*to {
                if !batch.is_empty() && rng.u8(..4) == 0 {
                    batches
                        .push(std::mem::replace(&mut batch, BatchBuilder::new(of.clone())).build());
                }
                let mut text = value(self.seed, self.input, *partition, n).to_vec();
                text.resize(RECORD_BYTES as usize, b'.');
                let offset = Upstream::offset(n);
                let record = NewRecord { offset, value: Some(&text), ..NewRecord::default() };
                batch.push(record).unwrap_or_else(|full| unreachable!("{full}"));
            }
            batches.push(batch.build());
        }
        batches
    }
}
