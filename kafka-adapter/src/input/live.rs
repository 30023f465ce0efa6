//! A reader after its first `Extend`: takes what the client has fetched, within the limits, and hands it over.
//!
//! Backpressure is not taking: the client stops to fetch for a partition whose queue is full, others flow on,
//! and nothing is fetched twice. What was taken and does not fit stays in the client's memory, at most
//! [`MAX_TAKEN`](super::native::MAX_TAKEN) messages of each partition, all of them fetched within the
//! client's own limits. Not here: replays.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use lockgate_core::{
    Batch, BufferSize, CommitOutcome, ContextAction, EndpointError, FaultTolerance,
    InputReaderCommand as Command, PartitionContexts, PartitionId, Resume, Stage, count,
};

use super::ask::Name;
use super::plan::recreated;
use super::position::{Range, Seek, ranges_to_msgpack};
use super::queue::Queue;
use super::reader::Shared;
use super::source::Source;
use super::watch::{Found, Watch};

/// Looks around at least so often, also when nothing wakes the thread.
const NAP: Duration = Duration::from_millis(500);

pub(super) struct Live<'a> {
    shared: &'a Shared,
    source: &'a mut Source,
    contexts: PartitionContexts,
    queue: Queue,
    /// Of each partition the offset of the first record that was not handed over.
    next: Vec<u64>,
    /// The ids of the topics that have one.
    ids: BTreeMap<String, String>,
    /// Where each partition ends, if it does.
    ends: Vec<Option<u64>>,
    /// The partition that is looked at first next time.
    first: usize,
    running: bool,
    ended: bool,
}

impl<'a> Live<'a> {
    /// Goes on at `seek`.
    pub(super) fn new(
        shared: &'a Shared,
        source: &'a mut Source,
        seek: &Seek,
    ) -> Result<Self, EndpointError> {
        let (mut next, mut ends) = (Vec::new(), Vec::new());
        for part in &source.parts {
            let offset = seek.offset(part.topic(), part.number()).unwrap_or(part.position);
            next.push(offset);
            ends.push(end_of(shared.ends.as_ref(), part.topic(), part.number()));
        }
        let places = next.iter().copied().enumerate();
        let (to_read, done): (Vec<_>, Vec<_>) =
            places.partition(|(index, offset)| ends[*index].is_none_or(|end| *offset < end));
        source.read_from(&to_read)?;
        for (index, offset) in done {
            source.parts[index].position = offset;
        }
        let mut contexts = PartitionContexts::new(shared.max_pending_records);
        contexts.assign((0..source.parts.len() as u32).map(PartitionId));
        let (queue, ids) = (Queue::default(), seek.ids.clone());
        Ok(Self {
            shared,
            source,
            contexts,
            queue,
            next,
            ids,
            ends,
            first: 0,
            running: true,
            ended: false,
        })
    }

    /// Until `Disconnect`.
    pub(super) fn run(mut self, commands: &Receiver<Command>) -> Result<(), EndpointError> {
        loop {
            match commands.try_recv() {
                Ok(Command::Extend) => self.running = true,
                Ok(Command::Pause) => self.running = false,
                Ok(Command::Queue { .. }) => self.hand_over()?,
                Ok(Command::Disconnect) | Err(TryRecvError::Disconnected) => return Ok(()),
                Ok(Command::Replay { .. }) => {
                    let what = "a Kafka input that is running was sent Replay";
                    return Err(EndpointError::Bug(what.into()));
                }
                Err(TryRecvError::Empty) => {
                    self.source.listen(self.shared.consumer.as_ref())?;
                    self.take_in_changes()?;
                    self.turn();
                    if !self.running || self.ended || !self.read()? {
                        std::thread::park_timeout(NAP);
                    }
                }
            }
        }
    }

    /// What became of records in the last turn, up to the stage at which new ones are taken.
    fn turn(&mut self) {
        loop {
            self.contexts.advance(Duration::ZERO);
            if self.contexts.stage() == Stage::Add {
                break;
            }
        }
        while let Some(action) = self.contexts.next_action() {
            // Assigning was done before; a partition is held back by not taking from it; positions are kept in
            // checkpoints, so nothing is left to commit.
            if let ContextAction::Commit(commits) = action {
                for commit in commits {
                    self.contexts.commit_answered(commit, CommitOutcome::Done);
                }
            }
        }
    }

    /// Announces what there is and fits. Whether there may be more.
    fn read(&mut self) -> Result<bool, EndpointError> {
        let limits = self.shared.consumer.limits();
        let parts = self.source.parts.len();
        let mut announced = BufferSize::ZERO;
        let mut more = false;
        for index in (self.first..parts).chain(0..self.first) {
            let id = PartitionId(index as u32);
            let part = &mut self.source.parts[index];
            let is_over = self.ends[index].is_some_and(|end| part.position >= end);
            if is_over || part.queue.is_used_up() && !part.queue.is_raised() {
                continue;
            }
            let room = self.contexts.room(id).min(self.queue.room(limits));
            if room == 0 {
                continue;
            }
            if part.queue.is_used_up() {
                part.queue.take(room);
            }
            let mut held = self.queue.held();
            let mut records = 0;
            let copied = part.copy(self.ends[index], self.shared.consumer.as_ref(), |size| {
                let fits = records < room && limits.allow(held.plus(size));
                if fits {
                    records += 1;
                    held = held.plus(size);
                }
                fits
            })?;
            if let Some(batch) = copied.batch {
                let tickets = self.contexts.add(id, &copied.offsets);
                let tickets = tickets.map_err(|error| EndpointError::Bug(error.to_string()))?;
                announced = announced.plus(batch.size());
                self.queue.push(index, batch, tickets);
            }
            more |= part.queue.is_used_up() && part.queue.is_raised();
        }
        self.first = if parts == 0 { 0 } else { (self.first + 1) % parts };
        if announced.records > 0 {
            self.shared.consumer.buffered(announced);
        }
        self.end_if_read();
        Ok(more)
    }

    /// Reports the end of input when every partition was read to its end.
    fn end_if_read(&mut self) {
        let mut parts = self.source.parts.iter().zip(&self.ends);
        if parts.all(|(part, end)| end.is_some_and(|end| part.position >= end)) {
            self.ended = true;
            self.shared.consumer.eoi();
        }
    }

    /// Answers `Queue`. Every position is a good one, so a wanted checkpoint changes nothing.
    fn hand_over(&mut self) -> Result<(), EndpointError> {
        let taken = self.queue.take(self.shared.consumer.max_batch_size());
        let (mut batches, mut ranges) = (Vec::new(), Vec::new());
        for (index, of_part) in taken {
            let (of_part, tickets): (Vec<Batch>, Vec<_>) = of_part.into_iter().unzip();
            tickets.into_iter().for_each(|tickets| self.contexts.complete(tickets));
            let to = of_part.last().and_then(Batch::end_offset).unwrap_or(self.next[index]);
            let partition = &self.source.parts[index].partition;
            ranges.push(Range {
                topic: partition.source.clone(),
                partition: partition.number.unwrap_or_default(),
                from: self.next[index],
                to,
                count: count(&of_part),
            });
            self.next[index] = to;
            batches.extend(of_part);
        }
        let seek = self.seek().to_json();
        let resume = match self.shared.level {
            FaultTolerance::ExactlyOnce => {
                Resume::Replay { seek, replay: ranges_to_msgpack(&ranges) }
            }
            _ => Resume::Seek { seek },
        };
        self.shared.consumer.extended(batches, resume);
        Ok(())
    }

    /// Where the reader stands: behind markers that follow what was handed over.
    fn seek(&mut self) -> Seek {
        let mut seek = Seek::default();
        seek.ids.clone_from(&self.ids);
        for (index, part) in self.source.parts.iter().enumerate() {
            if self.queue.is_empty(index) {
                self.next[index] = part.position;
            }
            seek.set(part.topic(), part.number(), self.next[index]);
        }
        seek
    }

    /// What the watch has found since.
    fn take_in_changes(&mut self) -> Result<(), EndpointError> {
        while let Some(found) = self.shared.watch.as_ref().and_then(Watch::found) {
            let (topic, number, first) = match found {
                Found::Partition { topic, number, first } => (topic, number, first),
                Found::Recreated { topic, before, now } => {
                    return Err(recreated(&topic, &before, &now));
                }
            };
            let index = self.source.parts.len();
            self.source.add(&topic, number, first)?;
            self.source.read_from(&[(index, first)])?;
            self.next.push(first);
            self.ends.push(None);
            self.contexts.assign([PartitionId(index as u32)]);
        }
        Ok(())
    }
}

fn end_of(ends: Option<&BTreeMap<Name, u64>>, topic: &str, number: u32) -> Option<u64> {
    ends?.get(&(topic.to_owned(), number)).copied()
}
