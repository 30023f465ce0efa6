//! What several rounds say: the median, and between what the values lie. Pure.

use serde::Serialize;

/// The values of one quantity in all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// As many are above as below.
    pub(crate) median: f64,
    /// The lowest.
    pub(crate) min: f64,
    /// The highest.
    pub(crate) max: f64,
    /// In the order of the rounds.
    pub(crate) values: Vec<f64>,
}

impl Spread {
    /// Of one value at least; without any, all is zero.
    pub(crate) fn of(values: Vec<f64>) -> Self {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (sorted.first().copied(), sorted.last().copied());
        let upper = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        let median = if sorted.len().is_multiple_of(2) && !sorted.is_empty() {
            f64::midpoint(sorted[sorted.len() / 2 - 1], upper)
        } else {
            upper
        };
        Self { median, min: min.unwrap_or_default(), max: max.unwrap_or_default(), values }
    }

    /// A value that was measured once.
    pub(crate) fn once(value: f64) -> Self {
        Self::of(vec![value])
    }

    /// What `ours` is to `theirs`, round by round.
    pub(crate) fn ratio(ours: &Self, theirs: &Self) -> Self {
        let pairs = ours.values.iter().zip(&theirs.values);
        Self::of(pairs.map(|(ours, theirs)| ours / theirs).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], median: f64, min: f64, max: f64) {
        let spread = Spread::of(values.to_vec());
        assert_eq!((spread.median, spread.min, spread.max), (median, min, max));
        assert_eq!(spread.values, values);
    }

    #[test]
    fn the_median_lies_in_the_middle() {
        check(&[3.0], 3.0, 3.0, 3.0);
        check(&[3.0, 1.0, 2.0], 2.0, 1.0, 3.0);
        check(&[4.0, 1.0, 2.0, 3.0], 2.5, 1.0, 4.0);
        check(&[], 0.0, 0.0, 0.0);
    }

    #[test]
    fn a_ratio_is_one_of_values_of_the_same_round() {
        let ours = Spread::of(vec![1.0, 8.0, 3.0]);
        let theirs = Spread::of(vec![2.0, 4.0, 3.0]);
        assert_eq!(Spread::ratio(&ours, &theirs).values, [0.5, 2.0, 1.0]);
    }
}
