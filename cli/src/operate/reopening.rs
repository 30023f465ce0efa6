//! How long to wait before a pipeline is opened again, when somebody else took over part of its work.

use std::time::Duration;

/// The first delay; each one after it is twice as long,
const FIRST: Duration = Duration::from_millis(100);
/// but not longer than this.
const LONGEST: Duration = Duration::from_secs(5);
/// Whoever ran for so long ran well.
const WELL: Duration = Duration::from_secs(60);

/// The attempts since the pipeline last ran well.
#[derive(Debug, Default)]
pub(super) struct Reopening {
    attempts: u32,
}

impl Reopening {
    /// The delay after a run that took so long.
    pub(super) fn delay(&mut self, ran: Duration) -> Duration {
        if ran >= WELL {
            self.attempts = 0;
        }
        let delay = FIRST.saturating_mul(2_u32.saturating_pow(self.attempts)).min(LONGEST);
        self.attempts = self.attempts.saturating_add(1);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_until_a_run_goes_well() {
        let mut reopening = Reopening::default();
        let mut check = |ran_s: u64, expected_ms: u128| {
            let delay = reopening.delay(Duration::from_secs(ran_s));
            assert_eq!(delay.as_millis(), expected_ms);
        };
        for expected_ms in [100, 200, 400, 800, 1600, 3200] {
            check(1, expected_ms);
        }
        for _ in 0..100 {
            check(59, 5000);
        }
        check(60, 100);
        check(0, 200);
    }
}
