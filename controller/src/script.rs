//! Steps that are known before they are read: what a replay consists of.

use crate::sequence::JournaledStep;

/// The steps of a replay, in place of the journal of a state directory.
///
/// Readers get a `Replay` for each, with what the script says, and the records must have the digests that it says.
/// Nothing else is read: readers have to be at their end after the last. Nothing is stored.
pub struct Script {
    /// The number of the step before the first.
    pub after: u64,
    /// The steps, without a gap in their numbers.
    pub steps: Box<dyn Iterator<Item = JournaledStep> + Send>,
}
