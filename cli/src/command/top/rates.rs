//! How fast things are, from two reports. Pure.

use std::time::Instant;

use super::Seen;
use crate::control::report::Report;

/// A second's worth, of each input and output in their order; empty if there is only one report.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) inputs: Vec<Rate>,
    pub(super) outputs: Vec<Rate>,
    pub(super) steps: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) records: f64,
    pub(super) bytes: f64,
}

impl Rates {
    pub(super) fn between(before: Option<(Instant, &Report)>, seen: &Seen) -> Self {
        let Some((at, before)) = before else { return Self::default() };
        Self::over(before, &seen.report, seen.at.saturating_duration_since(at).as_secs_f64())
    }

    /// From one report to the next one, so many seconds later.
    pub(super) fn over(before: &Report, now: &Report, seconds: f64) -> Self {
        // Another run counts anew.
        let is_new = now.pid != before.pid || now.steps.count < before.steps.count;
        if is_new || seconds <= 0.0 {
            return Self::default();
        }
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let rate = |now: (u64, u64), before: (u64, u64)| Rate {
            records: per_second(now.0, before.0),
            bytes: per_second(now.1, before.1),
        };
        let inputs = now.inputs.iter().zip(&before.inputs);
        let outputs = now.outputs.iter().zip(&before.outputs);
        Self {
            inputs: inputs
                .map(|(now, before)| rate((now.records, now.bytes), (before.records, before.bytes)))
                .collect(),
            outputs: outputs
                .map(|(now, before)| rate((now.records, now.bytes), (before.records, before.bytes)))
                .collect(),
            steps: per_second(now.steps.count, before.steps.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::status::tests::report;

    #[test]
    fn rates_are_between_reports_of_one_run() {
        let before = report();
        let mut now = report();
        now.inputs[0].records += 500;
        now.steps.count += 10;
        let rates = Rates::over(&before, &now, 2.0);
        assert_eq!((rates.inputs[0].records, rates.inputs[1].records), (250.0, 0.0));
        assert_eq!(rates.steps, 5.0);
        now.pid += 1;
        assert_eq!(Rates::over(&before, &now, 2.0), Rates::default());
    }
}
