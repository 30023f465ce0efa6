//! The command protocol, explored: every property holds, every way ends, states that count as one are one,
//! and every fault that is put in on purpose is found.

use lockgate_controller::SequenceFault as Fault;
use lockgate_core::FaultTolerance::{AtLeastOnce, ExactlyOnce};
use lockgate_model::{CommandModel, Until, check_ends, check_shape, command_models, explore};

#[test]
fn every_property_holds() {
    for (name, model) in command_models(false) {
        let report = explore(name, model, Until::Broken);
        for verdict in &report.verdicts {
            let trace = verdict.trace.as_ref().map(|trace| trace.join("\n"));
            assert_eq!(trace, None, "{}: {}", report.model, verdict.property);
        }
        assert!(report.distinct > 10_000, "{}: only {} states", report.model, report.distinct);
    }
}

/// Were it otherwise, "at rest" would not be all there is to say about waiting for ever.
#[test]
fn every_way_ends() {
    for level in [ExactlyOnce, AtLeastOnce] {
        let longest = check_ends(&CommandModel::new(level, [1, 1], 1)).unwrap();
        assert!(longest > 20, "{level:?}: {longest}");
    }
}

#[test]
fn states_of_one_shape_have_one_future() {
    let small = [
        CommandModel::new(ExactlyOnce, [1, 1], 1),
        CommandModel::new(AtLeastOnce, [2, 0], 1),
        CommandModel::new(AtLeastOnce, [1, 1], 0).with_waiting_steps(),
    ];
    for model in small {
        let (_, several) = check_shape(&model, 3).unwrap();
        assert!(several > 500, "{model}: only {several} shapes had more than one state");
    }
}

/// What the readers promise, what they have, and how many disturbances.
type CommandSize = (lockgate_core::FaultTolerance, [u8; 2], u8);

/// What was put in, the model that finds it, and the property by which.
const FAULTS: [(Fault, CommandSize, &str); 22] = [
    (Fault::ExtendedTwice, (ExactlyOnce, [1, 1], 1), "no reader is sent a command"),
    (Fault::PausedTwice, (ExactlyOnce, [1, 1], 2), "a run fails only for a reason from outside"),
    (Fault::StopNeverLate, (AtLeastOnce, [2, 0], 1), "no assertion fails"),
    (Fault::WriteBeforeJournal, (ExactlyOnce, [1, 1], 1), "nothing is written before"),
    (Fault::JournalHalfLoaded, (ExactlyOnce, [2, 1], 1), "steps are written in order"),
    (Fault::PartDoubled, (AtLeastOnce, [1, 1], 1), "every record is written once, in order"),
    (Fault::BarrierIgnored, (AtLeastOnce, [1, 1], 1), "a checkpoint has the positions"),
    (Fault::DrainingSkipped, (ExactlyOnce, [1, 1], 1), "a checkpoint has the positions"),
    (Fault::ReplayedPositionLost, (ExactlyOnce, [1, 1], 1), "a checkpoint has the positions"),
    (Fault::EndsTooEarly, (ExactlyOnce, [1, 1], 1), "a complete run has written everything"),
    (Fault::StopWithoutCheckpoint, (ExactlyOnce, [1, 1], 1), "a stopped run has a checkpoint"),
    (Fault::BarrierPausedByStop, (AtLeastOnce, [2, 0], 1), "a stop is late only if"),
    (Fault::FormingKept, (ExactlyOnce, [1, 1], 1), "a stop is late only if"),
    (Fault::RestForgotten, (AtLeastOnce, [2, 1], 1), "nothing waits for ever"),
    (Fault::HeldUpByBarrier, (AtLeastOnce, [2, 1], 1), "nothing waits for ever"),
    (Fault::CheckpointNeverDue, (ExactlyOnce, [1, 1], 1), "a checkpoint comes unless"),
    (Fault::PauseReasonsMixed, (ExactlyOnce, [1, 1], 2), "no input goes on while a disk is full"),
    (Fault::UserPauseForgotten, (ExactlyOnce, [1, 1], 2), "an input that a user has paused"),
    (Fault::ReloadUnheard, (ExactlyOnce, [1, 1], 1), "limits change for readers"),
    (Fault::ReloadStaysPaused, (ExactlyOnce, [1, 1], 1), "nothing waits for ever"),
    (Fault::CalledOffStaysPaused, (ExactlyOnce, [1, 1], 2), "nothing waits for ever"),
    (Fault::StoppedAskedAgain, (AtLeastOnce, [1, 1], 1), "a reader that has stopped"),
];

#[test]
#[cfg(debug_assertions)]
fn every_fault_is_found() {
    for (fault, (level, records, disturbances), property) in FAULTS {
        let model = CommandModel::new(level, records, disturbances).with_fault(fault);
        let report = explore(format!("{fault:?}"), model, Until::Broken);
        let mut broken = report.verdicts.iter().filter(|verdict| verdict.trace.is_some());
        let found = broken.find(|verdict| verdict.property.starts_with(property));
        let found = found.unwrap_or_else(|| panic!("{fault:?} does not break: {property}"));
        let trace = found.trace.iter().flatten().map(|line| format!("- {line}\n"));
        let text = format!("{}\n\n{}", found.property, trace.collect::<String>());
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(format!("{fault:?}"), text);
        });
    }
}
