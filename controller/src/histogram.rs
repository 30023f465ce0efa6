//! Durations, counted by how long they are.

use std::time::Duration;

/// The upper ends of the buckets, in microseconds; what is longer has a bucket of its own.
const BOUNDS_US: [u64; 20] = [
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];

/// How many durations there were, by how long they were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    counts: [u64; BOUNDS_US.len() + 1],
    sum: Duration,
}

impl Histogram {
    /// Counts `times` durations of this length.
    pub fn observe(&mut self, duration: Duration, times: u64) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.counts[bucket] += times;
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        self.sum = self.sum.saturating_add(duration.saturating_mul(times));
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The upper end of each bucket and how many were not longer, growing; what is longer than the last is only in
    /// [`count`](Self::count).
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut below = 0;
        BOUNDS_US.iter().zip(&self.counts).map(move |(bound, count)| {
            below += count;
            (Duration::from_micros(*bound), below)
        })
    }

    /// The upper end of the bucket in which the `share`-th of all lies (0.99: all but one in a hundred are not
    /// longer); `None` if there were none, or it lies behind the last bucket.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * share).ceil().max(1.0);
        self.buckets().find(|(_, below)| *below as f64 >= rank).map(|(bound, _)| bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_ends_at_or_after_them() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        histogram.observe(Duration::from_micros(50), 3);
        histogram.observe(Duration::from_micros(51), 1);
        histogram.observe(Duration::from_secs(301), 1);
        let buckets: Vec<_> = histogram.buckets().map(|(_, below)| below).collect();
        assert_eq!(buckets[..3], [3, 4, 4]);
        assert_eq!(buckets.last(), Some(&4));
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.sum(), Duration::from_micros(201) + Duration::from_secs(301));
        assert_eq!(histogram.quantile(0.5), Some(Duration::from_micros(50)));
        assert_eq!(histogram.quantile(0.8), Some(Duration::from_micros(100)));
        assert_eq!(histogram.quantile(1.0), None);
    }
}
