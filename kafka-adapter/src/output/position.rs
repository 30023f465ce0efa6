//! The position of an output, and what it, the brokers and the pipeline together say about where to go on.
//!
//! Pure.

use lockgate_core::EndpointError;
use serde::{Deserialize, Serialize};
use serde_json::Value as JsonValue;

const VERSION: u32 = 1;

/// What a checkpoint keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Position {
    version: u32,
    /// Tells the state directory from all others.
    pub(super) id: String,
    /// Everything up to this step is written.
    pub(super) step: u64,
    /// The last of these steps that had records, which is what the brokers know.
    pub(super) marker: u64,
}

impl Position {
    pub(super) fn new(id: String, step: u64, marker: u64) -> Self {
        Self { version: VERSION, id, step, marker }
    }

    pub(super) fn to_json(&self) -> JsonValue {
        serde_json::json!(self)
    }

    /// # Errors
    /// If it is not something that [`to_json`](Self::to_json) gave.
    pub(super) fn from_json(json: &JsonValue) -> Result<Self, EndpointError> {
        let damaged = |what: String| {
            EndpointError::Data(format!("the stored position of a Kafka output is damaged: {what}"))
        };
        let position = Self::deserialize(json).map_err(|error| damaged(error.to_string()))?;
        if position.version != VERSION {
            return Err(damaged(format!("its version is {}, not {VERSION}", position.version)));
        }
        if position.id.is_empty() || position.marker > position.step {
            return Err(damaged(format!("it is {json}")));
        }
        Ok(position)
    }
}

/// Where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GoOn {
    /// The last step that is there already.
    pub(super) written: u64,
    /// The brokers are to be told so, before anything else.
    pub(super) must_mark: bool,
}

/// Compares the checkpoint's `position` with `marker`, the last step that the brokers know of `group`, and with
/// `last_step`, the last one that the pipeline can replay.
///
/// # Errors
/// If what is at the brokers is not what the state directory belongs to.
pub(super) fn go_on(
    position: Option<&Position>,
    last_step: u64,
    marker: Option<u64>,
    group: &str,
) -> Result<GoOn, EndpointError> {
    let (step, known) = position.map_or((0, 0), |position| (position.step, position.marker));
    let Some(marker) = marker else {
        if position.is_some() && step < last_step {
            return Err(EndpointError::Data(format!(
                "the brokers know no last step of group {group} any more, so it cannot be told which of the steps \
                 {} to {last_step} are in the topic already: they keep it for `offsets.retention.minutes` after \
                 the last transaction. Look up in the topic what was written last, and start with a new state \
                 directory from there",
                step + 1
            )));
        }
        return Ok(GoOn { written: known, must_mark: true });
    };
    if marker > last_step.max(step) {
        return Err(EndpointError::Data(format!(
            "the topic holds steps up to {marker} (group {group}), but the state directory knows only those up to \
             {}: it is an older copy of the one that wrote them, and going on would write other records under \
             the same numbers. Use the newest state directory, or start with a new one from the position that \
             is right for the topic",
            last_step.max(step)
        )));
    }
    if marker < known {
        return Err(EndpointError::Data(format!(
            "the last checkpoint says that steps up to {known} are in the topic, but the brokers know only those \
             up to {marker} (group {group}): offsets or records were lost there, or these are other brokers. Use \
             the brokers that belong to this state directory, or start with a new one"
        )));
    }
    Ok(GoOn { written: marker, must_mark: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back() {
        let position = Position::new("0123456789abcdef".into(), 7, 5);
        assert_eq!(Position::from_json(&position.to_json()).unwrap(), position);
        let mut other = position.to_json();
        other["version"] = 2.into();
        assert!(Position::from_json(&other).unwrap_err().to_string().contains("version is 2"));
        let ahead = Position::new("x".into(), 1, 2).to_json();
        Position::from_json(&ahead).unwrap_err();
        Position::from_json(&serde_json::json!({"version": 1})).unwrap_err();
    }

    /// The checkpoint's step and marker, the last step of the pipeline, what the brokers know.
    fn check(
        position: Option<(u64, u64)>,
        last: u64,
        marker: Option<u64>,
        expected: Result<(u64, bool), &str>,
    ) {
        let position = position.map(|(step, marker)| Position::new("x".into(), step, marker));
        let found = go_on(position.as_ref(), last, marker, "g");
        match expected {
            Ok((written, must_mark)) => assert_eq!(found.unwrap(), GoOn { written, must_mark }),
            Err(text) => {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(text), "{error}");
            }
        }
    }

    #[test]
    fn the_brokers_say_what_is_there_and_the_state_what_may_be() {
        check(None, 0, None, Ok((0, true)));
        check(None, 4, None, Ok((0, true)));
        check(Some((3, 3)), 5, Some(4), Ok((4, false)));
        check(Some((3, 2)), 3, Some(2), Ok((2, false)));
        check(Some((3, 3)), 3, None, Ok((3, true)));
        check(Some((9, 3)), 9, None, Ok((3, true)));
        check(Some((3, 3)), 5, None, Err("steps 4 to 5"));
        check(Some((3, 3)), 5, Some(6), Err("steps up to 6"));
        check(Some((3, 3)), 5, Some(2), Err("only those up to 2"));
        check(Some((3, 3)), 0, Some(3), Ok((3, false)));
    }
}
