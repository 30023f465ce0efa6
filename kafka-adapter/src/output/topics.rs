//! Which topics there are, and how many partitions they have. The producer is never given a record for a topic that
//! does not exist: it would wait for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode as Code;
use rdkafka::producer::Producer as _;

use super::producer::Producer;
use super::refusal;
use crate::client::NEW_TOPIC;

/// Longest that one request may take.
const REQUEST: Duration = Duration::from_secs(2);
/// What was not found is looked for again after so long.
const AGAIN: Duration = Duration::from_secs(10);
/// Most names that are remembered: they may come from records.
const MAX_KNOWN: usize = 10_000;

/// A topic, as it was when it was asked for.
#[derive(Clone, Debug)]
struct Known {
    asked: Instant,
    partitions: Result<u32, Code>,
}

/// Why it is not known whether a record can be written.
#[derive(Debug)]
pub(super) enum Missing {
    /// It cannot be, for this reason.
    Refused(String),
    /// Nobody answers.
    Unknown(Code),
}

/// The topics that were asked for.
#[derive(Debug, Default)]
pub(super) struct Topics(BTreeMap<String, Known>);

impl Topics {
    /// That `topic` exists and has the partition, if one is wanted.
    ///
    /// # Errors
    /// Why a record for it cannot be written, or that it is not known.
    pub(super) fn check(
        &mut self,
        producer: &Producer,
        topic: &str,
        partition: Option<u32>,
    ) -> Result<(), Missing> {
        let lacks = |count: u32| partition.is_some_and(|partition| partition >= count);
        let known = match self.0.get(topic) {
            Some(known) => known.clone(),
            None => self.ask(producer, topic)?,
        };
        let is_lacking = known.partitions.map_or(true, lacks);
        let known = if is_lacking && known.asked.elapsed() > AGAIN {
            self.ask(producer, topic)?
        } else {
            known
        };
        match known.partitions {
            Err(code) => Err(Missing::Refused(refusal::reason(code))),
            Ok(count) if lacks(count) => {
                let partition = partition.unwrap_or_default();
                let text = format!("the topic has no partition {partition}, only {count} of them");
                Err(Missing::Refused(text))
            }
            Ok(_) => Ok(()),
        }
    }

    fn ask(&mut self, producer: &Producer, topic: &str) -> Result<Known, Missing> {
        let until = Instant::now() + NEW_TOPIC;
        let partitions = loop {
            match partitions(producer, topic, REQUEST) {
                Ok(count) => break Ok(count),
                Err(code @ (Code::UnknownTopicOrPartition | Code::UnknownTopic)) => {
                    if Instant::now() >= until {
                        break Err(code);
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(code) if refusal::verdict(code) == refusal::Verdict::Refused => {
                    break Err(code);
                }
                Err(code) => return Err(Missing::Unknown(code)),
            }
        };
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        let known = Known { asked: Instant::now(), partitions };
        self.0.insert(topic.to_owned(), known.clone());
        Ok(known)
    }
}

/// How many partitions a topic has.
pub(super) fn partitions(producer: &Producer, topic: &str, timeout: Duration) -> Result<u32, Code> {
    let failed =
        |error: rdkafka::error::KafkaError| error.rdkafka_error_code().unwrap_or(Code::Unknown);
    let metadata =
        producer.client().client().fetch_metadata(Some(topic), timeout).map_err(failed)?;
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
        return Err(Code::UnknownTopicOrPartition);
    };
    if let Some(code) = found.error() {
        return Err(code.into());
    }
    match u32::try_from(found.partitions().len()) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Code::UnknownTopicOrPartition),
    }
}
