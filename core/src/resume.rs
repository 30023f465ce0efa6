//! What a reader can promise about its position after a step.

use serde_json::Value as JsonValue;

/// How much of its input a reader can promise to give again after a crash. Ordered: more is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultTolerance {
    /// Nothing: after a crash the input starts over or goes on wherever it is.
    None,
    /// It can go on from a position stored in a checkpoint; what came after it is cut into new steps.
    AtLeastOnce,
    /// Besides, every step since the checkpoint can be given again, record for record.
    ExactlyOnce,
}

/// A reader's position after the records it just handed over.
///
/// `seek` and `replay` belong to the reader: whoever stores them gives them back unread.
#[derive(Clone, Debug, PartialEq)]
pub enum Resume {
    /// No checkpoint can be taken here: the reader could not come back to this place.
    Barrier,
    /// The reader can go on from here, but cannot give the step again.
    Seek {
        /// Where to go on.
        seek: JsonValue,
    },
    /// The reader can go on from here and can give the step again.
    Replay {
        /// Where to go on.
        seek: JsonValue,
        /// What the step consists of.
        replay: rmpv::Value,
    },
}

impl Resume {
    /// The strongest level of fault tolerance that this answer allows.
    pub fn level(&self) -> FaultTolerance {
        match self {
            Resume::Barrier => FaultTolerance::None,
            Resume::Seek { .. } => FaultTolerance::AtLeastOnce,
            Resume::Replay { .. } => FaultTolerance::ExactlyOnce,
        }
    }

    /// Whether a checkpoint has to wait.
    pub fn is_barrier(&self) -> bool {
        matches!(self, Resume::Barrier)
    }

    /// Where to go on, unless this is a barrier.
    pub fn seek(&self) -> Option<&JsonValue> {
        match self {
            Resume::Barrier => None,
            Resume::Seek { seek } | Resume::Replay { seek, .. } => Some(seek),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_answer_allows() {
        let replay = Resume::Replay { seek: 2.into(), replay: rmpv::Value::Nil };
        let answers = [Resume::Barrier, Resume::Seek { seek: 1.into() }, replay];
        let levels =
            [FaultTolerance::None, FaultTolerance::AtLeastOnce, FaultTolerance::ExactlyOnce];
        assert_eq!(answers.each_ref().map(Resume::level), levels);
        assert_eq!(answers.each_ref().map(Resume::is_barrier), [true, false, false]);
        let seeks = [None, Some(&JsonValue::from(1)), Some(&JsonValue::from(2))];
        assert_eq!(answers.each_ref().map(Resume::seek), seeks);
    }
}
