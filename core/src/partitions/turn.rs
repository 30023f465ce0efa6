//! The stages of a turn that look at what changed: watermarks, pauses, the reload, commits.

use super::context::{CommitState, Context};
use super::{Commit, ContextAction, PartitionContexts, PartitionFault, PartitionId, Standing};

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
        for partition in &self.active {
            let context = self.contexts.get_mut(partition.0 as usize).and_then(Option::as_mut);
            let Some(context) = context else { continue };
            context.touched = false;
            #[cfg(debug_assertions)]
            if self.seeded.is(PartitionFault::WatermarkPassesIncomplete) && context.pending() > 1 {
                context.complete_unasked();
            }
            self.pending -= context.pass();
        }
    }

    /// The contexts of `which` that are ours and match; what is done with them is done to each at once.
    fn each_active(
        &mut self,
        mut done: impl FnMut(PartitionId, &mut Context) -> bool,
    ) -> Vec<PartitionId> {
        let mut found = Vec::new();
        for partition in &self.active {
            let context = self.contexts.get_mut(partition.0 as usize).and_then(Option::as_mut);
            if let Some(context) = context
                && done(*partition, context)
            {
                found.push(*partition);
            }
        }
        found
    }

    pub(super) fn pause(&mut self) {
        if self.reload.is_some() {
            self.active = self.partitions().collect();
        }
        let all = self.reload.is_some();
        let touches = self.seeded.is(PartitionFault::PausesRevoking);
        let is_full = self.is_full();
        let paused = self.each_active(|_, context| {
            let ours = context.standing == Standing::Assigned
                || touches && context.standing == Standing::Revoking;
            let pauses = ours && !context.paused && (all || is_full(context));
            context.paused |= pauses;
            pauses
        });
        self.act_unless_empty(paused, ContextAction::Pause);
    }

    pub(super) fn resume(&mut self) {
        if self.reload.is_some() && !self.seeded.is(PartitionFault::ResumesDuringReload) {
            return;
        }
        let forgets = self.seeded.is(PartitionFault::ResumesWhenEmpty);
        let is_full = self.is_full();
        let resumed = self.each_active(|_, context| {
            let ours = context.standing == Standing::Assigned;
            let resumes = ours && context.paused && !is_full(context);
            let resumes = resumes && !(forgets && context.pending() > 0);
            context.paused &= !resumes;
            resumes
        });
        self.act_unless_empty(resumed, ContextAction::Resume);
    }

    fn is_full(&self) -> impl Fn(&Context) -> bool + use<> {
        let limit = u64::from(self.max_pending_records.get());
        let limit = limit + u64::from(self.seeded.is(PartitionFault::FullAboveTheLimit));
        move |context| context.pending() >= limit
    }

    pub(super) fn reload(&mut self) {
        let mut pending = self.pending;
        if self.seeded.is(PartitionFault::ReloadForgetsRevoking) {
            let contexts = self.contexts.iter().flatten();
            let ours = contexts.filter(|context| context.standing == Standing::Assigned);
            pending = ours.map(Context::pending).sum();
        }
        let Some(max_pending_records) = self.reload.take_if(|_| pending == 0) else { return };
        self.max_pending_records = max_pending_records;
        if self.seeded.is(PartitionFault::ReloadRevivesRevoking) {
            let contexts = self.contexts.iter_mut().flatten();
            contexts.for_each(|context| context.standing = Standing::Assigned);
        }
        self.act(ContextAction::Reload);
        // All of them were paused for it.
        self.touch_all();
    }

    pub(super) fn commit(&mut self) {
        let mut commits = Vec::new();
        self.each_active(|partition, context| {
            let ours = context.standing != Standing::Revoked;
            if let Some(offset) = context.uncommitted()
                && ours
                && context.commit == CommitState::Idle
            {
                context.commit = CommitState::InFlight;
                context.committed = Some(offset);
                commits.push(Commit { partition, epoch: context.epoch(), offset });
            }
            false
        });
        self.active.clear();
        self.act_unless_empty(commits, ContextAction::Commit);
    }
}
