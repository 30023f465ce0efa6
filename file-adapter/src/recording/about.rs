//! What a recording says about itself.

use lockgate_core::Framing;
use serde::{Deserialize, Serialize};

/// Where a recording comes from, and what was done to its records on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The version of the program that recorded.
    pub program: String,
    /// The kind of source: `kafka` or `file`.
    pub source: String,
    /// The source in the words of whoever recorded: topics and brokers, paths. No secrets.
    pub origin: String,
    /// The fields whose content was masked, as they were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<String>,
    /// Whether keys were replaced by their hashes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hashed_keys: bool,
    /// How records lay in the source where they adjoin (files); `None` where each stands for itself.
    #[serde(default, with = "framing", skip_serializing_if = "Option::is_none")]
    pub framing: Option<Framing>,
}

/// Framing in the words of the pipeline file.
mod framing {
    use lockgate_core::Framing;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    const LINES: &str = "lines";
    const LENGTH32: &str = "length32";

    pub(super) fn serialize<S: Serializer>(
        framing: &Option<Framing>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let name = framing.map(|framing| match framing {
            Framing::Lines => LINES,
            Framing::Length32 => LENGTH32,
        });
        name.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Framing>, D::Error> {
        match Option::<String>::deserialize(from)?.as_deref() {
            None => Ok(None),
            Some(LINES) => Ok(Some(Framing::Lines)),
            Some(LENGTH32) => Ok(Some(Framing::Length32)),
            Some(other) => Err(D::Error::custom(format!("unknown framing {other:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_json_and_says_only_what_there_is() {
        let kafka = About { program: "1.2".into(), source: "kafka".into(), ..About::default() };
        let text = serde_json::to_string(&kafka).unwrap();
        assert_eq!(text, r#"{"program":"1.2","source":"kafka","origin":""}"#);
        for framing in [None, Some(Framing::Lines), Some(Framing::Length32)] {
            let masked = vec!["value.email".into()];
            let about = About { framing, masked, hashed_keys: true, ..kafka.clone() };
            let text = serde_json::to_string(&about).unwrap();
            assert_eq!(serde_json::from_str::<About>(&text).unwrap(), about);
        }
        let unknown = text.replace('}', r#","framing":"csv"}"#);
        assert!(serde_json::from_str::<About>(&unknown).is_err());
    }
}
