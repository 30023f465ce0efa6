//! What every running reader does: takes what the client has fetched, within the limits, keeps it, and hands it over.
//!
//! Backpressure is not taking: the client stops to fetch for a partition whose queue is full, others flow on,
//! and nothing is fetched twice. What was taken and does not fit stays in the client's memory, at most
//! [`MAX_TAKEN`](super::native::MAX_TAKEN) messages of each partition, all of them fetched within the
//! client's own limits. Not here: which partitions are read, what positions look like, commands.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use lockgate_core::{
    Batch, BufferSize, CommitOutcome, ContextAction, EndpointError, InputReaderCommand as Command,
    PartitionContexts, PartitionId, Stage,
};
use serde_json::Value as JsonValue;

use super::lane::{Standing, Traffic};
use super::position::Epoch;
use super::queue::{self, Queue};
use super::reader::{Order, Shared};
use super::source::Source;

pub(super) struct Reading<'a> {
    pub(super) shared: &'a Shared,
    pub(super) source: &'a mut Source,
    pub(super) contexts: PartitionContexts,
    queue: Queue,
    /// Of each partition the offset of the first record that was not handed over.
    next: Vec<u64>,
    /// Of each partition the last record that was handed over, where its leader's epoch is known.
    epochs: Vec<Option<Epoch>>,
    /// Where each partition ends, if it does.
    ends: Vec<Option<u64>>,
    /// The partitions that may stand elsewhere than when [`moved`](Self::moved) was last asked.
    moved: BTreeSet<usize>,
    /// Those that people who watch do not see where they stand.
    unseen: BTreeSet<usize>,
    traffic: Traffic,
    /// The partitions of which the client may have something.
    hot: BTreeSet<usize>,
    /// The partition that is looked at first next time.
    first: usize,
    /// Whether records are to be read.
    pub(super) running: bool,
}

/// What a running reader does next.
pub(super) enum Next {
    /// Answer `Queue`.
    HandOver,
    /// Take in that a checkpoint with this position is durable.
    Checkpointed(JsonValue),
    /// What it does when nobody wants anything.
    Work,
    End,
}

/// What one partition gives to a step.
pub(super) struct Share {
    /// The partition's place among those of the source.
    pub(super) index: usize,
    /// The offset of the first record that had not been handed over.
    pub(super) from: u64,
    /// The offset after the last record.
    pub(super) to: u64,
    pub(super) batches: Vec<Batch>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(shared: &'a Shared, source: &'a mut Source) -> Self {
        Self {
            shared,
            source,
            contexts: PartitionContexts::new(shared.max_pending_records()),
            queue: Queue::default(),
            next: Vec::new(),
            epochs: Vec::new(),
            ends: Vec::new(),
            moved: BTreeSet::new(),
            unseen: BTreeSet::new(),
            traffic: Traffic::default(),
            hot: BTreeSet::new(),
            first: 0,
            running: true,
        }
    }

    /// What is to be done next, by what the controller orders.
    ///
    /// # Errors
    /// If it orders what a running reader is never asked for.
    pub(super) fn next(&mut self, orders: &Receiver<Order>) -> Result<Next, EndpointError> {
        loop {
            match orders.try_recv() {
                Ok(Order::Command(Command::Extend)) => self.running = true,
                Ok(Order::Command(Command::Pause)) => self.running = false,
                Ok(Order::Command(Command::Queue { .. })) => return Ok(Next::HandOver),
                Ok(Order::Command(Command::Disconnect)) => return Ok(Next::End),
                Ok(Order::Command(Command::Replay { .. })) => {
                    let what = "a Kafka input that is running was sent Replay";
                    return Err(EndpointError::Bug(what.into()));
                }
                Ok(Order::Reload(max_pending_records)) => {
                    self.contexts.request_reload(max_pending_records);
                }
                Ok(Order::Checkpointed(seek)) => return Ok(Next::Checkpointed(seek)),
                Err(TryRecvError::Disconnected) => return Ok(Next::End),
                Err(TryRecvError::Empty) => return Ok(Next::Work),
            }
        }
    }

    /// The partition becomes ours: its first record to be handed over is the one at `offset`, and the one at `end`
    /// is not, if there is an end. The client is told apart.
    pub(super) fn begin(&mut self, index: usize, offset: u64, end: Option<u64>) {
        let parts = self.source.parts.len();
        self.next.resize(parts, 0);
        self.epochs.resize(parts, None);
        self.ends.resize(parts, None);
        self.moved.insert(index);
        self.unseen.insert(index);
        (self.next[index], self.ends[index]) = (offset, end);
        self.epochs[index] = self.source.parts[index].epoch;
        self.contexts.assign([PartitionId(index as u32)]);
    }

    /// The partition is being given up: what is held of it is dropped, and nothing more is taken. How much was
    /// dropped.
    pub(super) fn give_up(&mut self, index: usize) -> BufferSize {
        let partition = PartitionId(index as u32);
        let (dropped, tickets) = self.queue.discard(index);
        // Of an epoch that has ended nothing is committed, and it is not waited for either.
        self.contexts.seek(partition);
        tickets.into_iter().for_each(|tickets| self.contexts.complete(tickets));
        self.contexts.revoke([partition], Duration::ZERO);
        self.source.parts[index].queue.clear();
        self.unseen.remove(&index);
        self.shared.gauges.forget(index);
        dropped
    }

    /// What became of records in the last turn, up to the stage at which new ones are taken.
    pub(super) fn turn(&mut self) {
        loop {
            self.contexts.advance(Duration::ZERO);
            if self.contexts.stage() == Stage::Add {
                break;
            }
        }
        while let Some(action) = self.contexts.next_action() {
            // A partition is held back by not taking from it. What may be committed is decided by what is durable,
            // which comes later than being complete.
            if let ContextAction::Commit(commits) = action {
                for commit in commits {
                    self.contexts.commit_answered(commit, CommitOutcome::Done);
                }
            }
        }
    }

    /// Announces what there is and fits. Whether there may be more.
    pub(super) fn read(&mut self) -> Result<bool, EndpointError> {
        let limits = self.shared.consumer.limits();
        self.hot.append(&mut self.source.raised.take());
        let places = self.hot.range(self.first..).chain(self.hot.range(..self.first));
        let places: Vec<usize> = places.copied().collect();
        self.first = places.get(1).copied().unwrap_or_default();
        let mut announced = BufferSize::ZERO;
        let mut more = false;
        for index in places {
            if index >= self.next.len() {
                continue;
            }
            let id = PartitionId(index as u32);
            let part = &mut self.source.parts[index];
            let is_over = self.ends[index].is_some_and(|end| part.position >= end);
            if is_over || !part.queue.may_have_more() {
                self.hot.remove(&index);
                continue;
            }
            let room = self.contexts.room(id).min(self.queue.room(limits));
            if room == 0 {
                continue;
            }
            if part.queue.is_used_up() {
                part.queue.take(room);
            }
            let before = part.position;
            let mut held = self.queue.held();
            let mut records = 0;
            let copied = part.copy(self.ends[index], self.shared.consumer.as_ref(), |size| {
                let fits = records < room && queue::allows(limits, held.plus(size));
                if fits {
                    records += 1;
                    held = held.plus(size);
                }
                fits
            })?;
            // Also over what is no record.
            if part.position != before {
                self.moved.insert(index);
                self.unseen.insert(index);
            }
            if let Some(batch) = copied.batch {
                let tickets = self.contexts.add(id, &copied.offsets);
                let tickets = tickets.map_err(|error| EndpointError::Bug(error.to_string()))?;
                announced = announced.plus(batch.size());
                self.traffic.came(index, batch.size());
                self.queue.push(index, batch, tickets);
            }
            more |= part.queue.is_used_up() && part.queue.is_raised();
        }
        if announced.records > 0 {
            self.shared.consumer.buffered(announced);
        }
        if self.source.look_is_due() {
            self.change_lanes()?;
        }
        Ok(more)
    }

    /// Looks which partitions are busy.
    fn change_lanes(&mut self) -> Result<(), EndpointError> {
        let (parts, ends) = (&self.source.parts, &self.ends);
        let standing = |index: usize| {
            let part = &parts[index];
            let is_over = ends[index].is_some_and(|end| part.position >= end);
            let is_behind = !is_over && part.seen_end != Some(part.position);
            Standing { in_lane: part.in_lane, is_behind }
        };
        let moves = self.traffic.look(self.next.len(), standing);
        self.source.change_lane(&moves.out, false)?;
        self.source.change_lane(&moves.into, true)
    }

    /// Whether every partition was read to its end.
    pub(super) fn is_over(&self) -> bool {
        let mut parts = self.source.parts.iter().zip(&self.ends);
        parts.all(|(part, end)| end.is_some_and(|end| part.position >= end))
    }

    /// What is handed over now.
    pub(super) fn take(&mut self) -> Vec<Share> {
        let taken = self.queue.take(self.shared.consumer.max_batch_size());
        let shares = taken.into_iter().map(|(index, of_part)| {
            let (batches, tickets): (Vec<Batch>, Vec<_>) = of_part.into_iter().unzip();
            tickets.into_iter().for_each(|tickets| self.contexts.complete(tickets));
            let from = self.next[index];
            let to = batches.last().and_then(Batch::end_offset).unwrap_or(from);
            self.next[index] = to;
            if let Some(last) = batches.last().and_then(|batch| batch.iter().next_back()) {
                let epoch = |number| Epoch { number, end: last.end_offset };
                self.epochs[index] = last.leader_epoch.map(epoch);
            }
            self.moved.insert(index);
            self.unseen.insert(index);
            Share { index, from, to, batches }
        });
        shares.collect()
    }

    /// The partitions that may stand elsewhere than when this was last asked; at first all of them.
    pub(super) fn moved(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.moved)
    }

    /// Lets people who watch see where the partitions stand.
    pub(super) fn show(&mut self) {
        for index in std::mem::take(&mut self.unseen) {
            let part = &self.source.parts[index];
            let is_through = self.queue.is_empty(index);
            let position = if is_through { part.position } else { self.next[index] };
            self.shared.gauges.reach(index, &part.partition, position, self.ends[index]);
        }
    }

    /// Where the partition stands: behind markers that follow what was handed over.
    pub(super) fn place(&mut self, index: usize) -> u64 {
        if self.queue.is_empty(index) {
            self.next[index] = self.source.parts[index].position;
        }
        self.next[index]
    }

    /// The last record before that place, where its leader's epoch is known.
    pub(super) fn epoch(&self, index: usize) -> Option<Epoch> {
        self.epochs[index]
    }
}
