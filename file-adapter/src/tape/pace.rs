//! When replayed steps are due.

use std::time::{Duration, Instant};

use lockgate_core::Batch;

/// How fast replayed steps follow one another: this many times as fast as their records' timestamps say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(
    /// Above zero.
    pub f64,
);

/// Steps follow one another as their records' timestamps do.
pub(super) struct Pace {
    speed: Speed,
    /// When the first record came, and its timestamp in milliseconds.
    begun: Option<(Instant, i64)>,
}

impl Pace {
    pub(super) fn new(speed: Speed) -> Self {
        Self { speed, begun: None }
    }

    /// When these records are due.
    pub(super) fn due(&mut self, batches: &[Batch]) -> Option<Instant> {
        let last = batches.iter().flat_map(Batch::iter).filter_map(|record| record.timestamp);
        let last = last.map(|timestamp| timestamp.ms).max()?;
        let first = batches.iter().flat_map(Batch::iter).find_map(|record| record.timestamp)?;
        let (begun, base) = *self.begun.get_or_insert((Instant::now(), first.ms));
        let after = last.saturating_sub(base).max(0) as f64 / 1000.0 / self.speed.0;
        let after = Duration::try_from_secs_f64(after).unwrap_or(Duration::MAX);
        begun.checked_add(after)
    }
}
