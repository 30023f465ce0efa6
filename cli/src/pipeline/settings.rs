//! The options of a pipeline as a list, to compare with another one: that of the last run, or of a new file.
//!
//! For naming what changed, each with the [class](super::class) of such a change. Paths stay as they are written, so
//! that a directory can be moved as a whole, and in whatever order topics are named, the same is read. Deliberately
//! without what is a secret in the list that is stored: see [`Setting::stored`].

use serde_json::Value;

use super::checked::{InputKind, OutputKind, Pipeline};
use super::class::{Class, Rule, rule};
use super::error::{KeyPath, Step};
use super::node::{self, Node};
use super::raw::{self, RawPipeline};

/// What stands in messages for the value of a secret.
const HIDDEN: &str = "***";

/// The options that the state directory is not told: where it is, and what only a running pipeline compares.
const NOT_STORED: [&str; 2] = ["state", "control.token"];

/// One value of the pipeline file.
#[derive(Clone)]
pub(crate) struct Setting {
    /// Its place, as it reads in the file.
    pub(crate) path: KeyPath,
    /// What it is set to. May be a secret.
    value: String,
    /// What is shown in place of the value, if it may be a secret.
    shown: Option<String>,
    /// What a change of it does, and why.
    pub(crate) rule: &'static Rule,
}

impl Setting {
    fn open(path: &KeyPath, value: String) -> Self {
        let rule = rule(path.steps());
        let path = match path.steps().get(3) {
            Some(Step::Key(key)) if key == raw::LAG_GROUP => path.top(3).key("group"),
            _ => path.clone(),
        };
        Self { path, value, shown: None, rule }
    }

    fn secret(path: KeyPath, value: &str) -> Self {
        let (value, shown) = (value.to_owned(), Some(HIDDEN.to_owned()));
        Self { rule: rule(path.steps()), path, value, shown }
    }

    /// Whether it is set to the same as `other`.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.value == other.value
    }

    /// The value for a message.
    pub(crate) fn shown(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.value)
    }

    /// The value for the state directory, if it is to be there. What resets positions has to be known; of the rest
    /// nothing is stored that may be a secret.
    pub(crate) fn stored(&self) -> Option<&str> {
        let path = self.path.to_string();
        match self.rule.class {
            _ if NOT_STORED.contains(&path.as_str()) => None,
            Class::ResetsPosition => Some(&self.value),
            _ => Some(self.shown()),
        }
    }
}

/// Without what may be a secret.
impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {} ({})", self.path, self.shown(), self.rule.class.name())
    }
}

/// The values of `raw`, which was read from `root`, in the order of their paths. Those that are secrets in any case
/// are not among them: [`secrets`] adds them.
pub(crate) fn settings(raw: &RawPipeline, root: &Node) -> Vec<Setting> {
    let mut settings = Vec::new();
    // Only map keys that are not text could fail, and there are none.
    let value = serde_json::to_value(raw).unwrap_or_default();
    flatten(&KeyPath::root(), &value, &mut settings);
    for setting in &mut settings {
        setting.shown = from_variables(root, &setting.path);
    }
    settings.sort_by_cached_key(|setting| setting.path.to_string());
    settings
}

/// The secrets of a checked pipeline: values of properties, and the token.
pub(crate) fn secrets(pipeline: &Pipeline) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut add = |group: &str, name: &str, properties: &super::checked::Properties| {
        let path = KeyPath::root().key(group).key(name).key("kafka").key("properties");
        for (name, value) in properties.reveal() {
            // It decides what is read, and is among the others for that.
            if group != "inputs" || name != raw::ISOLATION_LEVEL {
                settings.push(Setting::secret(path.key(name), value));
            }
        }
    };
    for input in &pipeline.inputs {
        if let InputKind::Kafka(kafka) = &input.kind {
            add("inputs", &input.name, &kafka.properties);
        }
    }
    for output in &pipeline.outputs {
        if let OutputKind::Kafka(kafka) = &output.kind {
            add("outputs", &output.name, &kafka.properties);
        }
    }
    let token = pipeline.control.as_ref().and_then(|control| control.token.as_ref());
    let path = KeyPath::root().key("control").key("token");
    settings.extend(token.map(|token| Setting::secret(path, token.reveal())));
    settings
}

fn flatten(path: &KeyPath, value: &Value, settings: &mut Vec<Setting>) {
    let mut add = |value: String| settings.push(Setting::open(path, value));
    match value {
        Value::Null => {}
        Value::Object(keys) if keys.is_empty() => {
            // Empty is what an endpoint can be; elsewhere it is as good as left out.
            if path.steps().len() == 3 {
                add("{}".to_owned());
            }
        }
        Value::Object(keys) => {
            for (key, below) in keys {
                flatten(&path.key(key), below, settings);
            }
        }
        Value::Array(elements) => {
            for (index, below) in elements.iter().enumerate() {
                flatten(&path.index(index), below, settings);
            }
        }
        Value::String(text) => add(text.clone()),
        other => add(other.to_string()),
    }
}

/// What is shown in place of the value at `path`, if environment variables went into it.
fn from_variables(root: &Node, path: &KeyPath) -> Option<String> {
    let endpoint = path.top(3);
    let places = match path.steps().get(3) {
        // In whatever order they are written, and under either key.
        Some(Step::Key(key)) if key == "topics" => vec![endpoint.key("topic"), endpoint.key(key)],
        _ => vec![path.clone()],
    };
    let of_scalar = |node: &Node| match &node.value {
        node::Value::Scalar(scalar) if !scalar.variables.is_empty() => Some(node.found()),
        _ => None,
    };
    places.iter().find_map(|place| match root.nearest(place) {
        Node { value: node::Value::List(elements), .. } => elements.iter().find_map(of_scalar),
        node => of_scalar(node),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::pipeline::parse;

    /// What the state directory is told of changes of this class.
    fn stored(text: &str, class: Class) -> String {
        let pipeline = parse(text, Path::new("conf/pipeline.yaml"), &|_| None).expect("valid");
        let stored = pipeline.settings().iter().filter(|setting| setting.rule.class == class);
        let line = |setting: &Setting| Some(format!("{} = {}", setting.path, setting.stored()?));
        let lines: Vec<String> = stored.filter_map(line).collect();
        lines.join("\n")
    }

    /// All of it.
    fn all(text: &str) -> String {
        let classes = [
            Class::Live,
            Class::KeepsPosition,
            Class::KeepsPositionAfterStop,
            Class::ResetsPosition,
        ];
        classes.map(|class| format!("{class:?}:\n{}\n", stored(text, class))).concat()
    }

    const PIPELINE: &str = "
name: x
delivery: at_least_once
inputs:
  state: {file: {paths: [b.log, a.log], max_record_bytes: 2048KiB}}
  first: {file: {paths: c.log, follow: true}}
outputs:
  copy: {file: {path: 'out/{segment}', segment_records: 5}}
  shown: {stdout: }
  gone: {null: }
";

    #[test]
    fn every_option_is_listed_by_class() {
        insta::assert_snapshot!(all(PIPELINE), @"
        Live:
        checkpoint_interval = 10s
        inputs.first.file.max_queued_records = 1000000
        inputs.state.file.max_queued_records = 1000000
        log.format = text
        log.level = info
        max_buffering_delay = 5ms
        on_stall = wait
        shutdown_timeout = 30s
        stall_timeout = 1m
        KeepsPosition:
        inputs.first.file.follow = true
        inputs.first.file.start_at = beginning
        inputs.state.file.follow = false
        inputs.state.file.start_at = beginning
        outputs.copy.file.compression = none
        outputs.copy.file.segment_records = 5
        outputs.shown.stdout.format = lines
        KeepsPositionAfterStop:
        inputs.first.file.overlong = truncate
        inputs.state.file.overlong = truncate
        outputs.copy.file.format = lines
        ResetsPosition:
        delivery = at_least_once
        inputs.first.file.format = lines
        inputs.first.file.max_record_bytes = 1MiB
        inputs.first.file.paths[0] = c.log
        inputs.state.file.format = lines
        inputs.state.file.max_record_bytes = 2MiB
        inputs.state.file.paths[0] = b.log
        inputs.state.file.paths[1] = a.log
        name = x
        outputs.copy.file.path = out/{segment}
        outputs.gone.null = {}
        ");
    }

    #[test]
    fn what_does_not_reset_positions_and_spelling_are_not_among_what_does() {
        let tuned = PIPELINE.replace(
            "delivery:",
            "state: elsewhere\ncheckpoint_interval: 1s\nmin_batch_records: 1\n\
             max_batch_records: 5\nmax_buffering_delay: 1s\nstall_timeout: 1s\n\
             on_stall: stop\nshutdown_timeout: 1s\nlog: {level: debug}\n\
             control: {listen: 'localhost:1', tls: {certificate: c, key: k}}\ndelivery:",
        );
        let tuned = tuned.replace(
            "2048KiB",
            "2 MiB, max_queued_records: 3, max_queued_bytes: 2MiB, start_at: end, follow: true, \
             overlong: stop, max_records_per_second: 1",
        );
        let tuned = tuned.replace("segment_records: 5", "segment_bytes: 5, compression: zstd");
        assert_ne!(tuned, PIPELINE);
        let of = |text| stored(text, Class::ResetsPosition);
        assert_eq!(of(&tuned), of(PIPELINE));
    }

    const KAFKA: &str = "
name: x
inputs:
  orders:
    kafka:
      brokers: 'h:1'
      topics: [orders]
      properties: {sasl.password: hunter2}
  some:
    kafka:
      brokers: 'h:1'
      topics: [a, b]
      partitions: [0, 1]
      start_from: {offsets: {b: {1: 5}}}
      properties: {isolation.level: read_uncommitted}
outputs:
  copy:
    kafka: {brokers: 'i:1', topic: copy}
  sent:
    kafka:
      brokers: 'i:1'
      topic: {from: header, name: to, position_topic: sent}
      on_refused: {dead_letter: dead}
";

    #[test]
    fn every_option_of_kafka_is_listed_by_class_and_no_secret() {
        insta::assert_snapshot!(all(KAFKA), @r#"
        Live:
        checkpoint_interval = 10s
        inputs.orders.kafka.max_pending_records = 10000
        inputs.orders.kafka.max_queued_bytes = 16MiB
        inputs.orders.kafka.max_queued_records = 1000000
        inputs.some.kafka.max_pending_records = 10000
        inputs.some.kafka.max_queued_bytes = 16MiB
        inputs.some.kafka.max_queued_records = 1000000
        log.format = text
        log.level = info
        max_buffering_delay = 5ms
        on_stall = wait
        shutdown_timeout = 30s
        stall_timeout = 1m
        KeepsPosition:
        inputs.orders.kafka.brokers[0] = h:1
        inputs.orders.kafka.on_expired = refuse
        inputs.orders.kafka.on_recreated = refuse
        inputs.orders.kafka.on_truncated = refuse
        inputs.orders.kafka.on_vanished = refuse
        inputs.orders.kafka.properties."sasl.password" = ***
        inputs.orders.kafka.start_from = earliest
        inputs.some.kafka.brokers[0] = h:1
        inputs.some.kafka.on_expired = refuse
        inputs.some.kafka.on_recreated = refuse
        inputs.some.kafka.on_truncated = refuse
        inputs.some.kafka.on_vanished = refuse
        inputs.some.kafka.start_from.offsets.b.1 = 5
        outputs.copy.kafka.brokers[0] = i:1
        outputs.copy.kafka.commit_interval = 100ms
        outputs.copy.kafka.headers = kept
        outputs.copy.kafka.key = kept
        outputs.copy.kafka.on_refused = stop
        outputs.copy.kafka.timestamp = kept
        outputs.sent.kafka.brokers[0] = i:1
        outputs.sent.kafka.commit_interval = 100ms
        outputs.sent.kafka.headers = kept
        outputs.sent.kafka.key = kept
        outputs.sent.kafka.on_refused.dead_letter = dead
        outputs.sent.kafka.timestamp = kept
        KeepsPositionAfterStop:

        ResetsPosition:
        delivery = exactly_once
        inputs.orders.kafka."isolation.level" = read_committed
        inputs.orders.kafka.mode = assign
        inputs.orders.kafka.topics[0] = orders
        inputs.some.kafka."isolation.level" = read_uncommitted
        inputs.some.kafka.mode = assign
        inputs.some.kafka.partitions[0] = 0
        inputs.some.kafka.partitions[1] = 1
        inputs.some.kafka.topics[0] = a
        inputs.some.kafka.topics[1] = b
        name = x
        outputs.copy.kafka.partition = by_key
        outputs.copy.kafka.topic = copy
        outputs.sent.kafka.partition = by_key
        outputs.sent.kafka.topic.from = header
        outputs.sent.kafka.topic.name = to
        outputs.sent.kafka.topic.position_topic = sent
        "#);
        let group = "name: x\ndelivery: at_least_once\noutputs: {b: {null: }}\n\
                     inputs: {a: {kafka: {brokers: 'h:1', topic: '^o', mode: group, group: g, \
                     start_from: {timestamp: 1970-01-01T00:00:05Z}}}}";
        insta::assert_snapshot!(stored(group, Class::ResetsPosition), @r#"
        delivery = at_least_once
        inputs.a.kafka."isolation.level" = read_committed
        inputs.a.kafka.group = g
        inputs.a.kafka.mode = group
        inputs.a.kafka.topics[0] = ^o
        name = x
        outputs.b.null = {}
        "#);
    }

    #[test]
    fn brokers_secrets_tuning_and_spelling_of_kafka_do_not_reset_positions() {
        let tuned = KAFKA.replace("[orders]", "orders").replace("'h:1'", "[j:1, k:1]");
        let tuned = tuned.replace("[a, b]", "[b, a]").replace("[0, 1]", "[1, 0]");
        let tuned = tuned.replace(
            "{sasl.password: hunter2}",
            "{sasl.password: hunter3, isolation.level: read_committed}\n      stop_at: end\n      \
             group: lag\n      max_pending_records: 5\n      max_queued_records: 5\n      \
             max_queued_bytes: 5MiB\n      on_expired: continue\n      on_truncated: continue\n      \
             on_recreated: continue\n      on_vanished: continue\n      start_from: latest",
        );
        let tuned = tuned.replace(
            "{brokers: 'i:1', topic: copy}",
            "{brokers: 'j:1', topic: copy, commit_interval: 1s, exactly_once: true, key: dropped, \
             headers: dropped, timestamp: now, on_refused: skip, properties: {linger.ms: 5}}",
        );
        assert_ne!(tuned, KAFKA);
        let of = |text| stored(text, Class::ResetsPosition);
        assert_eq!(of(&tuned), of(KAFKA));
        assert!(!all(&tuned).contains("hunter"));
    }

    /// What resets positions has to be known at the next start; the rest is not worth keeping what may be a secret.
    #[test]
    fn values_from_variables_are_stored_where_positions_depend_on_them_only() {
        let text = "name: x\ninputs: {a: {kafka: {brokers: 'h:1,${SECRET}:1', topics: ['${SECRET}'], \
                    group: '${SECRET}', stop_at: end}}}\noutputs: {b: {null: }}";
        let environment = |_: &str| Some("canary".into());
        let pipeline = parse(text, Path::new("p.yaml"), &environment).expect("valid");
        let stored: Vec<String> = (pipeline.settings().iter())
            .filter(|setting| setting.stored().is_some_and(|value| value.contains("canary")))
            .map(|setting| setting.path.to_string())
            .collect();
        assert_eq!(stored, ["inputs.a.kafka.topics[0]"]);
        assert!(!format!("{:?}", pipeline.settings()).contains("canary"));
    }
}
