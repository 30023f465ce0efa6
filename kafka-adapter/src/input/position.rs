//! Positions: what is stored of a reader between two steps (`seek`), and what a step consists of (`replay`),
//! and their JSON and MessagePack forms.
//!
//! Pure. All ranges are half-open. Not here: whether a position still fits the log ([`plan`](super::plan)).

use std::collections::BTreeMap;

use lockgate_core::EndpointError;
use serde::Deserialize;
use serde_json::Value as JsonValue;

const VERSION: u32 = 1;

/// Where a reader stands: of each partition the offset of the first record that was not handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seek {
    topics: BTreeMap<String, BTreeMap<u32, u64>>,
    /// Of each partition the last record before that offset, where its leader's epoch is known.
    epochs: BTreeMap<String, BTreeMap<u32, Epoch>>,
    /// The ids of the topics that have one: a topic that was deleted and made anew has another.
    pub(super) ids: BTreeMap<String, String>,
}

/// Up to where a log was written by leaders of an epoch and of those before it. Each new leader has a higher epoch.
///
/// The end is not always the position: behind the last record there may be markers and offsets that compaction has
/// freed, and who wrote those is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "(i32, u64)")]
pub(super) struct Epoch {
    pub(super) number: i32,
    /// The offset after the last record.
    pub(super) end: u64,
}

impl From<(i32, u64)> for Epoch {
    fn from((number, end): (i32, u64)) -> Self {
        Self { number, end }
    }
}

impl From<Epoch> for JsonValue {
    fn from(Epoch { number, end }: Epoch) -> Self {
        JsonValue::Array(vec![number.into(), end.into()])
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeekForm {
    version: u32,
    topics: BTreeMap<String, BTreeMap<u32, u64>>,
    #[serde(default)]
    epochs: BTreeMap<String, BTreeMap<u32, Option<Epoch>>>,
    #[serde(default)]
    ids: BTreeMap<String, String>,
}

impl Seek {
    pub(super) fn offset(&self, topic: &str, partition: u32) -> Option<u64> {
        self.topics.get(topic)?.get(&partition).copied()
    }

    pub(super) fn set(&mut self, topic: &str, partition: u32, offset: u64) {
        put(&mut self.topics, topic, partition, offset);
    }

    pub(super) fn names(&self, topic: &str) -> bool {
        self.topics.contains_key(topic)
    }

    pub(super) fn epoch(&self, topic: &str, partition: u32) -> Option<Epoch> {
        self.epochs.get(topic)?.get(&partition).copied()
    }

    pub(super) fn set_epoch(&mut self, topic: &str, partition: u32, epoch: Option<Epoch>) {
        if let Some(epoch) = epoch {
            put(&mut self.epochs, topic, partition, epoch);
        } else if let Some(epochs) = self.epochs.get_mut(topic) {
            epochs.remove(&partition);
        }
    }

    /// Goes on where `later` stands, in the partitions that it names.
    pub(super) fn advance(&mut self, later: &Self) {
        for (topic, partition, offset) in later.iter() {
            self.set(topic, partition, offset);
            self.set_epoch(topic, partition, later.epoch(topic, partition));
        }
    }

    /// Every partition and its offset.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, u32, u64)> {
        self.topics.iter().flat_map(|(topic, offsets)| {
            offsets.iter().map(|(partition, offset)| (topic.as_str(), *partition, *offset))
        })
    }

    pub(super) fn to_json(&self) -> JsonValue {
        let mut form: serde_json::Map<_, _> =
            [("version".into(), VERSION.into()), ("topics".into(), by_partition(&self.topics))]
                .into_iter()
                .collect();
        if !self.epochs.is_empty() {
            form.insert("epochs".into(), by_partition(&self.epochs));
        }
        if !self.ids.is_empty() {
            let ids = self.ids.iter().map(|(topic, id)| (topic.clone(), id.as_str().into()));
            form.insert("ids".into(), JsonValue::Object(ids.collect()));
        }
        JsonValue::Object(form)
    }

    /// Where the partitions stand that this names, as a change of a position that may name more.
    pub(super) fn to_change(&self) -> JsonValue {
        let mut form = self.to_json();
        let mut epochs: BTreeMap<String, BTreeMap<u32, Option<Epoch>>> = BTreeMap::new();
        for (topic, partition, _) in self.iter() {
            put(&mut epochs, topic, partition, self.epoch(topic, partition));
        }
        form["epochs"] = by_partition(&epochs);
        form
    }

    /// # Errors
    /// If it is not something that [`to_json`](Self::to_json) or [`to_change`](Self::to_change) gave.
    pub(super) fn from_json(json: &JsonValue) -> Result<Self, EndpointError> {
        let damaged = |what: String| {
            EndpointError::Data(format!("the stored position of a Kafka input is damaged: {what}"))
        };
        let form = SeekForm::deserialize(json).map_err(|error| damaged(error.to_string()))?;
        if form.version != VERSION {
            return Err(damaged(format!("its version is {}, not {VERSION}", form.version)));
        }
        let known = |(topic, epochs): (String, BTreeMap<u32, Option<Epoch>>)| {
            let epochs =
                epochs.into_iter().filter_map(|(partition, epoch)| Some((partition, epoch?)));
            (topic, epochs.collect())
        };
        let epochs = form.epochs.into_iter().map(known).collect();
        Ok(Self { topics: form.topics, epochs, ids: form.ids })
    }
}

fn put<T>(topics: &mut BTreeMap<String, BTreeMap<u32, T>>, topic: &str, partition: u32, value: T) {
    match topics.get_mut(topic) {
        Some(partitions) => partitions.insert(partition, value),
        None => topics.entry(topic.to_owned()).or_default().insert(partition, value),
    };
}

fn by_partition<T: Copy + Into<JsonValue>>(
    topics: &BTreeMap<String, BTreeMap<u32, T>>,
) -> JsonValue {
    let topics = topics.iter().map(|(topic, partitions)| {
        let partitions = partitions.iter();
        let partitions =
            partitions.map(|(partition, value)| (partition.to_string(), (*value).into()));
        (topic.clone(), JsonValue::Object(partitions.collect()))
    });
    JsonValue::Object(topics.collect())
}

/// The part of a step that lies in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) topic: String,
    pub(super) partition: u32,
    pub(super) from: u64,
    pub(super) to: u64,
    /// How many records it holds: fewer than offsets where there are markers or the log was compacted.
    pub(super) count: u64,
}

/// Each range as `[topic, partition, from, to, count]`.
pub(super) fn ranges_to_msgpack(ranges: &[Range]) -> rmpv::Value {
    let range = |range: &Range| {
        let Range { topic, partition, from, to, count } = range;
        rmpv::Value::Array(vec![
            topic.as_str().into(),
            (*partition).into(),
            (*from).into(),
            (*to).into(),
            (*count).into(),
        ])
    };
    rmpv::Value::Array(ranges.iter().map(range).collect())
}

/// # Errors
/// If it is not something that [`ranges_to_msgpack`] gave.
pub(super) fn ranges_from_msgpack(data: &rmpv::Value) -> Result<Vec<Range>, EndpointError> {
    let range = |value: &rmpv::Value| {
        let [topic, partition, from, to, count] = value.as_array()?.as_slice() else { return None };
        let (from, to, count) = (from.as_u64()?, to.as_u64()?, count.as_u64()?);
        let partition = u32::try_from(partition.as_u64()?).ok()?;
        let is_sound = from <= to && count <= to - from;
        let topic = topic.as_str()?.to_owned();
        is_sound.then_some(Range { topic, partition, from, to, count })
    };
    let ranges = data.as_array().and_then(|values| values.iter().map(range).collect());
    ranges.ok_or_else(|| EndpointError::Data("a journaled step of a Kafka input is damaged".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_core::Position;
    use proptest::prelude::*;

    fn check_seek(json: JsonValue, expected: &str) {
        let text = Seek::from_json(&json).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_seek_reads_as_offsets_by_topic_and_partition() {
        let mut seek = Seek::default();
        seek.set("orders", 11, 5);
        seek.set("orders", 2, 1 << 40);
        let json =
            serde_json::json!({"version": 1, "topics": {"orders": {"2": 1u64 << 40, "11": 5}}});
        assert_eq!(seek.to_json(), json);
        assert_eq!(seek.offset("orders", 11), Some(5));
        assert_eq!(seek.offset("orders", 3), None);
    }

    #[test]
    fn a_seek_goes_on_with_the_epochs_of_the_later_one() {
        let seek = |offset, epochs: JsonValue| {
            let topics = serde_json::json!({"orders": {"0": offset, "1": 2}});
            let json =
                serde_json::json!({"version": 1, "topics": topics, "epochs": {"orders": epochs}});
            Seek::from_json(&json).unwrap()
        };
        let mut earlier = seek(5, serde_json::json!({"0": [3, 5], "1": [1, 2]}));
        assert_eq!(earlier.epoch("orders", 0), Some(Epoch { number: 3, end: 5 }));
        let later = seek(9, serde_json::json!({"1": [1, 2]}));
        earlier.advance(&later);
        assert_eq!(earlier, later, "the epoch of another place says nothing");
    }

    #[test]
    fn a_change_names_what_moved_and_forgets_its_epochs() {
        let mut position = None;
        let mut seek = Seek::default();
        for (partition, end) in [(0, 5), (1, 6)] {
            seek.set("orders", partition, end);
            seek.set_epoch("orders", partition, Some(Epoch { number: 3, end }));
        }
        Position::Whole(seek.to_json()).apply(&mut position);
        let mut change = Seek::default();
        change.set("orders", 1, 9);
        let change = change.to_change();
        assert_eq!(
            change.to_string(),
            r#"{"epochs":{"orders":{"1":null}},"topics":{"orders":{"1":9}},"version":1}"#
        );
        seek.advance(&Seek::from_json(&change).unwrap());
        Position::Change(change).apply(&mut position);
        assert_eq!(Seek::from_json(&position.unwrap()).unwrap(), seek);
        assert_eq!((seek.offset("orders", 1), seek.epoch("orders", 1)), (Some(9), None));
    }

    #[test]
    fn a_damaged_seek_is_refused() {
        check_seek(serde_json::json!({"version": 2, "topics": {}}), "its version is 2");
        check_seek(serde_json::json!({"version": 1}), "topics");
        check_seek(serde_json::json!({"version": 1, "topics": {"a": {"x": 1}}}), "damaged");
        check_seek(serde_json::json!({"version": 1, "topics": {"a": {"1": -1}}}), "damaged");
    }

    #[test]
    fn a_damaged_step_is_refused() {
        let range = Range { topic: "a".into(), partition: 0, from: 4, to: 3, count: 0 };
        let too_many = Range { from: 1, count: 3, ..range.clone() };
        for range in [range, too_many] {
            ranges_from_msgpack(&ranges_to_msgpack(&[range])).unwrap_err();
        }
        ranges_from_msgpack(&rmpv::Value::Nil).unwrap_err();
    }

    proptest! {
        #[test]
        fn what_is_stored_comes_back(
            ranges in proptest::collection::vec((".*", any::<u32>(), any::<u32>(), any::<u32>()), 0..9),
        ) {
            let ranges: Vec<Range> = ranges.into_iter().map(|(topic, partition, from, count)| {
                let (from, count) = (u64::from(from), u64::from(count));
                Range { topic, partition, from, to: from + count, count }
            }).collect();
            prop_assert_eq!(&ranges_from_msgpack(&ranges_to_msgpack(&ranges)).unwrap(), &ranges);
            let mut seek = Seek::default();
            for range in &ranges {
                seek.set(&range.topic, range.partition, range.to);
                let epoch = Epoch { number: range.count as i32, end: range.to };
                seek.set_epoch(&range.topic, range.partition, Some(epoch));
                seek.ids.insert(range.topic.clone(), format!("id of {}", range.topic));
            }
            prop_assert_eq!(&Seek::from_json(&seek.to_json()).unwrap(), &seek);
            let mut merged = None;
            for position in [Position::Whole(seek.to_json()), Position::Change(seek.to_change())] {
                position.apply(&mut merged);
                prop_assert_eq!(&Seek::from_json(merged.as_ref().unwrap()).unwrap(), &seek);
            }
        }
    }
}
