//! What a reader can promise about its position after a step.

use std::fmt;

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

/// Where a reader stands, in a form of its own: whoever stores it gives it back unread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// All of it. The first that a reader gives after it was opened is of this kind.
    Whole(JsonValue),
    /// What is different from the one before it that the reader gave, as a JSON Merge Patch (RFC 7396): members of
    /// objects that are not named stay, those that are `null` go. So a step costs as much as what moved in it,
    /// whatever else there is.
    Change(JsonValue),
}

impl Position {
    /// As the reader gave it.
    pub fn json(&self) -> &JsonValue {
        match self {
            Position::Whole(json) | Position::Change(json) => json,
        }
    }

    /// Whether it says everything, not only what changed.
    pub fn is_whole(&self) -> bool {
        matches!(self, Position::Whole(_))
    }

    /// Makes the whole position `before` (`None`: none was given) what it is now.
    pub fn apply(&self, before: &mut Option<JsonValue>) {
        match self {
            Position::Whole(json) => *before = Some(json.clone()),
            Position::Change(patch) => merge(before.get_or_insert_default(), patch),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Whole(json) => json.fmt(f),
            Position::Change(patch) => write!(f, "change {patch}"),
        }
    }
}

/// RFC 7396, section 2.
fn merge(target: &mut JsonValue, patch: &JsonValue) {
    let JsonValue::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = JsonValue::Object(serde_json::Map::new());
    }
    let JsonValue::Object(target) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else if let Some(member) = target.get_mut(name) {
            merge(member, value);
        } else {
            let mut member = JsonValue::Null;
            merge(&mut member, value);
            target.insert(name.clone(), member);
        }
    }
}

impl From<JsonValue> for Position {
    fn from(whole: JsonValue) -> Self {
        Position::Whole(whole)
    }
}

impl From<u64> for Position {
    fn from(whole: u64) -> Self {
        Position::Whole(whole.into())
    }
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
        seek: Position,
    },
    /// The reader can go on from here and can give the step again.
    Replay {
        /// Where to go on.
        seek: Position,
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
    pub fn seek(&self) -> Option<&Position> {
        match self {
            Resume::Barrier => None,
            Resume::Seek { seek } | Resume::Replay { seek, .. } => Some(seek),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_each_answer_allows() {
        let replay = Resume::Replay { seek: 2.into(), replay: rmpv::Value::Nil };
        let answers = [Resume::Barrier, Resume::Seek { seek: 1.into() }, replay];
        let levels =
            [FaultTolerance::None, FaultTolerance::AtLeastOnce, FaultTolerance::ExactlyOnce];
        assert_eq!(answers.each_ref().map(Resume::level), levels);
        assert_eq!(answers.each_ref().map(Resume::is_barrier), [true, false, false]);
        let seeks = [None, Some(1.into()), Some(2.into())];
        assert_eq!(answers.each_ref().map(|answer| answer.seek().cloned()), seeks);
    }

    #[track_caller]
    fn check(before: JsonValue, patch: JsonValue, expected: JsonValue) {
        let mut position = Some(before);
        Position::Change(patch).apply(&mut position);
        assert_eq!(position, Some(expected));
    }

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn a_change_is_a_merge_patch() {
        check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}));
        check(json!({"a": "b"}), json!({"a": null}), json!({}));
        check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
        check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]}));
        let (before, patch) = (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}));
        check(before, patch, json!({"a": {"b": "d"}}));
        check(json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]}));
        check(json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"]));
        check(json!({"a": "b"}), json!(["c"]), json!(["c"]));
        check(json!({"a": "foo"}), json!(null), json!(null));
        check(json!({"a": "foo"}), json!("bar"), json!("bar"));
        check(json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1}));
        check(json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"}));
        check(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
    }

    #[test]
    fn a_whole_position_takes_the_place_of_the_one_before() {
        let mut position = Some(json!({"a": 1}));
        let whole = Position::from(json!({"b": 2}));
        whole.apply(&mut position);
        assert_eq!((position, whole.is_whole()), (Some(json!({"b": 2})), true));
        let mut none = None;
        Position::Change(json!({"a": 1})).apply(&mut none);
        assert_eq!(none, Some(json!({"a": 1})));
    }
}
