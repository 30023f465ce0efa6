//! How fast requests are let through. Pure: the time is an argument.
//!
//! What comes too fast is delayed, never refused, so that whoever is greedy waits and nobody needs to try again.

use std::time::Duration;

/// A steady pace with some requests at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    interval: Duration,
    ahead: Duration,
    next: Duration,
}

impl Pace {
    /// So many a second, and `at_once` of them together after a pause.
    pub(super) fn new(per_second: u32, at_once: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Self { interval, ahead: interval * at_once.saturating_sub(1), next: Duration::ZERO }
    }

    /// How long a request has to wait that comes at `now`, a time since any fixed moment.
    pub(super) fn delay(&mut self, now: Duration) -> Duration {
        let next = self.next.max(now);
        self.next = next + self.interval;
        next.saturating_sub(now + self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_go_at_once_and_the_rest_at_the_pace() {
        let mut pace = Pace::new(50, 3);
        let mut check = |now_ms: u64, expected_ms: u128| {
            assert_eq!(pace.delay(Duration::from_millis(now_ms)).as_millis(), expected_ms);
        };
        check(0, 0);
        check(0, 0);
        check(0, 0);
        check(0, 20);
        check(0, 40);
        check(40, 20);
        check(1000, 0);
        check(1000, 0);
        check(1000, 0);
        check(1000, 20);
    }

    #[test]
    fn whoever_keeps_the_pace_never_waits() {
        let mut pace = Pace::new(10, 1);
        assert!((0..100).all(|n| pace.delay(Duration::from_millis(n * 100)).is_zero()));
    }
}
