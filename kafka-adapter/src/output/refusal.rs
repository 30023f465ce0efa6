//! Records that are refused for good: which answers say so, and how it is told. The value of a record never appears.
//!
//! Pure.

use lockgate_core::{EndpointError, Record};
use rdkafka::error::RDKafkaErrorCode as Code;

/// What the failed delivery of a record says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is refused, and so is everything for its topic or partition.
    Refused,
    /// It is refused, or another one in the same request is.
    Suspected,
    /// Nothing: the transaction or the producer failed.
    Unrelated,
}

/// What `code`, the brokers' answer or the client's own, says about the record.
pub(super) fn verdict(code: Code) -> Verdict {
    match code {
        Code::UnknownTopic
        | Code::UnknownPartition
        | Code::UnknownTopicOrPartition
        | Code::InvalidTopic
        | Code::TopicAuthorizationFailed => Verdict::Refused,
        Code::MessageSizeTooLarge
        | Code::MessageBatchTooLarge
        | Code::InvalidMessageSize
        | Code::InvalidMessage
        | Code::InvalidRecord
        | Code::InvalidTimestamp
        | Code::PolicyViolation => Verdict::Suspected,
        _ => Verdict::Unrelated,
    }
}

/// Why a record is refused, from an answer.
pub(super) fn reason(code: Code) -> String {
    let reason = match code {
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidMessageSize => {
            "it is too large"
        }
        Code::UnknownTopic | Code::UnknownTopicOrPartition => "the topic does not exist",
        Code::UnknownPartition => "the topic has no such partition",
        Code::InvalidTopic => "the topic's name is not valid",
        Code::TopicAuthorizationFailed => "the topic may not be written to",
        Code::InvalidTimestamp => "its timestamp is not accepted",
        Code::InvalidRecord | Code::PolicyViolation => "the topic does not accept it",
        code => return format!("it was refused ({code:?})"),
    };
    format!("{reason} ({code:?})")
}

/// What can be done so that it is not.
fn remedy(reason: &str) -> &'static str {
    if reason.contains("too large") {
        "raise `max.message.bytes` of the topic and `message.max.bytes` among the properties"
    } else if reason.contains("not exist") || reason.contains("no partition") {
        "create what is missing"
    } else if reason.contains("may not be written") {
        "grant the right to write to it"
    } else {
        "mend the record at its source"
    }
}

/// The place of a record that was refused, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// Where it was to go, as far as it is known.
    pub(super) topic: Option<String>,
    pub(super) reason: String,
}

impl Refused {
    /// What happened, without what is done about it.
    pub(super) fn text(&self, record: &Record<'_>) -> String {
        let (partition, offset) = (record.partition, record.offset);
        let topic = match &self.topic {
            Some(topic) => format!("topic {topic}"),
            None => "its topic".to_owned(),
        };
        format!(
            "the record of {partition} at offset {offset} cannot be written to {topic}: {}",
            self.reason
        )
    }

    /// The pipeline stops because of it.
    pub(super) fn stops(&self, record: &Record<'_>) -> EndpointError {
        let (text, remedy) = (self.text(record), remedy(&self.reason));
        EndpointError::Data(format!(
            "{text}; {remedy}, or let `on_refused` skip such records or write them to a dead letter topic"
        ))
    }

    /// The pipeline stops because the dead letter topic does not take it either.
    pub(super) fn stops_dead(&self, record: &Record<'_>, dead: &str, why: &str) -> EndpointError {
        let text = self.text(record);
        EndpointError::Data(format!(
            "{text}; nor to the dead letter topic {dead}: {why}; {}",
            remedy(why)
        ))
    }
}

#[cfg(test)]
mod tests {
    use lockgate_core::{BatchBuilder, NewRecord, Partition};

    use super::*;

    #[test]
    fn a_text_names_places_and_a_remedy_but_no_value() {
        let partition = Partition { source: "in".into(), number: Some(3) };
        let mut builder = BatchBuilder::new(partition.into());
        builder
            .push(NewRecord { offset: 41, value: Some(b"hunter2"), ..NewRecord::default() })
            .unwrap();
        let batch = builder.build();
        let record = batch.iter().next().unwrap();
        let refused =
            Refused { topic: Some("out".into()), reason: reason(Code::MessageSizeTooLarge) };
        let text = refused.stops(&record).to_string();
        for part in
            ["in[3]", "offset 41", "topic out", "too large", "max.message.bytes", "on_refused"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
        let text = refused.stops_dead(&record, "dead", "it is too large").to_string();
        assert!(text.contains("dead letter topic dead"), "{text}");
    }

    #[test]
    fn answers_about_a_request_only_raise_a_suspicion() {
        assert_eq!(verdict(Code::MessageSizeTooLarge), Verdict::Suspected);
        assert_eq!(verdict(Code::UnknownTopic), Verdict::Refused);
        assert_eq!(verdict(Code::PurgeQueue), Verdict::Unrelated);
        assert_eq!(verdict(Code::InvalidDifferentRecord), Verdict::Unrelated);
        assert_eq!(verdict(Code::MessageTimedOut), Verdict::Unrelated);
    }
}
