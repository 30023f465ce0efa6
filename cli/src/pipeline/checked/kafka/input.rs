//! Kafka inputs: what is read, and by whom it is dealt out.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use super::super::super::choice::{GroupProtocol, OnGone, ReadMode, StopAt};
use super::super::super::error::{Fault, KeyPath};
use super::super::super::raw::{self, RawKafkaInput};
use super::super::Checker;
use super::super::properties::Properties;

/// The settings of a Kafka input.
#[derive(Debug)]
pub(crate) struct KafkaInput {
    /// Each `HOST:PORT`; at least one.
    pub(crate) brokers: Vec<String>,
    /// What is read.
    pub(crate) topics: Topics,
    /// Who decides which partitions are read.
    pub(crate) mode: Mode,
    /// Where the very first start begins.
    pub(crate) start_from: StartFrom,
    /// Where reading ends; never set with [`Mode::Group`].
    pub(crate) stop_at: Option<StopAt>,
    /// The most records of one partition that are not yet part of a step.
    pub(crate) max_pending_records: NonZeroU32,
    /// The most records that wait for a step.
    pub(crate) max_queued_records: u64,
    /// The most bytes that wait for a step.
    pub(crate) max_queued_bytes: u64,
    /// What happens when retention has passed a position,
    pub(crate) on_expired: OnGone,
    /// when the log ends before it,
    pub(crate) on_truncated: OnGone,
    /// when the topic is another one,
    pub(crate) on_recreated: OnGone,
    /// and when the partition is gone.
    pub(crate) on_vanished: OnGone,
    /// For the client library.
    pub(crate) properties: Properties,
}

/// Which topics are read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Topics {
    /// These, each once; at least one.
    Names(Vec<String>),
    /// Those whose names match; it begins with `^`.
    Pattern(String),
}

/// Who decides which partitions are read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The pipeline.
    Assign {
        /// Only these, each once, at least one; `None`: all.
        partitions: Option<Vec<u32>>,
        /// Where positions are committed for tools that show the lag.
        offsets_group: Option<String>,
    },
    /// A consumer group.
    Group {
        /// Its name.
        id: String,
        /// How partitions are dealt out.
        protocol: GroupProtocol,
        /// The member's own name.
        instance_id: Option<String>,
    },
}

/// Where the very first start begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartFrom {
    /// At the first record.
    Earliest,
    /// At the end.
    Latest,
    /// At the first record that is not older, in milliseconds since the Unix epoch.
    Timestamp(i64),
    /// At these offsets by topic and partition.
    Offsets(BTreeMap<String, BTreeMap<u32, u64>>),
}

impl Checker<'_> {
    pub(in super::super) fn kafka_input(
        &self,
        path: &KeyPath,
        raw: &RawKafkaInput,
    ) -> Result<KafkaInput, Fault> {
        let brokers = self.brokers(&path.key("brokers"), &raw.brokers)?;
        let topics = self.topics(path, raw)?;
        let mode = match raw.mode {
            ReadMode::Assign => self.assign(path, raw)?,
            ReadMode::Group => self.group(path, raw)?,
        };
        let start_from = self.start_from(path, &raw.start_from, &topics, &mode)?;
        let pending = u32::try_from(raw.max_pending_records.0).ok().and_then(NonZeroU32::new);
        let Some(max_pending_records) = pending else {
            let message = format!("must not be more than {}", u32::MAX);
            return self.fault(&path.key("max_pending_records"), message);
        };
        let properties = path.key("properties");
        self.isolation_level(&properties.key(raw::ISOLATION_LEVEL), &raw.properties)?;
        Ok(KafkaInput {
            brokers,
            topics,
            mode,
            start_from,
            stop_at: raw.stop_at,
            max_pending_records,
            max_queued_records: raw.max_queued_records.0,
            max_queued_bytes: raw.max_queued_bytes.0,
            on_expired: raw.on_expired,
            on_truncated: raw.on_truncated,
            on_recreated: raw.on_recreated,
            on_vanished: raw.on_vanished,
            properties: self.properties(&properties, &raw.properties)?,
        })
    }

    fn topics(&self, path: &KeyPath, raw: &RawKafkaInput) -> Result<Topics, Fault> {
        let several = path.key("topics");
        if raw.topic.is_some() && raw.topics.is_some() {
            let message = "\"topic\" and \"topics\" exclude each other; name all of them in topics";
            return self.fault_of_key(&several, message);
        }
        let texts = raw.topics();
        let place = |index| match &raw.topic {
            Some(_) => path.key("topic"),
            None => several.index(index),
        };
        match texts.as_slice() {
            [] if raw.topics.is_none() => {
                return self.fault_of_key(path, "missing key \"topic\" (or \"topics\")");
            }
            [] => return self.fault(&several, "at least one topic is needed"),
            [pattern] if pattern.starts_with('^') => {
                return Ok(Topics::Pattern((*pattern).to_owned()));
            }
            _ => {}
        }
        let mut names: Vec<String> = Vec::new();
        for (index, text) in texts.into_iter().enumerate() {
            if text.starts_with('^') {
                let message = "a pattern stands alone; one pattern can match several names: \
                    \"^(orders|returns)$\"";
                return self.fault(&place(index), message);
            }
            self.topic(&place(index), text)?;
            if names.iter().any(|name| name == text) {
                let found = self.found(&place(index), text);
                return self.fault(&place(index), format!("topic {found} is named twice"));
            }
            names.push(text.to_owned());
        }
        Ok(Topics::Names(names))
    }

    fn assign(&self, path: &KeyPath, raw: &RawKafkaInput) -> Result<Mode, Fault> {
        let groups_only = [
            ("group_protocol", raw.group_protocol.is_some()),
            ("group_instance_id", raw.group_instance_id.is_some()),
        ];
        for (key, is_set) in groups_only {
            if is_set {
                let message = "needs \"mode: group\"; in mode assign no group is joined";
                return self.fault_of_key(&path.key(key), message);
            }
        }
        if let Some(group) = &raw.group {
            self.not_empty(&path.key("group"), group)?;
        }
        let mut partitions = None;
        if let Some(numbers) = &raw.partitions {
            let path = path.key("partitions");
            let mut once = BTreeSet::new();
            for (index, number) in numbers.0.iter().enumerate() {
                if !once.insert(number.0) {
                    let message = format!("partition {} is named twice", number.0);
                    return self.fault(&path.index(index), message);
                }
            }
            if once.is_empty() {
                let message = "at least one partition is needed; leave the key out to read all";
                return self.fault(&path, message);
            }
            partitions = Some(once.into_iter().collect());
        }
        Ok(Mode::Assign { partitions, offsets_group: raw.group.clone() })
    }

    fn group(&self, path: &KeyPath, raw: &RawKafkaInput) -> Result<Mode, Fault> {
        if raw.partitions.is_some() {
            let message = "not with \"mode: group\": the group deals the partitions out; leave \
                this key out, or write \"mode: assign\"";
            return self.fault_of_key(&path.key("partitions"), message);
        }
        if raw.stop_at.is_some() {
            let message = "not with \"mode: group\": which partitions a member reads changes all \
                the time, so it has no end; leave this key out, or write \"mode: assign\"";
            return self.fault_of_key(&path.key("stop_at"), message);
        }
        let Some(group) = &raw.group else {
            let message =
                "missing key \"group\": \"mode: group\" needs the name of the consumer group";
            return self.fault_of_key(path, message);
        };
        self.not_empty(&path.key("group"), group)?;
        if let Some(member) = &raw.group_instance_id {
            self.not_empty(&path.key("group_instance_id"), member)?;
        }
        Ok(Mode::Group {
            id: group.clone(),
            protocol: raw.group_protocol.unwrap_or_default(),
            instance_id: raw.group_instance_id.clone(),
        })
    }

    /// Offsets are for what is read.
    fn start_from(
        &self,
        path: &KeyPath,
        raw: &raw::StartFrom,
        topics: &Topics,
        mode: &Mode,
    ) -> Result<StartFrom, Fault> {
        let offsets = match raw {
            raw::StartFrom::Earliest => return Ok(StartFrom::Earliest),
            raw::StartFrom::Latest => return Ok(StartFrom::Latest),
            raw::StartFrom::Timestamp(at) => return Ok(StartFrom::Timestamp(at.0)),
            raw::StartFrom::Offsets(offsets) => offsets,
        };
        let path = path.key("start_from").key("offsets");
        let mut checked = BTreeMap::new();
        for (topic, partitions) in offsets {
            let path = path.key(topic);
            if let Topics::Names(names) = topics
                && !names.contains(topic)
            {
                return self.fault_of_key(&path, "this topic is not among those that are read");
            }
            for number in partitions.keys() {
                if let Mode::Assign { partitions: Some(read), .. } = mode
                    && !read.contains(&number.0)
                {
                    let message = "this partition is not among those that are read";
                    return self.fault_of_key(&path.key(&number.0.to_string()), message);
                }
            }
            let partitions = partitions.iter().map(|(number, offset)| (number.0, offset.0));
            checked.insert(topic.clone(), partitions.collect());
        }
        Ok(StartFrom::Offsets(checked))
    }

    /// It is compared with the last run's, so it stands in the file.
    fn isolation_level(&self, path: &KeyPath, raw: &raw::Properties) -> Result<(), Fault> {
        let is_set = raw.0.iter().any(|(name, _)| name == raw::ISOLATION_LEVEL);
        let known = [raw::READ_COMMITTED, "read_uncommitted"];
        match raw.value(raw::ISOLATION_LEVEL) {
            Some(level) if !known.contains(&level) => {
                self.fault(path, "must be read_committed or read_uncommitted")
            }
            None if is_set => self.fault(path, "must be written here, not in a file"),
            _ => Ok(()),
        }
    }
}
