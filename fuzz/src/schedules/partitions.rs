//! `PartitionContexts` beside a list of every record: hard bounds, completed prefixes, nothing of what is not ours.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use arbitrary::Arbitrary;
use lockgate_core::{
    AddError, Commit, CommitOutcome, ContextAction, PartitionContexts, PartitionId, Stage,
    Standing, Tickets,
};

const PARTITIONS: u8 = 4;

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Op {
    Assign(u8),
    Revoke(u8, Option<u8>),
    Lose(u8),
    Add { partition: u8, records: u8, gap: u8, back: bool },
    Complete { which: u8, records: u8 },
    Seek(u8),
    Advance(u8),
    Time(u8),
    Reload(u8),
    Answer { which: u8, outcome: u8 },
}

/// What was taken in one epoch of a partition: each offset, and whether it is complete.
type Taken = Vec<(u64, bool)>;

struct Known {
    contexts: PartitionContexts,
    now: Duration,
    taken: BTreeMap<(PartitionId, u64), Taken>,
    /// Tickets that are out, with the place of their first record among those taken.
    tickets: Vec<(Tickets, usize)>,
    commits: Vec<Commit>,
    /// Of each partition that is ours, the epoch.
    ours: BTreeMap<PartitionId, u64>,
}

pub fn run(limit: u8, ops: &[Op]) {
    let mut known = Known {
        contexts: PartitionContexts::new(limit_of(limit)),
        now: Duration::ZERO,
        taken: BTreeMap::new(),
        tickets: Vec::new(),
        commits: Vec::new(),
        ours: BTreeMap::new(),
    };
    for op in ops {
        known.perform(*op);
        known.obey();
        known.check();
    }
    known.settle();
}

fn limit_of(limit: u8) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add((limit % 6).into())
}

fn partitions(set: u8) -> Vec<PartitionId> {
    (0..PARTITIONS).filter(|n| set >> n & 1 == 1).map(|n| PartitionId(n.into())).collect()
}

impl Known {
    fn perform(&mut self, op: Op) {
        match op {
            Op::Assign(set) => self.contexts.assign(partitions(set)),
            Op::Revoke(set, within) => {
                let until =
                    within.map_or(Duration::MAX, |s| self.now + Duration::from_secs(s.into()));
                self.contexts.revoke(partitions(set), until);
            }
            Op::Lose(set) => self.contexts.lose(partitions(set)),
            Op::Add { partition, records, gap, back } => self.add(partition, records, gap, back),
            Op::Complete { which, records } => self.complete(which.into(), records.into()),
            Op::Seek(number) => {
                let partition = PartitionId((number % PARTITIONS).into());
                let standing = self.contexts.standing(partition);
                let epoch = self.contexts.seek(partition);
                assert_eq!(epoch.is_some(), standing == Some(Standing::Assigned));
                if let Some(epoch) = epoch {
                    let before = self.ours.insert(partition, epoch);
                    assert!(before.is_some_and(|before| before < epoch), "epochs rise");
                }
            }
            Op::Advance(stages) => {
                for _ in 0..=stages % 9 {
                    self.contexts.advance(self.now);
                    self.obey();
                    self.check();
                }
            }
            Op::Time(seconds) => self.now += Duration::from_secs(seconds.into()),
            Op::Reload(limit) => self.contexts.request_reload(limit_of(limit)),
            Op::Answer { which, outcome } => {
                if self.commits.is_empty() {
                    return;
                }
                let commit = self.commits.swap_remove(usize::from(which) % self.commits.len());
                let outcomes = [CommitOutcome::Done, CommitOutcome::Failed, CommitOutcome::Refused];
                self.contexts.commit_answered(commit, outcomes[usize::from(outcome) % 3]);
            }
        }
    }

    fn add(&mut self, number: u8, records: u8, gap: u8, back: bool) {
        let partition = PartitionId((number % PARTITIONS).into());
        let epoch = self.ours.get(&partition).copied();
        let taken = epoch.and_then(|epoch| self.taken.get(&(partition, epoch)));
        let last = taken.and_then(|taken| taken.last()).map(|(offset, _)| *offset);
        let next = last.map_or(u64::from(gap), |last| last + 1 + u64::from(gap % 4));
        let next = if back && last.is_some() { next.saturating_sub(5) } else { next };
        let step = 1 + u64::from(gap % 2);
        let offsets: Vec<u64> = (0..u64::from(records % 9)).map(|n| next + n * step).collect();
        let (room, before) = (self.contexts.room(partition), self.contexts.clone());
        let result = self.contexts.add(partition, &offsets);
        let is_rising = offsets.first().is_none_or(|first| last.is_none_or(|last| *first > last));
        match result {
            Ok(tickets) => {
                assert!(offsets.len() <= room && is_rising, "taken, but should not be");
                assert_eq!(tickets.len(), offsets.len() as u64);
                assert_eq!(Some(tickets.epoch()), epoch, "of another epoch");
                let taken = self.taken.entry((partition, tickets.epoch())).or_default();
                self.tickets.push((tickets, taken.len()));
                taken.extend(offsets.into_iter().map(|offset| (offset, false)));
            }
            Err(error) => {
                assert_eq!(self.contexts, before, "refused, but changed");
                let is_right = match error {
                    AddError::NotAssigned { .. } => {
                        before.standing(partition) != Some(Standing::Assigned)
                    }
                    AddError::NoRoom { .. } => offsets.len() > room,
                    AddError::Regression { .. } => !is_rising,
                };
                assert!(is_right, "{error}");
            }
        }
    }

    fn complete(&mut self, which: usize, records: u64) {
        if self.tickets.is_empty() {
            return;
        }
        let which = which % self.tickets.len();
        let (tickets, place) = &mut self.tickets[which];
        let front = tickets.take_front(records % 4 + 1);
        let from = *place;
        *place += front.len() as usize;
        if tickets.is_empty() {
            self.tickets.swap_remove(which);
        }
        let taken = self.taken.entry((front.partition(), front.epoch())).or_default();
        taken[from..from + front.len() as usize].iter_mut().for_each(|(_, done)| *done = true);
        self.contexts.complete(front);
    }

    /// Does what is asked for, which must be allowed.
    fn obey(&mut self) {
        while let Some(action) = self.contexts.next_action() {
            match action {
                ContextAction::Assign(new) => {
                    for new in new {
                        let before = self.ours.insert(new.partition, new.epoch);
                        assert_eq!(before, None, "assigned twice");
                    }
                }
                ContextAction::Unassign(gone) => {
                    for partition in gone {
                        self.ours.remove(&partition);
                    }
                }
                ContextAction::Pause(list) | ContextAction::Resume(list) => {
                    let are_ours = list.iter().all(|partition| self.ours.contains_key(partition));
                    assert!(are_ours, "what is not ours is touched: {list:?}");
                }
                ContextAction::Reload => {
                    let pending: u64 =
                        (0..PARTITIONS).map(|n| self.contexts.pending(PartitionId(n.into()))).sum();
                    assert_eq!(pending, 0, "other properties while records are pending");
                }
                ContextAction::Commit(commits) => {
                    for commit in commits {
                        self.expect_prefix(commit);
                        self.commits.push(commit);
                    }
                }
            }
        }
    }

    fn expect_prefix(&self, commit: Commit) {
        assert_eq!(self.ours.get(&commit.partition), Some(&commit.epoch), "not ours: {commit:?}");
        let taken = self.taken.get(&(commit.partition, commit.epoch));
        let taken = taken.map(Vec::as_slice).unwrap_or_default();
        let incomplete = taken.iter().find(|(_, done)| !done).map(|(offset, _)| *offset);
        let end = taken.last().map(|(offset, _)| offset + 1).expect("nothing was taken");
        assert!(commit.offset <= incomplete.unwrap_or(end), "passes {incomplete:?}: {commit:?}");
    }

    fn check(&self) {
        let most = u64::from(self.contexts.max_pending_records().get());
        for number in 0..PARTITIONS {
            let partition = PartitionId(number.into());
            let (pending, room) = (self.contexts.pending(partition), self.contexts.room(partition));
            assert!(pending + room as u64 <= most, "{pending} pending, room for {room}");
            let standing = self.contexts.standing(partition);
            let is_ours = self.ours.contains_key(&partition);
            let has_live_context =
                matches!(standing, Some(Standing::Assigned | Standing::Revoking));
            assert!(!has_live_context || is_ours, "a context of what is not ours");
            assert!(!is_ours || standing.is_some(), "ours, but without a context");
        }
    }

    /// When everything is complete and answered, everything that is ours may be read again.
    fn settle(&mut self) {
        self.now += Duration::from_secs(1 << 20);
        for _ in 0..4 {
            while !self.tickets.is_empty() {
                self.complete(0, 3);
            }
            for commit in std::mem::take(&mut self.commits) {
                self.contexts.commit_answered(commit, CommitOutcome::Done);
            }
            for _ in 0..8 {
                self.contexts.advance(self.now);
                self.obey();
                self.check();
                for commit in std::mem::take(&mut self.commits) {
                    self.contexts.commit_answered(commit, CommitOutcome::Done);
                }
            }
        }
        while self.contexts.stage() != Stage::Add {
            self.contexts.advance(self.now);
            self.obey();
        }
        assert!(!self.contexts.reload_requested(), "a reload waits for ever");
        let most = self.contexts.max_pending_records().get() as usize;
        for partition in self.ours.keys() {
            if self.contexts.standing(*partition) == Some(Standing::Assigned) {
                assert_eq!(self.contexts.room(*partition), most, "{partition:?} is left paused");
            } else {
                assert_ne!(self.contexts.next_deadline(), None, "{partition:?} is never given up");
            }
        }
    }
}
