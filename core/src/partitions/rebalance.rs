//! How partitions come and go: assigned, revoked with time to finish what was begun, or lost.
//!
//! Revokes and losses hold from the moment they are told. A revoke is answered when nothing of it is under way
//! any more; an assignment waits for that, and for its stage.

use std::time::Duration;

use super::context::{CommitState, Context};
use super::{
    Assigned, Commit, ContextAction, PartitionContexts, PartitionFault, PartitionId, Standing,
};

/// A revoke that is not answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Revoke {
    partitions: Vec<PartitionId>,
    until: Duration,
}

impl PartitionContexts {
    /// These partitions became ours. Contexts begin at the next stage [`Stage::Assign`](super::Stage::Assign)
    /// at which no revoke is unanswered. One that is ours already stays as it is.
    pub fn assign(&mut self, partitions: impl IntoIterator<Item = PartitionId>) {
        self.coming.get_or_insert_default().extend(partitions);
    }

    /// These partitions are to be given up. From now on no record of them is taken; what was taken may become
    /// complete and be committed until all of it is, or the time `until` has come. The answer is
    /// [`ContextAction::Unassign`]. Another revoke before that becomes part of the first.
    pub fn revoke(&mut self, partitions: impl IntoIterator<Item = PartitionId>, until: Duration) {
        let mut revoke = self.revoke.take().unwrap_or(Revoke { partitions: Vec::new(), until });
        revoke.until = revoke.until.max(until);
        for partition in partitions {
            self.forget_coming(partition);
            let marks = !self.has(PartitionFault::RevokedNotMarked);
            if let Some(context) = self.context_mut(partition)
                && context.standing == Standing::Assigned
                && marks
            {
                context.standing = Standing::Revoking;
            }
            revoke.partitions.push(partition);
        }
        self.revoke = Some(revoke);
    }

    /// These partitions are not ours any more: nothing of them is waited for or committed.
    pub fn lose(&mut self, partitions: impl IntoIterator<Item = PartitionId>) {
        let commits = self.has(PartitionFault::CommitsLost);
        let (mut lost, mut last) = (Vec::new(), Vec::new());
        for partition in partitions {
            self.forget_coming(partition);
            if let Some(revoke) = &mut self.revoke {
                revoke.partitions.retain(|revoked| *revoked != partition);
            }
            lost.push(partition);
            let Some(context) = self.context_mut(partition) else { continue };
            let is_gone = context.standing == Standing::Revoked;
            if let Some(offset) = context.uncommitted().filter(|_| commits && !is_gone) {
                last.push(Commit { partition, epoch: context.epoch(), offset });
            }
            context.standing = Standing::Revoked;
            let forgotten = context.forget();
            self.pending -= forgotten;
            if !is_gone {
                self.gone.push(partition);
            }
        }
        self.act_unless_empty(last, ContextAction::Commit);
        self.act(ContextAction::Unassign(lost));
    }

    fn forget_coming(&mut self, partition: PartitionId) {
        if let Some(coming) = &mut self.coming {
            coming.retain(|other| *other != partition);
        }
    }

    /// When a revoke is answered at the latest.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.revoke.as_ref().map(|revoke| revoke.until)
    }

    pub(super) fn answer_revoke(&mut self, now: Duration) {
        let waits = self.has(PartitionFault::RevokeWaitsForEver);
        let Some(revoke) = self.revoke.take_if(|revoke| {
            let contexts = &self.contexts;
            let context = |p: &PartitionId| contexts.get(p.0 as usize).and_then(Option::as_ref);
            let revoking = revoke.partitions.iter().filter_map(context);
            let mut revoking = revoking.filter(|context| context.standing == Standing::Revoking);
            (revoke.until <= now && !waits) || revoking.all(Context::is_settled)
        }) else {
            return;
        };
        let mut commits = Vec::new();
        for partition in &revoke.partitions {
            let Some(context) = self.context_mut(*partition) else { continue };
            if context.standing != Standing::Revoking {
                continue;
            }
            context.standing = Standing::Revoked;
            if context.commit != CommitState::Refused
                && let Some(offset) = context.uncommitted()
            {
                let epoch = context.epoch();
                commits.push(Commit { partition: *partition, epoch, offset });
            }
            self.gone.push(*partition);
        }
        self.act_unless_empty(commits, ContextAction::Commit);
        self.act(ContextAction::Unassign(revoke.partitions));
    }

    pub(super) fn take_in_assignments(&mut self) {
        let mut assigned = Vec::new();
        if let Some(coming) = self.coming.take_if(|_| self.revoke.is_none()) {
            for partition in coming {
                assigned.extend(self.begin(partition));
            }
            // A generation begins: what was refused before may be taken now.
            self.retry_refused();
        }
        for partition in std::mem::take(&mut self.gone) {
            if self.standing(partition) == Some(Standing::Revoked) {
                self.pending -= self.pending(partition);
                self.contexts[partition.0 as usize] = None;
            }
        }
        self.act_unless_empty(assigned, ContextAction::Assign);
    }

    /// A partition became ours; `None` if it is already.
    fn begin(&mut self, partition: PartitionId) -> Option<Assigned> {
        let number = partition.0 as usize;
        if number >= self.contexts.len() {
            self.contexts.resize(number + 1, None);
        }
        if self.standing(partition) == Some(Standing::Assigned) {
            return None;
        }
        self.last_epoch += 1;
        let epoch = self.last_epoch;
        let forgets = self.has(PartitionFault::EndedNotCounted);
        if forgets && let Some(context) = self.context_mut(partition) {
            let forgotten = context.forget();
            self.pending -= forgotten;
        }
        let paused = match &mut self.contexts[number] {
            // It never left: what it has pending is still in memory.
            Some(context) => {
                context.begin(epoch);
                context.standing = Standing::Assigned;
                context.paused
            }
            none => {
                *none = Some(Context::new(epoch));
                false
            }
        };
        self.touch(partition);
        let paused = paused && !self.has(PartitionFault::AssignedAsRunning);
        Some(Assigned { partition, epoch, paused })
    }

    fn retry_refused(&mut self) {
        for context in self.contexts.iter_mut().flatten() {
            if context.commit == CommitState::Refused {
                context.commit = CommitState::Idle;
            }
        }
        self.touch_all();
    }
}
