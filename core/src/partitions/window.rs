//! The records of one epoch that are not passed yet, and which of them are complete.
//!
//! Offsets are kept as runs of consecutive ones and completions as bits, so a record costs one bit and a
//! gap in the offsets 16 bytes.

use std::collections::VecDeque;

/// The records taken in one epoch of a partition, numbered from 0 in the order in which they came.
///
/// **Invariant:** `passed <= added`; every record below `passed` is complete and the one at `passed`, if
/// there is one, was not complete when the watermark was last moved. `done` has a bit for each record from
/// `passed` rounded down to a multiple of 64 up to `added`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Window {
    pub(super) epoch: u64,
    added: u64,
    passed: u64,
    done: VecDeque<u64>,
    /// The first one holds the record at `passed`, or the last record added.
    runs: VecDeque<Run>,
}

/// Consecutive offsets, up to the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Run {
    /// The number of its first record.
    first: u64,
    /// That record's offset.
    offset: u64,
}

const WORD: u64 = u64::BITS as u64;

impl Window {
    pub(super) fn new(epoch: u64) -> Self {
        Self { epoch, added: 0, passed: 0, done: VecDeque::new(), runs: VecDeque::new() }
    }

    /// How many records the watermark has not passed.
    pub(super) fn pending(&self) -> u64 {
        self.added - self.passed
    }

    /// The offset after the last record, `None` if there was no record yet.
    pub(super) fn end_offset(&self) -> Option<u64> {
        let run = self.runs.back()?;
        Some(run.offset + (self.added - run.first))
    }

    /// Adds records; the number of the first. Their offsets rise, and begin at or above
    /// [`end_offset`](Self::end_offset).
    pub(super) fn add(&mut self, offsets: &[u64]) -> u64 {
        let first = self.added;
        let mut end = self.end_offset();
        for (number, offset) in (first..).zip(offsets) {
            if end != Some(*offset) {
                self.runs.push_back(Run { first: number, offset: *offset });
            }
            end = Some(offset.saturating_add(1));
        }
        self.added += offsets.len() as u64;
        self.drop_old_runs();
        let words = self.added.div_ceil(WORD) - self.passed / WORD;
        self.done.resize(words as usize, 0);
        first
    }

    /// Marks `len` records from number `first` on as complete; those that are already stay so.
    pub(super) fn complete(&mut self, first: u64, len: u64) {
        debug_assert!(first + len <= self.added, "only what was added can be complete");
        let mut number = first.max(self.passed);
        let end = (first + len).min(self.added);
        while number < end {
            let bit = number % WORD;
            let n = (WORD - bit).min(end - number);
            self.done[(number / WORD - self.passed / WORD) as usize] |= ones(n) << bit;
            number += n;
        }
    }

    /// Moves the watermark past everything complete; by how many records it moved.
    pub(super) fn pass(&mut self) -> u64 {
        let before = self.passed;
        while self.passed < self.added
            && let Some(word) = self.done.front()
        {
            let bit = self.passed % WORD;
            let n = u64::from((word >> bit).trailing_ones()).min(self.added - self.passed);
            if n == 0 {
                break;
            }
            self.passed += n;
            if self.passed.is_multiple_of(WORD) {
                self.done.pop_front();
            }
        }
        if self.passed > before {
            self.drop_old_runs();
        }
        self.passed - before
    }

    /// The lowest offset that is not passed, or the one after the last record; `None` until a record was
    /// passed.
    pub(super) fn watermark(&self) -> Option<u64> {
        let run = self.runs.front().filter(|_| self.passed > 0)?;
        Some(run.offset + (self.passed - run.first))
    }

    /// For [`PartitionFault`](super::PartitionFault): the first record that is pending counts as complete.
    pub(super) fn complete_first(&mut self) {
        self.complete(self.passed, self.pending().min(1));
    }

    fn drop_old_runs(&mut self) {
        while self.runs.get(1).is_some_and(|next| next.first <= self.passed) {
            self.runs.pop_front();
        }
    }
}

/// `n` ones at the low end; `n` is at most 64.
fn ones(n: u64) -> u64 {
    if n == WORD { u64::MAX } else { (1 << n) - 1 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Gaps from transaction markers once crashed the bookkeeping of completed offsets.
    #[test]
    fn gaps_and_any_order() {
        let mut window = Window::new(1);
        window.add(&[0, 1, 2, 5, 6, 9]);
        assert_eq!(window.watermark(), None);
        for number in [4, 3, 0, 2] {
            window.complete(number, 1);
        }
        assert_eq!(window.pass(), 1);
        assert_eq!((window.watermark(), window.pending()), (Some(1), 5));
        window.complete(0, 6);
        assert_eq!(window.pass(), 5);
        assert_eq!((window.watermark(), window.pending()), (Some(10), 0));
        window.add(&[12]);
        assert_eq!(window.watermark(), Some(12), "nothing lies between");
    }

    proptest! {
        /// Against a list of offsets and a set of what is complete.
        #[test]
        fn the_watermark_is_the_lowest_incomplete_offset(
            operations in proptest::collection::vec((0u8..3, 0u64..200, 1u64..90), 1..60),
        ) {
            let mut window = Window::new(1);
            let (mut offsets, mut complete) = (Vec::new(), BTreeSet::new());
            for (kind, at, n) in operations {
                match kind {
                    0 => {
                        let start = offsets.last().map_or(at, |last| last + 1 + at % 3);
                        // A gap after every 40 records.
                        let new: Vec<u64> = (0..n).map(|i| start + i + i / 40).collect();
                        prop_assert_eq!(window.add(&new), offsets.len() as u64);
                        offsets.extend(new);
                    }
                    1 => {
                        let first = at.min(offsets.len() as u64);
                        let len = n.min(offsets.len() as u64 - first);
                        window.complete(first, len);
                        complete.extend(first..first + len);
                    }
                    _ => {
                        window.pass();
                    }
                }
            }
            window.pass();
            let passed = (0..offsets.len() as u64).find(|n| !complete.contains(n));
            let passed = passed.unwrap_or(offsets.len() as u64);
            prop_assert_eq!(window.pending(), offsets.len() as u64 - passed);
            let end = offsets.last().map(|last| last + 1);
            let lowest = offsets.get(passed as usize).copied().or(end);
            prop_assert_eq!(window.watermark(), lowest.filter(|_| passed > 0));
            prop_assert_eq!(window.end_offset(), end);
            prop_assert!(window.done.len() as u64 <= window.pending() / WORD + 2, "a bit a record");
        }
    }
}
