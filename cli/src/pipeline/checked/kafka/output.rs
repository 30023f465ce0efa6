//! Kafka outputs: where records go, and what of them.

use std::time::Duration;

use super::super::super::choice::{Delivery, Kept, PartitionChoice, TimestampChoice};
use super::super::super::error::{Fault, KeyPath};
use super::super::super::raw::{self, NamedBy, RawKafkaOutput, RawTopic};
use super::super::Checker;
use super::super::properties::Properties;

const LONGEST_COMMIT_INTERVAL: Duration = Duration::from_secs(30);

/// The settings of a Kafka output.
#[derive(Debug)]
pub(crate) struct KafkaOutput {
    /// Each `HOST:PORT`; at least one.
    pub(crate) brokers: Vec<String>,
    /// Which topic a record is written to.
    pub(crate) topic: Topic,
    /// Which partition of it.
    pub(crate) partition: PartitionChoice,
    /// Which timestamp it has.
    pub(crate) timestamp: TimestampChoice,
    /// Whether its key is written.
    pub(crate) key: Kept,
    /// Whether its headers are written.
    pub(crate) headers: Kept,
    /// What happens to one that is refused.
    pub(crate) on_refused: OnRefused,
    /// Whether records are written in transactions; only and always with [`Delivery::ExactlyOnce`].
    pub(crate) exactly_once: bool,
    /// How long a transaction is kept open; at most 30 s.
    pub(crate) commit_interval: Duration,
    /// For the client library.
    pub(crate) properties: Properties,
}

/// Which topic a record is written to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// This one.
    Fixed(String),
    /// The one that the record names.
    OfRecord {
        /// In this header; `None`: the one that it was read from.
        header: Option<String>,
        /// Where the output keeps how far it is; set if it is exactly once.
        position_topic: Option<String>,
    },
}

/// What happens to a record that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnRefused {
    /// The pipeline stops.
    Stop,
    /// It is left out.
    Skip,
    /// It is written to this topic.
    DeadLetter(String),
}

impl Checker<'_> {
    pub(in super::super) fn kafka_output(
        &self,
        path: &KeyPath,
        raw: &RawKafkaOutput,
        delivery: Delivery,
    ) -> Result<KafkaOutput, Fault> {
        let brokers = self.brokers(&path.key("brokers"), &raw.brokers)?;
        let exactly_once = delivery == Delivery::ExactlyOnce;
        match raw.exactly_once {
            Some(true) if !exactly_once => {
                let message = "true needs \"delivery: exactly_once\" of the pipeline; write that, \
                    or leave this key out";
                return self.fault(&path.key("exactly_once"), message);
            }
            Some(false) if exactly_once => {
                let message = "false would break the pipeline's \"delivery: exactly_once\"; leave \
                    this key out, or write \"delivery: at_least_once\"";
                return self.fault(&path.key("exactly_once"), message);
            }
            _ => {}
        }
        let topic = self.output_topic(&path.key("topic"), &raw.topic, exactly_once)?;
        let on_refused = match &raw.on_refused {
            raw::OnRefused::Stop => OnRefused::Stop,
            raw::OnRefused::Skip => OnRefused::Skip,
            raw::OnRefused::DeadLetter(name) => {
                let path = path.key("on_refused").key("dead_letter");
                self.topic(&path, name)?;
                if matches!(&topic, Topic::Fixed(topic) if topic == name) {
                    let message = "must be another topic than the one that is written to";
                    return self.fault(&path, message);
                }
                OnRefused::DeadLetter(name.clone())
            }
        };
        if raw.commit_interval.0 > LONGEST_COMMIT_INTERVAL {
            let message = "must not be more than 30s: brokers give up a transaction that stays \
                open for too long";
            return self.fault(&path.key("commit_interval"), message);
        }
        Ok(KafkaOutput {
            brokers,
            topic,
            partition: raw.partition,
            timestamp: raw.timestamp,
            key: raw.key,
            headers: raw.headers,
            on_refused,
            exactly_once,
            commit_interval: raw.commit_interval.0,
            properties: self.properties(&path.key("properties"), &raw.properties)?,
        })
    }

    fn output_topic(
        &self,
        path: &KeyPath,
        raw: &RawTopic,
        exactly_once: bool,
    ) -> Result<Topic, Fault> {
        let named = match raw {
            RawTopic::Fixed(name) => {
                self.topic(path, name)?;
                return Ok(Topic::Fixed(name.clone()));
            }
            RawTopic::Named(named) => named,
        };
        match (named.from, &named.name) {
            (NamedBy::Source, Some(_)) => {
                let message = "needs \"from: header\"; \"from: source\" has no name";
                return self.fault_of_key(&path.key("name"), message);
            }
            (NamedBy::Header, None) => {
                let message = "missing key \"name\": \"from: header\" needs the header's name";
                return self.fault_of_key(path, message);
            }
            (NamedBy::Header, Some(name)) => self.not_empty(&path.key("name"), name)?,
            (NamedBy::Source, None) => {}
        }
        match &named.position_topic {
            Some(name) => self.topic(&path.key("position_topic"), name)?,
            None if exactly_once => {
                let message = "missing key \"position_topic\": exactly_once needs an existing \
                    topic, under whose name the output keeps how far it is";
                return self.fault_of_key(path, message);
            }
            None => {}
        }
        Ok(Topic::OfRecord {
            header: named.name.clone(),
            position_topic: named.position_topic.clone(),
        })
    }
}
