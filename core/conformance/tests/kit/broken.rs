//! Readers that each break one sentence of the protocol, and what is said about them.

mod reader;

use std::time::Duration;

use lockgate_conformance::{Conformance, Known, Report, Rule};

use self::reader::{Broken, VALUES, Wrong};
use crate::threaded::Threaded;

/// The report about a reader with this fault.
fn report(wrong: Wrong) -> Report {
    *test(wrong).run().expect_err("the fault was not found")
}

fn test(wrong: Wrong) -> Conformance<'static> {
    let known = VALUES.map(|value| Known::new("memory", value).partition(0));
    Conformance::new(move || Broken(wrong)).holds(known).answers_at_once()
}

/// The rule that each fault breaks.
const FAULTS: &[(Wrong, Rule)] = &[
    (Wrong::FailsOnGoodData, Rule::ReadsGoodData),
    (Wrong::CannotOpenAtItsPositions, Rule::OpensAtItsPositions),
    (Wrong::BuffersOnOpening, Rule::QuietUntilExtend),
    (Wrong::BuffersAfterReplay, Rule::QuietUntilExtend),
    (Wrong::StopsReadingAfterAWhile, Rule::ReadsWhenExtended),
    (Wrong::StartsFromTheBeginning, Rule::StartsAtResumePoint),
    (Wrong::SkipsOneAfterResuming, Rule::StartsAtResumePoint),
    (Wrong::GivesOneAgainAfterResuming, Rule::StartsAtResumePoint),
    (Wrong::ForgetsReplays, Rule::StartsAtResumePoint),
    (Wrong::ReadsOnAfterPause, Rule::StopsAtPause),
    (Wrong::IgnoresQueue, Rule::AnswersQueue),
    (Wrong::IgnoresQueueWhilePaused, Rule::AnswersQueue),
    (Wrong::IgnoresQueueAfterTheEnd, Rule::AnswersQueue),
    (Wrong::IgnoresReplay, Rule::AnswersReplay),
    (Wrong::AnswersTwice, Rule::AnswersOnlyWhenAsked),
    (Wrong::HandsOverNothing, Rule::HandsOverWhatItHolds),
    (Wrong::AnnouncesTooLittle, Rule::AnnouncesWhatItBuffers),
    (Wrong::AnnouncesNoReplay, Rule::AnnouncesReplays),
    (Wrong::IgnoresMaxBatchSize, Rule::KeepsMaxBatchSize),
    (Wrong::IgnoresLimits, Rule::KeepsQueueLimits),
    (Wrong::GivesSeekOnly, Rule::KeepsItsPromise),
    (Wrong::GivesChangesOnly, Rule::GivesWholePositionFirst),
    (Wrong::EndsAtABarrier, Rule::ClearsBarrierAtEnd),
    (Wrong::NeverEnds, Rule::ReportsEnd),
    (Wrong::EndsTwice, Rule::ReportsEnd),
    (Wrong::EndsTooEarly, Rule::NothingAfterEnd),
    (Wrong::ClosesBeforeDrained, Rule::DrainsBeforeClosing),
    (Wrong::ClosesInSilence, Rule::ReportsErrorBeforeClosing),
    (Wrong::ClosesAfterASmallError, Rule::ReportsErrorBeforeClosing),
    (Wrong::DiesInQueue, Rule::FinishesItsAnswer),
    (Wrong::PanicsInQueue, Rule::DoesNotPanic),
    (Wrong::NeverCloses, Rule::ClosesAfterDisconnect),
    (Wrong::LosesARecord, Rule::NothingLost),
    (Wrong::LosesTheLastRecord, Rule::NothingLost),
    (Wrong::DoublesARecord, Rule::NothingDoubled),
    (Wrong::Reorders, Rule::KeepsOrder),
    (Wrong::ChangesAValue, Rule::KeepsContent),
    (Wrong::ReplaysOneLess, Rule::ReplaysTheSame),
    (Wrong::ReplaysOtherContent, Rule::ReplaysTheSame),
];

#[test]
fn each_fault_is_found_and_named() {
    let mut texts = String::new();
    for (wrong, rule) in FAULTS {
        let report = report(*wrong);
        assert_eq!(report.rule(), *rule, "{wrong:?}\n{report}");
        let (level, expected, came) = (report.level(), report.expected(), report.came());
        texts +=
            &format!("{wrong:?}: {rule}, {level:?}\n  expected: {expected}\n  came:     {came}\n");
    }
    insta::assert_snapshot!(texts);
}

#[test]
fn every_rule_is_broken_by_a_reader_here() {
    let elsewhere = [Rule::QuietAfterFatalError];
    let broken: Vec<Rule> = FAULTS.iter().map(|(_, rule)| *rule).chain(elsewhere).collect();
    for rule in Rule::ALL {
        assert!(broken.contains(rule), "no reader breaks {rule}");
    }
}

/// The whole text, as a stranger meets it.
#[test]
fn reports() {
    let text = |wrong| report(wrong).to_string();
    insta::assert_snapshot!("report_of_a_late_answer", text(Wrong::IgnoresQueueWhilePaused));
    insta::assert_snapshot!("report_of_a_wrong_start", text(Wrong::ForgetsReplays));
    insta::assert_snapshot!("report_of_another_replay", text(Wrong::ReplaysOtherContent));
}

#[test]
fn the_shortest_schedule_has_nothing_that_is_not_needed() {
    // Extend, wait, Queue; crash; Extend, wait, Queue.
    assert!(report(Wrong::ForgetsReplays).operations() <= 5);
    // Extend, Pause, Queue.
    assert_eq!(report(Wrong::IgnoresQueueWhilePaused).operations(), 3);
    // Reading to the end extends by itself.
    assert_eq!(report(Wrong::LosesTheLastRecord).operations(), 1);
    // Nothing but opening it.
    assert_eq!(report(Wrong::BuffersOnOpening).operations(), 0);
}

#[test]
fn a_seed_repeats_its_report() {
    for wrong in [Wrong::ForgetsReplays, Wrong::Reorders, Wrong::EndsAtABarrier] {
        let first = report(wrong);
        let again = *test(wrong).seed(first.seed().unwrap()).schedules(1).run().unwrap_err();
        assert_eq!(first.to_string(), again.to_string());
    }
}

/// With threads a missing answer is one that does not come in time, and a fault need not show every time.
#[test]
fn faults_of_readers_with_threads_are_found() {
    let known = VALUES.map(|value| Known::new("memory", value).partition(0));
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(60));
    let faults = [
        (Wrong::IgnoresQueueWhilePaused, Rule::AnswersQueue, short),
        (Wrong::NeverCloses, Rule::ClosesAfterDisconnect, short),
        (Wrong::ReadsOnAfterPause, Rule::StopsAtPause, long),
        (Wrong::ForgetsReplays, Rule::StartsAtResumePoint, long),
        (Wrong::DiesInQueue, Rule::FinishesItsAnswer, long),
    ];
    for (wrong, rule, deadline) in faults {
        let test = Conformance::new(move || Threaded(Broken(wrong))).holds(known.clone());
        let report = *test.deadline(deadline).run().unwrap_err();
        assert_eq!(report.rule(), rule, "{wrong:?}\n{report}");
    }
}

/// What the protocol leaves open is open.
#[test]
fn what_is_allowed_is_not_a_fault() {
    for right in [Wrong::Nothing, Wrong::ClosesWhenDrained, Wrong::BuffersAfterDisconnect] {
        test(right).check();
        let known = VALUES.map(|value| Known::new("memory", value).partition(0));
        Conformance::new(move || Threaded(Broken(right))).holds(known).check();
    }
}

/// The rule that is broken over failing data.
fn over_failing_data(wrong: Wrong) -> Result<(), String> {
    let test = test(Wrong::Nothing).schedules(1).fails(move || Broken(wrong));
    test.run().map(|_| ()).map_err(|report| {
        format!("{}: expected {}, came {}", report.rule(), report.expected(), report.came())
    })
}

#[test]
fn a_fatal_error_is_reported_before_the_reader_closes() {
    assert_eq!(over_failing_data(Wrong::FailsOnGoodData), Ok(()));
    let texts = [
        Wrong::Nothing,
        Wrong::ClosesInSilence,
        Wrong::ClosesAfterASmallError,
        Wrong::StopsReadingAfterAWhile,
        Wrong::GoesOnAfterFailing,
    ];
    let texts = texts.map(|wrong| format!("{wrong:?}: {}", over_failing_data(wrong).unwrap_err()));
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_reader_that_must_not_end_is_caught_when_it_does() {
    let report = *test(Wrong::Nothing).endless().run().unwrap_err();
    assert_eq!(report.rule(), Rule::ReportsEnd);
    test(Wrong::NeverEnds).endless().check();
}
