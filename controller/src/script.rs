//! Steps that are known before they are read: what a replay consists of.

use serde_json::Value as JsonValue;

use crate::sequence::JournaledStep;

/// The steps of a replay, in place of the journal of a state directory.
///
/// Readers get a `Replay` for each, with what the script says, and the records must have the digests that it says.
/// Nothing is stored.
pub struct Script {
    /// Where the inputs are opened, in their order; `None` is the beginning. Those that are left out too.
    pub seeks: Vec<Option<JsonValue>>,
    /// Whether the run is stopped after the last step, so that readers do not read on; else they have to be at their
    /// end there.
    pub stops: bool,
    /// The number of the step before the first.
    pub after: u64,
    /// The steps, without a gap in their numbers.
    pub steps: Box<dyn Iterator<Item = JournaledStep> + Send>,
}
