//! What is kept of a step for its replay, in the form in which it comes back from a disk.

use lockgate_core::{Batch, InputReaderCommand, PartDigest, Position};
use serde_json::Value as JsonValue;

use crate::desk::Answer;
use crate::known::Seen;
use crate::report::{Counted, Fault};
use crate::rule::Rule;
use crate::truth::Place;

/// A journaled step.
pub(crate) struct Step {
    pub(crate) seek: Position,
    replay: rmpv::Value,
    digest: PartDigest,
    pub(crate) records: Vec<Seen>,
    /// Where the data goes on after it.
    pub(crate) after: Place,
}

impl Step {
    /// The step of an answer to Queue, after which the data goes on at `after`.
    pub(crate) fn new(
        seek: Position,
        replay: rmpv::Value,
        batches: &[Batch],
        records: Vec<Seen>,
        after: Place,
    ) -> Self {
        Self { seek, replay, digest: PartDigest::of(batches), records, after }
    }

    /// The command that replays it, as it comes back from the journal.
    pub(crate) fn command(&self) -> InputReaderCommand {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &self.replay).expect("memory takes everything");
        let data = rmpv::decode::read_value(&mut bytes.as_slice()).expect("it was just encoded");
        InputReaderCommand::Replay { metadata: json_from_disk(self.seek.json()), data }
    }

    pub(crate) fn compare(&self, number: usize, answer: &Answer) -> Result<(), Fault> {
        let digest = PartDigest::of(&answer.batches);
        if digest == self.digest {
            return Ok(());
        }
        let records = answer.records();
        let differs = (0..).find(|i| self.records.get(*i) != records.get(*i)).unwrap_or_default();
        let describe = |digest: PartDigest, records: &[Seen]| {
            let PartDigest { records: count, hash } = digest;
            let text = match records.get(differs) {
                Some(record) => format!("record {} is {record}", differs + 1),
                None => format!("there is no record {}", differs + 1),
            };
            format!("step {} with {}, hash {hash:016x}; {text}", number + 1, Counted(count))
        };
        let expected = describe(self.digest, &self.records);
        Err(Fault::new(Rule::ReplaysTheSame, expected, describe(digest, &records)))
    }
}

/// A position as it comes back from a checkpoint.
pub(crate) fn json_from_disk(value: &JsonValue) -> JsonValue {
    serde_json::from_str(&value.to_string()).expect("it was just written")
}
