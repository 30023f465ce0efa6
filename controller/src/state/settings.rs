//! The settings of the pipeline that a state directory belongs to, and what a change of them means.
//!
//! For telling at a start what is not as it was at the last one. Deliberately without knowing any setting by name:
//! whoever opens the directory says what a change of each may do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::reader::Reader;
use super::{Owner, State, StateError};

/// What a change of a setting does to what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeClass {
    /// Nothing; it could even have changed while the pipeline ran.
    Live,
    /// Nothing; it takes effect at the next start.
    KeepsPosition,
    /// Nothing, if every step is covered by a checkpoint. Where journaled steps are left, they would not be what
    /// they were.
    KeepsPositionAfterStop,
    /// Stored positions, or what is already written, may not mean the same any more.
    ResetsPosition,
}

impl ChangeClass {
    const ALL: [Self; 4] =
        [Self::Live, Self::KeepsPosition, Self::KeepsPositionAfterStop, Self::ResetsPosition];

    /// Under which key of the table `meta` such settings are stored.
    fn key(self) -> &'static str {
        match self {
            Self::Live => "settings.live",
            Self::KeepsPosition => "settings.keeps_position",
            Self::KeepsPositionAfterStop => "settings.keeps_position_after_stop",
            Self::ResetsPosition => "settings",
        }
    }
}

/// A setting of a pipeline, as it is stored and shown. Never a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key path.
    pub path: String,
    /// What it is set to.
    pub value: String,
    /// What a change of it does.
    pub class: ChangeClass,
}

impl Setting {
    fn resetting(path: &str, value: String) -> Self {
        Self { path: path.into(), value, class: ChangeClass::ResetsPosition }
    }
}

/// How the settings of now compare with those of the last run.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// What is to be stored with the next checkpoint: keys of the table `meta` and their values. Empty where it is
    /// there already.
    pub(super) to_store: Vec<(&'static str, String)>,
    /// Whether that must be before anything is read.
    pub(super) is_urgent: bool,
    /// Changes that had to be accepted, one line each.
    pub(super) accepted: Vec<String>,
    /// Changes that need nobody's consent, one line each.
    pub(super) noticed: Vec<String>,
}

/// Settings by class and key path.
type ByClass = BTreeMap<ChangeClass, BTreeMap<String, String>>;

impl State {
    /// Whether the settings of an earlier run are stored.
    ///
    /// # Errors
    /// If they cannot be read, or some of them are missing.
    pub(super) fn has_settings(&self) -> Result<bool, StateError> {
        match stored(&self.reader())?.len() {
            0 => Ok(false),
            found if found == ChangeClass::ALL.len() => Ok(true),
            _ => Err(self.reader().damaged("some of the stored settings are missing".into())),
        }
    }

    /// Compares the owner's settings with the stored ones.
    ///
    /// # Errors
    /// If they differ in what needs to be accepted, and is not.
    pub(super) fn compare(
        &self,
        owner: Owner<'_>,
        accept_changes: bool,
    ) -> Result<Comparison, StateError> {
        let now = by_class(owner);
        let stored = stored(&self.reader())?;
        let mut comparison = Comparison::default();
        if now != stored {
            comparison.to_store = to_store(&now);
        }
        if !stored.contains_key(&ChangeClass::ResetsPosition) {
            comparison.is_urgent = true;
            return Ok(comparison);
        }
        let must_repeat = owner.keeps_journal && self.last_journaled()?.is_some();
        let mut needs_stop_only = true;
        for (class, line) in changes(&stored, &now) {
            comparison.is_urgent = true;
            match class {
                ChangeClass::ResetsPosition => needs_stop_only = false,
                ChangeClass::KeepsPositionAfterStop if must_repeat => {}
                _ => {
                    comparison.noticed.push(line);
                    continue;
                }
            }
            comparison.accepted.push(line);
        }
        if comparison.accepted.is_empty() || accept_changes {
            return Ok(comparison);
        }
        let (path, changes) = (self.path.clone(), indented(&comparison.accepted));
        Err(match needs_stop_only {
            true => StateError::ChangedBeforeReplay { path, changes },
            false => StateError::Changed { path, changes },
        })
    }
}

fn indented(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| format!("  {line}")).collect()
}

fn by_class(owner: Owner<'_>) -> ByClass {
    let of_all = [
        Setting::resetting("name", owner.pipeline.into()),
        // The order of the inputs is the order of their records in a step.
        Setting::resetting("inputs", owner.inputs.join(", ")),
        Setting::resetting("outputs", owner.outputs.join(", ")),
    ];
    let mut classes: ByClass =
        ChangeClass::ALL.into_iter().map(|class| (class, BTreeMap::new())).collect();
    for setting in owner.settings.iter().chain(&of_all) {
        let settings = classes.entry(setting.class).or_default();
        settings.insert(setting.path.clone(), setting.value.clone());
    }
    classes
}

/// Without the classes that were not stored.
fn stored(reader: &Reader<'_>) -> Result<ByClass, StateError> {
    let mut classes = ByClass::new();
    for class in ChangeClass::ALL {
        let Some(text) = reader.meta(class.key())? else { continue };
        let settings = serde_json::from_str(&text).map_err(|error| {
            reader.damaged(format!("the stored settings cannot be read: {error}"))
        })?;
        classes.insert(class, settings);
    }
    Ok(classes)
}

fn to_store(now: &ByClass) -> Vec<(&'static str, String)> {
    now.iter().map(|(class, settings)| (class.key(), json!(settings).to_string())).collect()
}

/// Each setting that is not as it was, with its class and in words. What it is now decides about the class, and what
/// was stored where it is gone.
fn changes(stored: &ByClass, now: &ByClass) -> Vec<(ChangeClass, String)> {
    let flat = |classes: &ByClass| -> BTreeMap<String, (String, ChangeClass)> {
        let settings = classes.iter().flat_map(|(class, settings)| {
            settings.iter().map(|(path, value)| (path.clone(), (value.clone(), *class)))
        });
        settings.collect()
    };
    let (old, new) = (flat(stored), flat(now));
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let change = |path: &String| match (old.get(path), new.get(path)) {
        (Some((old, _)), Some((new, class))) if old != new => {
            Some((*class, format!("{path}: was {old}, is {new}")))
        }
        (Some((old, class)), None) => {
            Some((*class, format!("{path}: was {old}, is not there any more")))
        }
        (None, Some((new, class))) => Some((*class, format!("{path}: was not there, is {new}"))),
        _ => None,
    };
    paths.into_iter().filter_map(change).collect()
}
