//! The contexts of the partitions that a consumer owns: how many records of each are pending, which are
//! paused, how far each may be committed.
//!
//! Pure: the adapter's loop tells what happened and asks for what is to be done. Not here: reading, waiting,
//! committing.
//!
//! One turn of the loop is eight stages in this order, as in the TLA+ model of LINE Decaton's consumer loop
//! (`DecatonProcessorSpec.tla`): *revoke, assign, add records, update high watermark, pause, resume, property
//! reload, commit*. [`advance`](PartitionContexts::advance) does one stage; records are taken at the stage
//! [`Add`](Stage::Add), everything else may happen at any moment between two stages.

mod context;
mod event;
mod fault;
mod rebalance;
#[cfg(test)]
mod tests;
mod turn;
mod window;

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

pub use context::Standing;
use context::{CommitState, Context};
pub use event::{AddError, Assigned, Commit, CommitOutcome, ContextAction, PartitionId, Tickets};
pub use fault::PartitionFault;
use rebalance::Revoke;
pub use turn::Stage;

/// The contexts of all partitions of one consumer.
///
/// Adding and completing records cost O(1) each, a watermark amortised O(1), none of them an allocation per
/// record; a turn costs what happened since the last one, however many partitions are idle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionContexts {
    max_pending_records: NonZeroU32,
    /// The limit that is requested, while a reload is.
    reload: Option<NonZeroU32>,
    stage: Stage,
    contexts: Vec<Option<Context>>,
    /// Records pending in all contexts.
    pending: u64,
    last_epoch: u64,
    /// Partitions that became ours and have no context yet; `None` if no assignment waits.
    coming: Option<Vec<PartitionId>>,
    revoke: Option<Revoke>,
    /// Contexts that are [`Standing::Revoked`].
    gone: Vec<PartitionId>,
    /// Contexts that changed since the last stage [`Stage::Watermark`].
    touched: Vec<PartitionId>,
    /// Those that had changed before it.
    active: Vec<PartitionId>,
    actions: VecDeque<ContextAction>,
    fault: Option<PartitionFault>,
}

impl PartitionContexts {
    /// No partitions yet. Each of them may have `max_pending_records` pending: taken, and not passed by its
    /// watermark.
    pub fn new(max_pending_records: NonZeroU32) -> Self {
        Self {
            max_pending_records,
            reload: None,
            stage: Stage::Revoke,
            contexts: Vec::new(),
            pending: 0,
            last_epoch: 0,
            coming: None,
            revoke: None,
            gone: Vec::new(),
            touched: Vec::new(),
            active: Vec::new(),
            actions: VecDeque::new(),
            fault: None,
        }
    }

    /// Requests other properties: when nothing is pending, `max_pending_records` is in force and
    /// [`ContextAction::Reload`] says so. A request during another one takes its place.
    pub fn request_reload(&mut self, max_pending_records: NonZeroU32) {
        if self.has(PartitionFault::SecondReloadForgotten) && self.reload.is_some() {
            return;
        }
        self.reload = Some(max_pending_records);
    }

    /// How many records of the partition may be taken now.
    pub fn room(&self, partition: PartitionId) -> usize {
        match self.context(partition) {
            Some(context)
                if self.stage == Stage::Add
                    && context.standing == Standing::Assigned
                    && !context.paused =>
            {
                self.limit().saturating_sub(context.pending()) as usize
            }
            _ => 0,
        }
    }

    /// Takes records with these offsets, which must rise; they may have gaps. Give the tickets back by
    /// [`complete`](Self::complete) when the records are done with, whatever has become of the partition.
    ///
    /// # Errors
    /// If they may not be taken; none of them is then.
    pub fn add(&mut self, partition: PartitionId, offsets: &[u64]) -> Result<Tickets, AddError> {
        let (offered, room) = (offsets.len(), self.room(partition));
        let context = at(&mut self.contexts, partition);
        let Some(context) = context.filter(|context| context.standing == Standing::Assigned) else {
            return Err(AddError::NotAssigned { partition, offered });
        };
        if offered > room {
            return Err(AddError::NoRoom { partition, offered, room });
        }
        let mut least = context.end_offset().unwrap_or(0);
        for offset in offsets {
            if *offset < least {
                return Err(AddError::Regression { partition, offset: *offset, least });
            }
            least = offset.saturating_add(1);
        }
        let (epoch, first, len) = (context.epoch(), context.add(offsets), offered as u64);
        self.pending += len;
        self.touch(partition);
        Ok(Tickets { partition, epoch, first, len })
    }

    /// The records are done with. Changes nothing if their partition has been given up since.
    pub fn complete(&mut self, tickets: Tickets) {
        let Tickets { partition, epoch, first, len } = tickets;
        let late = self.has(PartitionFault::LateCompletionCounts);
        let Some(context) = self.context_mut(partition) else { return };
        if context.complete(epoch, first, len) {
            self.touch(partition);
        } else if late {
            context.complete_unasked();
            self.touch(partition);
        }
    }

    /// The position of the partition was moved, forward or back: its next record may have any offset. A new
    /// epoch begins; what is pending of the old one still counts, but is not committed any more. `None` if
    /// the partition is not ours.
    pub fn seek(&mut self, partition: PartitionId) -> Option<u64> {
        let epoch = self.last_epoch + 1;
        let context = self.context_mut(partition)?;
        if context.standing != Standing::Assigned {
            return None;
        }
        context.begin(epoch);
        self.last_epoch = epoch;
        Some(epoch)
    }

    /// A commit ended. Changes nothing if its epoch is over.
    pub fn commit_answered(&mut self, commit: Commit, outcome: CommitOutcome) {
        let forgets = self.has(PartitionFault::FailedCommitForgotten);
        let Some(context) = self.context_mut(commit.partition) else { return };
        // An answer to an earlier one than the last says nothing.
        if context.epoch() != commit.epoch || context.committed != Some(commit.offset) {
            return;
        }
        context.commit = match outcome {
            CommitOutcome::Done => CommitState::Idle,
            CommitOutcome::Failed if forgets => CommitState::Idle,
            CommitOutcome::Failed => {
                context.committed = None;
                CommitState::Idle
            }
            CommitOutcome::Refused => {
                context.committed = None;
                CommitState::Refused
            }
        };
        self.touch(commit.partition);
    }

    /// Does the stage that comes next, at time `now` (from any fixed beginning, never going back).
    pub fn advance(&mut self, now: Duration) {
        match self.stage {
            Stage::Revoke => self.answer_revoke(now),
            Stage::Assign => self.take_in_assignments(),
            Stage::Add => {}
            Stage::Watermark => self.update_watermarks(),
            Stage::Pause => self.pause(),
            Stage::Resume => self.resume(),
            Stage::Reload => self.reload(),
            Stage::Commit => self.commit(),
        }
        self.stage = self.stage.next();
    }

    /// The next thing to do, if there is one.
    pub fn next_action(&mut self) -> Option<ContextAction> {
        self.actions.pop_front()
    }

    /// The stage that comes next.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// How many records of one partition may be pending, as it is in force.
    pub fn max_pending_records(&self) -> NonZeroU32 {
        self.max_pending_records
    }

    /// Whether a reload is requested that has not taken effect.
    pub fn reload_requested(&self) -> bool {
        self.reload.is_some()
    }

    /// The partitions that have a context, in the order of their numbers.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        let some = self.contexts.iter().enumerate().filter(|(_, context)| context.is_some());
        some.map(|(number, _)| PartitionId(number as u32))
    }

    /// Whose the partition is; `None` if it has no context.
    pub fn standing(&self, partition: PartitionId) -> Option<Standing> {
        self.context(partition).map(|context| context.standing)
    }

    /// Whether the partition is paused.
    pub fn is_paused(&self, partition: PartitionId) -> bool {
        self.context(partition).is_some_and(|context| context.paused)
    }

    /// How many of the partition's records are pending.
    pub fn pending(&self, partition: PartitionId) -> u64 {
        self.context(partition).map_or(0, Context::pending)
    }

    /// The partition's high watermark: the lowest offset whose record is not complete, or the one after the
    /// last record; `None` until a record of this epoch is complete.
    pub fn watermark(&self, partition: PartitionId) -> Option<u64> {
        self.context(partition).and_then(Context::watermark)
    }

    /// The number of pending records at which a partition is full.
    fn limit(&self) -> u64 {
        let limit = u64::from(self.max_pending_records.get());
        let is_late = self.has(PartitionFault::FullAboveTheLimit);
        if is_late { limit.saturating_add(1) } else { limit }
    }

    fn context(&self, partition: PartitionId) -> Option<&Context> {
        self.contexts.get(partition.0 as usize)?.as_ref()
    }

    fn context_mut(&mut self, partition: PartitionId) -> Option<&mut Context> {
        at(&mut self.contexts, partition)
    }

    /// The context will be looked at in the next turn.
    fn touch(&mut self, partition: PartitionId) {
        if let Some(context) = at(&mut self.contexts, partition)
            && !std::mem::replace(&mut context.touched, true)
        {
            self.touched.push(partition);
        }
    }

    fn touch_all(&mut self) {
        (0..self.contexts.len() as u32).for_each(|number| self.touch(PartitionId(number)));
    }

    fn act(&mut self, action: ContextAction) {
        self.actions.push_back(action);
    }

    fn act_unless_empty<T>(&mut self, list: Vec<T>, action: fn(Vec<T>) -> ContextAction) {
        if !list.is_empty() {
            self.act(action(list));
        }
    }
}

fn at(contexts: &mut [Option<Context>], partition: PartitionId) -> Option<&mut Context> {
    contexts.get_mut(partition.0 as usize)?.as_mut()
}
