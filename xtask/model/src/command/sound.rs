//! Checks the model itself: that states counted as one have the same future, and that every way ends.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use stateright::Model;

use super::{CommandAction, CommandModel, CommandState};

/// What is wrong with the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Two states count as one, and these actions do not lead to the same.
    Unlike(Vec<CommandAction>),
    /// This way leads back to a state on it, so the run could go on for ever.
    Circle(Vec<CommandAction>),
}

/// Explores `model` and compares what follows up to `representatives` different states of each shape. The
/// number of shapes, and of those with more than one state.
///
/// # Errors
/// With the first defect.
pub fn check_shape(model: &CommandModel, representatives: usize) -> Result<(usize, usize), Defect> {
    let mut known: BTreeMap<u64, Known> = BTreeMap::new();
    let mut waiting: Vec<CommandState> = model.init_states();
    while let Some(state) = waiting.pop() {
        let shape = shape(&state);
        let whole = whole(&state);
        let enough =
            |known: &Known| known.states.len() >= representatives || known.states.contains(&whole);
        if known.get(&shape).is_some_and(enough) {
            continue;
        }
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        let mut next = BTreeSet::new();
        for (place, action) in actions.iter().enumerate() {
            let after = state.after(model, *action);
            next.insert((place, self::shape(&after)));
            waiting.push(after);
        }
        match known.get_mut(&shape) {
            None => {
                known.insert(shape, Known { states: vec![whole], next });
            }
            Some(known) if known.next != next => return Err(Defect::Unlike(actions)),
            Some(known) => known.states.push(whole),
        }
    }
    let several = known.values().filter(|known| known.states.len() > 1).count();
    Ok((known.len(), several))
}

struct Known {
    /// Everything of each state that was looked at, in brief.
    states: Vec<u64>,
    /// Each action, by its place among them, with the shape that it leads to.
    next: BTreeSet<(usize, u64)>,
}

/// Whether every way through `model` ends. The length of the longest.
///
/// # Errors
/// With a way that does not.
pub fn check_ends(model: &CommandModel) -> Result<usize, Defect> {
    let mut longest: BTreeMap<u64, Option<usize>> = BTreeMap::new();
    let mut way: Vec<Place> = Vec::new();
    for state in model.init_states() {
        enter(model, state, &mut longest, &mut way);
        while let Some(place) = way.last_mut() {
            let Some(action) = place.actions.pop() else {
                let Some(place) = way.pop() else { break };
                longest.insert(place.shape, Some(place.longest));
                if let Some(before) = way.last_mut() {
                    before.longest = before.longest.max(place.longest + 1);
                }
                continue;
            };
            place.taken = Some(action);
            let after = place.state.after(model, action);
            match longest.get(&shape(&after)) {
                Some(Some(rest)) => place.longest = place.longest.max(rest + 1),
                Some(None) => {
                    let taken = way.iter().filter_map(|place| place.taken);
                    return Err(Defect::Circle(taken.collect()));
                }
                None => enter(model, after, &mut longest, &mut way),
            }
        }
    }
    let longest = longest.into_values().flatten().max();
    Ok(longest.unwrap_or_default())
}

/// A state on the way from the first one, and what is still to be tried there.
struct Place {
    state: CommandState,
    shape: u64,
    actions: Vec<CommandAction>,
    taken: Option<CommandAction>,
    longest: usize,
}

fn enter(
    model: &CommandModel,
    state: CommandState,
    longest: &mut BTreeMap<u64, Option<usize>>,
    way: &mut Vec<Place>,
) {
    let shape = shape(&state);
    longest.insert(shape, None);
    let mut actions = Vec::new();
    model.actions(&state, &mut actions);
    way.push(Place { state, shape, actions, taken: None, longest: 0 });
}

/// Everything that a state is, whether it decides the future or not.
fn whole(state: &CommandState) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{state:?}").hash(&mut hasher);
    hasher.finish()
}

fn shape(state: &CommandState) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}
