//! The partitions of an input in few numbers, and which of them are shown one by one.
//!
//! An input may have any number of partitions or files; what is rendered may not grow with it.

use std::cmp::Reverse;

use lockgate_core::PartitionStatus;

/// Up to so many partitions of an input are all shown.
pub(super) const ALL_SHOWN: usize = 1_000;
/// Of more than that, so many with the largest lag.
pub(super) const MOST_LAGGING: usize = 100;

/// The partitions of an input.
#[derive(Debug, PartialEq)]
pub(super) struct Partitions<'a> {
    /// How many there are.
    pub(super) number: usize,
    /// The lag of all together; `None` while no end is known.
    pub(super) lag: Option<u64>,
    /// The largest lag; `None` while no end is known.
    pub(super) lag_max: Option<u64>,
    /// Those whose lag is not 0.
    pub(super) lagging: usize,
    /// Those whose end is not known.
    pub(super) unknown: usize,
    /// Those that are shown one by one.
    pub(super) shown: Vec<&'a PartitionStatus>,
}

impl<'a> Partitions<'a> {
    pub(super) fn new(partitions: &'a [PartitionStatus]) -> Self {
        let lags = || partitions.iter().filter_map(PartitionStatus::lag);
        let known = lags().count();
        Self {
            number: partitions.len(),
            lag: (known > 0).then(|| lags().fold(0, u64::saturating_add)),
            lag_max: lags().max(),
            lagging: lags().filter(|lag| *lag > 0).count(),
            unknown: partitions.len() - known,
            shown: shown(partitions),
        }
    }
}

fn shown(partitions: &[PartitionStatus]) -> Vec<&PartitionStatus> {
    if partitions.len() <= ALL_SHOWN {
        return partitions.iter().collect();
    }
    // Without a known end last; of the same lag the first ones, so that series do not come and go for nothing.
    let mut order: Vec<_> = partitions.iter().enumerate().collect();
    let key = |(place, partition): &(usize, &PartitionStatus)| (Reverse(partition.lag()), *place);
    order.select_nth_unstable_by_key(MOST_LAGGING, key);
    order.truncate(MOST_LAGGING);
    order.sort_unstable_by_key(key);
    order.into_iter().map(|(_, partition)| partition).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockgate_core::Partition;

    use super::*;

    fn partition(number: usize, lag: Option<u64>) -> PartitionStatus {
        let number = u32::try_from(number).unwrap();
        PartitionStatus {
            partition: Arc::new(Partition { source: "orders".into(), number: Some(number) }),
            position: 10,
            end: lag.map(|lag| 10 + lag),
        }
    }

    fn numbers(shown: &[&PartitionStatus]) -> Vec<u32> {
        shown.iter().map(|partition| partition.partition.number.unwrap()).collect()
    }

    #[test]
    fn unknown_ends_are_counted_apart_from_lags_of_0() {
        let none = Partitions::new(&[]);
        assert_eq!((none.number, none.lag, none.lag_max), (0, None, None));
        let mixed = [partition(0, None), partition(1, Some(0)), partition(2, Some(7))];
        let mixed = Partitions::new(&mixed);
        assert_eq!(
            (mixed.lag, mixed.lag_max, mixed.lagging, mixed.unknown),
            (Some(7), Some(7), 1, 1)
        );
        let huge = [partition(0, Some(u64::MAX - 10)), partition(1, Some(100))];
        assert_eq!(Partitions::new(&huge).lag, Some(u64::MAX));
    }

    #[test]
    fn of_many_partitions_those_with_the_largest_lag_are_shown() {
        let all: Vec<_> = (0..ALL_SHOWN).map(|number| partition(number, None)).collect();
        assert_eq!(Partitions::new(&all).shown.len(), ALL_SHOWN);

        let lag = |number| match number {
            500 => Some(3),
            900 => Some(4),
            _ if number % 2 == 0 => None,
            _ => Some(0),
        };
        let many: Vec<_> = (0..=ALL_SHOWN).map(|number| partition(number, lag(number))).collect();
        let many = Partitions::new(&many);
        assert_eq!((many.number, many.lag), (ALL_SHOWN + 1, Some(7)));
        assert_eq!(many.shown.len(), MOST_LAGGING);
        assert_eq!(numbers(&many.shown[..5]), [900, 500, 1, 3, 5]);
    }
}
