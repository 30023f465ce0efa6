//! The partition contexts explored at small sizes, and each deliberate fault caught.

use lockgate_model::{SeedModel, Until, WiderModel, check_projection, explore, spec::Spec};

fn seed(partitions: u32, max_pending: u32) -> SeedModel {
    SeedModel { spec: Spec { partitions, max_pending }, fault: None }
}

/// The numbers are those that TLC finds on the specification.
#[test]
fn the_states_are_those_of_the_specification() {
    let sizes = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1)];
    let mut table = String::new();
    for (partitions, max_pending) in sizes {
        let report = explore("", seed(partitions, max_pending), Until::AllSeen);
        assert!(report.holds(), "{report}");
        let (distinct, generated, depth) = (report.distinct, report.generated, report.depth);
        table += &format!("{partitions} {max_pending}: {distinct} {generated} {depth}\n");
    }
    insta::assert_snapshot!(table, @r"
    1 1: 305 714 15
    1 2: 441 1021 23
    1 3: 567 1300 31
    2 1: 3633 9192 24
    2 2: 7345 18274 39
    2 3: 11613 28788 55
    3 1: 47358 126124 31
    ");
}

#[test]
fn the_projection_is_sound() {
    for (partitions, max_pending) in [(1, 1), (1, 3), (2, 2)] {
        check_projection(&seed(partitions, max_pending), 4).unwrap();
    }
}

#[test]
fn the_wider_models_hold() {
    for (name, model) in WiderModel::small() {
        let report = explore(name, model, Until::AllSeen);
        assert!(report.holds(), "{report}");
    }
}

/// Without debug assertions a fault has no effect.
#[cfg(debug_assertions)]
mod faults {
    use lockgate_core::PartitionFault;
    use lockgate_model::Report;

    use super::*;

    /// The first property that a fault breaks, with the shortest way to it.
    fn caught(reports: impl Iterator<Item = Report>) -> String {
        for report in reports {
            if let Some(verdict) = report.verdicts.iter().find(|verdict| verdict.trace.is_some()) {
                let trace = verdict.trace.iter().flatten();
                let lines = trace.enumerate().map(|(i, line)| format!("{:>2}. {line}\n", i + 1));
                return format!(
                    "{}: {}\n{}",
                    report.model,
                    verdict.property,
                    lines.collect::<String>()
                );
            }
        }
        "not caught".into()
    }

    fn wider_with(fault: PartitionFault) -> impl Iterator<Item = Report> {
        let models = WiderModel::small().into_iter();
        models.map(move |(name, model)| {
            explore(name, WiderModel { fault: Some(fault), ..model }, Until::Broken)
        })
    }

    #[test]
    fn each_fault_is_caught_by_the_wider_model() {
        for fault in PartitionFault::ALL {
            insta::assert_snapshot!(format!("wider_{fault:?}"), caught(wider_with(fault)));
        }
    }

    /// What the specification speaks of is caught there too.
    #[test]
    fn faults_in_what_is_specified_are_caught_by_the_specification() {
        let faults = [
            PartitionFault::FullAboveTheLimit,
            PartitionFault::RevokedNotMarked,
            PartitionFault::ResumesDuringReload,
            PartitionFault::AssignedAsRunning,
            PartitionFault::EndedNotCounted,
        ];
        for fault in faults {
            let model = SeedModel { fault: Some(fault), ..seed(1, 2) };
            let reports = std::iter::once(explore("as specified", model, Until::Broken));
            insta::assert_snapshot!(format!("seed_{fault:?}"), caught(reports));
        }
    }
}
