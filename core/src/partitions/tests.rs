//! Stories of loops that went wrong elsewhere, and what this machine does instead.

use super::*;

const ZERO: Duration = Duration::ZERO;
const A: PartitionId = PartitionId(0);
const B: PartitionId = PartitionId(1);
const C: PartitionId = PartitionId(2);

fn limit(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

/// Contexts of the partitions `ours`, at the stage at which records are taken.
fn contexts(max_pending: u32, ours: &[PartitionId]) -> PartitionContexts {
    let mut contexts = PartitionContexts::new(limit(max_pending));
    contexts.assign(ours.iter().copied());
    to(&mut contexts, Stage::Add);
    actions(&mut contexts);
    contexts
}

/// Goes on to the next time that `stage` comes.
fn to(contexts: &mut PartitionContexts, stage: Stage) {
    contexts.advance(ZERO);
    while contexts.stage() != stage {
        contexts.advance(ZERO);
    }
}

fn actions(contexts: &mut PartitionContexts) -> Vec<ContextAction> {
    std::iter::from_fn(|| contexts.next_action()).collect()
}

fn commit(partition: PartitionId, epoch: u64, offset: u64) -> Commit {
    Commit { partition, epoch, offset }
}

/// A poll of several records broke the bound: the real one was the limit plus a whole poll.
#[test]
fn a_poll_is_told_how_many_records_it_may_take() {
    let mut contexts = contexts(3, &[A]);
    let full = AddError::NoRoom { partition: A, offered: 4, room: 3 };
    assert_eq!(contexts.add(A, &[0, 1, 2, 3]), Err(full));
    assert_eq!(contexts.room(A), 3, "none of them was taken");
    contexts.add(A, &[0, 1, 2]).unwrap();
    assert_eq!(contexts.room(A), 0);
}

/// Only what is complete is committed, in any order and over any gap; a bit for each record is all it costs.
#[test]
fn a_completed_prefix_is_committed() {
    let mut contexts = contexts(10, &[A]);
    let mut first = contexts.add(A, &[0, 1, 2, 5, 6, 9]).unwrap();
    assert_eq!((first.partition(), first.epoch(), first.len()), (A, 1, 6));
    assert!(!first.is_empty());
    let mut parts: Vec<Tickets> = (0..6).map(|_| first.take_front(1)).collect();
    assert!(first.is_empty());
    for number in [4, 3, 0, 2] {
        contexts.complete(parts[number]);
    }
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), [ContextAction::Commit(vec![commit(A, 1, 1)])]);
    assert_eq!(contexts.watermark(A), Some(1));
    // An answer to a commit that was never made, or of another epoch, says nothing.
    contexts.commit_answered(commit(A, 1, 0), CommitOutcome::Failed);
    contexts.commit_answered(commit(A, 2, 1), CommitOutcome::Failed);
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), []);
    contexts.commit_answered(commit(A, 1, 1), CommitOutcome::Done);
    parts.drain(..).for_each(|tickets| contexts.complete(tickets));
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), [ContextAction::Commit(vec![commit(A, 1, 10)])]);
    assert_eq!(contexts.watermark(A), Some(10));
}

/// A late completion committed a partition that another process owned by then.
#[test]
fn a_completion_after_the_partition_is_gone_changes_nothing() {
    let mut contexts = contexts(10, &[A]);
    let late = contexts.add(A, &[0, 1]).unwrap();
    contexts.revoke([A], ZERO);
    to(&mut contexts, Stage::Add);
    assert_eq!(actions(&mut contexts), [ContextAction::Unassign(vec![A])]);
    contexts.assign([A]);
    to(&mut contexts, Stage::Add);
    contexts.add(A, &[0]).unwrap();
    let before = contexts.clone();
    contexts.complete(late);
    assert_eq!(contexts, before);
}

/// A revoke waited for all partitions, and the last commit came after the partition was given up.
#[test]
fn a_revoke_waits_for_its_own_records_and_commits_them_first() {
    let mut contexts = contexts(10, &[A, B]);
    let a = contexts.add(A, &[4]).unwrap();
    contexts.add(B, &[7]).unwrap();
    contexts.revoke([A], Duration::from_secs(5));
    to(&mut contexts, Stage::Add);
    assert_eq!(actions(&mut contexts), [], "its record is not complete");
    assert_eq!((contexts.room(A), contexts.room(B)), (0, 9));
    contexts.complete(a);
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), [ContextAction::Commit(vec![commit(A, 1, 5)])]);
    contexts.advance(ZERO);
    assert_eq!(actions(&mut contexts), [], "the commit is not answered");
    contexts.commit_answered(commit(A, 1, 5), CommitOutcome::Done);
    to(&mut contexts, Stage::Assign);
    assert_eq!(actions(&mut contexts), [ContextAction::Unassign(vec![A])]);
}

/// A completion that never came froze the partition.
#[test]
fn a_revoke_does_not_wait_for_ever() {
    let until = Duration::from_secs(5);
    let mut contexts = contexts(10, &[A]);
    let mut tickets = contexts.add(A, &[4, 5]).unwrap();
    contexts.complete(tickets.take_front(1));
    contexts.revoke([A], until);
    to(&mut contexts, Stage::Revoke);
    contexts.commit_answered(commit(A, 1, 5), CommitOutcome::Failed);
    actions(&mut contexts);
    assert_eq!(contexts.next_deadline(), Some(until));
    contexts.advance(until);
    let last = [ContextAction::Commit(vec![commit(A, 1, 5)]), ContextAction::Unassign(vec![A])];
    assert_eq!(actions(&mut contexts), last);
    assert_eq!(contexts.next_deadline(), None);
}

/// What is lost belongs to somebody else already.
#[test]
fn a_lost_partition_is_neither_waited_for_nor_committed() {
    let mut contexts = contexts(10, &[A]);
    let mut tickets = contexts.add(A, &[4, 5]).unwrap();
    contexts.complete(tickets.take_front(1));
    contexts.lose([A]);
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), [ContextAction::Unassign(vec![A])]);
    let gone = AddError::NotAssigned { partition: A, offered: 1 };
    assert_eq!(contexts.add(A, &[6]), Err(gone));
    to(&mut contexts, Stage::Add);
    assert_eq!(contexts.partitions().count(), 0);
}

/// A partition that was lost while it was being revoked was given up twice, and others with it.
#[test]
fn a_loss_during_a_revoke_leaves_the_rest_of_it() {
    let mut contexts = contexts(10, &[A, B]);
    contexts.add(A, &[0]).unwrap();
    let b = contexts.add(B, &[0]).unwrap();
    contexts.revoke([A, B], Duration::MAX);
    contexts.lose([A]);
    contexts.complete(b);
    to(&mut contexts, Stage::Revoke);
    contexts.commit_answered(commit(B, 2, 1), CommitOutcome::Done);
    let gone = |partition| ContextAction::Unassign(vec![partition]);
    assert_eq!(actions(&mut contexts), [gone(A), ContextAction::Commit(vec![commit(B, 2, 1)])]);
    to(&mut contexts, Stage::Add);
    assert_eq!(actions(&mut contexts), [gone(B)]);
    contexts.lose([A, B]);
    to(&mut contexts, Stage::Add);
    assert_eq!(contexts.partitions().count(), 0);
}

/// Records of a partition whose revoke had run out of time held up a reload for ever.
#[test]
fn what_was_given_up_incomplete_does_not_count_for_a_reload() {
    let mut contexts = contexts(10, &[A]);
    contexts.add(A, &[0, 1]).unwrap();
    contexts.revoke([A], ZERO);
    contexts.request_reload(limit(5));
    to(&mut contexts, Stage::Revoke);
    assert!(contexts.reload_requested());
    to(&mut contexts, Stage::Commit);
    assert!(!contexts.reload_requested());
}

/// A commit that the group refused, because a rebalance was under way, was never made.
#[test]
fn a_refused_commit_is_made_after_the_rebalance() {
    let mut contexts = contexts(10, &[A, B]);
    let a = contexts.add(A, &[0]).unwrap();
    contexts.complete(a);
    to(&mut contexts, Stage::Revoke);
    let first = [ContextAction::Commit(vec![commit(A, 1, 1)])];
    assert_eq!(actions(&mut contexts), first);
    contexts.commit_answered(commit(A, 1, 1), CommitOutcome::Refused);
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), [], "not before");
    contexts.assign([]);
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), first);
}

/// A partition paused by backpressure, given up and regained, stayed paused for ever.
#[test]
fn what_comes_back_full_is_resumed_when_it_drains() {
    let mut contexts = contexts(1, &[A]);
    let tickets = contexts.add(A, &[0]).unwrap();
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), [ContextAction::Pause(vec![A])]);
    contexts.revoke([A], ZERO);
    contexts.assign([A]);
    to(&mut contexts, Stage::Add);
    let back = Assigned { partition: A, epoch: 2, paused: true };
    let expected = [ContextAction::Unassign(vec![A]), ContextAction::Assign(vec![back])];
    assert_eq!(actions(&mut contexts), expected);
    contexts.complete(tickets);
    to(&mut contexts, Stage::Add);
    assert_eq!(actions(&mut contexts), [ContextAction::Resume(vec![A])]);
    assert_eq!(contexts.room(A), 1);
}

/// An assignment that came before the revoke was answered brought back what was to be given up.
#[test]
fn an_assignment_waits_for_the_revoke_before_it() {
    let mut contexts = contexts(10, &[A]);
    let tickets = contexts.add(A, &[0]).unwrap();
    contexts.revoke([A], Duration::MAX);
    contexts.assign([A, B]);
    to(&mut contexts, Stage::Add);
    assert_eq!(contexts.standing(A), Some(Standing::Revoking));
    assert_eq!(contexts.standing(B), None);
    contexts.complete(tickets);
    to(&mut contexts, Stage::Revoke);
    contexts.commit_answered(commit(A, 1, 1), CommitOutcome::Refused);
    to(&mut contexts, Stage::Add);
    assert_eq!(contexts.standing(A), Some(Standing::Assigned));
    assert_eq!(contexts.standing(B), Some(Standing::Assigned));
}

/// What is lost or revoked before its assignment was taken in came to life afterwards.
#[test]
fn what_comes_and_goes_at_once_never_begins() {
    let mut contexts = contexts(10, &[]);
    contexts.assign([A, B, C]);
    contexts.lose([A]);
    contexts.revoke([B], ZERO);
    to(&mut contexts, Stage::Add);
    assert_eq!(contexts.partitions().collect::<Vec<_>>(), [C]);
    let gone = |partition| ContextAction::Unassign(vec![partition]);
    let new = Assigned { partition: C, epoch: 1, paused: false };
    let expected = [gone(A), gone(B), ContextAction::Assign(vec![new])];
    assert_eq!(actions(&mut contexts), expected);
}

/// The positions before a seek are not committed behind it, and its records still count for the limit.
#[test]
fn a_seek_begins_anew() {
    let mut contexts = contexts(4, &[A]);
    let before = contexts.add(A, &[10, 11]).unwrap();
    let back = AddError::Regression { partition: A, offset: 3, least: 12 };
    assert_eq!(contexts.add(A, &[3]), Err(back));
    let twice = AddError::Regression { partition: A, offset: 12, least: 13 };
    assert_eq!(contexts.add(A, &[12, 12]), Err(twice));
    assert_eq!(contexts.pending(A), 2, "all or nothing");
    assert_eq!(contexts.seek(A), Some(2));
    let after = contexts.add(A, &[3]).unwrap();
    assert_eq!(after.epoch(), 2);
    assert_eq!((contexts.pending(A), contexts.room(A)), (3, 1));
    contexts.complete(before);
    to(&mut contexts, Stage::Add);
    assert_eq!(actions(&mut contexts), []);
    assert_eq!(contexts.pending(A), 1);
    contexts.complete(after);
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), [ContextAction::Commit(vec![commit(A, 2, 4)])]);
}

/// Epochs that have ended are kept for as long as their records are pending, and no longer.
#[test]
fn ended_epochs_are_dropped_when_they_are_empty() {
    let mut contexts = contexts(10, &[A]);
    let ended = |contexts: &PartitionContexts| contexts.context(A).unwrap().ended_epochs();
    contexts.seek(A).unwrap();
    assert_eq!(ended(&contexts), 0, "nothing was pending");
    let mut first = contexts.add(A, &[5, 6]).unwrap();
    contexts.seek(A).unwrap();
    let second = contexts.add(A, &[5]).unwrap();
    contexts.seek(A).unwrap();
    contexts.complete(first.take_front(1));
    contexts.complete(second);
    to(&mut contexts, Stage::Add);
    assert_eq!((ended(&contexts), contexts.pending(A)), (1, 1));
    contexts.complete(first);
    to(&mut contexts, Stage::Add);
    assert_eq!((ended(&contexts), contexts.pending(A)), (0, 0));
}

/// Records of a lost partition held up a reload for ever.
#[test]
fn what_is_lost_does_not_count_for_a_reload() {
    let mut contexts = contexts(10, &[A, B]);
    let a = contexts.add(A, &[0, 1, 2]).unwrap();
    let b = contexts.add(B, &[0, 1]).unwrap();
    contexts.request_reload(limit(5));
    contexts.lose([A]);
    let before = contexts.clone();
    contexts.complete(a);
    assert_eq!(contexts, before, "it is not ours any more");
    to(&mut contexts, Stage::Commit);
    assert!(contexts.reload_requested(), "a record of the other is pending");
    contexts.complete(b);
    to(&mut contexts, Stage::Commit);
    assert!(!contexts.reload_requested());
}

/// A burst of reloads ends with the last one, which waits for every record, also of what is being revoked.
#[test]
fn a_reload_waits_for_everything_pending() {
    let mut contexts = contexts(10, &[A, B]);
    let a = contexts.add(A, &[0]).unwrap();
    contexts.revoke([A], Duration::MAX);
    contexts.request_reload(limit(5));
    contexts.request_reload(limit(7));
    to(&mut contexts, Stage::Revoke);
    assert_eq!(actions(&mut contexts), [ContextAction::Pause(vec![B])]);
    assert_eq!(contexts.max_pending_records(), limit(10));
    assert!(contexts.reload_requested() && contexts.is_paused(B) && !contexts.is_paused(A));
    contexts.complete(a);
    to(&mut contexts, Stage::Commit);
    assert_eq!(actions(&mut contexts), [ContextAction::Reload]);
    assert_eq!(contexts.max_pending_records(), limit(7));
    assert!(!contexts.reload_requested());
    assert_eq!(contexts.standing(A), Some(Standing::Revoking), "it is not brought back to life");
    to(&mut contexts, Stage::Reload);
    let resumed = ContextAction::Resume(vec![B]);
    assert!(actions(&mut contexts).contains(&resumed));
}

/// A turn looks only at what changed: idle partitions cost nothing.
#[test]
fn idle_partitions_are_not_looked_at() {
    let many: Vec<_> = (0..1000).map(PartitionId).collect();
    let mut contexts = contexts(10, &many);
    to(&mut contexts, Stage::Add);
    contexts.add(B, &[0]).unwrap();
    contexts.advance(ZERO);
    contexts.advance(ZERO);
    assert_eq!(contexts.active, [B]);
}

#[test]
fn texts_of_errors() {
    let texts = [
        AddError::NotAssigned { partition: A, offered: 2 },
        AddError::NoRoom { partition: A, offered: 2, room: 1 },
        AddError::Regression { partition: A, offset: 3, least: 12 },
    ];
    let texts = texts.map(|error| error.to_string());
    insta::assert_snapshot!(texts.join("\n"), @r"
    partition 0: 2 records were offered, but it is not assigned
    partition 0: 2 records were offered where 1 may be taken
    partition 0: offset 3 came where 12 or more was expected; somebody moved the position back: announce it as a seek, or refuse it
    ");
}
