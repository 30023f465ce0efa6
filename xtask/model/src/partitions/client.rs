//! A client of the group, as far as the partition contexts see it, and the truth about its records.
//!
//! It does what the machine says and notes what the machine must not do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockgate_core::{
    Commit, CommitOutcome, ContextAction, PartitionContexts, PartitionId, Tickets,
};

use super::spec::Set;
use super::wider::{COMMITS, LATE, RELOADS, TOUCHES};

/// The client and its records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    partitions: Vec<Partition>,
    taken: BTreeSet<Taken>,
    /// Commits that are not answered.
    commits: BTreeSet<Commit>,
    /// What the broker stored for the epoch that is under way.
    committed: BTreeMap<u32, Commit>,
    /// Whether an assignment must follow a revoke or a loss.
    expects_assignment: bool,
    /// Those that had a context before the stage under way.
    had_context: Set,
    now: u8,
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Partition {
    assigned: bool,
    paused: bool,
    /// It was told to be given up.
    leaving: bool,
    /// It became ours, but has not begun.
    coming: bool,
    /// The place of the next record.
    position: usize,
    epoch: u64,
}

/// A record that is taken and not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Taken {
    tickets: Tickets,
    offset: u64,
    /// Whether its context has been there ever since.
    counts: bool,
}

impl Client {
    pub(super) fn new(partitions: u32) -> Self {
        Self {
            partitions: vec![Partition::default(); partitions as usize],
            taken: BTreeSet::new(),
            commits: BTreeSet::new(),
            committed: BTreeMap::new(),
            expects_assignment: false,
            had_context: Set::new(),
            now: 0,
            wrong: None,
        }
    }

    pub(super) fn now(&self) -> Duration {
        Duration::from_secs(self.now.into())
    }

    pub(super) fn wrong(&self) -> Option<&'static str> {
        self.wrong
    }

    fn accuse(&mut self, fault: bool, rule: &'static str) {
        if fault {
            self.wrong.get_or_insert(rule);
        }
    }

    pub(super) fn before_stage(&mut self, machine: &PartitionContexts) {
        self.had_context = machine.partitions().map(|p| p.0).collect();
    }

    pub(super) fn after_stage(&mut self, machine: &PartitionContexts) {
        let left: Set = self.had_context.iter().copied().collect();
        for p in left.into_iter().filter(|p| machine.standing(PartitionId(*p)).is_none()) {
            self.forget(p);
        }
        self.had_context.clear();
    }

    /// The records of a partition do not count any more.
    fn forget(&mut self, p: u32) {
        let of_it = |taken: &Taken| taken.tickets.partition().0 == p;
        let forgotten: Vec<_> = self.taken.iter().copied().filter(of_it).collect();
        for taken in forgotten {
            self.taken.remove(&taken);
            self.taken.insert(Taken { counts: false, ..taken });
        }
        self.committed.remove(&p);
    }

    pub(super) fn perform(&mut self, machine: &PartitionContexts, action: ContextAction) {
        match action {
            ContextAction::Assign(partitions) => {
                for new in partitions {
                    let partition = &mut self.partitions[new.partition.0 as usize];
                    *partition = Partition {
                        assigned: true,
                        paused: new.paused,
                        leaving: false,
                        coming: false,
                        position: 0,
                        epoch: new.epoch,
                    };
                    self.committed.remove(&new.partition.0);
                }
            }
            ContextAction::Unassign(partitions) => {
                for p in partitions {
                    let partition = &mut self.partitions[p.0 as usize];
                    *partition = Partition { coming: partition.coming, ..Partition::default() };
                }
            }
            ContextAction::Pause(partitions) => self.set_paused(&partitions, true),
            ContextAction::Resume(partitions) => self.set_paused(&partitions, false),
            ContextAction::Reload => {
                let counts = |taken: &Taken| taken.counts && self.has_context(machine, taken);
                self.accuse(self.taken.iter().any(counts), RELOADS);
            }
            ContextAction::Commit(commits) => commits.into_iter().for_each(|c| self.commit(c)),
        }
    }

    fn has_context(&self, machine: &PartitionContexts, taken: &Taken) -> bool {
        machine.standing(taken.tickets.partition()).is_some()
    }

    fn set_paused(&mut self, partitions: &[PartitionId], paused: bool) {
        for p in partitions {
            let partition = &mut self.partitions[p.0 as usize];
            let ours = partition.assigned && !partition.leaving;
            partition.paused = paused;
            self.accuse(!ours, TOUCHES);
        }
    }

    fn commit(&mut self, commit: Commit) {
        let partition = self.partitions[commit.partition.0 as usize];
        self.accuse(!partition.assigned || partition.epoch != commit.epoch, TOUCHES);
        let passed = |taken: &Taken| {
            let tickets = taken.tickets;
            (tickets.partition(), tickets.epoch()) == (commit.partition, commit.epoch)
                && taken.offset < commit.offset
        };
        self.accuse(self.taken.iter().any(passed), COMMITS);
        self.commits.insert(commit);
    }

    pub(super) fn poll(
        &mut self,
        machine: &mut PartitionContexts,
        p: u32,
        n: usize,
        offsets: &[u64],
    ) {
        let partition = &mut self.partitions[p as usize];
        let offsets = &offsets[partition.position..partition.position + n];
        partition.position += n;
        let ours = partition.assigned && !partition.leaving && !partition.paused;
        self.accuse(!ours, TOUCHES);
        let Ok(mut tickets) = machine.add(PartitionId(p), offsets) else {
            return self.accuse(true, TOUCHES);
        };
        for offset in offsets {
            let tickets = tickets.take_front(1);
            self.taken.insert(Taken { tickets, offset: *offset, counts: true });
        }
    }

    pub(super) fn complete(
        &mut self,
        machine: &mut PartitionContexts,
        p: u32,
        epoch: u64,
        offset: u64,
    ) {
        let is_it = |taken: &&Taken| {
            (taken.tickets.partition().0, taken.tickets.epoch(), taken.offset) == (p, epoch, offset)
        };
        let Some(taken) = self.taken.iter().find(is_it).copied() else { return };
        self.taken.remove(&taken);
        let before = (!taken.counts).then(|| machine.clone());
        machine.complete(taken.tickets);
        self.accuse(before.is_some_and(|before| before != *machine), LATE);
    }

    pub(super) fn complete_all(&mut self, machine: &mut PartitionContexts) {
        std::mem::take(&mut self.taken)
            .into_iter()
            .for_each(|taken| machine.complete(taken.tickets));
    }

    pub(super) fn answer(
        &mut self,
        machine: &mut PartitionContexts,
        commit: Commit,
        outcome: CommitOutcome,
    ) {
        self.commits.remove(&commit);
        let partition = &self.partitions[commit.partition.0 as usize];
        if outcome == CommitOutcome::Done && partition.epoch == commit.epoch {
            self.committed.insert(commit.partition.0, commit);
        }
        machine.commit_answered(commit, outcome);
    }

    pub(super) fn answer_all(&mut self, machine: &mut PartitionContexts) {
        for commit in std::mem::take(&mut self.commits) {
            self.answer(machine, commit, CommitOutcome::Done);
        }
    }

    pub(super) fn seek(&mut self, machine: &mut PartitionContexts, p: u32) {
        if let Some(epoch) = machine.seek(PartitionId(p)) {
            let partition = &mut self.partitions[p as usize];
            (partition.position, partition.epoch) = (0, epoch);
            self.committed.remove(&p);
        }
    }

    pub(super) fn giving_up(&mut self, partitions: &Set) {
        self.expects_assignment = true;
        for p in partitions {
            let partition = &mut self.partitions[*p as usize];
            (partition.leaving, partition.coming) = (true, false);
        }
    }

    pub(super) fn losing(&mut self, partitions: &Set) {
        self.expects_assignment = true;
        for p in partitions {
            self.partitions[*p as usize] = Partition::default();
            self.forget(*p);
        }
    }

    pub(super) fn assigning(&mut self, partitions: &Set) {
        self.expects_assignment = false;
        partitions.iter().for_each(|p| self.partitions[*p as usize].coming = true);
    }

    pub(super) fn pass_time(&mut self, machine: &PartitionContexts) {
        if let Some(deadline) = machine.next_deadline() {
            self.now = self.now.max(deadline.as_secs() as u8);
        }
    }

    pub(super) fn expects_assignment(&self) -> bool {
        self.expects_assignment
    }

    /// Whether no rebalance is under way.
    pub(super) fn is_stable(&self) -> bool {
        !self.expects_assignment && self.partitions.iter().all(|partition| !partition.leaving)
    }

    /// Whether the partition is ours through the rebalance under way.
    pub(super) fn keeps(&self, p: u32) -> bool {
        let partition = &self.partitions[p as usize];
        (partition.assigned || partition.coming) && !partition.leaving
    }

    pub(super) fn ours(&self) -> Set {
        (0..self.partitions.len() as u32).filter(|p| self.keeps(*p)).collect()
    }

    pub(super) fn assigned(&self) -> Set {
        let assigned = |p: &u32| self.partitions[*p as usize].assigned;
        (0..self.partitions.len() as u32).filter(assigned).collect()
    }

    pub(super) fn is_paused(&self, p: u32) -> bool {
        self.partitions[p as usize].paused
    }

    pub(super) fn remaining(&self, p: u32, offsets: &[u64]) -> usize {
        offsets.len() - self.partitions[p as usize].position
    }

    /// Partition, epoch and offset of each record that is taken and not complete.
    pub(super) fn taken(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        let taken = self.taken.iter();
        taken.map(|taken| (taken.tickets.partition().0, taken.tickets.epoch(), taken.offset))
    }

    /// How many records of the partition count for its limit.
    pub(super) fn counted(&self, p: u32) -> u64 {
        let counts = |taken: &&Taken| taken.counts && taken.tickets.partition().0 == p;
        self.taken.iter().filter(counts).count() as u64
    }

    pub(super) fn commits(&self) -> impl Iterator<Item = Commit> {
        self.commits.iter().copied()
    }

    pub(super) fn committed(&self, p: u32) -> Option<u64> {
        self.committed.get(&p).map(|commit| commit.offset)
    }
}
