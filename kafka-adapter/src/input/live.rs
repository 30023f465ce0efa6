//! A reader of assigned partitions after its first `Extend`. Positions are its own; new partitions are taken in.
//!
//! Not here: replays, and what it has in common with the member of a group ([`Reading`]).

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use lockgate_core::{EndpointError, FaultTolerance, Position, Resume, count};
use serde_json::Value as JsonValue;

use super::native::Commits;
use super::plan::{Policies, lost_while_running, recreated};
use super::position::{Range, Seek, ranges_to_msgpack};
use super::reader::{Order, Shared};
use super::reading::{Next, Reading};
use super::source::{Lost, Source};
use super::watch::{Found, Watch};
use crate::client::Name;
use crate::config::OnGone;

/// Looks around at least so often, also when nothing wakes the thread.
const NAP: Duration = Duration::from_millis(500);

pub(super) struct Live<'a> {
    reading: Reading<'a>,
    /// The ids of topics that have one, and were in no position yet.
    ids: BTreeMap<String, String>,
    /// Whether a whole position was given.
    has_position: bool,
    /// For tools that look at the offsets of a group.
    commits: Option<Commits>,
    ended: bool,
}

impl<'a> Live<'a> {
    /// Goes on at `seek`.
    pub(super) fn new(
        shared: &'a Shared,
        source: &'a mut Source,
        seek: &Seek,
    ) -> Result<Self, EndpointError> {
        let mut reading = Reading::new(shared, source);
        let mut to_read = Vec::new();
        for index in 0..reading.source.parts.len() {
            let part = &mut reading.source.parts[index];
            let (topic, number) = (part.topic(), part.number());
            let offset = seek.offset(topic, number).unwrap_or(part.position);
            let epoch = seek.epoch(topic, number);
            let end = end_of(shared.ends.as_ref(), topic, number);
            if end.is_some_and(|end| offset >= end) {
                part.position = offset;
            } else {
                to_read.push((index, offset));
            }
            (part.epoch, part.lost) = (epoch, None);
            reading.begin(index, offset, end);
        }
        reading.source.read_from(&to_read)?;
        let shows = shared.has_offsets_group;
        let commits = shows.then(|| reading.source.commits()).transpose()?;
        let ids = seek.ids.clone();
        Ok(Self { reading, ids, has_position: false, commits, ended: false })
    }

    /// Until `Disconnect`.
    pub(super) fn run(mut self, orders: &Receiver<Order>) -> Result<(), EndpointError> {
        loop {
            match self.reading.next(orders)? {
                Next::HandOver => self.hand_over(),
                Next::Checkpointed(seek) => self.tell_group(&seek)?,
                Next::End => return Ok(()),
                Next::Work => {
                    self.listen()?;
                    self.take_in_changes()?;
                    self.reading.turn();
                    let more = self.reading.running && !self.ended && self.read()?;
                    self.reading.show();
                    if !more {
                        std::thread::park_timeout(NAP);
                    }
                }
            }
        }
    }

    fn listen(&mut self) -> Result<(), EndpointError> {
        let shared = self.reading.shared;
        self.reading.source.listen(shared.consumer.as_ref())?;
        let ended = || self.commits.as_ref().and_then(Commits::ended);
        for error in std::iter::from_fn(ended).filter_map(Result::err) {
            tracing::warn!(
                "the group's offsets were not stored, so tools show an older place: {error}"
            );
        }
        Ok(())
    }

    fn read(&mut self) -> Result<bool, EndpointError> {
        let more = self.reading.read().map_err(|error| self.lost(error))?;
        if self.reading.is_over() {
            self.ended = true;
            self.reading.shared.consumer.eoi();
        }
        Ok(more)
    }

    /// What becomes of an error, by the policy for what was lost, if anything was.
    fn lost(&self, error: EndpointError) -> EndpointError {
        let Policies { expired, truncated, .. } = self.reading.shared.policies;
        let lost = self.reading.source.parts.iter().find_map(|part| part.lost);
        match (lost, error) {
            (Some(Lost::Truncated), EndpointError::Data(text)) => {
                lost_while_running(truncated, text)
            }
            // Which of the two it is shows when the input is opened again.
            (Some(Lost::OutOfRange), EndpointError::Data(text)) => {
                let either = if expired == OnGone::Continue { expired } else { truncated };
                lost_while_running(either, text)
            }
            (_, error) => error,
        }
    }

    /// Answers `Queue`. Every position is a good one, so a wanted checkpoint changes nothing.
    fn hand_over(&mut self) {
        let (mut batches, mut ranges) = (Vec::new(), Vec::new());
        for share in self.reading.take() {
            let partition = &self.reading.source.parts[share.index].partition;
            ranges.push(Range {
                topic: partition.source.clone(),
                partition: partition.number.unwrap_or_default(),
                from: share.from,
                to: share.to,
                count: count(&share.batches),
            });
            batches.extend(share.batches);
        }
        let seek = self.position();
        let resume = match self.reading.shared.level {
            FaultTolerance::ExactlyOnce => {
                Resume::Replay { seek, replay: ranges_to_msgpack(&ranges) }
            }
            _ => Resume::Seek { seek },
        };
        self.reading.shared.consumer.extended(batches, resume);
    }

    /// First where all partitions stand, then where those do that have moved.
    fn position(&mut self) -> Position {
        let mut seek = Seek::default();
        seek.ids = std::mem::take(&mut self.ids);
        for index in self.reading.moved() {
            let place = self.reading.place(index);
            let part = &self.reading.source.parts[index];
            seek.set(part.topic(), part.number(), place);
            seek.set_epoch(part.topic(), part.number(), self.reading.epoch(index));
        }
        if std::mem::replace(&mut self.has_position, true) {
            Position::Change(seek.to_change())
        } else {
            Position::Whole(seek.to_json())
        }
    }

    /// A checkpoint is durable: tools that look at the offsets of the group may know.
    fn tell_group(&mut self, seek: &JsonValue) -> Result<(), EndpointError> {
        let Some(commits) = &self.commits else { return Ok(()) };
        if let Err(error) = commits.begin(Seek::from_json(seek)?.iter()) {
            tracing::warn!("the group's offsets are not stored: {error}");
        }
        Ok(())
    }

    /// What the watch has found since.
    fn take_in_changes(&mut self) -> Result<(), EndpointError> {
        let shared = self.reading.shared;
        while let Some(found) = shared.watch.as_ref().and_then(Watch::found) {
            let (topic, id, number, first) = match found {
                Found::Partition { topic, id, number, first } => (topic, id, number, first),
                Found::Recreated { topic, before, now } => {
                    let text = recreated(&topic, &before, &now);
                    return Err(lost_while_running(shared.policies.recreated, text));
                }
                Found::Vanished { topic } => {
                    let text = format!("topic {topic} is not there any more");
                    return Err(lost_while_running(shared.policies.vanished, text));
                }
            };
            self.ids.extend(id.map(|id| (topic.clone(), id)));
            let index = self.reading.source.add(&topic, number, first)?;
            self.reading.source.read_from(&[(index, first)])?;
            self.reading.begin(index, first, None);
        }
        Ok(())
    }
}

fn end_of(ends: Option<&BTreeMap<Name, u64>>, topic: &str, number: u32) -> Option<u64> {
    ends?.get(&(topic.to_owned(), number)).copied()
}
