//! The middle of a run, in which neither connecting nor the end counts. Pure.

/// The part of the records at which it begins at the latest, and ends.
const FROM: f64 = 0.1;
const TO: f64 = 0.85;

/// It begins so many seconds after the first record at the latest, and is this long at most.
const WARM_SECONDS: f64 = 1.0;
const LONGEST_SECONDS: f64 = 4.0;

/// Told how far a run is, again and again; tells how fast it was.
pub(crate) struct Window {
    records: f64,
    first: Option<f64>,
    begun: Option<(f64, u64)>,
}

impl Window {
    /// Of a run of so many records.
    pub(crate) fn new(records: u64) -> Self {
        Self { records: records as f64, first: None, begun: None }
    }

    /// At this second so many records had been seen. How many a second there were, when enough is known.
    pub(crate) fn saw(&mut self, seconds: f64, records: u64) -> Option<f64> {
        if records == 0 {
            return None;
        }
        let first = *self.first.get_or_insert(seconds);
        let part = records as f64 / self.records;
        let Some((begun, before)) = self.begun else {
            if part >= FROM || seconds - first >= WARM_SECONDS {
                self.begun = Some((seconds, records));
            }
            return None;
        };
        let is_over = part >= TO || seconds - begun >= LONGEST_SECONDS;
        is_over.then(|| (records - before) as f64 / (seconds - begun).max(0.001))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_fast_run_goes_by_records() {
        let mut window = Window::new(100);
        let saw = [(0.5, 0), (1.0, 5), (1.5, 20), (2.0, 50)];
        for (seconds, records) in saw {
            assert_eq!(window.saw(seconds, records), None);
        }
        assert_eq!(window.saw(2.5, 90), Some(70.0));
    }

    #[test]
    fn the_middle_of_a_slow_run_goes_by_time() {
        let mut window = Window::new(1000);
        for (seconds, records) in [(1.0, 1), (1.9, 2), (2.0, 3), (5.9, 6)] {
            assert_eq!(window.saw(seconds, records), None);
        }
        assert_eq!(window.saw(6.0, 7), Some(1.0));
    }
}
