//! `DecatonProcessorSpec.tla`, read as Rust: the states of the specification and what may follow each.
//!
//! Knows nothing of the shipped code; it is what that code is held against.

use std::collections::{BTreeMap, BTreeSet};

/// A set of partitions.
pub type Set = BTreeSet<u32>;

/// A state of the specification: its five variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// The program counter: 0 for `"L0"` and so on.
    pub pc: u8,
    /// Whether a reload is requested.
    pub reload_requested: bool,
    /// The consumer's assigned partitions.
    pub assigned: Set,
    /// The partition contexts.
    pub contexts: BTreeMap<u32, Context>,
    /// The ongoing rebalance; `None` for `NULL`.
    pub rebalance: Option<Rebalance>,
}

/// A partition context of the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context {
    /// `revoked`.
    pub revoked: bool,
    /// `pendingRecords`.
    pub pending: u64,
    /// `paused`.
    pub paused: bool,
}

/// A rebalance of the specification.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rebalance {
    /// `revokingPartitions`.
    pub revoking: Set,
    /// `addingPartitions`.
    pub adding: Set,
}

/// The specification for some constants.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Number of partitions.
    pub partitions: u32,
    /// `MaxPendingRecords`.
    pub max_pending: u32,
}

impl Spec {
    /// All partitions.
    pub fn all(&self) -> Set {
        (0..self.partitions).collect()
    }

    /// `Init`.
    pub fn init(&self) -> State {
        State {
            pc: 0,
            reload_requested: false,
            assigned: self.all(),
            contexts: self.all().into_iter().map(|p| (p, Context::default())).collect(),
            rebalance: None,
        }
    }

    /// `Next`: what may follow, once for each way in which it may.
    pub fn next(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        if !state.reload_requested {
            next.push(State { reload_requested: true, ..state.clone() });
        }
        if state.rebalance.is_none() {
            for revoking in subsets(&state.assigned) {
                for adding in subsets(&self.all()) {
                    let rebalance = Some(Rebalance { revoking: revoking.clone(), adding });
                    next.push(State { rebalance, ..state.clone() });
                }
            }
        }
        let at = State { pc: (state.pc + 1) % 8, ..state.clone() };
        match state.pc {
            0 => next.push(on_partitions_revoked(at)),
            1 => next.push(on_partitions_assigned(at)),
            2 => add_records(at, &mut next),
            3 => update_high_watermark(at, &mut next),
            4 => next.push(self.pause_partitions(at)),
            5 => next.push(self.resume_partitions(at)),
            6 => next.push(handle_property_reload(at)),
            _ => next.push(at),
        }
        next
    }

    fn pause_partitions(&self, mut state: State) -> State {
        for context in state.contexts.values_mut() {
            let full = context.pending >= u64::from(self.max_pending);
            context.paused |= state.reload_requested || full;
        }
        state
    }

    fn resume_partitions(&self, mut state: State) -> State {
        for context in state.contexts.values_mut() {
            let full = context.pending >= u64::from(self.max_pending);
            context.paused &= state.reload_requested || full;
        }
        state
    }
}

fn on_partitions_revoked(mut state: State) -> State {
    if let Some(rebalance) = &state.rebalance {
        for (p, context) in &mut state.contexts {
            context.revoked = rebalance.revoking.contains(p);
        }
        state.assigned.retain(|p| !rebalance.revoking.contains(p));
    }
    state
}

fn on_partitions_assigned(mut state: State) -> State {
    let is_revoked = |p: &u32| state.contexts[p].revoked;
    let executed = |rebalance: &mut Rebalance| rebalance.revoking.iter().all(is_revoked);
    if let Some(rebalance) = state.rebalance.take_if(executed) {
        state.assigned.extend(rebalance.adding);
        let contexts = state.assigned.iter().map(|p| {
            let context = state.contexts.get(p).cloned().unwrap_or_default();
            (*p, Context { revoked: false, ..context })
        });
        state.contexts = contexts.collect();
    }
    state
}

fn add_records(state: State, next: &mut Vec<State>) {
    let before = next.len();
    for p in &state.assigned {
        if !state.contexts[p].paused {
            next.push(with_pending(&state, *p, |pending| pending + 1));
        }
    }
    if next.len() == before {
        next.push(state);
    }
}

fn update_high_watermark(state: State, next: &mut Vec<State>) {
    for p in state.contexts.keys() {
        next.push(with_pending(&state, *p, |pending| pending.saturating_sub(1)));
    }
    next.push(state);
}

fn handle_property_reload(mut state: State) -> State {
    let pending = |context: &Context| context.pending > 0;
    state.reload_requested &= state.contexts.values().any(pending);
    state
}

fn with_pending(state: &State, p: u32, change: impl Fn(u64) -> u64) -> State {
    let mut state = state.clone();
    if let Some(context) = state.contexts.get_mut(&p) {
        context.pending = change(context.pending);
    }
    state
}

/// Every subset of `set`.
pub fn subsets(set: &Set) -> Vec<Set> {
    let members: Vec<_> = set.iter().copied().collect();
    let chosen = |bits: u32| {
        let members = members.iter().enumerate();
        members.filter(|(i, _)| bits >> i & 1 == 1).map(|(_, p)| *p).collect()
    };
    (0..1 << members.len()).map(chosen).collect()
}

/// `NoRecordsAddedMoreThanMaxPendingRecords`, as a sentence.
pub const LIMIT: &str = "pending records of a partition never exceed its limit";
/// `AssignedPartitionsAlwaysSubsetOfContexts`, as a sentence.
pub const CONTEXTS: &str = "every assigned partition has a context";
/// `NonRevokedContextAlwaysSubsetOfAssignedPartitions`, as a sentence.
pub const ASSIGNED: &str = "a context that is not revoked belongs to an assigned partition";

impl State {
    /// Whether [`LIMIT`] holds.
    pub fn keeps_limit(&self, max_pending: u32) -> bool {
        self.contexts.values().all(|context| context.pending <= u64::from(max_pending))
    }

    /// Whether [`CONTEXTS`] holds.
    pub fn assigned_have_contexts(&self) -> bool {
        self.assigned.iter().all(|p| self.contexts.contains_key(p))
    }

    /// Whether [`ASSIGNED`] holds.
    pub fn contexts_are_assigned(&self) -> bool {
        self.contexts.iter().all(|(p, context)| context.revoked || self.assigned.contains(p))
    }
}
