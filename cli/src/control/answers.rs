//! What the server is asked and answers beside [`Report`](super::report::Report), as JSON.
//!
//! The names are an interface: keys are added, never renamed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Change, Partition};

/// Which inputs to pause or resume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Inputs {
    /// Their names; all inputs if there are none.
    #[serde(default)]
    pub(crate) inputs: Vec<String>,
}

/// Nothing needs to be said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Inputs were paused or resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Paused {
    /// Their names.
    pub(crate) inputs: Vec<String>,
    /// Whether that holds after a restart, too. It does not where the pipeline's delivery is `none`.
    pub(crate) durable: bool,
}

/// There was a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Checkpointed {
    /// The last step that it covers.
    pub(crate) step: u64,
}

/// The run has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Stopped {
    /// The last step that a checkpoint covers; absent where there is none: nothing was read, or the pipeline's delivery
    /// is `none`.
    pub(crate) step: Option<u64>,
    /// Whether it covers all steps. Otherwise the rest comes again with the next start.
    pub(crate) complete: bool,
}

/// The pipeline file was read again and is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reloaded {
    /// What has changed.
    pub(crate) changes: Vec<Change>,
}

/// Where an input stands.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Partitions {
    /// How many there are.
    pub(crate) total: u64,
    /// What all of them lag behind together, as far as that is known; absent if it is known of none.
    pub(crate) lag: Option<u64>,
    /// At most 1,000 of them, those with the largest lag first.
    pub(crate) partitions: Vec<Partition>,
}

/// What was asked for did not happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Refused {
    /// Why, and what to do.
    pub(crate) error: String,
}
