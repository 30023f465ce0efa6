//! The start of a reader: every place becomes a number, and is held against the log, before anything is read.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::EndpointError;

use super::ask::{Place, Questions};
use super::plan::{self, Applied, Log, Policies};
use super::position::Seek;
use super::topics::Topics;
use crate::client::Name;
use crate::config::{KafkaInputConfig, ReadMode, StartFrom, StopAt};

/// What a reader reads.
#[derive(Debug)]
pub(super) struct Start {
    /// Where each partition begins.
    pub(super) seek: Seek,
    /// Where each partition ends, if it does.
    pub(super) ends: Option<BTreeMap<Name, u64>>,
    /// The policies that had to be applied.
    pub(super) applied: Vec<Applied>,
}

/// Finds out where to begin and to end.
pub(super) fn start(
    config: &KafkaInputConfig,
    topics: &Topics,
    questions: &Questions<'_>,
    stored: Option<&Seek>,
) -> Result<Start, EndpointError> {
    let (mut names, mut ids) = (Vec::new(), BTreeMap::new());
    let found = topics.find(questions)?;
    if let (Topics::Matching(pattern), true) = (topics, found.is_empty()) {
        return Err(EndpointError::Configuration(format!(
            "topics: none of the topics at the Kafka brokers {} matches {pattern}",
            questions.brokers
        )));
    }
    for topic in found {
        let there = match questions.partitions(&topic) {
            // What became of it is decided with its position.
            Err(EndpointError::Configuration(_))
                if stored.is_some_and(|seek| seek.names(&topic)) =>
            {
                continue;
            }
            there => there?,
        };
        ids.insert(topic.clone(), questions.id(&topic)?);
        let numbers = match &config.mode {
            ReadMode::Assign { partitions: Some(wanted), .. } => chosen(&topic, wanted, &there)?,
            _ => there,
        };
        names.extend(numbers.into_iter().map(|number| (topic.clone(), number)));
    }
    let firsts = questions.offsets(&names, Place::Beginning)?;
    let ends = questions.offsets(&names, Place::End)?;
    let offset = |offsets: &BTreeMap<Name, Option<u64>>, name: &Name| {
        offsets.get(name).copied().flatten().ok_or_else(|| {
            EndpointError::Data(format!(
                "{}[{}]: the brokers do not say where its log is",
                name.0, name.1
            ))
        })
    };
    let mut logs = BTreeMap::new();
    for name in &names {
        let log = Log { first: offset(&firsts, name)?, end: offset(&ends, name)? };
        logs.insert(name.clone(), log);
    }
    let (mut seek, applied) = match stored {
        Some(stored) => plan::resumed(stored, &ids, &logs, Policies::of(config))?,
        None => (first(config, questions, &names, &logs)?, Vec::new()),
    };
    seek.ids = ids.into_iter().filter_map(|(topic, id)| Some((topic, id?))).collect();
    let ends = config.stop_at.map(|stop_at| last(stop_at, questions, &names, &logs)).transpose()?;
    Ok(Start { seek, ends, applied })
}

fn chosen(topic: &str, wanted: &[u32], there: &[u32]) -> Result<Vec<u32>, EndpointError> {
    let wanted: BTreeSet<u32> = wanted.iter().copied().collect();
    if let Some(missing) = wanted.iter().find(|number| !there.contains(number)) {
        let last = there.last().copied().unwrap_or_default();
        return Err(EndpointError::Configuration(format!(
            "partitions: topic {topic} has no partition {missing}, only 0 to {last}"
        )));
    }
    if wanted.is_empty() {
        return Err(EndpointError::Configuration("partitions: name at least one".into()));
    }
    Ok(wanted.into_iter().collect())
}

/// Where each partition ends.
fn last(
    stop_at: StopAt,
    questions: &Questions<'_>,
    names: &[Name],
    logs: &BTreeMap<Name, Log>,
) -> Result<BTreeMap<Name, u64>, EndpointError> {
    let found = match stop_at {
        StopAt::Timestamp(ms) => questions.offsets(names, Place::Time(ms))?,
        _ => BTreeMap::new(),
    };
    let end = |(name, log): (&Name, &Log)| {
        let end = match stop_at {
            StopAt::End => log.end,
            StopAt::Offset(offset) => offset,
            StopAt::BeforeEnd(offsets) => log.end.saturating_sub(offsets),
            StopAt::Timestamp(_) => found.get(name).copied().flatten().unwrap_or(log.end),
        };
        (name.clone(), end.min(log.end))
    };
    Ok(logs.iter().map(end).collect())
}

/// Where the very first start begins.
pub(super) fn first(
    config: &KafkaInputConfig,
    questions: &Questions<'_>,
    names: &[Name],
    logs: &BTreeMap<Name, Log>,
) -> Result<Seek, EndpointError> {
    let log = |topic: &str, number: u32| logs.get(&(topic.to_owned(), number));
    match &config.start_from {
        StartFrom::Earliest => plan::at(logs, |_, _| None),
        StartFrom::Latest => plan::at(logs, |topic, number| Some(log(topic, number)?.end)),
        StartFrom::Timestamp(ms) => {
            let found = questions.offsets(names, Place::Time(*ms))?;
            plan::at(logs, |topic, number| {
                let log = log(topic, number)?;
                let found = found.get(&(topic.to_owned(), number)).copied().flatten();
                // Records may have come or gone since the log was looked at.
                Some(found.unwrap_or(log.end).clamp(log.first, log.end))
            })
        }
        StartFrom::Offset(offset) => plan::at(logs, |_, _| Some(*offset)),
        StartFrom::BeforeEnd(offsets) => plan::at(logs, |topic, number| {
            let log = log(topic, number)?;
            Some(log.end.saturating_sub(*offsets).max(log.first))
        }),
        StartFrom::Committed => {
            let found = questions.committed(names)?;
            if let Some((topic, number)) =
                names.iter().find(|name| found.get(name).copied().flatten().is_none())
            {
                return Err(EndpointError::Configuration(format!(
                    "the group has no offset of {topic}[{number}] to begin at"
                )));
            }
            plan::at(logs, |topic, number| {
                found.get(&(topic.to_owned(), number)).copied().flatten()
            })
        }
        StartFrom::Offsets(offsets) => {
            for (topic, numbers) in offsets {
                if let Some(number) = numbers.keys().find(|number| log(topic, **number).is_none()) {
                    return Err(EndpointError::Configuration(format!(
                        "start_from: {topic}[{number}] is not among the partitions that are read"
                    )));
                }
            }
            plan::at(logs, |topic, number| offsets.get(topic)?.get(&number).copied())
        }
    }
}
