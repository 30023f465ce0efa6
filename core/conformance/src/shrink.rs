//! Finds a shorter schedule that fails in the same way, by leaving operations out and making others plainer.
//!
//! A reader with threads does not always fail again: a candidate that passes by chance is not taken, which
//! costs length and never truth.

use std::time::{Duration, Instant};

use crate::life::Patience;
use crate::rule::Rule;
use crate::run::{Case, Outcome, carry_out};
use crate::schedule::{Op, Schedule};

/// Most candidates that are tried.
const ATTEMPTS: usize = 500;
/// No candidate is begun after this.
const TIME: Duration = Duration::from_secs(5);
/// A missing answer is waited for less long in a candidate: it is missing already.
const IMPATIENT: Duration = Duration::from_millis(250);

/// The shortest schedule found that breaks `rule`, with its outcome. `failed` broke it after `begun`
/// operations.
pub(crate) fn shrink(
    case: Case<'_>,
    failed: &Schedule,
    rule: Rule,
    begun: usize,
) -> Option<(Schedule, Outcome)> {
    let quick = match case.patience {
        Patience::None => case,
        Patience::Until(time) => Case { patience: Patience::Until(time.min(IMPATIENT)), ..case },
    };
    let breaks = |case: Case<'_>, ops: Vec<Op>| {
        let schedule = Schedule { ops, ..failed.clone() };
        let outcome = carry_out(case, &schedule);
        let breaks = outcome.fault.as_ref().is_some_and(|(fault, _)| fault.rule == rule);
        breaks.then_some((schedule, outcome))
    };
    let deadline = Instant::now() + TIME;
    let mut attempts = 0;
    let mut fails = |ops: &[Op]| {
        attempts += 1;
        let may_go_on = attempts <= ATTEMPTS && Instant::now() < deadline;
        may_go_on.then(|| breaks(quick, ops.to_vec()).is_some())
    };
    let mut shortest = shortest(&failed.ops[..begun], &mut fails);
    for place in 0..shortest.len() {
        let mut plainer = shortest.clone();
        plainer[place] = plainer[place].plainer(failed.limits);
        if plainer != shortest && fails(&plainer) == Some(true) {
            shortest = plainer;
        }
    }
    // Once more, with the patience that was asked for.
    breaks(case, shortest).or_else(|| breaks(case, failed.ops.clone()))
}

/// Leaves out pieces of `ops`, ever smaller ones, as long as it still `fails`; `None` from `fails` ends the
/// search.
fn shortest<T: Clone>(ops: &[T], mut fails: impl FnMut(&[T]) -> Option<bool>) -> Vec<T> {
    let mut ops = ops.to_vec();
    let mut piece = ops.len().div_ceil(2).max(1);
    loop {
        let mut is_shorter = false;
        let mut from = 0;
        while from < ops.len() {
            let to = (from + piece).min(ops.len());
            let candidate = [&ops[..from], &ops[to..]].concat();
            match fails(&candidate) {
                None => return ops,
                Some(true) => {
                    ops = candidate;
                    is_shorter = true;
                }
                Some(false) => from = to,
            }
        }
        if piece == 1 && !is_shorter {
            return ops;
        }
        piece = piece.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_is_left_out() {
        let ops: Vec<u32> = (0..30).collect();
        let fails = |ops: &[u32]| Some([3, 17, 29].iter().all(|op| ops.contains(op)));
        assert_eq!(shortest(&ops, fails), [3, 17, 29]);
        assert_eq!(shortest(&ops, |_| Some(true)), [0; 0]);
        assert_eq!(shortest(&ops, |_| None), ops);
        assert_eq!(shortest::<u32>(&[], |_| Some(true)), [0; 0]);
    }
}
