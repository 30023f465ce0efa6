//! The stages of a turn that look at what changed: watermarks, pauses, the reload, commits.

use super::context::{CommitState, Context};
use super::{Commit, ContextAction, PartitionContexts, PartitionFault, PartitionId, Standing, at};

/// The stage of a turn that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Revokes whose records are complete, or whose time is over, are answered;
    Revoke,
    /// partitions that are gone lose their contexts, and new ones get theirs;
    Assign,
    /// records are taken, as many as there is [room](PartitionContexts::room) for;
    Add,
    /// each high watermark moves past the records that are complete;
    Watermark,
    /// what is full is paused, and everything if a reload is requested;
    Pause,
    /// what is not full any more is resumed, unless a reload is requested;
    Resume,
    /// a requested reload takes effect if nothing is pending;
    Reload,
    /// and what the watermarks have passed is committed.
    Commit,
}

impl Stage {
    pub(super) fn next(self) -> Self {
        match self {
            Stage::Revoke => Stage::Assign,
            Stage::Assign => Stage::Add,
            Stage::Add => Stage::Watermark,
            Stage::Watermark => Stage::Pause,
            Stage::Pause => Stage::Resume,
            Stage::Resume => Stage::Reload,
            Stage::Reload => Stage::Commit,
            Stage::Commit => Stage::Revoke,
        }
    }
}

impl PartitionContexts {
    pub(super) fn update_watermarks(&mut self) {
        std::mem::swap(&mut self.touched, &mut self.active);
        let passes = self.has(PartitionFault::WatermarkPassesIncomplete);
        for partition in &self.active {
            let Some(context) = at(&mut self.contexts, *partition) else { continue };
            context.touched = false;
            if passes && context.pending() > 1 {
                context.complete_unasked();
            }
            self.pending -= context.pass();
        }
    }

    pub(super) fn pause(&mut self) {
        let (limit, all) = (self.limit(), self.reload.is_some());
        if all {
            self.active = self.partitions().collect();
        }
        let touches = self.has(PartitionFault::PausesRevoking);
        let paused = self.active_that(|_, context| {
            let ours = context.standing == Standing::Assigned
                || touches && context.standing == Standing::Revoking;
            let pauses = ours && !context.paused && (all || context.pending() >= limit);
            context.paused |= pauses;
            pauses
        });
        self.act_unless_empty(paused, ContextAction::Pause);
    }

    pub(super) fn resume(&mut self) {
        if self.reload.is_some() && !self.has(PartitionFault::ResumesDuringReload) {
            return;
        }
        let late = self.has(PartitionFault::ResumesWhenEmpty);
        let limit = if late { 1 } else { self.limit() };
        let resumed = self.active_that(|_, context| {
            let ours = context.standing == Standing::Assigned;
            let resumes = ours && context.paused && context.pending() < limit;
            context.paused &= !resumes;
            resumes
        });
        self.act_unless_empty(resumed, ContextAction::Resume);
    }

    /// The active partitions for which `does` was done.
    fn active_that(
        &mut self,
        mut does: impl FnMut(PartitionId, &mut Context) -> bool,
    ) -> Vec<PartitionId> {
        let mut found = Vec::new();
        for partition in &self.active {
            if let Some(context) = at(&mut self.contexts, *partition)
                && does(*partition, context)
            {
                found.push(*partition);
            }
        }
        found
    }

    pub(super) fn reload(&mut self) {
        let mut pending = self.pending;
        if self.has(PartitionFault::ReloadForgetsRevoking) {
            let contexts = self.contexts.iter().flatten();
            let ours = contexts.filter(|context| context.standing == Standing::Assigned);
            pending = ours.map(Context::pending).sum();
        }
        let Some(max_pending_records) = self.reload.take_if(|_| pending == 0) else { return };
        self.max_pending_records = max_pending_records;
        if self.has(PartitionFault::ReloadRevivesRevoking) {
            let contexts = self.contexts.iter_mut().flatten();
            contexts.for_each(|context| context.standing = Standing::Assigned);
        }
        self.act(ContextAction::Reload);
        // All of them were paused for it.
        self.touch_all();
    }

    pub(super) fn commit(&mut self) {
        let mut commits = Vec::new();
        for partition in self.active.drain(..) {
            let Some(context) = at(&mut self.contexts, partition) else { continue };
            if context.standing != Standing::Revoked
                && context.commit == CommitState::Idle
                && let Some(offset) = context.uncommitted()
            {
                context.commit = CommitState::InFlight;
                context.committed = Some(offset);
                commits.push(Commit { partition, epoch: context.epoch(), offset });
            }
        }
        self.act_unless_empty(commits, ContextAction::Commit);
    }
}
