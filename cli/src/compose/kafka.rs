//! Kafka inputs and outputs from what was checked.

use lockgate_kafka_adapter as kafka;

use crate::pipeline as checked;

pub(super) fn input(input: &checked::KafkaInput) -> kafka::KafkaInputConfig {
    kafka::KafkaInputConfig {
        brokers: input.brokers.clone(),
        topics: match &input.topics {
            checked::Topics::Names(names) => kafka::TopicSelection::Names(names.clone()),
            checked::Topics::Pattern(pattern) => kafka::TopicSelection::Pattern(pattern.clone()),
        },
        mode: match &input.mode {
            checked::Mode::Assign { partitions, offsets_group } => kafka::ReadMode::Assign {
                partitions: partitions.clone(),
                offsets_group: offsets_group.clone(),
            },
            checked::Mode::Group { id, protocol, instance_id } => {
                kafka::ReadMode::Group(kafka::GroupConfig {
                    id: id.clone(),
                    protocol: match protocol {
                        checked::GroupProtocol::CooperativeSticky => {
                            kafka::GroupProtocol::CooperativeSticky
                        }
                        checked::GroupProtocol::Eager => kafka::GroupProtocol::Eager,
                        checked::GroupProtocol::Consumer => kafka::GroupProtocol::Consumer,
                    },
                    instance_id: instance_id.clone(),
                })
            }
        },
        start_from: match &input.start_from {
            checked::StartFrom::Earliest => kafka::StartFrom::Earliest,
            checked::StartFrom::Latest => kafka::StartFrom::Latest,
            checked::StartFrom::Timestamp(ms) => kafka::StartFrom::Timestamp(*ms),
            checked::StartFrom::Offsets(offsets) => kafka::StartFrom::Offsets(offsets.clone()),
        },
        stop_at: input.stop_at.map(|checked::StopAt::End| kafka::StopAt::End),
        max_pending_records: input.max_pending_records,
        on_expired: on_gone(input.on_expired),
        on_truncated: on_gone(input.on_truncated),
        on_recreated: on_gone(input.on_recreated),
        on_vanished: on_gone(input.on_vanished),
        properties: input.properties.reveal().clone(),
    }
}

fn on_gone(choice: checked::OnGone) -> kafka::OnGone {
    match choice {
        checked::OnGone::Refuse => kafka::OnGone::Refuse,
        checked::OnGone::Continue => kafka::OnGone::Continue,
    }
}

/// `id` is unlike that of any other output of any pipeline.
pub(super) fn output(output: &checked::KafkaOutput, id: String) -> kafka::KafkaOutputConfig {
    kafka::KafkaOutputConfig {
        brokers: output.brokers.clone(),
        id,
        topic: match &output.topic {
            checked::Topic::Fixed(name) => kafka::TopicChoice::Fixed(name.clone()),
            checked::Topic::OfRecord { header, position_topic } => kafka::TopicChoice::FromRecord {
                header: header.clone(),
                position_topic: position_topic.clone(),
            },
        },
        partition: match output.partition {
            checked::PartitionChoice::ByKey => kafka::PartitionChoice::ByKey,
            checked::PartitionChoice::Kept => kafka::PartitionChoice::Kept,
        },
        timestamp: match output.timestamp {
            checked::TimestampChoice::Kept => kafka::TimestampChoice::Kept,
            checked::TimestampChoice::Now => kafka::TimestampChoice::Now,
        },
        key: kept(output.key),
        headers: kept(output.headers),
        on_refused: match &output.on_refused {
            checked::OnRefused::Stop => kafka::OnRefused::Stop,
            checked::OnRefused::Skip => kafka::OnRefused::Skip,
            checked::OnRefused::DeadLetter(topic) => kafka::OnRefused::DeadLetter(topic.clone()),
        },
        exactly_once: output.exactly_once,
        commit_interval: output.commit_interval,
        properties: output.properties.reveal().clone(),
    }
}

fn kept(choice: checked::Kept) -> kafka::Kept {
    match choice {
        checked::Kept::Kept => kafka::Kept::Kept,
        checked::Kept::Dropped => kafka::Kept::Dropped,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn pipeline(text: &str) -> checked::Pipeline {
        checked::parse(text, Path::new("pipeline.yaml"), &|_| None).expect("valid")
    }

    fn of_input(settings: &str) -> kafka::KafkaInputConfig {
        let pipeline = pipeline(&format!(
            "name: x\ninputs: {{a: {{kafka: {{brokers: 'h:1, i:2', {settings}}}}}}}\n\
             delivery: at_least_once\noutputs: {{b: {{null: }}}}"
        ));
        match &pipeline.inputs[0].kind {
            checked::InputKind::Kafka(settings) => input(settings),
            other => panic!("not Kafka: {other:?}"),
        }
    }

    fn of_output(settings: &str) -> kafka::KafkaOutputConfig {
        let pipeline = pipeline(&format!(
            "name: x\ninputs: {{a: {{file: {{paths: i}}}}}}\n\
             outputs: {{b: {{kafka: {{brokers: 'h:1', {settings}}}}}}}"
        ));
        match &pipeline.outputs[0].kind {
            checked::OutputKind::Kafka(settings) => output(settings, "id".into()),
            other => panic!("not Kafka: {other:?}"),
        }
    }

    fn names(names: &[&str]) -> kafka::TopicSelection {
        kafka::TopicSelection::Names(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// The defaults of the pipeline file are those of the adapter.
    #[test]
    fn what_is_left_out_has_the_defaults_of_the_adapter() {
        let brokers = vec!["h:1".to_owned(), "i:2".to_owned()];
        let expected = kafka::KafkaInputConfig::new(brokers, names(&["t"]));
        assert_eq!(of_input("topic: t"), expected);
        assert_eq!(of_input("topics: [t]"), expected);
        let topic = kafka::TopicChoice::Fixed("t".into());
        let expected = kafka::KafkaOutputConfig::new(vec!["h:1".into()], "id", topic);
        assert_eq!(of_output("topic: t"), expected);
    }

    #[test]
    fn every_setting_of_an_input_arrives() {
        let mut expected =
            kafka::KafkaInputConfig::new(vec!["h:1".into(), "i:2".into()], names(&["t", "u"]));
        expected.mode = kafka::ReadMode::Assign {
            partitions: Some(vec![0, 7]),
            offsets_group: Some("lag".into()),
        };
        expected.start_from =
            kafka::StartFrom::Offsets([("u".to_owned(), [(7, 12)].into())].into());
        expected.stop_at = Some(kafka::StopAt::End);
        expected.max_pending_records = std::num::NonZeroU32::MIN;
        expected.on_expired = kafka::OnGone::Continue;
        expected.properties =
            [("acks", "-1"), ("linger.ms", "0.5"), ("enable.x", "true"), ("fetch.min.bytes", "1")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        let found = of_input(
            "topics: [t, u], partitions: [7, 0], group: lag, start_from: {offsets: {u: {7: 12}}}, \
             stop_at: end, max_pending_records: 1, on_expired: continue, properties: {acks: -1, \
             linger.ms: 0.5, enable.x: true, fetch.min.bytes: 1}",
        );
        assert_eq!(found, expected);

        for (key, policy) in [
            ("on_truncated", (|config| config.on_truncated) as fn(&kafka::KafkaInputConfig) -> _),
            ("on_recreated", |config| config.on_recreated),
            ("on_vanished", |config| config.on_vanished),
        ] {
            let config = of_input(&format!("topic: t, {key}: continue"));
            assert_eq!(policy(&config), kafka::OnGone::Continue, "{key}");
        }
    }

    #[test]
    fn groups_patterns_and_times_arrive() {
        for (word, protocol) in [
            ("cooperative_sticky", kafka::GroupProtocol::CooperativeSticky),
            ("eager", kafka::GroupProtocol::Eager),
            ("consumer", kafka::GroupProtocol::Consumer),
        ] {
            let config = of_input(&format!(
                "topic: '^o.*', mode: group, group: g, group_protocol: {word}, group_instance_id: w1"
            ));
            let group =
                kafka::GroupConfig { id: "g".into(), protocol, instance_id: Some("w1".into()) };
            assert_eq!(config.mode, kafka::ReadMode::Group(group));
            assert_eq!(config.topics, kafka::TopicSelection::Pattern("^o.*".into()));
        }
        for (typed, expected) in [
            ("latest", kafka::StartFrom::Latest),
            ("{timestamp: 2026-01-31T12:00:00Z}", kafka::StartFrom::Timestamp(1_769_860_800_000)),
            ("{timestamp: '2026-01-31 12:00:00'}", kafka::StartFrom::Timestamp(1_769_860_800_000)),
            ("{timestamp: 5}", kafka::StartFrom::Timestamp(5)),
        ] {
            assert_eq!(of_input(&format!("topic: t, start_from: {typed}")).start_from, expected);
        }
    }

    #[test]
    fn every_setting_of_an_output_arrives() {
        let topic = kafka::TopicChoice::FromRecord {
            header: Some("to".into()),
            position_topic: Some("p".into()),
        };
        let mut expected = kafka::KafkaOutputConfig::new(vec!["h:1".into()], "id", topic);
        expected.partition = kafka::PartitionChoice::Kept;
        expected.timestamp = kafka::TimestampChoice::Now;
        expected.key = kafka::Kept::Dropped;
        expected.headers = kafka::Kept::Dropped;
        expected.on_refused = kafka::OnRefused::DeadLetter("dead".into());
        expected.commit_interval = std::time::Duration::from_secs(1);
        expected.properties = [("linger.ms".to_owned(), "5".to_owned())].into();
        let found = of_output(
            "topic: {from: header, name: to, position_topic: p}, partition: kept, timestamp: now, \
             key: dropped, headers: dropped, on_refused: {dead_letter: dead}, exactly_once: true, \
             commit_interval: 1s, properties: {linger.ms: 5}",
        );
        assert_eq!(found, expected);
        let found = of_output("topic: {from: source, position_topic: p}, on_refused: skip");
        assert_eq!(found.on_refused, kafka::OnRefused::Skip);
        let topic =
            kafka::TopicChoice::FromRecord { header: None, position_topic: Some("p".into()) };
        assert_eq!(found.topic, topic);
    }
}
