//! Whether states may be told apart by their projection: whenever two have the same, so do their successors.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use stateright::Model;

use super::seed::{SeedModel, SeedState};
use super::spec::State;

/// Two states with the same projection whose successors differ in theirs.
#[derive(Debug)]
pub struct Unsound {
    /// Their projection.
    pub projection: State,
}

/// Explores `model` with up to `representatives` different states for each projection, and compares what
/// follows each of them. The number of states looked at.
///
/// # Errors
/// With the first projection that is not sound.
pub fn check_projection(model: &SeedModel, representatives: usize) -> Result<usize, Box<Unsound>> {
    struct Seen {
        states: Vec<lockgate_core::PartitionContexts>,
        successors: BTreeSet<State>,
    }
    let mut seen: BTreeMap<State, Seen> = BTreeMap::new();
    let mut queue: VecDeque<SeedState> = model.init_states().into();
    let mut looked_at = 0;
    while let Some(state) = queue.pop_front() {
        let projection = state.projected();
        let known = seen.get(&projection);
        let is_new = known.is_none_or(|seen| {
            seen.states.len() < representatives && !seen.states.contains(&state.machine)
        });
        if !is_new {
            continue;
        }
        looked_at += 1;
        let next = model.next_states(&state);
        let successors: BTreeSet<State> = next.iter().map(SeedState::projected).collect();
        match seen.get_mut(&projection) {
            Some(seen) if seen.successors != successors => {
                return Err(Box::new(Unsound { projection }));
            }
            Some(seen) => seen.states.push(state.machine),
            None => {
                seen.insert(projection, Seen { states: vec![state.machine], successors });
            }
        }
        queue.extend(next);
    }
    Ok(looked_at)
}
