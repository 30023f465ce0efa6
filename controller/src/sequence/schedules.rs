//! Orders of events that once led the machine astray, one test each. Most play every part around the bare
//! machine themselves; those that need a whole input borrow the rig of the traces.

use std::sync::Arc;

use lockgate_core::{
    BatchBuilder, EndpointError, MemoryInput, MemoryRecord, NewRecord, PartDigest, Partition,
    Position, QueueLimits,
};
use serde_json::json;

use super::tests::{Disk, LIMITS, Rig, SECOND, failure, letters, settings, settings_of, within};
use super::*;
use crate::tuning::Reload;

/// The machine alone: the test is its readers, and as far as it likes everything else.
pub(super) struct Bare {
    pub(super) sequence: Sequence,
    pub(super) now: Duration,
}

impl Bare {
    /// Begins at 1 s, so that a time of zero stands out.
    pub(super) fn new(level: FaultTolerance, inputs: usize) -> Self {
        Self::with(settings(level), inputs)
    }

    pub(super) fn with(settings: SequenceSettings, inputs: usize) -> Self {
        let input = |n| SequenceInput::new(format!("input {n}"), within(LIMITS), None);
        let inputs = (0..inputs).map(input).collect();
        let mut bare = Self { sequence: Sequence::new(settings, inputs, 0, SECOND), now: SECOND };
        bare.on(Event::JournalLoaded { steps: Vec::new() });
        bare.actions();
        bare
    }

    pub(super) fn on(&mut self, event: Event) {
        self.sequence.handle(self.now, event);
    }

    pub(super) fn at(&mut self, now: Duration) {
        self.now = now;
        self.on(Event::Tick);
    }

    pub(super) fn buffered(&mut self, input: usize, n: u64) {
        self.on(Event::Buffered { input, amount: BufferSize { records: n, bytes: n } });
    }

    pub(super) fn extended(&mut self, input: usize, n: u64, resume: Resume) {
        let mut batch = BatchBuilder::new(Arc::new(Partition { source: "s".into(), number: None }));
        for offset in 0..n {
            batch.push(NewRecord { offset, value: Some(b"x"), ..NewRecord::default() }).unwrap();
        }
        let batches = if n == 0 { Vec::new() } else { vec![batch.build()] };
        self.on(Event::Extended { input, batches, resume });
    }

    pub(super) fn fails(&mut self, input: usize) {
        let error = EndpointError::Data("as told".into());
        self.on(Event::InputFailed { input, fatal: true, error });
    }

    pub(super) fn stepped(&mut self, step: u64) {
        let digests = vec![PartDigest::default(); self.sequence.flight.hashes_wanted(step)];
        self.on(Event::Hashed { step, digests });
        self.on(Event::Stepped { step });
    }

    /// Everything that the step waits for happens.
    pub(super) fn finish(&mut self, step: u64) {
        self.stepped(step);
        self.on(Event::Journaled { through: step });
        self.on(Event::Written { step });
    }

    pub(super) fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.sequence.next_action()).collect()
    }

    /// The inputs that are asked for their part of a step, among all the actions that wait.
    pub(super) fn asked(&mut self) -> Vec<usize> {
        let queue = |action| match action {
            Action::Send { input, command: InputReaderCommand::Queue { .. } } => Some(input),
            _ => None,
        };
        self.actions().into_iter().filter_map(queue).collect()
    }

    /// Does what the actions say until none is left: the checkpoints stored, and how the run ended.
    pub(super) fn settle(&mut self) -> (Vec<Checkpoint>, Option<Outcome>) {
        let mut checkpoints = Vec::new();
        while let Some(action) = self.sequence.next_action() {
            match action {
                Action::Journal(step) => self.on(Event::Journaled { through: step.step }),
                Action::Step(step) => self.stepped(step.number),
                Action::Write { step } => self.on(Event::Written { step }),
                Action::Finish => self.on(Event::Finished),
                Action::Prepare => self.on(prepared()),
                Action::Store(checkpoint) => {
                    checkpoints.push(checkpoint);
                    self.on(Event::Stored);
                }
                Action::Complete => self.on(Event::Completed),
                Action::Done(outcome) => return (checkpoints, Some(outcome)),
                Action::Send { .. }
                | Action::LoadJournal { .. }
                | Action::LimitBatch { .. }
                | Action::Reload { .. }
                | Action::KeepPauses { .. }
                | Action::Answer { .. }
                | Action::Notify(_) => {}
            }
        }
        (checkpoints, None)
    }
}

fn prepared() -> Event {
    Event::Prepared { circuit: Vec::new(), positions: Vec::new() }
}

pub(super) fn seek(n: u64) -> Resume {
    Resume::Seek { seek: n.into() }
}

pub(super) fn replay(n: u64) -> Resume {
    Resume::Replay { seek: n.into(), replay: n.into() }
}

/// Step 1 is in flight, input 0 stands at a barrier, and both inputs are asked for step 2.
fn asked_at_a_barrier() -> Bare {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 2);
    bare.buffered(0, 4);
    bare.extended(0, 3, Resume::Barrier);
    bare.buffered(1, 1);
    bare.actions();
    bare.at(2 * SECOND);
    assert_eq!(bare.asked(), [0, 1]);
    bare
}

/// What input 0 had given to the step under way was dropped when input 1 failed; the next step, cut to
/// get away from the barrier, then led to a checkpoint behind the dropped record.
#[test]
fn a_failed_run_does_not_go_on_behind_a_record_that_it_dropped() {
    let mut bare = asked_at_a_barrier();
    bare.buffered(0, 1);
    bare.extended(0, 1, Resume::Barrier);
    bare.fails(1);
    assert!(bare.asked().is_empty(), "nothing may follow the dropped record");
    bare.finish(1);
    let (checkpoints, outcome) = bare.settle();
    assert_eq!(checkpoints, [], "a barrier has no position to go on from");
    assert!(matches!(failure(&outcome), Some(Failure::Input { input: 1, .. })));
}

/// The reader at the barrier was asked a second time while it still owed an answer, and the input's
/// error gave way to "this is a bug in lockgate".
#[test]
fn the_error_of_an_input_is_what_people_see_although_another_stands_at_a_barrier() {
    let mut bare = asked_at_a_barrier();
    bare.fails(1);
    bare.extended(0, 1, Resume::Barrier);
    bare.finish(1);
    let (_, outcome) = bare.settle();
    assert!(matches!(failure(&outcome), Some(Failure::Input { input: 1, .. })));
}

/// A record buffered while a step formed, and taken by it, left its deadline behind: the driver spun.
#[test]
fn nothing_is_due_when_nothing_is_held() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.buffered(0, 3);
    bare.buffered(0, 1);
    bare.extended(0, 4, replay(4));
    bare.finish(1);
    assert_eq!(bare.sequence.next_deadline(), Some(11 * SECOND), "only the checkpoint is due");
}

/// A checkpoint that came due while a reader was slow to answer made the driver spin until it did.
#[test]
fn a_checkpoint_that_is_due_waits_for_the_forming_step() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.sequence.settings.tuning.stall_timeout = 100 * SECOND;
    bare.buffered(0, 3);
    bare.extended(0, 3, replay(3));
    bare.at(9 * SECOND);
    bare.buffered(0, 3);
    bare.at(12 * SECOND);
    assert_eq!(bare.sequence.next_deadline(), Some(109 * SECOND), "only the stall is due");
}

/// A pause, asked for or for want of space, set the reader's clock to zero: it counted as stalled at once.
#[test]
fn a_pause_does_not_make_a_reader_stall() {
    let pauses = [Event::PauseRequested { input: 0 }, Event::Blocked { reason: "full".into() }];
    for pause in pauses {
        let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
        bare.at(9 * SECOND);
        bare.buffered(0, 3);
        bare.at(11 * SECOND);
        bare.on(pause);
        assert!(!bare.sequence.is_stalled(0));
        assert_eq!(bare.sequence.next_deadline(), Some(14 * SECOND), "5 s after it was asked");
    }
}

/// A reader that ended at a barrier was asked again and again, an empty step each time.
#[test]
fn a_reader_that_ends_at_a_barrier_breaks_the_protocol() {
    for told_before in [true, false] {
        let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 1);
        bare.buffered(0, 3);
        if told_before {
            bare.on(Event::EndOfInput { input: 0 });
            bare.extended(0, 3, Resume::Barrier);
        } else {
            bare.extended(0, 3, Resume::Barrier);
            bare.on(Event::EndOfInput { input: 0 });
            bare.extended(0, 0, Resume::Barrier);
        }
        let (_, outcome) = bare.settle();
        let Some(Failure::Protocol(error)) = failure(&outcome) else { panic!("{outcome:?}") };
        assert!(matches!(error, ProtocolError::Resume { given: "barrier", .. }), "{error}");
    }
}

/// A full disk paused the reader that a stop waited for, and nothing let it go on when there was space.
#[test]
fn a_stop_at_a_barrier_survives_a_full_disk() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 1);
    bare.buffered(0, 3);
    bare.extended(0, 3, Resume::Barrier);
    bare.on(Event::StopRequested);
    bare.on(Event::Blocked { reason: "full".into() });
    bare.on(Event::Unblocked);
    assert_eq!(bare.sequence.reader_state(0), ReaderState::Running { queued: false });
    bare.buffered(0, 1);
    bare.extended(0, 1, seek(4));
    let (checkpoints, outcome) = bare.settle();
    assert!(matches!(outcome, Some(Outcome::Stopped)));
    assert_eq!(checkpoints[0].seeks, [Some(4.into())]);
}

/// A pause taken back during a stop left the reader at its barrier until the grace time was over.
#[test]
fn a_stop_at_a_barrier_survives_a_pause() {
    let inputs = [("letters", letters(20).seek_every(9))];
    let mut rig = Rig::open(FaultTolerance::AtLeastOnce, &inputs, Disk::default());
    rig.run_to_step(1);
    assert!(rig.sequence.at_barrier(0));
    rig.deliver(Event::PauseRequested { input: 0 });
    rig.deliver(Event::StopRequested);
    rig.settle();
    rig.deliver(Event::ResumeRequested { input: 0 });
    rig.run(60 * SECOND);
    assert!(matches!(rig.outcome, Some(Outcome::Stopped)), "{}", rig.trace);
}

/// "Never", written as the longest duration there is, overflowed the clock.
#[test]
fn the_longest_durations_mean_never() {
    let mut longest = settings(FaultTolerance::AtLeastOnce);
    longest.tuning.checkpoint_interval = Duration::MAX;
    longest.tuning.max_buffering_delay = Duration::MAX;
    longest.tuning.stall_timeout = Duration::MAX;
    longest.tuning.shutdown_timeout = Duration::MAX;
    let mut bare = Bare::with(longest, 1);
    bare.buffered(0, 1);
    assert_eq!(bare.sequence.next_deadline(), Some(Duration::MAX));
    bare.buffered(0, 2);
    assert_eq!(bare.asked(), [0]);
    bare.at(1_000_000 * SECOND);
    bare.extended(0, 3, seek(3));
    bare.finish(1);
    bare.on(Event::StopRequested);
    let (checkpoints, outcome) = bare.settle();
    assert!(matches!(outcome, Some(Outcome::Stopped)));
    assert_eq!(checkpoints[0].seeks, [Some(3.into())]);
}

/// The number of an input that does not exist, which anybody with a handle may give, was a panic.
#[test]
fn pausing_an_unknown_input_does_nothing() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.on(Event::PauseRequested { input: 7 });
    bare.on(Event::ResumeRequested { input: 7 });
    assert!(bare.actions().is_empty());
}

/// A step was written while the checkpoint before it was being stored, and the outputs then completed
/// more than the stored positions claim.
#[test]
fn nothing_is_written_while_a_checkpoint_is_stored() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 1);
    let writes = |bare: &mut Bare| {
        let written = |action: &Action| matches!(action, Action::Write { step: 2 });
        bare.actions().iter().any(written)
    };
    bare.buffered(0, 3);
    bare.extended(0, 3, seek(3));
    bare.finish(1);
    bare.on(Event::CheckpointRequested);
    bare.on(prepared());
    bare.buffered(0, 3);
    bare.extended(0, 3, seek(6));
    bare.stepped(2);
    assert_eq!(bare.sequence.last_step(), 2, "steps are cut meanwhile");
    assert!(!writes(&mut bare));
    bare.on(Event::Stored);
    assert!(writes(&mut bare));
}

/// Two inputs that stood at barriers in turn, never neither of them, kept every checkpoint away.
#[test]
fn two_barriers_in_turn_do_not_keep_a_checkpoint_away() {
    let many = || MemoryInput::new("many", vec![MemoryRecord::of("x"); 600]).seek_every(5);
    let inputs = [("one", many()), ("two", many())];
    let mut rig = Rig::open(FaultTolerance::AtLeastOnce, &inputs, Disk::default());
    // Half a turn apart.
    rig.deliver(Event::PauseRequested { input: 1 });
    rig.run_to_step(1);
    rig.deliver(Event::ResumeRequested { input: 1 });
    rig.deliver(Event::CheckpointRequested);
    rig.run_to_step(10);
    assert!(rig.disk.checkpoint.is_some(), "{}", rig.trace);
}

/// A reader that answered with nothing, although it held records, was asked again at once, for ever.
#[test]
fn an_empty_answer_breaks_the_protocol() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.buffered(0, 3);
    bare.extended(0, 0, replay(0));
    let (_, outcome) = bare.settle();
    let nothing = |error: &ProtocolError| matches!(error, ProtocolError::Nothing { .. });
    assert!(matches!(failure(&outcome), Some(Failure::Protocol(e)) if nothing(e)));
}

/// For a checkpoint a reader may stop where it stands, if resuming is cheapest there.
#[test]
fn an_empty_answer_is_welcome_for_a_checkpoint() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.buffered(0, 1);
    bare.on(Event::CheckpointRequested);
    bare.extended(0, 0, replay(0));
    let (checkpoints, outcome) = bare.settle();
    assert!(outcome.is_none(), "{outcome:?}");
    assert_eq!(checkpoints[0].seeks, [Some(0.into())]);
    assert_eq!(bare.sequence.held(0).records, 1);
}

/// While another stood at a barrier, a reader that had stopped for the checkpoint was asked to stop for it
/// again at once, gave nothing again, and so on: an empty step each time, as fast as the machine could go.
#[test]
fn a_reader_that_has_stopped_for_a_checkpoint_is_not_asked_to_stop_again() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 2);
    bare.buffered(0, 3);
    bare.extended(0, 3, Resume::Barrier);
    bare.on(Event::CheckpointRequested);
    bare.buffered(1, 3);
    bare.actions();
    bare.extended(1, 0, seek(0));
    let queues = bare.actions().into_iter().filter_map(|action| match action {
        Action::Send { input, command: InputReaderCommand::Queue { checkpoint_requested } } => {
            Some((input, checkpoint_requested))
        }
        _ => None,
    });
    assert_eq!(queues.collect::<Vec<_>>(), [(1, false)], "it must give something now");
}

/// While one input stood at a barrier, every single record of the others became a step of its own.
#[test]
fn a_barrier_that_stays_does_not_make_the_steps_of_others_tiny() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 2);
    bare.buffered(0, 3);
    bare.extended(0, 3, Resume::Barrier);
    bare.finish(1);
    bare.on(Event::CheckpointRequested);
    bare.actions();
    bare.buffered(1, 1);
    assert!(bare.asked().is_empty());
    bare.buffered(1, 1);
    assert_eq!(bare.asked(), [1], "half of what it may hold");
}

/// Nor does what an input holds that has got away from its own barrier, and so stays where it is.
#[test]
fn what_stays_behind_for_a_checkpoint_does_not_make_the_steps_of_others_tiny() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 3);
    for input in [0, 1] {
        bare.buffered(input, 3);
        bare.extended(input, 3, Resume::Barrier);
    }
    bare.on(Event::CheckpointRequested);
    bare.buffered(1, 1);
    bare.extended(1, 1, seek(4));
    (1..=3).for_each(|step| bare.finish(step));
    bare.buffered(1, 4);
    bare.actions();
    bare.buffered(2, 1);
    assert!(bare.asked().is_empty());
    bare.buffered(2, 1);
    assert_eq!(bare.asked(), [2], "half of what it may hold");
}

/// A source that was idle at a barrier held up every other input that knew barriers, for as long as it was
/// idle: they stayed where they were for the sake of a checkpoint that could not come.
#[test]
fn an_idle_source_at_a_barrier_does_not_hold_up_the_others() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 2);
    for input in [0, 1] {
        bare.buffered(input, 3);
        bare.extended(input, 3, Resume::Barrier);
    }
    bare.on(Event::CheckpointRequested);
    bare.buffered(0, 2);
    bare.extended(0, 1, seek(4));
    (1..=3).for_each(|step| bare.finish(step));
    bare.actions();
    assert_eq!(bare.sequence.next_deadline(), Some(2 * SECOND), "it stays for max_buffering_delay");
    bare.at(2 * SECOND);
    assert_eq!(bare.asked(), [0]);
}

/// A record that the steps of an input at a barrier left out once waited as long as these went on.
#[test]
fn what_a_step_leaves_out_still_becomes_late() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 2);
    bare.buffered(0, 3);
    bare.extended(0, 3, Resume::Barrier);
    bare.finish(1);
    bare.on(Event::CheckpointRequested);
    bare.buffered(1, 1);
    bare.actions();
    // A step at the barrier every half second; max_buffering_delay is one.
    let asked = (1..8u32).any(|n| {
        bare.at(SECOND + n * SECOND / 2);
        bare.buffered(0, 1);
        let asked = bare.asked().contains(&1);
        if !asked {
            bare.extended(0, 1, Resume::Barrier);
            bare.finish(bare.sequence.last_step());
        }
        asked
    });
    assert!(asked, "never asked in 3.5 s");
}

/// What status shows of a run.
#[test]
fn what_is_known_of_a_run() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 2);
    let sequence = &bare.sequence;
    assert!(!sequence.is_stopping() && !sequence.is_stalled(0) && !sequence.at_barrier(0));
    assert_eq!((sequence.checkpointed_step(), sequence.next_deadline()), (0, None));
    bare.on(Event::EndOfInput { input: 1 });
    assert!(bare.sequence.has_ended(1) && !bare.sequence.has_ended(0));
    bare.buffered(0, 3);
    bare.at(7 * SECOND);
    assert!(bare.sequence.is_stalled(0) && !bare.sequence.is_stalled(1));
    bare.extended(0, 3, Resume::Barrier);
    assert!(bare.sequence.at_barrier(0) && !bare.sequence.at_barrier(1));
    assert!(!bare.sequence.is_stalled(0));
    bare.buffered(0, 3);
    bare.extended(0, 3, seek(6));
    bare.on(Event::CheckpointRequested);
    bare.settle();
    assert_eq!((bare.sequence.checkpointed_step(), bare.sequence.last_step()), (2, 2));
    bare.on(Event::StopRequested);
    assert!(bare.sequence.is_stopping());
}

/// Time passes for a reason only: the driver would spin otherwise, or sleep too long.
#[test]
fn when_time_matters() {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 2);
    bare.buffered(0, 0);
    assert_eq!(bare.sequence.next_deadline(), None, "nothing was buffered");
    bare.buffered(0, 3);
    bare.extended(0, 3, Resume::Barrier);
    bare.finish(1);
    bare.buffered(1, 1);
    let cut = Some(2 * SECOND);
    assert_eq!(bare.sequence.next_deadline(), cut, "a step is cut for one record too");
    bare.on(Event::CheckpointRequested);
    assert_eq!(bare.sequence.next_deadline(), cut, "it knows no barriers and goes on");
    bare.on(Event::Blocked { reason: "full".into() });
    assert_eq!(bare.sequence.next_deadline(), None, "no step is cut");
    bare.on(Event::Unblocked);
    bare.at(2 * SECOND);
    bare.extended(1, 1, seek(1));
    bare.finish(2);
    bare.buffered(0, 1);
    bare.extended(0, 1, seek(4));
    bare.finish(3);
    bare.settle();
    bare.buffered(0, 1);
    assert_eq!(bare.sequence.next_deadline(), Some(3 * SECOND), "it stands at no barrier now");
}

/// The second of two full disks was forgotten when the first had space again.
#[test]
fn inputs_wait_for_every_full_disk() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.on(Event::Blocked { reason: "the output's disk".into() });
    bare.on(Event::Blocked { reason: "the journal's disk".into() });
    bare.on(Event::Unblocked);
    assert_eq!(bare.sequence.pause_reasons(0), [PauseReason::Backpressure]);
    bare.on(Event::Unblocked);
    assert_eq!(bare.sequence.pause_reasons(0), []);
}

/// A stop ends when its grace time is over, whatever it waits for.
#[test]
fn a_stop_does_not_wait_for_ever() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.buffered(0, 3);
    bare.on(Event::StopRequested);
    bare.at(30 * SECOND);
    assert!(bare.settle().1.is_none());
    bare.at(31 * SECOND);
    assert!(matches!(bare.settle().1, Some(Outcome::StoppedLate)));
}

/// A step that was forming when a stop came is finished, and belongs to the last checkpoint.
#[test]
fn a_stop_finishes_the_step_that_forms() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.buffered(0, 3);
    bare.on(Event::StopRequested);
    bare.extended(0, 3, replay(3));
    let (checkpoints, outcome) = bare.settle();
    assert!(matches!(outcome, Some(Outcome::Stopped)));
    assert_eq!(checkpoints[0].step, 1);
}

/// Three inputs of which the first stands at a barrier and the last is paused by a user.
fn barrier_running_paused() -> Bare {
    let mut bare = Bare::new(FaultTolerance::AtLeastOnce, 3);
    bare.buffered(0, 3);
    bare.extended(0, 3, Resume::Barrier);
    bare.on(Event::PauseRequested { input: 2 });
    bare.finish(1);
    bare
}

/// A stop pauses what runs, except what has to get away from a barrier; nothing is paused twice.
#[test]
fn a_stop_pauses_what_runs() {
    let states = |bare: &Bare| [0, 1, 2].map(|input| bare.sequence.reader_state(input));
    let (running, paused) =
        (ReaderState::Running { queued: false }, ReaderState::Paused { queued: false });
    let mut stopped = barrier_running_paused();
    stopped.on(Event::StopRequested);
    assert_eq!(states(&stopped), [running, paused, paused]);
    stopped.on(Event::ResumeRequested { input: 2 });
    assert_eq!(states(&stopped), [running, paused, paused], "no more input is wanted");
    let mut failed = barrier_running_paused();
    failed.on(Event::Blocked { reason: "full".into() });
    failed.on(Event::Unblocked);
    failed.buffered(1, 1);
    assert_eq!(states(&failed), [running, running, paused]);
    failed.fails(1);
    // With nothing in flight the run is over at once: a barrier has no place to go on from.
    assert!(matches!(failure(&failed.settle().1), Some(Failure::Input { input: 1, .. })));
}

/// What fails during a stop is what people see, and of two failures the first.
#[test]
fn the_first_failure_is_what_people_see() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 2);
    bare.buffered(0, 3);
    bare.extended(0, 3, replay(3));
    bare.on(Event::StopRequested);
    bare.fails(0);
    bare.fails(1);
    let (checkpoints, outcome) = bare.settle();
    assert!(matches!(failure(&outcome), Some(Failure::Input { input: 0, .. })));
    assert_eq!(checkpoints[0].step, 1, "what was done is kept");
}

/// An input that failed when everything was read, while the outputs closed their files, went unnoticed.
#[test]
fn a_failure_at_the_very_end_counts() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.buffered(0, 3);
    bare.on(Event::EndOfInput { input: 0 });
    bare.extended(0, 3, replay(3));
    bare.finish(1);
    assert!(bare.actions().iter().any(|action| matches!(action, Action::Finish)));
    bare.fails(0);
    bare.on(Event::Finished);
    assert!(matches!(failure(&bare.settle().1), Some(Failure::Input { input: 0, .. })));
}

/// The grace time of a failed run was over, and people saw a late stop instead of the failure.
#[test]
fn a_failed_run_that_is_late_tells_the_failure() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.buffered(0, 3);
    bare.extended(0, 3, replay(3));
    bare.fails(0);
    bare.actions();
    bare.at(31 * SECOND);
    assert!(matches!(failure(&bare.settle().1), Some(Failure::Input { input: 0, .. })));
}

/// A resume of what runs already was sent as an Extend that may not follow.
#[test]
fn a_resume_of_what_runs_does_nothing() {
    let mut bare = Bare::new(FaultTolerance::ExactlyOnce, 1);
    bare.on(Event::ResumeRequested { input: 0 });
    assert!(bare.actions().is_empty());
    assert_eq!(bare.sequence.reader_state(0), ReaderState::Running { queued: false });
}

/// Steps wait for those in flight, by number and by bytes.
#[test]
fn steps_in_flight_are_bounded() {
    let tight = settings_of(1, FaultTolerance::ExactlyOnce);
    let mut bare = Bare::with(tight.clone(), 1);
    for step in 0..MAX_STEPS_IN_FLIGHT as u64 {
        bare.buffered(0, 1);
        assert_eq!(bare.asked(), [0]);
        bare.extended(0, 1, replay(step + 1));
    }
    bare.buffered(0, 1);
    assert!(bare.asked().is_empty());
    bare.finish(1);
    assert_eq!(bare.asked(), [0]);
    // Three bytes fit, and one more step comes after them; four do not.
    for (records, fits) in [(3, true), (4, false)] {
        let mut bare = Bare::with(SequenceSettings { max_bytes_in_flight: 3, ..tight.clone() }, 1);
        bare.buffered(0, records);
        bare.extended(0, records, replay(records));
        bare.actions();
        bare.buffered(0, 1);
        assert_eq!(!bare.asked().is_empty(), fits, "{records}");
    }
}

/// Waiting gains nothing when a reader has used half of what it may hold, in records or in bytes.
#[test]
fn a_reader_that_is_half_full_is_asked_at_once() {
    let asked = |records, bytes| {
        let limits = QueueLimits { max_queued_records: 10, max_queued_bytes: 1000 };
        let input = SequenceInput::new("input", within(limits), None);
        let patient = settings_of(100, FaultTolerance::ExactlyOnce);
        let sequence = Sequence::new(patient, vec![input], 0, SECOND);
        let mut bare = Bare { sequence, now: SECOND };
        bare.on(Event::JournalLoaded { steps: Vec::new() });
        bare.on(Event::Buffered { input: 0, amount: BufferSize { records, bytes } });
        !bare.asked().is_empty()
    };
    assert!(asked(5, 5) && asked(1, 500));
    assert!(!asked(4, 4) && !asked(1, 499));
}

/// What a reader has let go of is waited for no more: neither a step nor a deadline comes of it.
#[test]
fn what_is_discarded_makes_no_step() {
    let patient = settings_of(100, FaultTolerance::AtLeastOnce);
    let mut bare = Bare::with(patient, 2);
    let gone = |input| Event::Discarded { input, amount: BufferSize { records: 1, bytes: 1 } };
    bare.buffered(0, 1);
    bare.buffered(1, 1);
    bare.on(gone(0));
    bare.at(2 * SECOND);
    assert_eq!(bare.asked(), [1], "the other one still holds something");
    bare.on(gone(1));
    bare.extended(1, 0, Resume::Seek { seek: 1.into() });
    bare.finish(1);
    bare.actions();
    bare.buffered(0, 1);
    bare.on(gone(0));
    bare.at(4 * SECOND);
    assert!(bare.asked().is_empty());
    bare.on(gone(0));
    assert!(matches!(failure(&bare.settle().1), Some(Failure::Protocol(_))));
}

/// A step journals what moved; a checkpoint stores where everything is, whether the step was replayed or is new.
#[test]
fn changes_of_a_position_add_up_to_the_checkpoint() {
    let changed = |name: &str| Position::Change(json!({ name: 2 }));
    let seek = Some(json!({"a": 1, "b": 1}));
    let input = SequenceInput::new("input", within(LIMITS), seek);
    let sequence = Sequence::new(settings(FaultTolerance::ExactlyOnce), vec![input], 0, SECOND);
    let mut bare = Bare { sequence, now: SECOND };
    let digest = PartDigest::default();
    let part = JournalPart { input: 0, seek: changed("a"), replay: 1.into(), digest };
    bare.on(Event::JournalLoaded { steps: vec![JournaledStep { step: 1, parts: vec![part] }] });
    bare.on(Event::Replayed { input: 0, batches: Vec::new() });
    bare.on(Event::JournalLoaded { steps: Vec::new() });
    bare.finish(1);
    bare.on(Event::CheckpointRequested);
    assert_eq!(bare.settle().0.pop().unwrap().seeks, [Some(json!({"a": 2, "b": 1}))]);

    let mut journaled = Vec::new();
    let whole = Position::Whole(json!({"a": 2, "b": 1}));
    for (step, seek) in (2..).zip([whole, changed("b"), changed("c")]) {
        bare.buffered(0, 1);
        bare.at(step * SECOND);
        bare.extended(0, 1, Resume::Replay { seek, replay: 1.into() });
        bare.stepped(u64::from(step));
        let journal = |action| match action {
            Action::Journal(step) => Some(step.parts[0].seek.to_string()),
            _ => None,
        };
        journaled.extend(bare.actions().into_iter().find_map(journal));
        bare.finish(u64::from(step));
    }
    assert_eq!(journaled, [r#"{"a":2,"b":1}"#, r#"change {"b":2}"#, r#"change {"c":2}"#]);
    bare.on(Event::CheckpointRequested);
    assert_eq!(bare.settle().0.pop().unwrap().seeks, [Some(json!({"a": 2, "b": 2, "c": 2}))]);
}

/// A reload that met the end of an empty input once failed the run: the reader had closed before it was asked to say
/// that it holds nothing.
#[test]
fn a_reader_that_has_ended_may_close_instead_of_answering() {
    for level in [FaultTolerance::AtLeastOnce, FaultTolerance::ExactlyOnce] {
        let mut machine = Bare::new(level, 2);
        let tight = InputTuning {
            limits: QueueLimits { max_queued_records: 1, max_queued_bytes: 1 },
            ..InputTuning::default()
        };
        let reload = Reload { tuning: Tuning::default(), inputs: vec![tight; 2] };
        machine.on(Event::ReloadRequested { reload, ticket: Ticket(1) });
        assert_eq!(machine.asked(), [0, 1]);
        machine.on(Event::EndOfInput { input: 0 });
        machine.on(Event::InputClosed { input: 0 });
        machine.on(Event::EndOfInput { input: 1 });
        machine.on(Event::InputClosed { input: 1 });
        let actions = machine.actions();
        let is_reloaded =
            |action: &Action| matches!(action, Action::Answer { answer: Answer::Reloaded, .. });
        assert!(actions.iter().any(is_reloaded), "{actions:?}");
        assert!(actions.iter().any(|action| matches!(action, Action::Finish)), "{actions:?}");
        assert_eq!(machine.sequence.last_step(), 0, "nobody had a part in a step");
    }
}

/// When all that were asked had closed, what others held was not due any more.
#[test]
fn what_others_hold_stays_due_when_whoever_was_asked_has_closed() {
    let mut machine = Bare::new(FaultTolerance::AtLeastOnce, 2);
    // The second input has barriers.
    machine.buffered(1, 1);
    machine.at(2 * SECOND);
    assert_eq!(machine.asked(), [1]);
    machine.extended(1, 1, Resume::Barrier);
    machine.actions();
    machine.buffered(1, 1);
    let tight = InputTuning {
        limits: QueueLimits { max_queued_records: 1, max_queued_bytes: 1 },
        ..InputTuning::default()
    };
    let inputs = vec![tight, within(LIMITS)];
    let reload = Reload { tuning: Tuning::default(), inputs };
    machine.on(Event::ReloadRequested { reload, ticket: Ticket(1) });
    assert_eq!(machine.asked(), [0]);
    machine.on(Event::EndOfInput { input: 0 });
    machine.on(Event::InputClosed { input: 0 });
    machine.actions();
    machine.at(3 * SECOND);
    assert_eq!(machine.asked(), [1]);
}
