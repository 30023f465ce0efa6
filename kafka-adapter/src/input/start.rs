//! The start of a reader: every place becomes a number, and is held against the log, before anything is read.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::EndpointError;

use super::ask::{Name, Place, Questions};
use super::plan::{self, Log};
use super::position::Seek;
use crate::config::{KafkaInputConfig, StartFrom, StopAt, TopicSelection};

/// What a reader reads.
#[derive(Debug)]
pub(super) struct Start {
    /// Where each partition begins.
    pub(super) seek: Seek,
    /// Where each partition ends, if it does.
    pub(super) ends: Option<BTreeMap<Name, u64>>,
}

/// The names of the topics, each once.
pub(super) fn topics(config: &KafkaInputConfig) -> Result<Vec<String>, EndpointError> {
    let TopicSelection::Names(names) = &config.topics;
    let names: BTreeSet<&String> = names.iter().collect();
    let names: Vec<String> = names.into_iter().cloned().collect();
    if names.is_empty() || names.iter().any(String::is_empty) {
        return Err(EndpointError::Configuration(
            "topics: name at least one, none of them empty".into(),
        ));
    }
    Ok(names)
}

/// Finds out where to begin and to end.
pub(super) fn start(
    config: &KafkaInputConfig,
    questions: &Questions<'_>,
    stored: Option<&Seek>,
) -> Result<Start, EndpointError> {
    let (mut names, mut ids) = (Vec::new(), BTreeMap::new());
    for topic in topics(config)? {
        let there = questions.partitions(&topic)?;
        ids.insert(topic.clone(), questions.id(&topic)?);
        let numbers = match &config.partitions {
            None => there,
            Some(wanted) => chosen(&topic, wanted, &there)?,
        };
        names.extend(numbers.into_iter().map(|number| (topic.clone(), number)));
    }
    if let Some(stored) = stored {
        plan::same_topics(stored, &ids)?;
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
    let mut seek = match stored {
        Some(stored) => plan::resumed(stored, &logs)?,
        None => first(config, questions, &names, &logs)?,
    };
    seek.ids = ids.into_iter().filter_map(|(topic, id)| Some((topic, id?))).collect();
    let ends = config
        .stop_at
        .map(|StopAt::End| logs.into_iter().map(|(name, log)| (name, log.end)).collect());
    Ok(Start { seek, ends })
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

/// Where the very first start begins.
fn first(
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
