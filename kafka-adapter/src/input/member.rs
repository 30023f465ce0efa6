//! A member of a consumer group after its first `Extend`: the group says which partitions it reads.
//!
//! The library waits until a wish of the group is answered, and here is when: an assignment when it is known where
//! each partition begins; a revoke when what was handed over of its partitions is durable. Durable is a turn (an
//! answer to `Queue`) whose offsets the output has committed with the records, or, without such an output, one that
//! a checkpoint covers: then the offsets are committed here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use lockgate_core::{BufferSize, EndpointError, FaultTolerance, Resume};

use super::begin::Beginning;
use super::native::{self, Commits};
use super::reader::{Order, Shared};
use super::reading::{Next, Reading};
use super::source::Source;
use crate::client::Name;
use crate::client::Rebalance;
use crate::group::{GroupCommits, GroupSeek};

/// Looks around at least so often: a frozen process must find out soon what it has lost.
const NAP: Duration = Duration::from_millis(100);
/// How long a revoke waits for what was handed over. Less than brokers wait for a member.
const REVOKE_PATIENCE: Duration = Duration::from_secs(15);

pub(super) struct Member<'a> {
    reading: Reading<'a>,
    group: &'a str,
    beginning: &'a Beginning,
    /// The output that commits the offsets, if one does.
    commits: Option<GroupCommits>,
    /// Wishes of the group that have not been looked at.
    wishes: VecDeque<Rebalance>,
    /// The one that is being fulfilled.
    pending: Option<Pending>,
    /// The last answer to `Queue` that had records.
    turn: u64,
    durable: u64,
    /// What was handed over and is not durable.
    handed: VecDeque<Handed>,
    /// Of each partition that is ours, by its place, the last turn that had records of it.
    owned: BTreeMap<usize, u64>,
    /// Offsets that are durable and not committed.
    to_commit: BTreeMap<usize, u64>,
    committer: Commits,
    /// Those that are being committed.
    committing: Option<BTreeMap<usize, u64>>,
    /// When the group was last asked who this member is.
    introduced: Option<Instant>,
    /// Its id in the group when it got what is its own.
    id: Option<Vec<u8>>,
}

enum Pending {
    Assign(Vec<Name>),
    Revoke { partitions: Vec<usize>, turn: u64, until: Instant },
}

/// What one turn gave.
struct Handed {
    turn: u64,
    /// By the partition's place, the offset after it.
    places: Vec<(usize, u64)>,
}

impl<'a> Member<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        source: &'a mut Source,
        group: &'a str,
        beginning: &'a Beginning,
        commits: Option<GroupCommits>,
    ) -> Result<Self, EndpointError> {
        source.subscribe(group, &beginning.subscription())?;
        let committer = source.commits()?;
        Ok(Self {
            reading: Reading::new(shared, source),
            group,
            beginning,
            commits,
            wishes: VecDeque::new(),
            pending: None,
            turn: 0,
            durable: 0,
            handed: VecDeque::new(),
            owned: BTreeMap::new(),
            to_commit: BTreeMap::new(),
            committer,
            committing: None,
            introduced: None,
            id: None,
        })
    }

    /// Until `Disconnect`.
    pub(super) fn run(mut self, orders: &Receiver<Order>) -> Result<(), EndpointError> {
        let ended = self.work(orders);
        // What the output has not committed yet will be refused from here on.
        if let Some(commits) = &self.commits {
            commits.publish(None);
        }
        if ended.is_ok() {
            self.commit_now(|_| true);
        }
        ended
    }

    fn work(&mut self, orders: &Receiver<Order>) -> Result<(), EndpointError> {
        loop {
            // Before any command: what was lost while the process was frozen must not be handed over.
            self.listen()?;
            match self.reading.next(orders)? {
                Next::HandOver => self.hand_over(),
                Next::Checkpointed(seek) => {
                    let seek = GroupSeek::from_json(&seek)?;
                    if self.commits.is_none() {
                        self.settle(seek.turn);
                    }
                }
                Next::End => return Ok(()),
                Next::Work => {
                    self.commit_later();
                    self.fulfil()?;
                    self.reading.turn();
                    self.reading.source.put_right()?;
                    let more = self.reading.running && self.reading.read()?;
                    self.reading.show();
                    if !more {
                        std::thread::park_timeout(NAP);
                    }
                }
            }
        }
    }

    /// Takes in what the client has to say.
    fn listen(&mut self) -> Result<(), EndpointError> {
        let consumer = self.reading.shared.consumer.as_ref();
        self.wishes.extend(self.reading.source.listen(consumer)?);
        if self.committing.is_some()
            && let Some(result) = self.committer.ended()
        {
            let sent = std::mem::take(&mut self.committing).unwrap_or_default();
            if let Err(error) = result {
                // What is still ours is tried again with what comes next.
                tracing::info!(group = self.group, "offsets were not committed: {error}");
                for (index, offset) in sent {
                    if self.owned.contains_key(&index) {
                        self.to_commit.entry(index).or_insert(offset);
                    }
                }
            }
        }
        if self.reading.source.is_lost() && !self.owned.is_empty() {
            self.lose()?;
        }
        if let Some(commits) = self.commits.clone() {
            self.settle(commits.committed());
            if self.introduced.is_none_or(|at| at.elapsed() >= NAP) && self.introduce(&commits)? {
                self.introduced = Some(Instant::now());
            }
        }
        Ok(())
    }

    /// Tells the output as whom the group knows this member; false while it does not.
    ///
    /// A loss that was told has ended the member before it gets here, and the library joins no other generation
    /// before such a loss is answered. One that is not told (the group forgot the member, and it joined anew in
    /// silence) shows as another id. So in what is published all that is ours is ours.
    fn introduce(&mut self, commits: &GroupCommits) -> Result<bool, EndpointError> {
        let Some((member, id)) = native::member(self.reading.source.client()) else {
            return Ok(false);
        };
        if self.owned.is_empty() {
            self.id = Some(id);
        } else if self.id.as_ref() != Some(&id) {
            return Err(self.superseded("the group has forgotten this member and dealt anew"));
        }
        commits.publish(Some(member));
        Ok(true)
    }

    /// Everything up to this turn is durable.
    fn settle(&mut self, turn: u64) {
        self.durable = self.durable.max(turn);
        while self.handed.front().is_some_and(|handed| handed.turn <= self.durable) {
            let Some(handed) = self.handed.pop_front() else { break };
            if self.commits.is_some() {
                continue;
            }
            for (index, offset) in handed.places {
                // A partition that was given up belongs to somebody else.
                if self.owned.contains_key(&index) {
                    self.to_commit.insert(index, offset);
                }
            }
        }
    }

    /// Answers `Queue`.
    fn hand_over(&mut self) {
        let shares = self.reading.take();
        if !shares.is_empty() {
            self.turn += 1;
        }
        let mut seek = GroupSeek::new(self.group, self.turn);
        let (mut batches, mut places) = (Vec::new(), Vec::new());
        for share in shares {
            let place = self.reading.place(share.index);
            let part = &self.reading.source.parts[share.index];
            seek.topics.entry(part.topic().to_owned()).or_default().insert(part.number(), place);
            self.owned.insert(share.index, self.turn);
            places.push((share.index, place));
            batches.extend(share.batches);
        }
        if !places.is_empty() {
            self.handed.push_back(Handed { turn: self.turn, places });
        }
        if self.reading.shared.level == FaultTolerance::None && self.commits.is_none() {
            // Nothing is promised, and no checkpoint will ever say more.
            self.settle(self.turn);
        }
        let resume = Resume::Seek { seek: seek.to_json().into() };
        self.reading.shared.consumer.extended(batches, resume);
    }

    /// Goes on with what the group wishes, one wish after the other.
    fn fulfil(&mut self) -> Result<(), EndpointError> {
        loop {
            match self.pending.take() {
                Some(Pending::Assign(names)) => {
                    if !self.assign(&names)? {
                        self.pending = Some(Pending::Assign(names));
                        return Ok(());
                    }
                }
                Some(Pending::Revoke { partitions, turn, until }) => {
                    if !self.revoked(&partitions, turn, until)? {
                        self.pending = Some(Pending::Revoke { partitions, turn, until });
                        return Ok(());
                    }
                }
                None => match self.wishes.pop_front() {
                    Some(Rebalance::Assigned(names)) => self.pending = Some(Pending::Assign(names)),
                    Some(Rebalance::Revoked { lost: true, .. }) => {
                        self.lose()?;
                        self.reading.source.answer_revoke(None)?;
                    }
                    Some(Rebalance::Revoked { partitions, lost: false }) => {
                        self.revoke(&partitions)
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    /// Answers an assignment, if it is known where its partitions begin.
    fn assign(&mut self, names: &[Name]) -> Result<bool, EndpointError> {
        let places = if self.reading.source.is_lost() {
            // It is over already; the next wish says so, once this one is answered. Nothing is read till then.
            return self.reading.source.answer_assign(names, &BTreeMap::new()).map(|()| true);
        } else {
            let client = self.reading.source.client();
            self.beginning.places(client, names, self.reading.shared.consumer.as_ref())?
        };
        let Some(places) = places else { return Ok(false) };
        if self.owned.is_empty() {
            self.id = native::member(self.reading.source.client()).map(|(_, id)| id);
        }
        for (name, offset) in &places {
            let index = match self.reading.source.find(&name.0, name.1) {
                Some(index) => index,
                None => self.reading.source.add(&name.0, name.1, *offset)?,
            };
            self.reading.source.start_at(index, *offset);
            self.reading.begin(index, *offset, None);
            self.owned.insert(index, 0);
        }
        tracing::info!(group = self.group, partitions = ?names, "the group gives partitions");
        self.reading.source.answer_assign(names, &places)?;
        // The output must know the member before it has records of it: they would be taken for somebody else's.
        self.introduced = None;
        Ok(true)
    }

    /// Stops to read partitions and waits for what was handed over of them.
    fn revoke(&mut self, names: &[Name]) {
        let source = &self.reading.source;
        let found = names.iter().filter_map(|name| source.find(&name.0, name.1));
        let partitions: Vec<usize> = found.filter(|index| self.owned.contains_key(index)).collect();
        let turns = partitions.iter().filter_map(|index| self.owned.get(index));
        let turn = turns.copied().max().unwrap_or(0);
        self.drop_held(&partitions);
        if turn > self.durable && self.commits.is_none() {
            self.reading.shared.consumer.request_checkpoint();
        }
        let until = Instant::now() + REVOKE_PATIENCE;
        self.pending = Some(Pending::Revoke { partitions, turn, until });
    }

    /// Answers a revoke, if everything is durable or there is no more time.
    fn revoked(
        &mut self,
        partitions: &[usize],
        turn: u64,
        until: Instant,
    ) -> Result<bool, EndpointError> {
        if turn > self.durable && Instant::now() < until {
            return Ok(false);
        }
        if turn > self.durable && self.commits.is_some() {
            // Committed later, it could take the offsets of the next owner back: brokers do not look who owns what.
            return Err(
                self.superseded("what was read could not be written before it had to be given up")
            );
        }
        self.commit_now(|index| partitions.contains(&index));
        for index in partitions {
            self.owned.remove(index);
        }
        let source = &mut *self.reading.source;
        let names: Vec<Name> = partitions.iter().map(|index| source.parts[*index].name()).collect();
        tracing::info!(group = self.group, partitions = ?names, "partitions go back to the group");
        source.answer_revoke(Some(&names))?;
        Ok(true)
    }

    /// Everything that was ours belongs to others.
    fn lose(&mut self) -> Result<(), EndpointError> {
        if self.commits.is_some() {
            return Err(self.superseded("the group has given its partitions to other members"));
        }
        let partitions: Vec<usize> = std::mem::take(&mut self.owned).into_keys().collect();
        if let Some(Pending::Revoke { until, .. }) = &mut self.pending {
            *until = Instant::now();
        }
        self.drop_held(&partitions);
        self.to_commit.clear();
        self.handed.clear();
        tracing::warn!(group = self.group, "the group has given the partitions to other members");
        Ok(())
    }

    fn drop_held(&mut self, partitions: &[usize]) {
        let dropped = partitions.iter().map(|index| self.reading.give_up(*index));
        let dropped = dropped.fold(BufferSize::ZERO, BufferSize::plus);
        if dropped.records > 0 {
            self.reading.shared.consumer.discarded(dropped);
        }
    }

    fn superseded(&self, why: &str) -> EndpointError {
        EndpointError::Superseded {
            what: format!("consumer group {}", self.group),
            source: why.into(),
        }
    }

    /// Commits what is durable, one commit after the other; nobody waits for it.
    fn commit_later(&mut self) {
        if self.to_commit.is_empty() || self.committing.is_some() {
            return;
        }
        match self.committer.begin(self.named(&self.to_commit).iter().map(borrowed)) {
            Ok(()) => self.committing = Some(std::mem::take(&mut self.to_commit)),
            Err(error) => tracing::info!(group = self.group, "offsets are not committed: {error}"),
        }
    }

    /// Commits what is durable of some partitions and waits for it.
    fn commit_now(&mut self, of: impl Fn(usize) -> bool) {
        let mut sent = self.committing.clone().unwrap_or_default();
        sent.append(&mut self.to_commit);
        let (now, later): (BTreeMap<usize, u64>, _) =
            sent.into_iter().partition(|(index, _)| of(*index));
        self.to_commit = later;
        if !now.is_empty()
            && let Err(error) =
                self.reading.source.commit_now(self.named(&now).iter().map(borrowed))
        {
            tracing::warn!(
                group = self.group,
                "offsets were not committed, records come again: {error}"
            );
        }
    }

    fn named(&self, offsets: &BTreeMap<usize, u64>) -> Vec<(Name, u64)> {
        let parts = &self.reading.source.parts;
        offsets.iter().map(|(index, offset)| (parts[*index].name(), *offset)).collect()
    }
}

fn borrowed((name, offset): &(Name, u64)) -> (&str, u32, u64) {
    (&name.0, name.1, *offset)
}
