//! The shipped partition contexts, driven through exactly the events of the specification, in its order.
//!
//! The machine knows more than the specification's variables: epochs, offsets, commits. States are told apart
//! by their projection onto these variables ([`SeedState::projected`]), which is why the number of distinct
//! states can be held against the specification's.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use std::time::Duration;

use lockgate_core::{
    CommitOutcome, ContextAction, PartitionContexts, PartitionFault, PartitionId, Stage, Standing,
    Tickets,
};
use stateright::{Model, Property};

use super::spec::{self, Context, Rebalance, Set, Spec, State, subsets};
use super::words;

/// The shipped machine as the specification would have it used.
#[derive(Clone, Copy, Debug)]
pub struct SeedModel {
    /// The constants.
    pub spec: Spec,
    /// A deliberate fault.
    pub fault: Option<PartitionFault>,
}

/// The machine and the client around it.
#[derive(Clone, Debug)]
pub struct SeedState {
    pub(super) machine: PartitionContexts,
    /// What the client says is ours.
    assigned: Set,
    /// What the client has paused.
    paused: Set,
    rebalance: Option<Rebalance>,
    /// The records taken and not complete, oldest first.
    taken: BTreeMap<u32, VecDeque<Tickets>>,
    next_offset: u64,
    /// What the machine did that it must not. Kept, because the projection shows nothing of it.
    wrong: Option<&'static str>,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `RequestPropertyReload`.
    RequestReload,
    /// `InitiateRebalance`.
    Rebalance(Rebalance),
    /// `OnPartitionsRevoked`.
    Revoked,
    /// `OnPartitionsAssigned`.
    Assigned,
    /// `AddRecords`, of this partition.
    Add(Option<u32>),
    /// `UpdateHighWatermark`, of this partition.
    Watermark(Option<u32>),
    /// `PausePartitions`, `ResumePartitions`, `HandlePropertyReload` or `CommitOffset`.
    Stage(Stage),
}

const NOW: Duration = Duration::ZERO;

impl SeedState {
    fn init(model: &SeedModel) -> Self {
        let limit = NonZeroU32::new(model.spec.max_pending).unwrap_or(NonZeroU32::MIN);
        let machine = PartitionContexts::new(limit);
        let machine = match model.fault {
            Some(fault) => machine.with_fault(fault),
            None => machine,
        };
        let mut state = Self {
            machine,
            assigned: Set::new(),
            paused: Set::new(),
            rebalance: None,
            taken: BTreeMap::new(),
            next_offset: 0,
            wrong: None,
        };
        // The specification begins with everything assigned.
        state.machine.assign(model.spec.all().into_iter().map(PartitionId));
        (0..8).for_each(|_| state.advance());
        state
    }

    /// The variables of the specification.
    pub fn projected(&self) -> State {
        let machine = &self.machine;
        let context = |p: PartitionId| Context {
            revoked: machine.standing(p) != Some(Standing::Assigned),
            pending: machine.pending(p),
            paused: machine.is_paused(p),
        };
        State {
            pc: machine.stage() as u8,
            reload_requested: machine.reload_requested(),
            assigned: self.assigned.clone(),
            contexts: machine.partitions().map(|p| (p.0, context(p))).collect(),
            rebalance: self.rebalance.clone(),
        }
    }

    /// Partitions of which a record can be taken.
    fn fetchable(&self) -> impl Iterator<Item = u32> {
        let unpaused = self.assigned.iter().filter(|p| !self.paused.contains(p));
        unpaused.copied()
    }

    fn revoked(&mut self) {
        if let Some(rebalance) = &self.rebalance {
            // Without a partition to give up the callback does not come.
            if !rebalance.revoking.is_empty() {
                self.machine.revoke(rebalance.revoking.iter().copied().map(PartitionId), NOW);
            }
        }
        self.advance();
    }

    fn assigned(&mut self) {
        let executed = |rebalance: &mut Rebalance| rebalance.revoking.is_disjoint(&self.assigned);
        if let Some(rebalance) = self.rebalance.take_if(executed) {
            self.machine.assign(rebalance.adding.into_iter().map(PartitionId));
        }
        self.advance();
        let machine = &self.machine;
        self.taken.retain(|p, _| machine.standing(PartitionId(*p)).is_some());
    }

    fn add(&mut self, partition: Option<u32>) {
        if let Some(p) = partition {
            match self.machine.add(PartitionId(p), &[self.next_offset]) {
                Ok(tickets) => self.taken.entry(p).or_default().push_back(tickets),
                Err(_) => self.wrong = Some(REFUSED),
            }
            self.next_offset += 1;
        }
        self.advance();
    }

    fn watermark(&mut self, partition: Option<u32>) {
        let taken = partition.and_then(|p| self.taken.get_mut(&p));
        if let Some(oldest) = taken.and_then(VecDeque::pop_front) {
            self.machine.complete(oldest);
        }
        self.advance();
    }

    /// One stage of the machine, and what the client has to do then.
    fn advance(&mut self) {
        self.machine.advance(NOW);
        while let Some(action) = self.machine.next_action() {
            self.perform(action);
        }
        if !self.pauses_agree() {
            self.wrong = Some(PAUSES_AGREE);
        }
    }

    fn perform(&mut self, action: ContextAction) {
        match action {
            ContextAction::Assign(partitions) => {
                for assigned in partitions {
                    let p = assigned.partition.0;
                    self.assigned.insert(p);
                    self.paused.remove(&p);
                    self.paused.extend(assigned.paused.then_some(p));
                }
            }
            ContextAction::Unassign(partitions) => {
                self.assigned.retain(|p| !partitions.contains(&PartitionId(*p)));
            }
            ContextAction::Pause(partitions) => {
                partitions.iter().for_each(|p| self.touch(*p));
                self.paused.extend(partitions.iter().map(|p| p.0));
            }
            ContextAction::Resume(partitions) => {
                partitions.iter().for_each(|p| self.touch(*p));
                self.paused.retain(|p| !partitions.contains(&PartitionId(*p)));
            }
            ContextAction::Reload => {}
            ContextAction::Commit(commits) => {
                for commit in commits {
                    self.touch(commit.partition);
                    self.machine.commit_answered(commit, CommitOutcome::Done);
                }
            }
        }
    }

    fn pauses_agree(&self) -> bool {
        let ours = |p: &PartitionId| self.machine.standing(*p) == Some(Standing::Assigned);
        let mut ours = self.machine.partitions().filter(ours);
        ours.all(|p| self.machine.is_paused(p) == self.paused.contains(&p.0))
    }

    fn touch(&mut self, partition: PartitionId) {
        if !self.assigned.contains(&partition.0) {
            self.wrong = Some(TOUCHED);
        }
    }
}

impl Hash for SeedState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.projected(), self.wrong).hash(state);
    }
}

impl PartialEq for SeedState {
    fn eq(&self, other: &Self) -> bool {
        (self.projected(), self.wrong) == (other.projected(), other.wrong)
    }
}

impl Model for SeedModel {
    type State = SeedState;
    type Action = Action;

    fn init_states(&self) -> Vec<SeedState> {
        vec![SeedState::init(self)]
    }

    fn actions(&self, state: &SeedState, actions: &mut Vec<Action>) {
        if state.wrong.is_some() {
            return;
        }
        if !state.machine.reload_requested() {
            actions.push(Action::RequestReload);
        }
        if state.rebalance.is_none() {
            for revoking in subsets(&state.assigned) {
                for adding in subsets(&self.spec.all()) {
                    actions
                        .push(Action::Rebalance(Rebalance { revoking: revoking.clone(), adding }));
                }
            }
        }
        match state.machine.stage() {
            Stage::Revoke => actions.push(Action::Revoked),
            Stage::Assign => actions.push(Action::Assigned),
            Stage::Add => {
                actions.extend(state.fetchable().map(|p| Action::Add(Some(p))));
                if state.fetchable().next().is_none() {
                    actions.push(Action::Add(None));
                }
            }
            Stage::Watermark => {
                let contexts = state.machine.partitions();
                actions.extend(contexts.map(|p| Action::Watermark(Some(p.0))));
                actions.push(Action::Watermark(None));
            }
            stage => actions.push(Action::Stage(stage)),
        }
    }

    fn format_action(&self, action: &Action) -> String {
        words::describe_seed(action)
    }

    fn next_state(&self, last: &SeedState, action: Action) -> Option<SeedState> {
        let mut state = last.clone();
        match action {
            Action::RequestReload => {
                state.machine.request_reload(state.machine.max_pending_records())
            }
            Action::Rebalance(rebalance) => state.rebalance = Some(rebalance),
            Action::Revoked => state.revoked(),
            Action::Assigned => state.assigned(),
            Action::Add(partition) => state.add(partition),
            Action::Watermark(partition) => state.watermark(partition),
            Action::Stage(_) => state.advance(),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always(spec::LIMIT, |model, state| {
                state.projected().keeps_limit(model.spec.max_pending)
            }),
            Property::<Self>::always(spec::CONTEXTS, |_, state| {
                state.projected().assigned_have_contexts()
            }),
            Property::<Self>::always(spec::ASSIGNED, |_, state| {
                state.projected().contexts_are_assigned()
            }),
            Property::<Self>::always(PAUSES_AGREE, |_, state| state.wrong != Some(PAUSES_AGREE)),
            Property::<Self>::always(TOUCHED, |_, state| state.wrong != Some(TOUCHED)),
            Property::<Self>::always(REFUSED, |_, state| state.wrong != Some(REFUSED)),
            Property::<Self>::always(AS_SPECIFIED, |model, state| {
                state.wrong.is_some() || model.follows_the_specification(state)
            }),
        ]
    }
}

const PAUSES_AGREE: &str = "client and contexts agree on what is paused";
const TOUCHED: &str = "only what is assigned is touched";
const REFUSED: &str = "a record of a partition that is not paused is taken";
const AS_SPECIFIED: &str = "what may follow is what may follow in the specification";

impl SeedModel {
    /// Whether the projections of what may follow are what may follow the projection, each as often.
    pub(super) fn follows_the_specification(&self, state: &SeedState) -> bool {
        let mut ours: Vec<_> = self.next_states(state).iter().map(SeedState::projected).collect();
        let mut specified = self.spec.next(&state.projected());
        ours.sort_unstable();
        specified.sort_unstable();
        ours == specified
    }
}
