//! Opening: a producer that has its transactional id, the topics it needs, and the last step that is there.

use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lockgate_core::EndpointError;
use rdkafka::consumer::{Consumer, ConsumerGroupMetadata};
use rdkafka::error::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};

use super::failure::{Failure, Remedy};
use super::offsets::Offsets;
use super::producer::Producer;
use super::properties;
use super::topics;
use crate::client::{Client, NEW_TOPIC, create};
use crate::config::{KafkaOutputConfig, OnRefused, TopicChoice};

/// Longest that one request may take.
const REQUEST: Duration = Duration::from_millis(500);

/// 16 random hexadecimal characters.
pub(super) fn new_id() -> String {
    // Keyed at random by the standard library; time and process tell apart what shares a key.
    let mut hasher = RandomState::new().build_hasher();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    hasher.write_u128(now.as_nanos());
    hasher.write_u32(std::process::id());
    let mut id = String::new();
    // Writing to a string does not fail.
    let _ = write!(id, "{:016x}", hasher.finish());
    id
}

/// What it takes to make the producer, the first time or again.
pub(super) struct Maker {
    pub(super) config: KafkaOutputConfig,
    /// `None`: without transactions.
    pub(super) transactional_id: Option<String>,
}

impl Maker {
    /// As they were typed, for messages.
    pub(super) fn brokers(&self) -> String {
        self.config.brokers.join(",")
    }

    /// A producer, which connects by itself. A `careful` one puts every record into a request of its own.
    pub(super) fn producer(&self, careful: bool) -> Result<Producer, EndpointError> {
        let id = self.transactional_id.as_deref();
        Producer::new(&properties::producing(&self.config, id, careful))
    }

    /// Gets the producer its transactional id, if it is to have one: whoever had it is fenced, and the transaction
    /// it left open is settled. Gives up after `patience`, or when `stops` says so.
    pub(super) fn init(
        &self,
        producer: &Producer,
        patience: Duration,
        stops: &dyn Fn() -> bool,
    ) -> Result<(), EndpointError> {
        let Some(id) = self.transactional_id.as_deref() else { return Ok(()) };
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Err(failure) = producer.init(left.min(REQUEST)) else { return Ok(()) };
            producer.serve(Duration::ZERO);
            let is_final = match failure.remedy() {
                Remedy::Forbidden | Remedy::Fenced => true,
                _ if failure.code == Code::InvalidTransactionTimeout => {
                    return Err(EndpointError::Configuration(format!(
                        "properties: transaction.timeout.ms is more than the brokers allow \
                         (`transaction.max.timeout.ms`): {failure}"
                    )));
                }
                _ => failure.is_fatal,
            };
            if is_final || left.is_zero() || stops() {
                let what = format!(
                    "getting the transactional id {id} from the Kafka brokers {}",
                    self.brokers()
                );
                return Err(unavailable(what, &failure, producer));
            }
        }
    }

    /// That the topics that are always needed exist.
    pub(super) fn check_topics(
        &self,
        producer: &Producer,
        patience: Duration,
    ) -> Result<(), EndpointError> {
        let mut needed = Vec::new();
        match &self.config.topic {
            TopicChoice::Fixed(topic) => needed.push(("topic", topic)),
            TopicChoice::FromRecord { position_topic, .. } => {
                needed.extend(position_topic.iter().map(|topic| ("position topic", topic)));
            }
        }
        if let OnRefused::DeadLetter(topic) = &self.config.on_refused {
            needed.push(("dead letter topic", topic));
        }
        let until = Instant::now() + patience;
        for (role, topic) in needed {
            self.check_topic(producer, role, topic, until)?;
        }
        Ok(())
    }

    fn check_topic(
        &self,
        producer: &Producer,
        role: &str,
        topic: &str,
        until: Instant,
    ) -> Result<(), EndpointError> {
        let brokers = self.brokers();
        let known_until = until.min(Instant::now() + NEW_TOPIC);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Err(code) = topics::partitions(producer, topic, left.min(REQUEST)) else {
                return Ok(());
            };
            producer.serve(Duration::ZERO);
            match code {
                Code::UnknownTopicOrPartition | Code::UnknownTopic
                    if Instant::now() >= known_until =>
                {
                    return Err(EndpointError::Configuration(format!(
                        "{role} {topic} does not exist at the Kafka brokers {brokers}. It is not made by \
                         lockgate, so that its partitions and retention are somebody's choice: \
                         `kafka-topics.sh --bootstrap-server {brokers} --create --topic {topic} --partitions N`"
                    )));
                }
                Code::InvalidTopic => {
                    return Err(EndpointError::Configuration(format!(
                        "{role}: `{topic}` is not a name that a topic can have"
                    )));
                }
                Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed => {}
                _ if !left.is_zero() => {
                    std::thread::sleep(Duration::from_millis(100).min(left));
                    continue;
                }
                _ => {}
            }
            let what = format!("asking the Kafka brokers {brokers} for {role} {topic}");
            let failure = Failure::abort(code, code.to_string());
            return Err(unavailable(what, &failure, producer));
        }
    }
}

/// The failure with the reason that the client reported meanwhile, which tells more.
fn unavailable(what: String, failure: &Failure, producer: &Producer) -> EndpointError {
    let telling = producer.reports().into_iter().rfind(|(code, _)| *code != Code::AllBrokersDown);
    let source = match telling {
        Some((_, reason)) => format!("{failure} ({reason})").into(),
        None => failure.clone().into(),
    };
    EndpointError::Unavailable { what, source }
}

/// The last step that is there, kept by the brokers as the offset of a group that nobody joins.
pub(super) struct Marker {
    client: Client,
    pub(super) group: String,
    topic: String,
    brokers: String,
}

impl Marker {
    /// Kept under the name of `group` for `topic`.
    pub(super) fn new(
        config: &KafkaOutputConfig,
        group: String,
        topic: String,
    ) -> Result<Self, EndpointError> {
        let client = create(&properties::asking(config, &group))?;
        Ok(Self { client, group, topic, brokers: config.brokers.join(",") })
    }

    /// What travels in a transaction whose last step is `step`.
    pub(super) fn offsets(&self, step: u64) -> Offsets {
        Offsets::from([(self.topic.clone(), [(0, step)].into())])
    }

    /// As whom the group knows the sender: as nobody.
    pub(super) fn member(&self) -> Result<ConsumerGroupMetadata, EndpointError> {
        self.client.group_metadata().ok_or_else(|| {
            EndpointError::Bug("a client with a group has no metadata of the group".into())
        })
    }

    /// Throws away what the client has to say: it would pile up.
    pub(super) fn serve(&self) {
        for _ in 0..100 {
            drop(self.client.poll(Duration::ZERO));
        }
        drop(self.client.context().take());
    }

    /// The last step; `None` if the brokers know none.
    pub(super) fn read(
        &self,
        patience: Duration,
        stops: &dyn Fn() -> bool,
    ) -> Result<Option<u64>, EndpointError> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut list = TopicPartitionList::new();
            list.add_partition(&self.topic, 0);
            let asked = self.client.committed_offsets(list, left.min(REQUEST)).and_then(|found| {
                let Some(found) = found.find_partition(&self.topic, 0) else { return Ok(None) };
                found.error()?;
                Ok(match found.offset() {
                    Offset::Offset(offset) => u64::try_from(offset).ok(),
                    _ => None,
                })
            });
            let error = match asked {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            let reason = self.client.context().take().pop().map(|(_, reason)| reason);
            let is_forbidden = matches!(
                error.rdkafka_error_code(),
                Some(Code::GroupAuthorizationFailed | Code::TopicAuthorizationFailed)
            );
            if is_forbidden || left.is_zero() || stops() {
                let source = match reason {
                    Some(reason) => format!("{error} ({reason})").into(),
                    None => error.into(),
                };
                let what = format!(
                    "asking the Kafka brokers {} for the last step of group {}",
                    self.brokers, self.group
                );
                return Err(EndpointError::Unavailable { what, source });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_look_alike() {
        let (one, other) = (new_id(), new_id());
        assert_ne!(one, other);
        assert_eq!(one.len(), 16);
        assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    }
}
