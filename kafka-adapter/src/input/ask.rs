//! What is asked of the brokers before anything is read: which partitions there are, and where their logs begin
//! and end. Every question waits a bounded time, and says at the end why there was no answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lockgate_core::EndpointError;
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use tracing::warn;

use super::native::topic_id;
use crate::client::{self, Client, NEW_TOPIC, Name};

/// Longest that one request may take.
const REQUEST: Duration = Duration::from_secs(5);
/// Longest that the request for an id may take: it is answered at once, or by some stand-ins of brokers never.
const ID_REQUEST: Duration = Duration::from_secs(2);
/// Most partitions in one question: the library looks for each of its answers in the whole list.
const MOST_ASKED: usize = 500;
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Asks the brokers named by `brokers`.
pub(super) struct Questions<'a> {
    pub(super) client: &'a Client,
    /// As they were typed, for messages.
    pub(super) brokers: &'a str,
    /// How long all attempts at one question may take.
    pub(super) patience: Duration,
}

/// A place in a log that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The first record that is there.
    Beginning,
    /// After the last record that a reader may see.
    End,
    /// The first record with this timestamp or a later one, in milliseconds since the Unix epoch.
    Time(i64),
}

impl Questions<'_> {
    /// The numbers of the partitions of a topic, rising.
    ///
    /// # Errors
    /// If the topic does not exist, or nobody answers.
    pub(super) fn partitions(&self, topic: &str) -> Result<Vec<u32>, EndpointError> {
        self.until_answered(&format!("topic {topic}"), |timeout| {
            let metadata = self.client.fetch_metadata(Some(topic), timeout)?;
            let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
                return Err(KafkaError::MetadataFetch(Code::UnknownTopicOrPartition));
            };
            if let Some(code) = found.error() {
                return Err(KafkaError::MetadataFetch(code.into()));
            }
            let partitions = found.partitions().iter();
            let mut numbers: Vec<u32> =
                partitions.filter_map(|partition| u32::try_from(partition.id()).ok()).collect();
            if numbers.is_empty() {
                return Err(KafkaError::MetadataFetch(Code::UnknownTopicOrPartition));
            }
            numbers.sort_unstable();
            Ok(numbers)
        })
    }

    /// The names of all topics.
    ///
    /// # Errors
    /// If nobody answers.
    pub(super) fn topics(&self) -> Result<Vec<String>, EndpointError> {
        self.until_answered("their topics", |timeout| {
            let metadata = self.client.fetch_metadata(None, timeout)?;
            Ok(metadata.topics().iter().map(|topic| topic.name().to_owned()).collect())
        })
    }

    /// The id of a topic that exists; `None` where the brokers have no ids, or do not say.
    ///
    /// # Errors
    /// If the brokers refuse to say.
    pub(super) fn id(&self, topic: &str) -> Result<Option<String>, EndpointError> {
        match topic_id(self.client, topic, self.patience.min(ID_REQUEST)) {
            Ok(id) => Ok(id),
            Err(error) if error.rdkafka_error_code() == Some(Code::OperationTimedOut) => {
                warn!(
                    topic,
                    "the brokers do not say the topic's id: if it is made anew, its id will not tell"
                );
                Ok(None)
            }
            Err(error) => Err(EndpointError::Unavailable {
                what: format!(
                    "asking the Kafka brokers {} for the id of topic {topic}",
                    self.brokers
                ),
                source: error.into(),
            }),
        }
    }

    /// The offset of a place in each partition; `None` where no record has the timestamp.
    ///
    /// # Errors
    /// If a partition does not exist, or nobody answers.
    pub(super) fn offsets(
        &self,
        partitions: &[Name],
        place: Place,
    ) -> Result<BTreeMap<Name, Option<u64>>, EndpointError> {
        let wanted = match place {
            Place::Beginning => Offset::Beginning,
            Place::End => Offset::End,
            Place::Time(ms) => Offset::Offset(ms.max(0)),
        };
        let mut found = BTreeMap::new();
        for asked in partitions.chunks(MOST_ASKED) {
            found.extend(self.until_answered("the offsets of the partitions", |timeout| {
                let mut list = TopicPartitionList::new();
                for (topic, partition) in asked {
                    client::add(&mut list, topic, *partition, wanted)?;
                }
                by_name(&self.client.offsets_for_times(list, timeout)?)
            })?);
        }
        Ok(found)
    }

    /// The offsets that the group has committed under whose name the client asks.
    ///
    /// # Errors
    /// If it may not be asked about, or nobody answers.
    pub(super) fn committed(
        &self,
        partitions: &[Name],
    ) -> Result<BTreeMap<Name, Option<u64>>, EndpointError> {
        self.until_answered("the offsets of the group", |timeout| {
            committed(self.client, partitions, timeout)
        })
    }

    fn until_answered<T>(
        &self,
        what: &str,
        mut ask: impl FnMut(Duration) -> Result<T, KafkaError>,
    ) -> Result<T, EndpointError> {
        let begun = Instant::now();
        let until = begun + self.patience;
        let known_until = until.min(begun + NEW_TOPIC);
        let mut reason = None;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let error = match ask(left.min(REQUEST)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let reports = client::events(self.client).reports;
            let is_refused = reports.iter().any(|(code, _)| {
                matches!(code, Code::Authentication | Code::SaslAuthenticationFailed)
            });
            let is_telling = |(code, _): &(Code, String)| *code != Code::AllBrokersDown;
            if let Some((_, text)) = reports.into_iter().rfind(is_telling) {
                reason = Some(text);
            }
            match error.rdkafka_error_code() {
                Some(Code::UnknownTopicOrPartition) if Instant::now() + PAUSE >= known_until => {
                    let text =
                        format!("{what} does not exist at the Kafka brokers {}", self.brokers);
                    return Err(EndpointError::Configuration(text));
                }
                Some(
                    Code::TopicAuthorizationFailed
                    | Code::InvalidTopic
                    | Code::ClusterAuthorizationFailed,
                ) => {}
                _ if !is_refused && Instant::now() + PAUSE < until => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                _ => {}
            }
            let source = match reason {
                Some(reason) => format!("{error} ({reason})").into(),
                None => error.into(),
            };
            let what = format!("asking the Kafka brokers {} for {what}", self.brokers);
            return Err(EndpointError::Unavailable { what, source });
        }
    }
}

/// The offsets that the group has committed under whose name `client` asks.
pub(super) fn committed(
    client: &Client,
    partitions: &[Name],
    timeout: Duration,
) -> Result<BTreeMap<Name, Option<u64>>, KafkaError> {
    let mut list = TopicPartitionList::new();
    for (topic, partition) in partitions {
        list.add_partition(topic, i32::try_from(*partition).unwrap_or(-1));
    }
    by_name(&client.committed_offsets(list, timeout)?)
}

/// The offsets of a list, where it has any.
fn by_name(list: &TopicPartitionList) -> Result<BTreeMap<Name, Option<u64>>, KafkaError> {
    let found = list.elements().into_iter().map(|found| {
        found.error()?;
        let name = (found.topic().to_owned(), found.partition() as u32);
        let offset = found.offset().to_raw().and_then(|offset| u64::try_from(offset).ok());
        Ok((name, offset))
    });
    found.collect()
}
