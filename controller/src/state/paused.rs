//! Which inputs people have paused.

use std::collections::BTreeSet;

use super::{State, StateError, schema};

/// The key among the facts of a state directory.
pub(super) const PAUSED: &str = "paused";

impl State {
    /// The inputs that people have paused and not resumed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn paused_inputs(&self) -> Result<BTreeSet<String>, StateError> {
        let text = self.reader().meta(PAUSED)?;
        let missing = || self.reader().damaged("the list of paused inputs is missing".into());
        let text = text.ok_or_else(missing)?;
        serde_json::from_str(&text).map_err(|error| {
            self.reader().damaged(format!("the list of paused inputs cannot be read: {error}"))
        })
    }

    /// Makes durable that people have paused the inputs with these places, and no others.
    ///
    /// # Errors
    /// [`StateError::Full`] if the same call may come again.
    pub fn keep_paused(&mut self, inputs: &[usize]) -> Result<(), StateError> {
        let names: BTreeSet<&String> = inputs.iter().map(|input| &self.inputs[*input]).collect();
        let text = serde_json::json!(names).to_string();
        let kept = schema::write_fact(&self.database, PAUSED, &text);
        let what = "storing which inputs are paused";
        kept.map_err(|error| schema::classify(&self.path, what, error))?;
        self.empty_log()
    }
}
