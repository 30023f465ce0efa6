//! Makes a plan smaller that something went wrong with, as long as something still does.

use std::io;
use std::path::Path;

use crate::deliberate::Deliberate;
use crate::life::simulate;
use crate::plan::Plan;

/// The smallest plan that was found, and what goes wrong with it.
///
/// # Errors
/// If the folder cannot be used.
pub(crate) fn shrink(
    plan: Plan,
    deliberate: Option<Deliberate>,
    folder: &Path,
) -> io::Result<(Plan, Vec<String>)> {
    let mut breaches = simulate(&plan, deliberate, false, folder)?.breaches;
    let mut smallest = plan;
    loop {
        let mut is_smaller = false;
        for candidate in candidates(&smallest) {
            let found = simulate(&candidate, deliberate, false, folder)?.breaches;
            if !found.is_empty() {
                (smallest, breaches, is_smaller) = (candidate, found, true);
                break;
            }
        }
        if !is_smaller {
            return Ok((smallest, breaches));
        }
    }
}

/// Plans that are smaller by one thing, the most first.
fn candidates(plan: &Plan) -> Vec<Plan> {
    let mut candidates = Vec::new();
    let mut add = |change: &dyn Fn(&mut Plan)| {
        let mut candidate = plan.clone();
        change(&mut candidate);
        if candidate != *plan {
            candidates.push(candidate);
        }
    };
    for life in 0..plan.lives.len() {
        add(&|plan| _ = plan.lives.remove(life));
    }
    for life in 0..plan.lives.len() {
        for strike in 0..plan.lives[life].len() {
            add(&|plan| _ = plan.lives[life].remove(strike));
        }
    }
    // The last ones only, so that faults mean the same inputs and outputs as before.
    if plan.inputs.len() > 1 && !plan.strikes_input(plan.inputs.len() - 1) {
        add(&|plan| _ = plan.inputs.pop());
    }
    if plan.outputs.len() > 1 && !plan.strikes_output(plan.outputs.len() - 1) {
        add(&|plan| _ = plan.outputs.pop());
    }
    for input in 0..plan.inputs.len() {
        add(&|plan| plan.inputs[input].records /= 2);
        add(&|plan| plan.inputs[input].records = plan.inputs[input].records.saturating_sub(1));
        add(&|plan| plan.inputs[input].partitions = 1);
        add(&|plan| plan.inputs[input].waits = false);
    }
    candidates
}
