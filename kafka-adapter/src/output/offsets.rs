//! The offsets of consumer groups that travel in transactions.
//!
//! Pure. Not here: as whom a reader is known to its group.

use std::collections::BTreeMap;

use super::window::Queued;
use crate::group::GroupSeek;

/// Offsets by topic and partition.
pub(super) type Offsets = BTreeMap<String, BTreeMap<u32, u64>>;

/// What one input's group is to be told with a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) group: String,
    /// The last hand-over in the transaction.
    pub(super) turn: u64,
    /// Those that the group does not know yet.
    pub(super) offsets: Offsets,
}

/// What the groups know, by input.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<usize, Offsets>);

impl Known {
    /// What the groups are to be told about these steps, by input. Partitions that the reader gave up between
    /// two of them are told too.
    pub(super) fn to_tell(&self, steps: &[Queued]) -> BTreeMap<usize, Told> {
        let mut all: BTreeMap<usize, Told> = BTreeMap::new();
        for (input, seek) in steps.iter().flat_map(|step| &step.seeks) {
            let told = all.entry(*input).or_default();
            told.group.clone_from(&seek.group);
            told.turn = told.turn.max(seek.turn);
            for (topic, numbers) in &seek.topics {
                told.offsets.entry(topic.clone()).or_default().extend(numbers);
            }
        }
        for (input, told) in &mut all {
            let Some(known) = self.0.get(input) else { continue };
            for (topic, numbers) in &mut told.offsets {
                let known = known.get(topic);
                numbers.retain(|number, offset| {
                    known.and_then(|known| known.get(number)) != Some(offset)
                });
            }
            told.offsets.retain(|_, numbers| !numbers.is_empty());
        }
        all
    }

    /// The groups know where these steps end. What an input does not read any more is forgotten: somebody else
    /// may move it.
    pub(super) fn told(&mut self, steps: &[Queued]) {
        for (input, GroupSeek { topics, .. }) in steps.iter().flat_map(|step| &step.seeks) {
            self.0.insert(*input, topics.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(turn: u64, offsets: &[(u32, u64)]) -> Queued {
        let mut seek = GroupSeek::new("g", turn);
        seek.topics.insert("t".into(), offsets.iter().copied().collect());
        Queued { step: turn, batches: Vec::new(), seeks: vec![(0, seek)] }
    }

    fn check(known: &Known, steps: &[Queued], turn: u64, expected: &[(u32, u64)]) {
        let told = known.to_tell(steps).remove(&0).unwrap();
        assert_eq!((told.group.as_str(), told.turn), ("g", turn));
        let numbers: Vec<(u32, u64)> = told.offsets.into_values().flatten().collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn only_what_changed_is_told_and_what_was_given_up_is_not_lost() {
        let mut known = Known::default();
        let steps = [step(1, &[(0, 5), (1, 7)]), step(2, &[(1, 8)])];
        check(&known, &steps, 2, &[(0, 5), (1, 8)]);
        known.told(&steps);
        check(&known, &[step(3, &[(1, 8)])], 3, &[]);
        // It came back, and others may have moved it meanwhile.
        check(&known, &[step(4, &[(0, 5), (1, 9)])], 4, &[(0, 5), (1, 9)]);
        assert_eq!(known.to_tell(&[]), BTreeMap::new());
    }
}
