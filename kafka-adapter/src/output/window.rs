//! What is written but not committed: the steps of the open transaction, kept until it is known that they are there.
//!
//! Its records are numbered from 0, those that are refused included, so that a number means the same record
//! however often the transaction is written again.
//!
//! Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lockgate_core::{Batch, Record, size};

use super::refusal::Refused;
use crate::group::GroupSeek;

/// A transaction is committed when it holds so much.
const MAX_BYTES: u64 = 16 << 20;
const MAX_RECORDS: usize = 200_000;

/// A step on its way.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) step: u64,
    pub(super) batches: Vec<Batch>,
    /// Where inputs stand after it, by their place in the pipeline.
    pub(super) seeks: Vec<(usize, GroupSeek)>,
}

impl Queued {
    pub(super) fn bytes(&self) -> u64 {
        size(&self.batches).bytes
    }

    pub(super) fn records(&self) -> usize {
        self.batches.iter().map(Batch::len).sum()
    }
}

/// Which records are to be written in this attempt.
#[derive(Debug, Default)]
struct Todo {
    some: BTreeSet<usize>,
    /// All from here on.
    from: usize,
}

impl Todo {
    fn has(&self, number: usize) -> bool {
        number >= self.from || self.some.contains(&number)
    }
}

/// The steps of a transaction.
#[derive(Debug, Default)]
pub(super) struct Window {
    steps: Vec<Queued>,
    /// By step, the number of its first record.
    firsts: Vec<usize>,
    records: usize,
    bytes: u64,
    since: Option<Instant>,
    refused: BTreeMap<usize, Refused>,
    todo: Todo,
}

impl Window {
    /// Adds a step, at the time `now`.
    pub(super) fn add(&mut self, step: Queued, now: Instant) {
        self.firsts.push(self.records);
        self.records += step.records();
        self.bytes += step.bytes();
        self.since.get_or_insert(now);
        self.steps.push(step);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES || self.records >= MAX_RECORDS
    }

    /// When it is to be committed, if it has steps.
    pub(super) fn due(&self, interval: Duration) -> Option<Instant> {
        self.since.map(|since| since + interval)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn steps(&self) -> &[Queued] {
        &self.steps
    }

    /// The last step.
    pub(super) fn last_step(&self) -> Option<u64> {
        self.steps.last().map(|step| step.step)
    }

    /// The records of the step at `index` that are to be written now, with their numbers; refused ones included.
    pub(super) fn to_write(&self, index: usize) -> impl Iterator<Item = (usize, Record<'_>)> {
        let first = self.firsts.get(index).copied().unwrap_or_default();
        let batches = self.steps.get(index).map_or(&[][..], |step| &step.batches);
        let numbered = (first..).zip(batches.iter().flat_map(Batch::iter));
        numbered.filter(|(number, _)| self.todo.has(*number))
    }

    /// The record with a number.
    pub(super) fn record(&self, number: usize) -> Option<Record<'_>> {
        let index = self.firsts.partition_point(|first| *first <= number).checked_sub(1)?;
        let mut left = number - self.firsts[index];
        for batch in &self.steps[index].batches {
            if left < batch.len() {
                return batch.iter().nth(left);
            }
            left -= batch.len();
        }
        None
    }

    /// Why a record is refused, if it is.
    pub(super) fn refused(&self, number: usize) -> Option<&Refused> {
        self.refused.get(&number)
    }

    /// A record is refused from now on.
    pub(super) fn refuse(&mut self, number: usize, refused: Refused) {
        self.refused.insert(number, refused);
    }

    /// All that are refused.
    pub(super) fn all_refused(&self) -> &BTreeMap<usize, Refused> {
        &self.refused
    }

    /// Nothing of it is written: the next attempt writes all of it.
    pub(super) fn again(&mut self) {
        self.todo = Todo::default();
    }

    /// Everything before `reached` that was to be written is, but for those that `failed`: the next attempt writes
    /// these and the rest.
    pub(super) fn again_failed(&mut self, failed: impl IntoIterator<Item = usize>, reached: usize) {
        let rest = self.todo.some.split_off(&reached);
        let from = self.todo.from.max(reached);
        self.todo = Todo { some: rest.into_iter().chain(failed).collect(), from };
    }

    /// Everything is there.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockgate_core::{BatchBuilder, NewRecord, Partition};

    use super::*;

    fn step(step: u64, sizes: &[usize]) -> Queued {
        let partition = Arc::new(Partition { source: "in".into(), number: Some(0) });
        let batch = |records: &usize| {
            let mut builder = BatchBuilder::new(partition.clone());
            for offset in 0..*records as u64 {
                let offset = step * 100 + offset;
                builder
                    .push(NewRecord { offset, value: Some(b"v"), ..NewRecord::default() })
                    .unwrap();
            }
            builder.build()
        };
        Queued { step, batches: sizes.iter().map(batch).collect(), seeks: Vec::new() }
    }

    fn window() -> Window {
        let mut window = Window::default();
        let now = Instant::now();
        window.add(step(1, &[2, 1]), now);
        window.add(step(2, &[]), now);
        window.add(step(3, &[1]), now);
        window
    }

    fn numbers(window: &Window) -> Vec<usize> {
        (0..3).flat_map(|index| window.to_write(index)).map(|(number, _)| number).collect()
    }

    #[test]
    fn records_are_numbered_over_steps_and_batches() {
        let window = window();
        let offsets: Vec<u64> =
            (0..4).map(|number| window.record(number).unwrap().offset).collect();
        assert_eq!(offsets, [100, 101, 100, 300]);
        assert!(window.record(4).is_none());
        assert_eq!(numbers(&window), [0, 1, 2, 3]);
        assert_eq!((window.last_step(), window.bytes()), (Some(3), 4));
    }

    #[test]
    fn another_attempt_writes_what_failed_and_what_was_not_reached() {
        let mut window = window();
        window.again_failed([1], 3);
        assert_eq!(numbers(&window), [1, 3]);
        window.add(step(4, &[1]), Instant::now());
        window.again_failed([1], 2);
        assert_eq!(numbers(&window), [1, 3]);
        window.again();
        assert_eq!(numbers(&window), [0, 1, 2, 3]);
    }

    #[test]
    fn it_is_due_an_interval_after_its_first_step() {
        let mut window = Window::default();
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(window.due(second), None);
        window.add(step(1, &[1]), now);
        window.add(step(2, &[1]), now + second);
        assert_eq!(window.due(second), Some(now + second));
        window.clear();
        assert_eq!((window.due(second), window.is_empty()), (None, true));
    }
}
