//! Where a member of a group begins to read partitions that it gets.
//!
//! At the group's committed offset, held against the log. Partitions without one are new to the group: if it knows
//! others of their topic they were added later, and are read from their beginning; if it knows none, this is its
//! very first start, and what the configuration says becomes numbers, which are committed before anything is read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockgate_core::{EndpointError, InputConsumer};
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::KafkaError;

use super::ask::{self, Place, Questions};
use super::plan::{Log, Policies, within};
use super::start::first;
use super::topics::whole;
use crate::client::Name;
use crate::client::{self, Client};
use crate::config::{KafkaInputConfig, TopicSelection};

/// One attempt to ask for committed offsets; those of a transaction under way are waited for.
const COMMITTED: Duration = Duration::from_secs(2);
/// One attempt to ask where logs are.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Beginning {
    pub(super) config: KafkaInputConfig,
    /// Asks about topics, beside the member itself.
    pub(super) asking: Client,
    pub(super) brokers: String,
}

type Places = BTreeMap<Name, u64>;

impl Beginning {
    /// What is subscribed to.
    pub(super) fn subscription(&self) -> Vec<String> {
        match &self.config.topics {
            TopicSelection::Names(names) => names.clone(),
            TopicSelection::Pattern(pattern) => vec![whole(pattern)],
        }
    }

    /// Where these partitions begin; `None` if it cannot be known now.
    ///
    /// # Errors
    /// If a committed offset is not in the log, and no policy says how to go on.
    pub(super) fn places(
        &self,
        member: &Client,
        names: &[Name],
        consumer: &dyn InputConsumer,
    ) -> Result<Option<Places>, EndpointError> {
        match self.found(member, names, consumer) {
            Ok(places) => Ok(Some(places)),
            Err(Failed::For(error)) => Err(error),
            Err(Failed::Now(why)) => {
                tracing::info!("where partitions of the group begin is not known yet: {why}");
                Ok(None)
            }
        }
    }

    fn found(
        &self,
        member: &Client,
        names: &[Name],
        consumer: &dyn InputConsumer,
    ) -> Result<Places, Failed> {
        let mut places = committed(member, names)?;
        let questions =
            Questions { client: &self.asking, brokers: &self.brokers, patience: PATIENCE };
        let topics: BTreeSet<&str> = names.iter().map(|name| name.0.as_str()).collect();
        let mut new = Places::new();
        for topic in topics {
            let is_new = |name: &&Name| name.0 == topic && !places.contains_key(*name);
            if names.iter().any(|name| is_new(&name)) {
                new.extend(self.new_of(member, &questions, topic)?);
            }
        }
        if !new.is_empty() {
            commit(member, &new)?;
        }
        places.extend(new.into_iter().filter(|(name, _)| names.contains(name)));
        self.within_logs(&questions, places, consumer)
    }

    /// The beginnings of all partitions of a topic that have no committed offset.
    fn new_of(
        &self,
        member: &Client,
        questions: &Questions<'_>,
        topic: &str,
    ) -> Result<Places, Failed> {
        let numbers = questions.partitions(topic)?;
        let all: Vec<Name> = numbers.into_iter().map(|number| (topic.to_owned(), number)).collect();
        let known = committed(member, &all)?;
        let logs = logs(questions, &all)?;
        let first = if known.is_empty() {
            first(&self.config, questions, &all, &logs)?
                .iter()
                .map(|(topic, number, offset)| ((topic.to_owned(), number), offset))
                .collect()
        } else {
            logs.iter().map(|(name, log)| (name.clone(), log.first)).collect::<Places>()
        };
        Ok(first.into_iter().filter(|(name, _)| !known.contains_key(name)).collect())
    }

    /// Offsets held against the logs; a policy may move them.
    fn within_logs(
        &self,
        questions: &Questions<'_>,
        mut places: Places,
        consumer: &dyn InputConsumer,
    ) -> Result<Places, Failed> {
        let names: Vec<Name> = places.keys().cloned().collect();
        let (policies, mut applied) = (Policies::of(&self.config), Vec::new());
        for (name, log) in logs(questions, &names)? {
            let Some(offset) = places.get_mut(&name) else { continue };
            *offset = within(&name.0, name.1, *offset, log, policies, &mut applied)?;
        }
        applied.into_iter().for_each(|(policy, text)| consumer.policy_applied(policy, text));
        Ok(places)
    }
}

fn logs(questions: &Questions<'_>, names: &[Name]) -> Result<BTreeMap<Name, Log>, Failed> {
    let firsts = questions.offsets(names, Place::Beginning)?;
    let ends = questions.offsets(names, Place::End)?;
    let log = |name: &Name| {
        let at = |offsets: &BTreeMap<Name, Option<u64>>| offsets.get(name).copied().flatten();
        let log = at(&firsts).zip(at(&ends));
        let log = log.map(|(first, end)| (name.clone(), Log { first, end }));
        log.ok_or_else(|| Failed::Now(format!("{}[{}] has no log", name.0, name.1)))
    };
    names.iter().map(log).collect()
}

/// The offsets that the group has committed.
fn committed(member: &Client, names: &[Name]) -> Result<Places, Failed> {
    let found = ask::committed(member, names, COMMITTED)?;
    Ok(found.into_iter().filter_map(|(name, offset)| Some((name, offset?))).collect())
}

fn commit(member: &Client, places: &Places) -> Result<(), Failed> {
    let named = places.iter().map(|((topic, number), offset)| (topic.as_str(), *number, *offset));
    let list = client::offsets(named)?;
    Ok(member.commit(&list, CommitMode::Sync)?)
}

/// Why it is not known where to begin.
enum Failed {
    /// For now: it is asked again.
    Now(String),
    For(EndpointError),
}

impl From<KafkaError> for Failed {
    fn from(error: KafkaError) -> Self {
        Self::Now(error.to_string())
    }
}

impl From<EndpointError> for Failed {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Unavailable { what, source } => Self::Now(format!("{what}: {source}")),
            error => Self::For(error),
        }
    }
}
