//! Partitions with contexts: the shipped machine between a client that fetches and a reader that hands over. In a
//! group it also decides what may be committed when.

use std::num::NonZeroU32;
use std::time::Duration;

use fastrand::Rng;
use lockgate_core::{
    Commit, CommitOutcome, ContextAction, InputConsumer, PartitionContexts, PartitionFault,
    PartitionId, Stage, Standing, Tickets,
};
use tokio::time::Instant;

use super::held::{Fetched, Held};
use crate::plan::InputPlan;
use crate::world::{Rebalance, Shared, Upstream};

/// How long a revoke waits for what was begun.
const REVOKE_PATIENCE: Duration = Duration::from_millis(300);

pub(super) struct Dealt {
    contexts: PartitionContexts,
    /// What the client does: it fetches of what is assigned and not paused.
    client: Vec<ClientPartition>,
    max_pending: u32,
    begun: Instant,
    has_assigned: bool,
    /// Handed over and not durable: partition, record, ticket.
    undone: Vec<(u32, u32, Tickets)>,
    /// Commits under way.
    commits: Vec<Commit>,
    has_asked: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct ClientPartition {
    is_assigned: bool,
    is_paused: bool,
    /// Whether it was paused for nothing after the last turn.
    was_forgotten: bool,
}

/// What is around it.
pub(super) struct Outside<'a> {
    pub(super) world: &'a Shared,
    /// Whether offsets are committed and partitions dealt out there.
    pub(super) is_group: bool,
    pub(super) place: usize,
    pub(super) consumer: &'a dyn InputConsumer,
    pub(super) has_begun: bool,
    pub(super) reads: bool,
}

impl Outside<'_> {
    fn breach(&self, text: &str) {
        self.world.lock().breach(text.to_owned());
    }
}

impl Dealt {
    pub(super) fn new(plan: &InputPlan, fault: Option<PartitionFault>) -> Self {
        let max_pending = NonZeroU32::new(plan.max_pending).unwrap_or(NonZeroU32::MIN);
        let mut contexts = PartitionContexts::new(max_pending);
        if let Some(fault) = fault {
            contexts = contexts.with_fault(fault);
        }
        Self {
            contexts,
            client: vec![ClientPartition::default(); plan.partitions as usize],
            max_pending: max_pending.get(),
            begun: Instant::now(),
            has_assigned: false,
            undone: Vec::new(),
            commits: Vec::new(),
            has_asked: false,
        }
    }

    pub(super) fn request_reload(&mut self, max_pending: NonZeroU32) {
        self.contexts.request_reload(max_pending);
    }

    /// In a group records are done with when they are durable, otherwise now.
    pub(super) fn handed_over(&mut self, taken: &[Fetched], is_group: bool) {
        for Fetched { partition, n, tickets } in taken {
            match tickets {
                Some(tickets) if is_group => self.undone.push((*partition, *n, *tickets)),
                Some(tickets) => self.contexts.complete(*tickets),
                None => {}
            }
        }
    }

    /// What lies before these places is durable.
    pub(super) fn durable(&mut self, places: &[u32]) {
        self.has_asked = false;
        let contexts = &mut self.contexts;
        self.undone.retain(|(partition, n, tickets)| {
            let is_durable = *n < places[*partition as usize];
            if is_durable {
                contexts.complete(*tickets);
            }
            !is_durable
        });
    }

    /// One turn of the loop.
    pub(super) fn turn(
        &mut self,
        held: &mut Held,
        outside: Outside<'_>,
        rng: &mut Rng,
        room: impl Fn(&Held) -> bool,
    ) {
        let now = self.begun.elapsed();
        if outside.has_begun {
            self.listen(held, &outside, now);
        }
        self.answer_commits(&outside, rng);
        while self.contexts.stage() != Stage::Add {
            self.advance(held, &outside, now);
        }
        if outside.reads {
            self.fetch(held, &outside, rng, room);
            held.announce(outside.consumer);
            // All that may be pending is, and only a checkpoint can change that.
            let waits = held.is_empty() && !self.undone.is_empty();
            if waits && !std::mem::replace(&mut self.has_asked, true) {
                outside.consumer.request_checkpoint();
            }
        }
        self.advance(held, &outside, now);
        while self.contexts.stage() != Stage::Revoke {
            self.advance(held, &outside, now);
        }
        self.check_paused(&outside);
    }

    /// Takes in what the group wants; without a group everything is assigned, once.
    fn listen(&mut self, held: &mut Held, outside: &Outside<'_>, now: Duration) {
        let all = 0..self.client.len() as u32;
        if !std::mem::replace(&mut self.has_assigned, true) {
            self.contexts.assign(all.map(PartitionId));
        }
        let rebalances =
            std::mem::take(&mut outside.world.lock().upstreams[outside.place].rebalances);
        for rebalance in rebalances {
            match rebalance {
                Rebalance::Revoke(partitions) => {
                    outside.consumer.request_checkpoint();
                    self.contexts.revoke(ids(&partitions), now + REVOKE_PATIENCE);
                }
                Rebalance::Lost(partitions) => {
                    self.give_up(&partitions, held, outside);
                    self.contexts.lose(ids(&partitions));
                }
                Rebalance::Assign(partitions) => {
                    // Those that were not taken away yet stay.
                    self.contexts.assign(ids(&partitions));
                }
            }
        }
    }

    fn advance(&mut self, held: &mut Held, outside: &Outside<'_>, now: Duration) {
        self.contexts.advance(now);
        while let Some(action) = self.contexts.next_action() {
            outside.world.lock().note(|| format!("input {}: {action:?}", outside.place));
            match action {
                ContextAction::Assign(assigned) => {
                    for assigned in assigned {
                        let p = assigned.partition.0;
                        if outside.is_group {
                            let upstream = &mut outside.world.lock().upstreams[outside.place];
                            upstream.is_ours[p as usize] = true;
                            held.begin(p, upstream.committed[p as usize]);
                        }
                        self.client[p as usize] = ClientPartition {
                            is_assigned: true,
                            is_paused: assigned.paused,
                            was_forgotten: false,
                        };
                    }
                }
                ContextAction::Unassign(partitions) => {
                    let partitions: Vec<u32> = partitions.iter().map(|p| p.0).collect();
                    self.give_up(&partitions, held, outside);
                    if outside.is_group {
                        let upstream = &mut outside.world.lock().upstreams[outside.place];
                        partitions.iter().for_each(|p| upstream.given_up(*p));
                    }
                }
                ContextAction::Pause(partitions) => self.set_paused(&partitions, true),
                ContextAction::Resume(partitions) => {
                    if self.contexts.reload_requested() {
                        outside.breach("a partition resumes while a reload is requested");
                    }
                    self.set_paused(&partitions, false);
                }
                ContextAction::Commit(commits) => {
                    commits.iter().for_each(|commit| self.check_commit(*commit, outside));
                    self.commits.extend(commits);
                }
                ContextAction::Reload => {
                    self.max_pending = self.contexts.max_pending_records().get();
                    // What was paused for it goes on with the next turn.
                    self.client.iter_mut().for_each(|client| client.was_forgotten = false);
                }
            }
        }
    }

    /// Nothing that is not durable lies before what is committed.
    fn check_commit(&self, commit: Commit, outside: &Outside<'_>) {
        let passes = |(partition, n, tickets): &(u32, u32, Tickets)| {
            *partition == commit.partition.0
                && tickets.epoch() == commit.epoch
                && Upstream::offset(*n) < commit.offset
        };
        if self.undone.iter().any(passes) {
            outside.breach("a commit passes a record that is not durable");
        }
    }

    /// No partition below its limit stays paused for more than a turn.
    fn check_paused(&mut self, outside: &Outside<'_>) {
        let contexts = &self.contexts;
        let limit = u64::from(contexts.max_pending_records().get());
        for (partition, client) in (0..).map(PartitionId).zip(&mut self.client) {
            let has_room = contexts.pending(partition) < limit && !contexts.reload_requested();
            let is_ours = contexts.standing(partition) == Some(Standing::Assigned);
            let is_forgotten = client.is_paused && is_ours && has_room;
            if is_forgotten && client.was_forgotten {
                outside.breach("a partition below its limit stays paused");
            }
            client.was_forgotten = is_forgotten;
        }
    }

    fn set_paused(&mut self, partitions: &[PartitionId], is_paused: bool) {
        partitions.iter().for_each(|p| self.client[p.0 as usize].is_paused = is_paused);
    }

    /// What is held of these partitions is read by whoever reads them next.
    fn give_up(&mut self, partitions: &[u32], held: &mut Held, outside: &Outside<'_>) {
        let (dropped, tickets) = held.drop_all(partitions);
        // A partition that comes back at once keeps its context, and counts what is not done with.
        tickets.into_iter().for_each(|tickets| self.contexts.complete(tickets));
        if dropped.records > 0 {
            outside.consumer.discarded(dropped);
        }
        for partition in partitions {
            self.client[*partition as usize] = ClientPartition::default();
        }
    }

    /// Commits end later than they begin, and not always well.
    fn answer_commits(&mut self, outside: &Outside<'_>, rng: &mut Rng) {
        for commit in std::mem::take(&mut self.commits) {
            let world = &mut *outside.world.lock();
            let fails = world.input_troubles[outside.place].commits_fail;
            let next = Upstream::number_at_least(commit.offset);
            let outcome = if !outside.is_group {
                CommitOutcome::Done
            } else if fails && rng.bool() {
                CommitOutcome::Failed
            } else if world.upstreams[outside.place].commit(commit.partition.0, next) {
                world.coverage.count("a commit");
                CommitOutcome::Done
            } else {
                world.coverage.count("a refused commit");
                CommitOutcome::Refused
            };
            self.contexts.commit_answered(commit, outcome);
        }
    }

    fn fetch(
        &mut self,
        held: &mut Held,
        outside: &Outside<'_>,
        rng: &mut Rng,
        room: impl Fn(&Held) -> bool,
    ) {
        let partitions = self.client.len();
        let first = rng.usize(..partitions);
        for partition in (0..partitions).map(|p| ((p + first) % partitions) as u32) {
            let client = self.client[partition as usize];
            if !client.is_assigned || client.is_paused {
                continue;
            }
            let id = PartitionId(partition);
            let mut wanted = rng.usize(1..8).min(self.contexts.room(id));
            while wanted > 0 && room(held) {
                let Some(n) = held.following(partition) else { break };
                match self.contexts.add(id, &[Upstream::offset(n)]) {
                    Ok(tickets) => held.fetch_with(partition, Some(tickets)),
                    Err(error) => {
                        outside.breach(&format!("the contexts refuse a record: {error}"));
                        break;
                    }
                };
                wanted -= 1;
            }
            let (pending, max) = (self.contexts.pending(id), self.max_pending);
            if pending > u64::from(max) {
                outside.breach(&format!("{pending} records are pending, {max} may be"));
            }
            if self.contexts.standing(id) != Some(Standing::Assigned) {
                outside.world.lock().coverage.count("a client ahead of its contexts");
            }
        }
    }
}

fn ids(partitions: &[u32]) -> impl Iterator<Item = PartitionId> {
    partitions.iter().map(|partition| PartitionId(*partition))
}
