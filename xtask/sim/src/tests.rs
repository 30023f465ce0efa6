//! The simulation itself: a seed gives the same run again, and what goes wrong is found and made smaller.

use lockgate_controller::{HostFault, SequenceFault};
use tempfile::TempDir;

use crate::deliberate::Deliberate;
use crate::life::simulate;
use crate::plan::Plan;
use crate::shrink::shrink;

#[test]
fn a_seed_gives_the_same_run_again() {
    let folder = TempDir::new().unwrap();
    for seed in 0..40 {
        let plan = Plan::of(seed);
        let [first, second] = [0, 1].map(|_| simulate(&plan, None, true, folder.path()).unwrap());
        assert_eq!(first.breaches, Vec::<String>::new(), "seed {seed}");
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert_eq!(first.coverage, second.coverage, "seed {seed}");
    }
}

#[test]
fn a_plan_can_be_shown_and_run_again() {
    let plan = Plan::of(7);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[test]
fn what_goes_wrong_is_made_smaller() {
    let folder = TempDir::new().unwrap();
    let doubled = Deliberate::Host(HostFault::Sequence(SequenceFault::PartDoubled));
    let found = (0..).map(Plan::of).find(|plan| {
        plan.inputs.len() > 1
            && !simulate(plan, Some(doubled), false, folder.path()).unwrap().breaches.is_empty()
    });
    let (plan, breaches) = shrink(found.unwrap(), Some(doubled), folder.path()).unwrap();
    insta::assert_snapshot!(breaches.join("\n"));
    assert!(plan.lives.is_empty(), "no fault from outside is needed");
    let records = plan.inputs.iter().map(|input| input.partitions * input.records).sum::<u32>();
    assert_eq!(records, 1);
}
