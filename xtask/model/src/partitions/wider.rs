//! The shipped partition contexts against what a real client does beyond the specification: polls of many
//! records, offsets with gaps, completions in any order and after the partition is gone, revokes that wait,
//! losses, seeks, commits that fail, reloads at any moment and on top of each other.
//!
//! The client, the group and the records are [`Client`]'s; here is what may happen and what must hold.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::time::Duration;

use lockgate_core::{
    Commit, CommitOutcome, PartitionContexts, PartitionFault, PartitionId, Stage, Standing,
};
use stateright::{Model, Property};

use super::client::Client;
use super::spec::{self, Set, subsets};

/// The contexts in a world with these bounds.
#[derive(Clone, Debug)]
pub struct WiderModel {
    /// Number of partitions.
    pub partitions: u32,
    /// The limit at first, and those that a reload may bring.
    pub limits: Vec<u32>,
    /// The offsets of the records in each partition.
    pub offsets: Vec<u64>,
    /// How often each of these may happen.
    pub budget: Budget,
    /// A deliberate fault.
    pub fault: Option<PartitionFault>,
}

impl WiderModel {
    fn new(partitions: u32, records: usize, limits: &[u32], budget: [u8; 4]) -> Self {
        let [rebalances, seeks, reloads, failures] = budget;
        Self {
            partitions,
            limits: limits.to_vec(),
            // The gap is what compaction and transactions leave.
            offsets: [0, 1, 5, 6][..records].to_vec(),
            budget: Budget { rebalances, seeks, reloads, failures },
            fault: None,
        }
    }

    /// Models of a few seconds, each with another part of the world.
    pub fn small() -> Vec<(&'static str, Self)> {
        vec![
            ("one partition: polls, a rebalance", Self::new(1, 3, &[2], [1, 0, 0, 0])),
            ("one partition: a seek and a failed commit", Self::new(1, 2, &[2], [0, 1, 0, 1])),
            ("one partition: two reloads", Self::new(1, 2, &[2, 1], [0, 0, 2, 0])),
            ("one partition: a rebalance during a reload", Self::new(1, 1, &[1], [1, 0, 1, 0])),
            ("one partition: a failed commit in a rebalance", Self::new(1, 1, &[1], [1, 0, 0, 1])),
            ("two partitions: a rebalance", Self::new(2, 1, &[1], [1, 0, 0, 0])),
        ]
    }

    /// The same parts with larger bounds, and together.
    pub fn full() -> Vec<(&'static str, Self)> {
        vec![
            ("one partition: everything once", Self::new(1, 2, &[2, 1], [1, 1, 1, 1])),
            ("one partition: a seek in a rebalance", Self::new(1, 3, &[2], [1, 1, 0, 0])),
            (
                "one partition: a rebalance during two reloads",
                Self::new(1, 2, &[2, 1], [1, 0, 2, 0]),
            ),
            ("one partition: two rebalances", Self::new(1, 2, &[2], [2, 0, 0, 0])),
            ("two partitions: a rebalance during a reload", Self::new(2, 1, &[1], [1, 0, 1, 0])),
            ("two partitions: two rebalances", Self::new(2, 1, &[1], [2, 0, 0, 0])),
        ]
    }
}

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Revokes and losses.
    pub rebalances: u8,
    /// Seeks back to the first record.
    pub seeks: u8,
    /// Requests of a reload.
    pub reloads: u8,
    /// Commits that are not answered by [`CommitOutcome::Done`].
    pub failures: u8,
}

/// The machine and the world around it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WiderState {
    machine: PartitionContexts,
    client: Client,
    left: Budget,
    /// The limit that was requested last.
    requested: u32,
    /// Whether a commit was refused.
    refused: bool,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WiderAction {
    /// The next stage.
    Stage(Stage),
    /// A poll hands over so many records of a partition.
    Poll(u32, usize),
    /// The record with this offset is done with; the first of several with the same.
    Complete(u32, u64, u64),
    /// A commit is answered.
    Answer(Commit, CommitOutcome),
    /// Partitions are to be given up, with time for it or without.
    Revoke(Set, bool),
    /// Partitions are lost.
    Lose(Set),
    /// Partitions become ours.
    Assign(Set),
    /// The time that a revoke has is over.
    Deadline,
    /// Another limit is requested.
    Reload(u32),
    /// The position goes back to the first record.
    Seek(u32),
}

fn limit(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN)
}

fn ids(set: &Set) -> impl Iterator<Item = PartitionId> {
    set.iter().copied().map(PartitionId)
}

impl WiderState {
    fn init(model: &WiderModel) -> Self {
        let machine = PartitionContexts::new(limit(model.limits[0]));
        let machine = match model.fault {
            Some(fault) => machine.with_fault(fault),
            None => machine,
        };
        let mut state = Self {
            machine,
            client: Client::new(model.partitions),
            left: model.budget,
            requested: model.limits[0],
            refused: false,
        };
        let all: Set = (0..model.partitions).collect();
        state.machine.assign(ids(&all));
        state.client.assigning(&all);
        state
    }

    /// One stage, and what the client has to do then.
    fn advance(&mut self) {
        self.client.before_stage(&self.machine);
        self.machine.advance(self.client.now());
        self.perform();
        self.client.after_stage(&self.machine);
    }

    fn perform(&mut self) {
        while let Some(action) = self.machine.next_action() {
            self.client.perform(&self.machine, action);
        }
    }

    fn apply(&mut self, model: &WiderModel, action: WiderAction) {
        match action {
            WiderAction::Stage(_) => self.advance(),
            WiderAction::Poll(p, n) => self.client.poll(&mut self.machine, p, n, &model.offsets),
            WiderAction::Complete(p, epoch, offset) => {
                self.client.complete(&mut self.machine, p, epoch, offset);
            }
            WiderAction::Answer(commit, outcome) => {
                self.left.failures -= u8::from(outcome != CommitOutcome::Done);
                self.refused |= outcome == CommitOutcome::Refused;
                self.client.answer(&mut self.machine, commit, outcome);
            }
            WiderAction::Revoke(partitions, waits) => {
                self.left.rebalances -= 1;
                let until = self.client.now() + Duration::from_secs(u64::from(waits));
                self.client.giving_up(&partitions);
                self.machine.revoke(ids(&partitions), until);
            }
            WiderAction::Lose(partitions) => {
                self.left.rebalances -= 1;
                self.client.losing(&partitions);
                self.machine.lose(ids(&partitions));
            }
            WiderAction::Assign(partitions) => {
                self.client.assigning(&partitions);
                self.machine.assign(ids(&partitions));
            }
            WiderAction::Deadline => self.client.pass_time(&self.machine),
            WiderAction::Reload(to) => {
                self.left.reloads -= 1;
                self.requested = to;
                self.machine.request_reload(limit(to));
            }
            WiderAction::Seek(p) => {
                self.left.seeks -= 1;
                self.client.seek(&mut self.machine, p);
            }
        }
        self.perform();
    }

    /// Everything goes well from here on: what is taken becomes complete, commits succeed, three turns pass.
    fn left_alone(&self) -> Self {
        thread_local! {
            /// Several properties ask in turn about the same state.
            static LAST: RefCell<Option<(WiderState, WiderState)>> = const { RefCell::new(None) };
        }
        LAST.with_borrow_mut(|last| match last {
            Some((state, after)) if state == self => after.clone(),
            _ => {
                let after = self.run_alone();
                *last = Some((self.clone(), after.clone()));
                after
            }
        })
    }

    fn run_alone(&self) -> Self {
        let mut state = self.clone();
        state.client.complete_all(&mut state.machine);
        for _ in 0..3 * 8 {
            state.advance();
            state.client.answer_all(&mut state.machine);
        }
        while state.machine.stage() != Stage::Add {
            state.advance();
            state.client.answer_all(&mut state.machine);
        }
        state
    }

    fn ours(&self) -> impl Iterator<Item = PartitionId> {
        let assigned = |p: &PartitionId| self.machine.standing(*p) == Some(Standing::Assigned);
        self.machine.partitions().filter(assigned)
    }
}

impl Model for WiderModel {
    type State = WiderState;
    type Action = WiderAction;

    fn init_states(&self) -> Vec<WiderState> {
        vec![WiderState::init(self)]
    }

    fn actions(&self, state: &WiderState, actions: &mut Vec<WiderAction>) {
        let (machine, client, left) = (&state.machine, &state.client, &state.left);
        if client.wrong().is_some() {
            return;
        }
        actions.push(WiderAction::Stage(machine.stage()));
        for p in 0..self.partitions {
            let most = machine.room(PartitionId(p)).min(client.remaining(p, &self.offsets));
            actions.extend((1..=most).map(|n| WiderAction::Poll(p, n)));
        }
        let stage = machine.stage();
        // A completion is read by the watermark only, and counts until the contexts of what is gone are
        // dropped: at other stages it would do the same.
        if matches!(stage, Stage::Assign | Stage::Watermark | Stage::Pause) {
            let taken = client.taken();
            actions.extend(taken.map(|(p, epoch, offset)| WiderAction::Complete(p, epoch, offset)));
        }
        // The answer to a commit is read when a revoke is answered and when commits are made.
        let answers = matches!(stage, Stage::Revoke | Stage::Assign | Stage::Commit);
        for commit in client.commits().filter(|_| answers) {
            actions.push(WiderAction::Answer(commit, CommitOutcome::Done));
            if left.failures > 0 {
                actions.push(WiderAction::Answer(commit, CommitOutcome::Failed));
                actions.push(WiderAction::Answer(commit, CommitOutcome::Refused));
            }
        }
        if left.rebalances > 0 && client.is_stable() {
            for partitions in subsets(&client.ours()).into_iter().filter(|set| !set.is_empty()) {
                actions.push(WiderAction::Revoke(partitions.clone(), false));
                actions.push(WiderAction::Revoke(partitions.clone(), true));
                actions.push(WiderAction::Lose(partitions));
            }
        }
        if client.expects_assignment() {
            let not_ours: Set = (0..self.partitions).filter(|p| !client.keeps(*p)).collect();
            actions.extend(subsets(&not_ours).into_iter().map(WiderAction::Assign));
        }
        let late = machine.next_deadline().is_some_and(|deadline| deadline > client.now());
        if late && stage == Stage::Revoke {
            actions.push(WiderAction::Deadline);
        }
        if left.reloads > 0 {
            actions.extend(self.limits.iter().copied().map(WiderAction::Reload));
        }
        if left.seeks > 0 && matches!(stage, Stage::Add | Stage::Pause | Stage::Commit) {
            actions.extend(state.ours().map(|p| WiderAction::Seek(p.0)));
        }
    }

    fn next_state(&self, last: &WiderState, action: WiderAction) -> Option<WiderState> {
        let mut state = last.clone();
        state.apply(self, action);
        Some(state)
    }

    fn format_action(&self, action: &WiderAction) -> String {
        super::words::describe(action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always(spec::LIMIT, |_, state| {
                let limit = state.machine.max_pending_records().get().into();
                state.client.assigned().into_iter().all(|p| state.client.counted(p) <= limit)
            }),
            Property::<Self>::always(COUNTED, |_, state| {
                let pending = |p| state.machine.pending(PartitionId(p));
                state.client.assigned().into_iter().all(|p| state.client.counted(p) <= pending(p))
            }),
            Property::<Self>::always(spec::CONTEXTS, |_, state| {
                let assigned = state.client.assigned();
                assigned.into_iter().all(|p| state.machine.standing(PartitionId(p)).is_some())
            }),
            Property::<Self>::always(spec::ASSIGNED, |_, state| {
                let assigned = state.client.assigned();
                state.ours().all(|p| assigned.contains(&p.0))
            }),
            Property::<Self>::always(COMMITS, |_, state| state.client.wrong() != Some(COMMITS)),
            Property::<Self>::always(TOUCHES, |_, state| state.client.wrong() != Some(TOUCHES)),
            Property::<Self>::always(LATE, |_, state| state.client.wrong() != Some(LATE)),
            Property::<Self>::always(RELOADS, |_, state| state.client.wrong() != Some(RELOADS)),
            Property::<Self>::always(PAUSES, |_, state| {
                // Requested before the pause stage, it holds until it is in force.
                let mut after = state.machine.clone();
                (0..3).for_each(|_| after.advance(state.client.now()));
                state.machine.stage() != Stage::Pause
                    || !after.reload_requested()
                    || state.ours().all(|p| after.is_paused(p))
            }),
            Property::<Self>::always(AGREE, |_, state| {
                state.ours().all(|p| state.machine.is_paused(p) == state.client.is_paused(p.0))
            }),
            Property::<Self>::always(RESUMES, |_, state| {
                let mut turned = state.machine.clone();
                turned.advance(state.client.now());
                let limit = u64::from(turned.max_pending_records().get());
                let stays = |p| turned.is_paused(p) && turned.pending(p) < limit;
                let resumed = state.machine.stage() != Stage::Resume
                    || turned.reload_requested()
                    || !state.ours().any(stays);
                let after = state.left_alone();
                resumed && after.ours().all(|p| after.machine.room(p) > 0)
            }),
            Property::<Self>::always(ENDS, |_, state| {
                let after = state.left_alone();
                !after.machine.reload_requested()
                    && after.machine.max_pending_records().get() == after.requested
            }),
            Property::<Self>::always(ANSWERED, |_, state| {
                let complete = state.left_alone();
                let mut late = state.clone();
                late.client.pass_time(&late.machine);
                (0..8).for_each(|_| late.advance());
                complete.machine.next_deadline().is_none() && late.machine.next_deadline().is_none()
            }),
            Property::<Self>::always(COMMITTED, |_, state| {
                let after = state.left_alone();
                let committed = |p: PartitionId| after.client.committed(p.0);
                after.refused || after.ours().all(|p| committed(p) == after.machine.watermark(p))
            }),
        ]
    }
}

const COUNTED: &str = "every record that is taken and not complete is pending";
pub(super) const COMMITS: &str = "what is committed never passes an incomplete record";
pub(super) const TOUCHES: &str =
    "after a revoke, nothing touches the partition until it is assigned anew";
pub(super) const LATE: &str = "a completion after the partition is gone changes nothing";
pub(super) const RELOADS: &str = "a reload takes effect only when nothing is pending";
const PAUSES: &str = "a requested reload pauses everything";
const AGREE: &str = "client and contexts agree on what is paused";
const RESUMES: &str = "a paused partition below its limit with no reload requested resumes";
const ENDS: &str = "a reload ends, and the last one requested is in force";
const ANSWERED: &str = "a revoke is answered";
const COMMITTED: &str = "what is complete is committed";
