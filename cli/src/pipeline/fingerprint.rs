//! The settings that decide what comes out, as a list to compare at the next start.
//!
//! For telling a changed pipeline and naming what changed. Deliberately without the settings that
//! only decide how fast it comes out, without the names and the order of the endpoints, which the state
//! directory compares by itself, and without that directory, which is where the list is kept. Paths stay as they are written, so that a directory can be moved as a whole.

use serde_json::Value;

use super::error::KeyPath;
use super::raw::RawPipeline;

/// The keys that only tune, wherever they stand. A new key is part of the fingerprint until it is
/// named here.
const TUNING: [&str; 10] = [
    "state",
    "checkpoint_interval",
    "min_batch_records",
    "max_buffering_delay",
    "max_batch_records",
    "stall_timeout",
    "on_stall",
    "shutdown_timeout",
    "max_queued_records",
    "max_queued_bytes",
];

/// Key paths and values, in the order of the key paths. None of them is a secret: only properties of a client
/// library hold any, and they are not among what Kafka inputs and outputs give here.
pub(crate) fn fingerprint(raw: &RawPipeline) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    // Only map keys that are not text could fail, and there are none.
    let value = serde_json::to_value(raw).unwrap_or_default();
    flatten(&KeyPath::root(), &value, &mut settings);
    settings.sort();
    settings
}

fn flatten(path: &KeyPath, value: &Value, settings: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(keys) if keys.is_empty() => {
            settings.push((path.to_string(), "{}".to_owned()))
        }
        Value::Object(keys) => {
            // Elsewhere than in these two depths keys are names, whatever they are called.
            let settings_here = matches!(path.steps().len(), 0 | 3);
            for (key, below) in keys {
                if !settings_here || !TUNING.contains(&key.as_str()) {
                    flatten(&path.key(key), below, settings);
                }
            }
        }
        Value::Array(elements) => {
            for (index, below) in elements.iter().enumerate() {
                flatten(&path.index(index), below, settings);
            }
        }
        Value::String(text) => settings.push((path.to_string(), text.clone())),
        other => settings.push((path.to_string(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::pipeline::parse;

    fn fingerprint(text: &str) -> String {
        let pipeline = parse(text, Path::new("conf/pipeline.yaml"), &|_| None).expect("valid");
        let lines: Vec<String> = pipeline
            .fingerprint()
            .iter()
            .map(|(path, value)| format!("{path} = {value}"))
            .collect();
        lines.join("\n")
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
    fn what_decides_the_output_is_listed() {
        insta::assert_snapshot!(fingerprint(PIPELINE), @r"
        delivery = at_least_once
        inputs.first.file.follow = true
        inputs.first.file.format = lines
        inputs.first.file.max_record_bytes = 1MiB
        inputs.first.file.overlong = truncate
        inputs.first.file.paths[0] = c.log
        inputs.first.file.start_at = beginning
        inputs.state.file.follow = false
        inputs.state.file.format = lines
        inputs.state.file.max_record_bytes = 2MiB
        inputs.state.file.overlong = truncate
        inputs.state.file.paths[0] = b.log
        inputs.state.file.paths[1] = a.log
        inputs.state.file.start_at = beginning
        name = x
        outputs.copy.file.compression = none
        outputs.copy.file.format = lines
        outputs.copy.file.path = out/{segment}
        outputs.copy.file.segment_records = 5
        outputs.gone.null = {}
        outputs.shown.stdout.format = lines
        ");
    }

    #[test]
    fn tuning_and_spelling_change_nothing() {
        let tuned = PIPELINE.replace(
            "delivery:",
            "state: elsewhere\ncheckpoint_interval: 1s\nmin_batch_records: 1\n\
             max_batch_records: 5\nmax_buffering_delay: 1s\nstall_timeout: 1s\n\
             on_stall: stop\nshutdown_timeout: 1s\ndelivery:",
        );
        let tuned = tuned.replace(
            "2048KiB",
            "2 MiB, max_queued_records: 3, max_queued_bytes: 2MiB, start_at: beginning",
        );
        assert_ne!(tuned, PIPELINE);
        assert_eq!(fingerprint(&tuned), fingerprint(PIPELINE));
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
    fn what_decides_what_is_read_from_and_written_to_kafka_is_listed() {
        insta::assert_snapshot!(fingerprint(KAFKA), @r#"
        delivery = exactly_once
        inputs.orders.kafka."isolation.level" = read_committed
        inputs.orders.kafka.mode = assign
        inputs.orders.kafka.start_from = earliest
        inputs.orders.kafka.topics[0] = orders
        inputs.some.kafka."isolation.level" = read_uncommitted
        inputs.some.kafka.mode = assign
        inputs.some.kafka.partitions[0] = 0
        inputs.some.kafka.partitions[1] = 1
        inputs.some.kafka.start_from.offsets.b.1 = 5
        inputs.some.kafka.topics[0] = a
        inputs.some.kafka.topics[1] = b
        name = x
        outputs.copy.kafka.headers = kept
        outputs.copy.kafka.key = kept
        outputs.copy.kafka.on_refused = stop
        outputs.copy.kafka.partition = by_key
        outputs.copy.kafka.timestamp = kept
        outputs.copy.kafka.topic = copy
        outputs.sent.kafka.headers = kept
        outputs.sent.kafka.key = kept
        outputs.sent.kafka.on_refused.dead_letter = dead
        outputs.sent.kafka.partition = by_key
        outputs.sent.kafka.timestamp = kept
        outputs.sent.kafka.topic.from = header
        outputs.sent.kafka.topic.name = to
        outputs.sent.kafka.topic.position_topic = sent
        "#);
        let group = "name: x\ndelivery: at_least_once\noutputs: {b: {null: }}\n\
                     inputs: {a: {kafka: {brokers: 'h:1', topic: '^o', mode: group, group: g, \
                     start_from: {timestamp: 1970-01-01T00:00:05Z}}}}";
        insta::assert_snapshot!(fingerprint(group), @r#"
        delivery = at_least_once
        inputs.a.kafka."isolation.level" = read_committed
        inputs.a.kafka.group = g
        inputs.a.kafka.mode = group
        inputs.a.kafka.start_from.timestamp = 5000
        inputs.a.kafka.topics[0] = ^o
        name = x
        outputs.b.null = {}
        "#);
    }

    #[test]
    fn brokers_secrets_tuning_and_spelling_of_kafka_change_nothing() {
        let tuned = KAFKA.replace("[orders]", "orders").replace("'h:1'", "[j:1, k:1]");
        let tuned = tuned.replace("[a, b]", "[b, a]").replace("[0, 1]", "[1, 0]");
        let tuned = tuned.replace(
            "{sasl.password: hunter2}",
            "{sasl.password: hunter3, isolation.level: read_committed}\n      stop_at: end\n      \
             group: lag\n      max_pending_records: 5\n      max_queued_records: 5\n      \
             max_queued_bytes: 5MiB\n      on_expired: continue\n      on_truncated: continue\n      \
             on_recreated: continue\n      on_vanished: continue\n      start_from: earliest",
        );
        let tuned = tuned.replace(
            "{brokers: 'i:1', topic: copy}",
            "{brokers: 'j:1', topic: copy, commit_interval: 1s, exactly_once: true, key: kept, \
             properties: {linger.ms: 5}}",
        );
        assert_ne!(tuned, KAFKA);
        assert_eq!(fingerprint(&tuned), fingerprint(KAFKA));
    }
}
