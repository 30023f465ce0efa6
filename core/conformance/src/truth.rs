//! Holds what was handed over against the known data, step by step.
//!
//! The order of different partitions is free, so a place in the data is a place in each partition.

use std::collections::BTreeMap;

use lockgate_core::Partition;

use crate::known::{Known, Seen};
use crate::report::Fault;
use crate::rule::Rule;

/// The known data, partition by partition.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    names: BTreeMap<Partition, usize>,
    partitions: Vec<Vec<Known>>,
}

/// How many records of each partition have been handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place(Vec<usize>);

impl Truth {
    pub(crate) fn add(&mut self, known: Known) {
        let number = *self.names.entry(known.partition.clone()).or_insert(self.partitions.len());
        if number == self.partitions.len() {
            self.partitions.push(Vec::new());
        }
        self.partitions[number].push(known);
    }

    pub(crate) fn records(&self) -> u64 {
        self.partitions.iter().map(|records| records.len() as u64).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.partitions.iter().flatten().map(Known::bytes).sum()
    }

    pub(crate) fn start(&self) -> Place {
        Place(vec![0; self.partitions.len()])
    }

    /// How many records come after `place`.
    pub(crate) fn left(&self, place: &Place) -> u64 {
        self.records() - place.0.iter().sum::<usize>() as u64
    }

    /// The first record after `place` in the first partition that has one.
    pub(crate) fn next(&self, place: &Place) -> Option<&Known> {
        self.partitions.iter().zip(&place.0).find_map(|(records, next)| records.get(*next))
    }

    /// Where `records` lead from `place`, if they are the next ones. `is_first`: they are the first that
    /// this reader hands over.
    pub(crate) fn follow(
        &self,
        place: &Place,
        records: &[Seen],
        is_first: bool,
    ) -> Result<Place, Fault> {
        let mut place = place.clone();
        for (i, seen) in records.iter().enumerate() {
            let Some(&number) = self.names.get(&seen.partition) else {
                let expected = match &self.listed()[..] {
                    "" => "no record: none are known".into(),
                    names => format!("a record of {names}"),
                };
                return Err(Fault::new(Rule::KeepsContent, expected, seen.to_string()));
            };
            let (partition, next) = (&self.partitions[number], &mut place.0[number]);
            if partition.get(*next).is_some_and(|known| known.is(seen)) {
                *next += 1;
                continue;
            }
            // Nothing of this partition has come from this reader before.
            let is_first = is_first && records[..i].iter().all(|r| r.partition != seen.partition);
            let rule = blame(partition, *next, seen, &records[i + 1..], is_first);
            let expected = match partition.get(*next) {
                Some(known) => known.to_string(),
                None => format!("no more records of {}", seen.partition),
            };
            return Err(Fault::new(rule, expected, seen.to_string()));
        }
        Ok(place)
    }

    fn listed(&self) -> String {
        let names: Vec<_> = self.names.keys().map(Partition::to_string).collect();
        names.join(", ")
    }
}

/// What is wrong when `seen` comes in place of the record with the number `next`.
fn blame(partition: &[Known], next: usize, seen: &Seen, after: &[Seen], is_first: bool) -> Rule {
    let was_given = partition[..next].iter().any(|known| known.is(seen));
    let is_later = partition[next..].iter().any(|known| known.is(seen));
    if !was_given && !is_later {
        Rule::KeepsContent
    } else if is_later && after.iter().any(|seen| partition[next].is(seen)) {
        Rule::KeepsOrder
    } else if is_first {
        Rule::StartsAtResumePoint
    } else if is_later {
        Rule::NothingLost
    } else {
        Rule::NothingDoubled
    }
}
