//! The kind `kafka` as it will run.
//!
//! For what can be known without a broker. Deliberately not for what only the client library can judge: the names
//! of its properties and regular expressions are looked at when an endpoint is opened.

mod input;
mod output;

use std::collections::BTreeSet;

use super::super::choice::Delivery;
use super::super::error::{Fault, KeyPath, quoted};
use super::super::node::Value;
use super::super::raw::OneOrMore;
use super::{Checker, Input, InputKind, OutputKind, Pipeline};
pub(crate) use input::{KafkaInput, Mode, StartFrom, Topics};
pub(crate) use output::{KafkaOutput, OnRefused, Topic};

const LONGEST_TOPIC: usize = 249;

impl Pipeline {
    /// Whether exactly once comes from the output's transactions, which commit the offsets of the consumer groups
    /// that are read: then every input is a group and there is one output, of kind kafka.
    pub(crate) fn is_exactly_once_by_groups(&self) -> bool {
        self.delivery == Delivery::ExactlyOnce
            && self.inputs.iter().all(|input| group_input(input).is_some())
    }

    /// The brokers that are connected to, each list once, as in messages.
    pub(crate) fn brokers(&self) -> BTreeSet<String> {
        let read = self.inputs.iter().filter_map(|input| match &input.kind {
            InputKind::Kafka(kafka) => Some(kafka.brokers.join(",")),
            InputKind::File(_) | InputKind::Recording(_) => None,
        });
        let written = self.outputs.iter().filter_map(|output| match &output.kind {
            OutputKind::Kafka(kafka) => Some(kafka.brokers.join(",")),
            _ => None,
        });
        read.chain(written).collect()
    }
}

impl Checker<'_> {
    fn brokers(&self, path: &KeyPath, raw: &OneOrMore) -> Result<Vec<String>, Fault> {
        let mut brokers = Vec::new();
        for (index, text) in raw.0.iter().enumerate() {
            for broker in text.split(',').map(str::trim) {
                let path = path.index(index);
                if broker.contains("://") {
                    let message = "a broker is HOST:PORT, without a protocol before it; which one \
                        is spoken is said by security.protocol among the properties";
                    return self.fault(&path, message);
                }
                if !is_address(broker) {
                    let found = self.found(&path, broker);
                    let message =
                        format!("a broker is HOST:PORT, such as localhost:9092, found {found}");
                    return self.fault(&path, message);
                }
                brokers.push(broker.to_owned());
            }
        }
        if brokers.is_empty() {
            return self.fault(path, "at least one broker is needed");
        }
        Ok(brokers)
    }

    /// `part` of the text at `path` in words for a message, unless it came out of a variable.
    fn found(&self, path: &KeyPath, part: &str) -> String {
        let node = self.root.nearest(path);
        match &node.value {
            Value::Scalar(scalar) if scalar.variables.is_empty() => quoted(part),
            _ => node.found(),
        }
    }

    fn topic(&self, path: &KeyPath, name: &str) -> Result<(), Fault> {
        match topic_rule(name) {
            Ok(()) => Ok(()),
            Err(rule) => {
                let found = self.root.nearest(path).found();
                self.fault(path, format!("{rule}, found {found}"))
            }
        }
    }

    fn not_empty(&self, path: &KeyPath, name: &str) -> Result<(), Fault> {
        if name.trim().is_empty() {
            return self.fault(path, "must not be empty");
        }
        if name.contains('\0') {
            return self.fault(path, "must not hold a NUL character");
        }
        Ok(())
    }

    /// Steps of a group cannot be replayed. Its records are written once all the same where one transaction holds
    /// both them and the group's offsets.
    pub(super) fn groups(&self, pipeline: &Pipeline) -> Result<(), Fault> {
        if pipeline.delivery != Delivery::ExactlyOnce {
            return Ok(());
        }
        let endpoint = |group: &str, name: &str| KeyPath::root().key(group).key(name).key("kafka");
        let mut groups = pipeline
            .inputs
            .iter()
            .filter_map(|input| Some((endpoint("inputs", &input.name), group_input(input)?)))
            .peekable();
        let Some((first, _)) = groups.peek() else { return Ok(()) };
        let cannot = |needs: &str| {
            let message = format!(
                "the steps of a consumer group cannot be replayed, so exactly_once needs {needs}, for \
                 one transaction to hold the records and the groups' offsets; write \
                 \"delivery: at_least_once\", or \"mode: assign\""
            );
            self.fault(&first.key("mode"), message)
        };
        if !pipeline.is_exactly_once_by_groups() {
            return cannot("all inputs to be such groups");
        }
        let [output] = pipeline.outputs.as_slice() else {
            return cannot("exactly one output, of kind kafka");
        };
        let OutputKind::Kafka(written) = &output.kind else {
            return cannot("exactly one output, of kind kafka");
        };
        for (path, read) in groups {
            if !have_common_broker(&read.brokers, &written.brokers) {
                let message = format!(
                    "exactly_once needs {path} to be on the same cluster, for one transaction to hold \
                     the records and the group's offsets; name one of its brokers here too, or write \
                     \"delivery: at_least_once\""
                );
                return self.fault(&endpoint("outputs", &output.name).key("brokers"), message);
            }
        }
        Ok(())
    }

    /// No topic is both read and written. Patterns are not looked at: what they match is known to the client
    /// library alone.
    pub(super) fn distinct_topics(&self, pipeline: &Pipeline) -> Result<(), Fault> {
        for output in &pipeline.outputs {
            let OutputKind::Kafka(written) = &output.kind else { continue };
            let path = KeyPath::root().key("outputs").key(&output.name).key("kafka");
            for input in &pipeline.inputs {
                let InputKind::Kafka(read) = &input.kind else { continue };
                if !have_common_broker(&read.brokers, &written.brokers) {
                    continue;
                }
                let from = KeyPath::root().key("inputs").key(&input.name).key("kafka");
                if matches!(written.topic, Topic::OfRecord { header: None, .. }) {
                    let message = format!(
                        "\"from: source\" would write the records of {from} back to where they are \
                         read, for ever; write to other brokers, or to another topic"
                    );
                    return self.fault(&path.key("topic"), message);
                }
                let Topics::Names(names) = &read.topics else { continue };
                let fixed = match &written.topic {
                    Topic::Fixed(name) => Some((path.key("topic"), name)),
                    Topic::OfRecord { .. } => None,
                };
                let refused = match &written.on_refused {
                    OnRefused::DeadLetter(name) => {
                        Some((path.key("on_refused").key("dead_letter"), name))
                    }
                    _ => None,
                };
                for (path, name) in fixed.into_iter().chain(refused) {
                    if names.contains(name) {
                        let line = self.root.nearest(&from).key_position.line;
                        let message = format!(
                            "{from} (line {line}) reads the same topic, so that it would never \
                             end; write to another one"
                        );
                        return self.fault(&path, message);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The settings of an input that is a member of a group.
fn group_input(input: &Input) -> Option<&KafkaInput> {
    match &input.kind {
        InputKind::Kafka(kafka) if matches!(kafka.mode, Mode::Group { .. }) => Some(kafka),
        _ => None,
    }
}

/// Clusters that are named by different brokers cannot be told apart.
fn have_common_broker(one: &[String], other: &[String]) -> bool {
    one.iter().any(|broker| other.contains(broker))
}

/// Whether `text` is `HOST:PORT`; an IPv6 address as host stands in brackets.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = match bare {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
            !host.is_empty() && host.chars().all(allowed)
        }
    };
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    is_host && is_number && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Kafka's rule for the names of topics.
fn topic_rule(name: &str) -> Result<(), &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        Err("a topic's name must not be empty")
    } else if !name.chars().all(allowed) {
        Err("a topic's name has only letters (a to z, A to Z), digits, \"-\", \"_\" and \".\"")
    } else if name.len() > LONGEST_TOPIC {
        Err("a topic's name has at most 249 characters")
    } else if matches!(name, "." | "..") {
        Err("a topic's name must not be \".\" or \"..\"")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |text: &str, expected| assert_eq!(is_address(text), expected, "{text}");
        for address in ["localhost:9092", "10.0.0.1:1", "a-b_c.example:65535", "[::1]:9092"] {
            check(address, true);
        }
        for other in [
            "",
            "localhost",
            ":9092",
            "localhost:",
            "localhost:0",
            "a:65536",
            "a:+1",
            "::1:9092",
            "a b:1",
            "[x]:1",
            "a:1:2",
            "a/b:1",
        ] {
            check(other, false);
        }
    }

    #[test]
    fn topic_names() {
        let check = |name: &str, allowed| assert_eq!(topic_rule(name).is_ok(), allowed, "{name:?}");
        for name in ["a", "A-b_c.9", "...", &"x".repeat(249)] {
            check(name, true);
        }
        for name in ["", ".", "..", "a b", "a/b", "é", "^a", &"x".repeat(250)] {
            check(name, false);
        }
    }

    #[test]
    fn groups_are_exactly_once_by_the_transactions_of_one_output_or_not_at_all() {
        let check = |delivery: &str, output: &str, expected| {
            let text = format!(
                "name: x\ndelivery: {delivery}\ninputs:\n  \
                 a: {{kafka: {{brokers: 'h:1,i:1', topic: t, mode: group, group: g}}}}\n  \
                 b: {{kafka: {{brokers: 'h:1', topic: '^o', mode: group, group: g}}}}\n\
                 outputs: {{c: {output}}}"
            );
            let pipeline = crate::pipeline::parse(&text, std::path::Path::new("p.yaml"), &|_| None);
            let pipeline = pipeline.expect("valid");
            assert_eq!(pipeline.is_exactly_once_by_groups(), expected, "{text}");
        };
        check("exactly_once", "{kafka: {brokers: 'h:1', topic: c}}", true);
        check("at_least_once", "{kafka: {brokers: 'h:1', topic: c}}", false);
        check("at_least_once", "{file: {path: o}}", false);
    }
}
