//! Places on a tape, and the JSON and MessagePack forms in which they are stored.
//!
//! Pure.

use lockgate_core::EndpointError;
use serde::{Deserialize, Serialize};
use serde_json::Value as JsonValue;

/// A place on a tape: a part, and the records of it that lie before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) part: u64,
    pub(super) record: u64,
}

/// A position as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seek {
    version: u32,
    part: u64,
    record: u64,
    /// What the tape begins with, by which another one is found out.
    tape: String,
}

const VERSION: u32 = 1;

impl Place {
    pub(super) fn to_seek(self, tape: &str) -> JsonValue {
        let Place { part, record } = self;
        serde_json::json!(Seek { version: VERSION, part, record, tape: tape.to_owned() })
    }

    /// # Errors
    /// If it is not what [`to_seek`](Self::to_seek) gives for this tape.
    pub(super) fn from_seek(seek: &JsonValue, tape: &str) -> Result<Self, EndpointError> {
        let damaged =
            |why: String| EndpointError::Data(format!("the stored position is damaged: {why}"));
        let seek = Seek::deserialize(seek).map_err(|error| damaged(error.to_string()))?;
        if seek.version != VERSION {
            return Err(damaged(format!("its version is {}, not {VERSION}", seek.version)));
        }
        if seek.tape != tape {
            return Err(EndpointError::Data(
                "the stored position is in another recording than the one that is there now: put that back, or start \
                 with a new state directory"
                    .into(),
            ));
        }
        Ok(Place { part: seek.part, record: seek.record })
    }
}

/// What lies between two places: `[part, record, part, record]`.
pub(super) fn range_to_msgpack(from: Place, to: Place) -> rmpv::Value {
    let numbers = [from.part, from.record, to.part, to.record];
    rmpv::Value::Array(numbers.map(rmpv::Value::from).to_vec())
}

/// # Errors
/// If it is not something that [`range_to_msgpack`] gave.
pub(super) fn range_from_msgpack(data: &rmpv::Value) -> Result<(Place, Place), EndpointError> {
    let numbers = || {
        let numbers: Option<Vec<u64>> = data.as_array()?.iter().map(rmpv::Value::as_u64).collect();
        let [part, record, to_part, to_record] = numbers?.try_into().ok()?;
        Some((Place { part, record }, Place { part: to_part, record: to_record }))
    };
    let range = numbers().filter(|(from, to)| from <= to);
    range.ok_or_else(|| EndpointError::Data("a journaled step of a recording is damaged".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_survive(part in any::<u64>(), record in any::<u64>(), to in any::<(u64, u64)>()) {
            let place = Place { part, record };
            prop_assert_eq!(Place::from_seek(&place.to_seek("a"), "a").unwrap(), place);
            prop_assert!(Place::from_seek(&place.to_seek("a"), "b").is_err());
            let to = Place { part: to.0, record: to.1 };
            let range = range_from_msgpack(&range_to_msgpack(place, to));
            prop_assert_eq!(range.ok(), (place <= to).then_some((place, to)));
        }
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let seek = |json: serde_json::Value| Place::from_seek(&json, "a").unwrap_err().to_string();
        let whole = Place::default().to_seek("a");
        assert!(seek(JsonValue::Null).contains("damaged"));
        let mut later = whole.clone();
        later["version"] = 2.into();
        assert!(seek(later).contains("its version is 2"));
        for data in [rmpv::Value::Nil, rmpv::Value::Array(vec![1.into(), 2.into()])] {
            range_from_msgpack(&data).unwrap_err();
        }
    }
}
