//! Hides personal data in records: the same value always becomes the same hash, so that records can still be joined
//! and counted.
//!
//! Pure. A hash is the first half of a SHA-256, in hexadecimal. Whoever can guess a value can check the guess.

use std::fmt::Write;
use std::sync::Arc;

use lockgate_core::{ArenaFull, Batch, BatchBuilder, NewRecord};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// What is hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mask {
    /// Fields of JSON values: the names of members, from the outside to the inside.
    pub(crate) fields: Vec<Vec<String>>,
    pub(crate) hashes_keys: bool,
}

/// A record that cannot be masked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MaskError {
    #[error(
        "{partition} offset {offset}: the value is not JSON ({why}), so it is not known where {field} is in it; \
             leave such records out, or record without --mask"
    )]
    NotJson { partition: String, offset: u64, field: String, why: serde_json::Error },
    #[error("more than 4 GiB of records in one block")]
    Full(#[from] ArenaFull),
}

impl Mask {
    pub(crate) fn hides_nothing(&self) -> bool {
        self.fields.is_empty() && !self.hashes_keys
    }

    /// The same records, masked.
    ///
    /// # Errors
    /// If a value is not JSON and fields are hidden.
    pub(crate) fn batch(&self, batch: &Batch) -> Result<Batch, MaskError> {
        let mut builder = BatchBuilder::new(Arc::clone(batch.partition()));
        let mut headers = Vec::new();
        for record in batch.iter() {
            let key = record.key.map(|key| match self.hashes_keys {
                true => hash(key).into_bytes(),
                false => key.to_vec(),
            });
            let value = record.value.map(|value| self.value(value)).transpose();
            let value = value.map_err(|why| MaskError::NotJson {
                partition: record.partition.to_string(),
                offset: record.offset,
                field: self.fields.iter().map(|path| path.join(".")).collect::<Vec<_>>().join(", "),
                why,
            })?;
            headers.clear();
            headers.extend(record.headers.iter());
            builder.push(NewRecord {
                offset: record.offset,
                timestamp: record.timestamp,
                leader_epoch: record.leader_epoch,
                key: key.as_deref(),
                value: value.as_deref(),
                headers: &headers,
            })?;
        }
        Ok(builder.build())
    }

    fn value(&self, value: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
        if self.fields.is_empty() {
            return Ok(value.to_vec());
        }
        let mut text: Box<RawValue> = serde_json::from_slice(value)?;
        for path in &self.fields {
            text = masked(&text, path)?;
        }
        Ok(text.get().into())
    }
}

/// `value` with what is at `path` replaced by its hash; as it is where there is no such member. Everything else stays
/// as it was written.
fn masked(value: &RawValue, path: &[String]) -> Result<Box<RawValue>, serde_json::Error> {
    let Some((name, inner)) = path.split_first() else {
        // A text has the hash of what it says, so that it can be joined with a key that says the same.
        let hash = match serde_json::from_str::<String>(value.get()) {
            Ok(text) => hash(text.as_bytes()),
            Err(_) => hash(value.get().as_bytes()),
        };
        return RawValue::from_string(format!("\"{hash}\""));
    };
    let inside = value.get().trim_start();
    let mut text = String::new();
    if inside.starts_with('{') {
        let Members(members) = serde_json::from_str(inside)?;
        text.push('{');
        for (number, (member, value)) in members.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let quoted = serde_json::to_string(member)?;
            // Writing to a string does not fail.
            let _ = if member == name {
                write!(text, "{comma}{quoted}:{}", masked(value, inner)?)
            } else {
                write!(text, "{comma}{quoted}:{value}")
            };
        }
        text.push('}');
    } else if inside.starts_with('[') {
        // In every element.
        let elements: Vec<&RawValue> = serde_json::from_str(inside)?;
        let elements: Result<Vec<_>, _> =
            elements.into_iter().map(|element| masked(element, path)).collect();
        let elements: Vec<String> = elements?.iter().map(|element| element.get().into()).collect();
        let _ = write!(text, "[{}]", elements.join(","));
    } else {
        text.push_str(inside);
    }
    RawValue::from_string(text)
}

/// The members of an object in their order, as they were written; names may repeat.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Visitor)
    }
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let mut text = String::with_capacity(32);
    for byte in digest.iter().take(16) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_core::{Header, Partition};

    fn mask(fields: &[&str]) -> Mask {
        let path = |field: &&str| field.split('.').map(str::to_owned).collect();
        Mask { fields: fields.iter().map(path).collect(), hashes_keys: true }
    }

    #[track_caller]
    fn check(value: &str, expected: &str) {
        let masked = mask(&["email", "customer.name"]).value(value.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(masked).unwrap(), expected);
    }

    /// What is not masked stays as it was written: numbers too large for any type, names that repeat.
    #[test]
    fn only_the_fields_change() {
        check(
            r#"{"id": 123456789012345678901234567890.10, "id": 1e400}"#,
            r#"{"id":123456789012345678901234567890.10,"id":1e400}"#,
        );
        check(r#"{"email": "a@b.c"}"#, r#"{"email":"d648b243a3e817eaa3309e00e183483f"}"#);
        check(
            r#"{"customer": {"name": null, "n\u00e4me": [1, 2]}}"#,
            r#"{"customer":{"name":"74234e98afe7498fb5daf1f36ac2d78a","näme":[1, 2]}}"#,
        );
        check(
            r#"[{"email": 1}, 2, {"x": {"email": 1}}]"#,
            r#"[{"email":"6b86b273ff34fce19d6b804eff5a3f57"},2,{"x":{"email": 1}}]"#,
        );
        check(r#"{"email": "a\u0040b.c"}"#, r#"{"email":"d648b243a3e817eaa3309e00e183483f"}"#);
        check("5", "5");
    }

    #[test]
    fn everything_but_what_is_hidden_is_kept() {
        let partition = Arc::new(Partition { source: "t".into(), number: Some(1) });
        let mut builder = BatchBuilder::new(partition);
        let headers = [Header { name: b"h", value: None }];
        let (key, value) = (Some(&b"k"[..]), Some(&br#"{"email":1}"#[..]));
        builder
            .push(NewRecord { offset: 3, key, value, headers: &headers, ..NewRecord::default() })
            .unwrap();
        builder.push(NewRecord { offset: 7, ..NewRecord::default() }).unwrap();
        let masked = mask(&["email"]).batch(&builder.build()).unwrap();
        let records: Vec<_> = masked.iter().collect();
        assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), [3, 7]);
        assert_eq!(records[0].key, Some(hash(b"k").as_bytes()));
        assert_eq!(records[0].value, Some(&br#"{"email":"6b86b273ff34fce19d6b804eff5a3f57"}"#[..]));
        assert_eq!(records[0].headers.iter().next(), Some(headers[0]));
        assert_eq!((records[1].key, records[1].value), (None, None));
    }

    #[test]
    fn what_is_not_json_is_named() {
        let partition = Arc::new(Partition { source: "t".into(), number: Some(1) });
        let mut builder = BatchBuilder::new(partition);
        builder
            .push(NewRecord { offset: 3, value: Some(b"plain"), ..NewRecord::default() })
            .unwrap();
        let batch = builder.build();
        let error = mask(&["email"]).batch(&batch).unwrap_err().to_string();
        assert!(error.contains("t[1] offset 3") && error.contains("email"), "{error}");
        let keys = Mask { fields: Vec::new(), hashes_keys: true };
        assert_eq!(keys.batch(&batch).unwrap().iter().next().unwrap().value, Some(&b"plain"[..]));
    }
}
