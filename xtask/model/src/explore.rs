//! Explores a model to its end with stateright and reports what was found.

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// What the exploration of one model found.
pub struct Report {
    /// The model's name.
    pub model: String,
    /// Different states.
    pub distinct: usize,
    /// States reached, each as often as it was reached.
    pub generated: usize,
    /// Number of states on the longest of the shortest ways.
    pub depth: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// Each property with what was found against it.
    pub verdicts: Vec<Verdict>,
}

/// A property and whether it holds.
pub struct Verdict {
    /// The property, as a sentence.
    pub property: &'static str,
    /// The shortest way to a state that breaks it, one line for each action; `None` if it holds.
    pub trace: Option<Vec<String>>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, distinct, generated, depth, elapsed, verdicts } = self;
        let seconds = elapsed.as_secs_f64();
        writeln!(f, "{model}")?;
        writeln!(
            f,
            "  {distinct} distinct states, {generated} generated, depth {depth}, {seconds:.1} s"
        )?;
        for verdict in verdicts {
            match &verdict.trace {
                None => writeln!(f, "  holds   {}", verdict.property)?,
                Some(trace) => {
                    writeln!(f, "  BROKEN  {}", verdict.property)?;
                    for (number, action) in (1..).zip(trace) {
                        writeln!(f, "          {number:>3}. {action}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Report {
    /// Whether every property holds.
    pub fn holds(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.trace.is_none())
    }
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Every reachable state was seen.
    AllSeen,
    /// Or a property was found broken.
    Broken,
}

/// Explores every state of `model`.
pub fn explore<M>(name: impl Into<String>, model: M, until: Until) -> Report
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let started = Instant::now();
    let finish = match until {
        // stateright would else stop as soon as every property is decided.
        Until::AllSeen => HasDiscoveries::AllOf(["every state was seen"].into()),
        Until::Broken => HasDiscoveries::AnyFailures,
    };
    // One thread goes level by level.
    let checker = model.clone().checker().threads(1).finish_when(finish).spawn_bfs().join();
    let mut found: HashMap<_, _> = checker.discoveries();
    let verdicts = model.properties().into_iter().map(|property| {
        assert_eq!(property.expectation, Expectation::Always, "{}", property.name);
        let trace = found.remove(property.name).map(|path| {
            let actions = shortest(&model, property.name, path.into_actions());
            actions.iter().map(|action| model.format_action(action)).collect()
        });
        Verdict { property: property.name, trace }
    });
    Report {
        verdicts: verdicts.collect(),
        model: name.into(),
        distinct: checker.unique_state_count(),
        generated: checker.state_count(),
        depth: checker.max_depth(),
        elapsed: started.elapsed(),
    }
}

/// stateright keeps the last way that it finds; this looks for shorter ones until there is none.
fn shortest<M>(model: &M, property: &'static str, mut way: Vec<M::Action>) -> Vec<M::Action>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    loop {
        let checker = model.clone().checker().threads(1).target_max_depth(way.len() + 1);
        let found = HasDiscoveries::AnyOf([property].into());
        let checker = checker.finish_when(found).spawn_bfs().join();
        let Some(shorter) = checker.discovery(property) else { return way };
        way = shorter.into_actions();
    }
}
