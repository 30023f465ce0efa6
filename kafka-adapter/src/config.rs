//! Checked configuration of Kafka inputs and outputs. What was typed is checked before it gets here; what only
//! the client library can judge (its properties) is checked when an input or output is opened.

mod input;
mod output;

use std::collections::BTreeMap;
use std::fmt;

pub use input::{
    GroupConfig, GroupProtocol, KafkaInputConfig, OnGone, ReadMode, StartFrom, StopAt,
    TopicSelection,
};
pub use output::{
    KafkaOutputConfig, Kept, OnRefused, PartitionChoice, TimestampChoice, TopicChoice,
};

/// Whether the value of a property is never shown.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "secret", "key", "token", "jaas"].iter().any(|part| name.contains(part))
}

/// Properties of the client library, without the values that may be secret.
struct Shown<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value): (&'_ String, &'_ String)| {
            (name.clone(), if is_secret(name) { "***".to_owned() } else { value.clone() })
        };
        f.debug_map().entries(self.0.iter().map(shown)).finish()
    }
}
