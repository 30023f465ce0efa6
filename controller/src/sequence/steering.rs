//! What people ask for while the pipeline runs, as traces and as orders of events.

use std::num::NonZeroU64;

use lockgate_core::QueueLimits;

use super::schedules::{Bare, replay};
use super::tests::{Disk, LIMITS, Rig, SECOND, letters, settings, text, within};
use super::*;
use crate::tuning::Reload;

const ONCE: FaultTolerance = FaultTolerance::ExactlyOnce;

/// A rig over one input of letters, after its second step.
fn under_way() -> Rig {
    let mut rig = Rig::open(ONCE, &[("letters", letters(14))], Disk::default());
    rig.run_to_step(2);
    rig
}

fn reload(max_queued_records: u64, inputs: usize) -> Reload {
    let limits = QueueLimits { max_queued_records, ..LIMITS };
    Reload { tuning: settings(ONCE).tuning, inputs: vec![within(limits); inputs] }
}

/// The answers among all the actions that wait.
fn answers(bare: &mut Bare) -> Vec<(u64, Answer)> {
    let answer = |action| match action {
        Action::Answer { ticket, answer } => Some((ticket.0, answer)),
        _ => None,
    };
    bare.actions().into_iter().filter_map(answer).collect()
}

#[test]
fn a_suspension_ends_with_a_checkpoint() {
    let mut rig = under_way();
    rig.deliver(Event::SuspendRequested { ticket: Ticket(1) });
    rig.run(60 * SECOND);
    insta::assert_snapshot!(rig.trace);
    let mut again = Rig::open(ONCE, &[("letters", letters(14))], rig.disk.clone());
    again.run(60 * SECOND);
    assert_eq!(text(&again.disk.output), "abcdefghijklmn");
}

/// A pipeline that cannot store where it is runs on, and says why.
#[test]
fn a_suspension_without_room_for_its_checkpoint_is_called_off() {
    let mut rig = under_way();
    rig.deliver(Event::SuspendRequested { ticket: Ticket(1) });
    rig.deliver(Event::Blocked { reason: "the disk is full".into() });
    rig.deliver(Event::SuspendRequested { ticket: Ticket(2) });
    rig.deliver(Event::CheckpointAwaited { ticket: Ticket(3) });
    rig.deliver(Event::Unblocked);
    rig.run(60 * SECOND);
    insta::assert_snapshot!(rig.trace);
    assert_eq!(text(&rig.disk.output), "abcdefghijklmn");
    assert!(matches!(rig.outcome, Some(Outcome::Completed)));
}

#[test]
fn a_suspension_that_takes_too_long_is_called_off() {
    let mut rig = under_way();
    rig.hold_journal = true;
    rig.deliver(Event::SuspendRequested { ticket: Ticket(1) });
    rig.run(40 * SECOND);
    assert!(rig.trace.contains("30s    answer 1: Late { checkpoint: 0 }"), "{}", rig.trace);
    assert_eq!(rig.sequence.reader_state(0), ReaderState::Running { queued: false });
    assert!(rig.outcome.is_none());
}

/// A stop that was asked for as well is not called off.
#[test]
fn a_stop_takes_the_place_of_a_suspension() {
    let mut bare = Bare::new(ONCE, 1);
    bare.on(Event::SuspendRequested { ticket: Ticket(1) });
    bare.on(Event::StopRequested);
    bare.on(Event::Blocked { reason: "full".into() });
    assert!(matches!(answers(&mut bare)[..], [(1, Answer::Blocked { .. })]));
    assert!(bare.sequence.is_stopping());
}

/// A failure of an input during a suspension ends the run with it, whatever the disk does then.
#[test]
fn a_failure_during_a_suspension_is_not_forgotten() {
    let mut bare = Bare::new(ONCE, 1);
    bare.buffered(0, 1);
    bare.on(Event::SuspendRequested { ticket: Ticket(1) });
    bare.fails(0);
    bare.on(Event::Blocked { reason: "full".into() });
    bare.on(Event::Unblocked);
    let (_, outcome) = bare.settle();
    assert!(matches!(outcome, Some(Outcome::Failed(_))), "{outcome:?}");
}

/// Steps of the journal are first replayed.
#[test]
fn a_suspension_during_a_replay_waits_for_its_end() {
    let mut first = under_way();
    first.settle();
    let mut rig = Rig::open(ONCE, &[("letters", letters(14))], first.disk.clone());
    rig.deliver(Event::SuspendRequested { ticket: Ticket(1) });
    rig.run(60 * SECOND);
    assert!(matches!(rig.outcome, Some(Outcome::Stopped)), "{}", rig.trace);
    assert!(rig.trace.contains("answer 1: Suspended"), "{}", rig.trace);
}

#[test]
fn whoever_waits_for_a_checkpoint_gets_one_that_covers_what_there_was() {
    let mut bare = Bare::new(ONCE, 1);
    bare.on(Event::CheckpointAwaited { ticket: Ticket(1) });
    assert_eq!(answers(&mut bare), [(1, Answer::Checkpointed { step: 0 })], "nothing is new");
    bare.buffered(0, 3);
    bare.extended(0, 3, replay(3));
    bare.on(Event::CheckpointAwaited { ticket: Ticket(2) });
    bare.finish(1);
    bare.actions();
    bare.on(Event::Prepared { circuit: Vec::new(), positions: Vec::new() });
    // While it is being stored the next step comes to exist, which it does not cover.
    bare.buffered(0, 3);
    bare.extended(0, 3, replay(6));
    bare.on(Event::CheckpointAwaited { ticket: Ticket(3) });
    bare.on(Event::Stored);
    bare.on(Event::Completed);
    assert_eq!(answers(&mut bare), [(2, Answer::Checkpointed { step: 1 })]);
    bare.finish(2);
    bare.on(Event::Prepared { circuit: Vec::new(), positions: Vec::new() });
    bare.on(Event::Stored);
    bare.on(Event::Completed);
    assert_eq!(answers(&mut bare), [(3, Answer::Checkpointed { step: 2 })]);
}

#[test]
fn changed_limits_are_in_force_when_nothing_is_held() {
    let mut rig = under_way();
    rig.deliver(Event::ReloadRequested { reload: reload(2, 1), ticket: Ticket(1) });
    rig.deliver(Event::ReloadRequested { reload: reload(1, 1), ticket: Ticket(2) });
    rig.run(60 * SECOND);
    insta::assert_snapshot!(rig.trace);
    assert_eq!(text(&rig.disk.output), "abcdefghijklmn");
}

/// A reader had read on before it heard that it is paused: what it announced then was judged by the new limits.
#[test]
fn what_comes_after_the_pause_is_judged_by_the_old_limits() {
    let mut bare = Bare::new(ONCE, 1);
    bare.on(Event::ReloadRequested { reload: reload(1, 1), ticket: Ticket(1) });
    assert_eq!(bare.asked(), [0], "it must say that it holds nothing");
    bare.buffered(0, 4);
    assert!(bare.sequence.is_reloading());
    bare.extended(0, 4, replay(4));
    assert_eq!(answers(&mut bare), [(1, Answer::Reloaded)]);
    assert_eq!(bare.sequence.reader_state(0), ReaderState::Running { queued: false });
    bare.buffered(0, 2);
    assert!(bare.sequence.is_stopping(), "two are more than the new limit allows");
}

/// What does not concern what readers hold needs no pause, and a wish that is taken back ends it.
#[test]
fn only_inputs_with_other_limits_are_drained() {
    let mut bare = Bare::new(ONCE, 2);
    bare.actions();
    bare.on(Event::ReloadRequested { reload: reload(4, 2), ticket: Ticket(1) });
    assert_eq!(answers(&mut bare), [(1, Answer::Reloaded)]);
    let mut other = reload(4, 2);
    other.inputs[1] = within(QueueLimits { max_queued_bytes: 5, ..LIMITS });
    bare.on(Event::ReloadRequested { reload: other, ticket: Ticket(2) });
    assert_eq!(bare.asked(), [1]);
    assert_eq!(bare.sequence.pause_reasons(0), []);
    assert_eq!(bare.sequence.pause_reasons(1), [PauseReason::Reload]);
    bare.on(Event::ReloadRequested { reload: reload(4, 2), ticket: Ticket(3) });
    bare.extended(1, 0, replay(0));
    assert_eq!(
        answers(&mut bare),
        [(2, Answer::Reloaded), (3, Answer::Reloaded)].map(|(n, a)| (5 - n, a))
    );
    assert_eq!(bare.sequence.pause_reasons(1), []);
}

/// A stop during a reload ends all the same, also with a reader at a barrier.
#[test]
fn a_stop_does_not_wait_for_a_reload() {
    let input = letters(14).seek_every(5);
    let mut rig = Rig::open(FaultTolerance::AtLeastOnce, &[("letters", input)], Disk::default());
    rig.run_to_step(1);
    rig.deliver(Event::ReloadRequested { reload: reload(2, 1), ticket: Ticket(1) });
    rig.deliver(Event::StopRequested);
    rig.run(60 * SECOND);
    assert!(matches!(rig.outcome, Some(Outcome::Stopped)), "{}", rig.trace);
}

/// A reader at a barrier must read on to get away from it; a checkpoint that waits for that does not hold up a
/// reload that waits for the reader to hold nothing.
#[test]
fn a_reload_and_a_checkpoint_do_not_wait_for_each_other() {
    let input = letters(14).seek_every(5);
    let mut rig = Rig::open(FaultTolerance::AtLeastOnce, &[("letters", input)], Disk::default());
    rig.run_to_step(1);
    rig.deliver(Event::CheckpointAwaited { ticket: Ticket(1) });
    rig.deliver(Event::ReloadRequested { reload: reload(2, 1), ticket: Ticket(2) });
    rig.run(60 * SECOND);
    assert!(rig.trace.contains("answer 1: Checkpointed"), "{}", rig.trace);
    assert!(rig.trace.contains("answer 2: Reloaded"), "{}", rig.trace);
    assert_eq!(text(&rig.disk.output), "abcdefghijklmn");
}

#[test]
fn one_input_starts_when_the_other_has_ended() {
    let inputs = [("second", letters(3)), ("first", letters(8))];
    let order = |inputs: &mut [SequenceInput]| inputs[0].start_after = vec![1];
    let mut rig = Rig::open_with(ONCE, &inputs, Disk::default(), order);
    rig.run_to_step(2);
    assert_eq!(rig.sequence.pause_reasons(0), [PauseReason::StartOrder]);
    let disk = rig.disk.clone();
    rig.run(60 * SECOND);
    assert_eq!(text(&rig.disk.output), "abcdefghabc");
    assert!(matches!(rig.outcome, Some(Outcome::Completed)));
    let mut after_a_crash = Rig::open_with(ONCE, &inputs, disk, order);
    after_a_crash.run(60 * SECOND);
    assert_eq!(text(&after_a_crash.disk.output), "abcdefghabc");
}

/// A pause of a user and the order of inputs do not undo each other.
#[test]
fn an_input_in_turn_stays_paused_by_a_user() {
    let inputs = [("second", letters(3)), ("first", letters(3))];
    let order = |inputs: &mut [SequenceInput]| {
        (inputs[0].start_after, inputs[0].paused) = (vec![1], true);
    };
    let mut rig = Rig::open_with(ONCE, &inputs, Disk::default(), order);
    rig.run(5 * SECOND);
    assert_eq!(rig.sequence.pause_reasons(0), [PauseReason::User]);
    rig.deliver(Event::PausesAwaited { ticket: Ticket(1) });
    rig.settle();
    rig.deliver(Event::ResumeRequested { input: 0 });
    rig.deliver(Event::PausesAwaited { ticket: Ticket(2) });
    rig.run(9 * SECOND);
    let kept: Vec<_> = rig.trace.lines().filter(|line| line.contains("keep paused")).collect();
    assert_eq!(kept, [" 5s    keep paused [0]", " 5s    keep paused []"]);
    assert_eq!(text(&rig.disk.output), "abcabc");
}

/// The rate holds one input back and no other.
#[test]
fn a_rate_is_kept_by_its_input_alone() {
    let inputs = [("slow", letters(10)), ("fast", letters(9))];
    let slow = |inputs: &mut [SequenceInput]| {
        inputs[0].tuning.max_records_per_second = NonZeroU64::new(2);
    };
    let mut rig = Rig::open_with(ONCE, &inputs, Disk::default(), slow);
    rig.run(3 * SECOND);
    let written = text(&rig.disk.output);
    assert!(written.contains("ghi"), "{written}: the fast one is through");
    let slow = written.len() - 9;
    assert!((5..=7).contains(&slow), "{written}: two a second for three seconds");
    rig.run(10 * SECOND);
    assert_eq!(rig.disk.output.values().len(), 19);
    assert!(matches!(rig.outcome, Some(Outcome::Completed)), "{}", rig.trace);
}

/// A stop does not wait until a rate has let through what is held.
#[test]
fn a_stop_does_not_wait_for_a_rate() {
    let slow = |inputs: &mut [SequenceInput]| {
        inputs[0].tuning.max_records_per_second = NonZeroU64::new(1);
    };
    let mut rig = Rig::open_with(ONCE, &[("slow", letters(10))], Disk::default(), slow);
    rig.run(SECOND);
    rig.deliver(Event::StopRequested);
    rig.settle();
    assert!(matches!(rig.outcome, Some(Outcome::Stopped)), "{}", rig.trace);
}

/// An input had been asked for much before it got a rate; what it gave then silenced it for a quarter of an hour.
#[test]
fn a_new_rate_does_not_count_what_was_asked_for_before() {
    let mut bare = Bare::new(ONCE, 1);
    bare.buffered(0, 4);
    assert_eq!(bare.asked(), [0]);
    let mut slow = reload(4, 1);
    slow.inputs[0].max_records_per_second = NonZeroU64::new(1);
    bare.on(Event::ReloadRequested { reload: slow, ticket: Ticket(1) });
    bare.extended(0, 4, replay(4));
    bare.finish(1);
    bare.buffered(0, 3);
    bare.at(2 * SECOND);
    assert_eq!(bare.asked(), [0], "one record a second");
}

/// A reader at a barrier must read on, whatever its rate, or each stop would be late.
#[test]
fn a_stop_at_a_barrier_does_not_wait_for_a_rate() {
    let slow = |inputs: &mut [SequenceInput]| {
        inputs[0].tuning.max_records_per_second = NonZeroU64::new(1);
    };
    let input = letters(26).seek_every(20);
    let level = FaultTolerance::AtLeastOnce;
    let mut rig = Rig::open_with(level, &[("slow", input)], Disk::default(), slow);
    rig.run(SECOND);
    assert!(rig.sequence.at_barrier(0), "{}", rig.trace);
    rig.deliver(Event::StopRequested);
    rig.run(3 * SECOND);
    assert!(matches!(rig.outcome, Some(Outcome::Stopped)), "{}", rig.trace);
}

/// Where somebody has paused an input at a barrier, those who want a checkpoint are told instead of left waiting.
#[test]
fn a_checkpoint_that_a_paused_input_forbids_is_refused() {
    let input = letters(14).seek_every(5);
    let level = FaultTolerance::AtLeastOnce;
    let mut rig = Rig::open(level, &[("letters", input)], Disk::default());
    rig.run_to_step(1);
    rig.deliver(Event::PauseRequested { input: 0 });
    rig.run(2 * SECOND);
    while rig.sequence.held(0).records > 0 {
        rig.run(rig_later(&rig));
    }
    if rig.sequence.at_barrier(0) {
        rig.deliver(Event::CheckpointAwaited { ticket: Ticket(1) });
        rig.deliver(Event::SuspendRequested { ticket: Ticket(2) });
        rig.run(rig_later(&rig));
        assert!(rig.trace.contains("answer 1: AtBarrier { input: 0 }"), "{}", rig.trace);
        assert!(rig.trace.contains("answer 2: AtBarrier { input: 0 }"), "{}", rig.trace);
    }
    assert!(rig.sequence.at_barrier(0), "{}", rig.trace);
    rig.deliver(Event::ResumeRequested { input: 0 });
    rig.run(60 * SECOND);
    assert_eq!(text(&rig.disk.output), "abcdefghijklmn");
}

/// A stop has all of its time, whatever was wished for before.
#[test]
fn a_stop_does_not_inherit_the_time_of_a_suspension() {
    let mut rig = under_way();
    rig.hold_journal = true;
    rig.deliver(Event::SuspendRequested { ticket: Ticket(1) });
    rig.run(29 * SECOND);
    rig.deliver(Event::StopRequested);
    rig.run(40 * SECOND);
    assert!(rig.outcome.is_none(), "{}", rig.trace);
    rig.run(60 * SECOND);
    assert!(matches!(rig.outcome, Some(Outcome::StoppedLate)), "{}", rig.trace);
}

fn rig_later(rig: &Rig) -> Duration {
    rig.now + SECOND
}
