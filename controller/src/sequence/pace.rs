//! How fast the records of one input may enter steps.

use std::num::NonZeroU64;
use std::time::Duration;

/// How much of what an input was not given to use it may catch up at once. Also how much it is asked for at a time.
const BURST: Duration = Duration::from_millis(100);

/// **Invariant:** over any time, the records taken are at most the rate times that time plus [`BURST`], and one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pace {
    rate: NonZeroU64,
    /// When the next record may be taken.
    pub(super) next_at: Duration,
}

impl Pace {
    pub(super) fn new(rate: NonZeroU64, now: Duration) -> Self {
        Self { rate, next_at: now }
    }

    /// From now on so many records a second.
    pub(super) fn set(&mut self, rate: NonZeroU64, now: Duration) {
        *self = Self { rate, next_at: self.next_at.min(now + BURST) };
    }

    /// How many records may be asked for at a time; at least one.
    pub(super) fn at_most(&self) -> u64 {
        (u128::from(self.rate.get()) * BURST.as_millis() / 1000).max(1) as u64
    }

    /// So many records were taken.
    pub(super) fn took(&mut self, now: Duration, records: u64) {
        let nanos = u128::from(records) * 1_000_000_000 / u128::from(self.rate.get());
        let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.next_at = self.next_at.max(now.saturating_sub(BURST)).saturating_add(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes as much as allowed, whenever it is allowed, until `end`; how much that was.
    fn taken(pace: &mut Pace, end: Duration, held: impl Fn(Duration) -> u64) -> u64 {
        let mut taken = 0;
        loop {
            let now = pace.next_at;
            if now >= end {
                return taken;
            }
            let records = held(now).min(pace.at_most());
            pace.took(now, records);
            taken += records;
        }
    }

    #[test]
    fn the_rate_is_kept_over_time() {
        let check = |rate: u64, held: u64| {
            let rate = NonZeroU64::new(rate).unwrap();
            let mut pace = Pace::new(rate, Duration::ZERO);
            let taken = taken(&mut pace, Duration::from_secs(10), |_| held);
            let expected = rate.get() * 10;
            assert!(taken.abs_diff(expected) <= rate.get() / 10 + 1, "{taken} of {expected}");
        };
        for rate in [1, 3, 9, 10, 11, 1000, 1_000_000] {
            check(rate, u64::MAX);
            check(rate, 1);
        }
    }

    #[test]
    fn what_was_not_used_is_not_kept_for_long() {
        let rate = NonZeroU64::new(1000).unwrap();
        let mut pace = Pace::new(rate, Duration::ZERO);
        let late = Duration::from_secs(60);
        pace.took(late, 50);
        assert_eq!(pace.next_at, late - BURST + Duration::from_millis(50));
    }
}
