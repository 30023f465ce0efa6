//! Every error text of the pipeline file, as a person sees it.
//!
//! For reading them in one place, and for the faults L1, L3 and L6 of the fault list. Deliberately
//! without the texts of `${...}`, which stand beside [`expand`](super::expand).

use std::ffi::OsString;
use std::path::Path;

use proptest::prelude::*;

use super::{PipelineError, load, parse};

/// Stands in the environment as `SECRET`; no error may hold it, nor its first half.
const CANARY: &str = "c4nary-9f3e";

fn environment(name: &str) -> Option<OsString> {
    (name == "SECRET").then(|| OsString::from(CANARY))
}

/// The error of a file with this text.
fn error(text: &str) -> String {
    match parse(text, Path::new("pipeline.yaml"), &environment) {
        Ok(pipeline) => panic!("accepted: {pipeline:?}"),
        Err(error) => error.to_string(),
    }
}

/// The error of an otherwise valid file with these lines at its top level.
fn error_with(settings: &str) -> String {
    error(&format!(
        "name: x\n{settings}\ninputs: {{a: {{file: {{paths: i}}}}}}\noutputs: {{b: {{null: }}}}"
    ))
}

/// The error of an otherwise valid file with these settings of a file input on line 4.
fn error_with_input(settings: &str) -> String {
    error(&format!("name: x\ninputs:\n  a:\n    file: {settings}\noutputs: {{b: {{null: }}}}"))
}

/// The error of an otherwise valid file with these outputs from line 3 on.
fn error_with_outputs(outputs: &str) -> String {
    error(&format!("name: x\ninputs: {{a: {{file: {{paths: i}}}}}}\n{outputs}"))
}

/// Story (L6): a misspelt key was ignored, and the pipeline ran with the default.
#[test]
fn unknown_keys() {
    insta::assert_snapshot!(error_with("checkpoint_intervall: 1s"), @r#"pipeline.yaml:2:1: unknown key "checkpoint_intervall"; did you mean "checkpoint_interval"? known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout, control, log"#);
    insta::assert_snapshot!(error_with("checkpointInterval: 1s"), @r#"pipeline.yaml:2:1: unknown key "checkpointInterval"; did you mean "checkpoint_interval"? known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout, control, log"#);
    insta::assert_snapshot!(error_with("colour: red"), @r#"pipeline.yaml:2:1: unknown key "colour"; known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout, control, log"#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  orders:\n    fiel:\n      paths: i\n"), @r#"pipeline.yaml:4:5: inputs.orders: unknown kind "fiel"; did you mean "file"? known kinds: file, kafka, recording"#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  orders:\n    kafak: {}\n"), @r#"pipeline.yaml:4:5: inputs.orders: unknown kind "kafak"; did you mean "kafka"? known kinds: file, kafka, recording"#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  orders:\n    file:\n      pathes: i\n"), @r#"pipeline.yaml:5:7: inputs.orders.file: unknown key "pathes"; did you mean "paths"? known keys: paths, format, max_record_bytes, overlong, follow, start_at, max_queued_records, max_queued_bytes, start_after, max_records_per_second"#);
    insta::assert_snapshot!(error_with_input("{paths: i, folow: true}"), @r#"pipeline.yaml:4:22: inputs.a.file: unknown key "folow"; did you mean "follow"? known keys: paths, format, max_record_bytes, overlong, follow, start_at, max_queued_records, max_queued_bytes, start_after, max_records_per_second"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    flie: {path: o}\n"), @r#"pipeline.yaml:5:5: outputs.b: unknown kind "flie"; did you mean "file"? known kinds: file, kafka, stdout, null"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: o, compresion: gzip}\n"), @r#"pipeline.yaml:5:21: outputs.b.file: unknown key "compresion"; did you mean "compression"? known keys: path, format, segment_bytes, segment_records, compression"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    stdout: {formt: json}\n"), @r#"pipeline.yaml:5:14: outputs.b.stdout: unknown key "formt"; did you mean "format"? known keys: format"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    null:\n      path: o\n"), @r#"pipeline.yaml:6:7: outputs.b.null: unknown key "path"; there are no keys here"#);
    insta::assert_snapshot!(error_with("\"a\\nb\\e[31m\": 1"), @r#"pipeline.yaml:2:1: unknown key "a\nb\u{1b}[31m"; known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout, control, log"#);
}

#[test]
fn unknown_words() {
    insta::assert_snapshot!(error_with("delivery: exactly-once"), @r#"pipeline.yaml:2:11: delivery: unknown value "exactly-once"; did you mean "exactly_once"? known values: exactly_once, at_least_once, none"#);
    insta::assert_snapshot!(error_with("delivery: perhaps"), @r#"pipeline.yaml:2:11: delivery: unknown value "perhaps"; known values: exactly_once, at_least_once, none"#);
    insta::assert_snapshot!(error_with("on_stall: panic"), @r#"pipeline.yaml:2:11: on_stall: unknown value "panic"; known values: wait, stop"#);
    insta::assert_snapshot!(error_with_input("{paths: i, format: line}"), @r#"pipeline.yaml:4:30: inputs.a.file.format: unknown value "line"; did you mean "lines"? known values: lines, length_delimited"#);
    insta::assert_snapshot!(error_with_input("{paths: i, overlong: drop}"), @r#"pipeline.yaml:4:32: inputs.a.file.overlong: unknown value "drop"; known values: truncate, skip, stop"#);
    insta::assert_snapshot!(error_with_input("{paths: i, start_at: start}"), @r#"pipeline.yaml:4:32: inputs.a.file.start_at: unknown value "start"; known values: beginning, end"#);
    insta::assert_snapshot!(error_with_outputs("outputs: {b: {file: {path: o, compression: zip}}}"), @r#"pipeline.yaml:3:44: outputs.b.file.compression: unknown value "zip"; did you mean "gzip"? known values: none, gzip, zstd"#);
}

#[test]
fn missing_values() {
    insta::assert_snapshot!(error(""), @r#"pipeline.yaml:1:1: the file is empty; a pipeline has at least the keys name, inputs and outputs ("lockgate init" writes one to start from)"#);
    insta::assert_snapshot!(error("# only a comment\n"), @r#"pipeline.yaml:1:1: the file is empty; a pipeline has at least the keys name, inputs and outputs ("lockgate init" writes one to start from)"#);
    insta::assert_snapshot!(error("---\n"), @r#"pipeline.yaml:1:1: the file is empty; a pipeline has at least the keys name, inputs and outputs ("lockgate init" writes one to start from)"#);
    insta::assert_snapshot!(error("{}"), @r#"pipeline.yaml:1:1: missing key "name""#);
    insta::assert_snapshot!(error("\n# orders\nname: x\n"), @r#"pipeline.yaml:3:1: missing key "inputs""#);
    insta::assert_snapshot!(error("name: x\ninputs: {a: {file: {paths: i}}}\n"), @r#"pipeline.yaml:1:1: missing key "outputs""#);
    insta::assert_snapshot!(error("name:\ninputs: {}"), @"pipeline.yaml:1:1: name: expected a string, found nothing");
    insta::assert_snapshot!(error("name: x\ninputs:\noutputs:\n"), @"pipeline.yaml:2:1: inputs: expected a mapping, found nothing");
    insta::assert_snapshot!(error("name: x\ninputs: {}\noutputs: {}\n"), @"pipeline.yaml:2:9: inputs: at least one endpoint is needed");
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n"), @"pipeline.yaml:3:3: inputs.a: expected a mapping with one key, the kind (file, kafka or recording), found nothing");
    insta::assert_snapshot!(error("name: x\ninputs:\n  a: {}\n"), @"pipeline.yaml:3:6: inputs.a: no kind is given; exactly one key is expected, the kind (file, kafka or recording)");
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    file:\n"), @r#"pipeline.yaml:4:5: inputs.a.file: missing key "paths""#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    file:\n      follow: true\n"), @r#"pipeline.yaml:4:5: inputs.a.file: missing key "paths""#);
    insta::assert_snapshot!(error_with_input("{paths: }"), @"pipeline.yaml:4:12: inputs.a.file.paths: expected a string or a list of strings, found nothing");
    insta::assert_snapshot!(error_with_input("{paths: []}"), @"pipeline.yaml:4:19: inputs.a.file.paths: at least one path is needed");
    insta::assert_snapshot!(error_with_input("{paths: [i, '']}"), @"pipeline.yaml:4:23: inputs.a.file.paths[1]: a path must not be empty");
    insta::assert_snapshot!(error_with_outputs("outputs: {}"), @"pipeline.yaml:3:10: outputs: at least one endpoint is needed");
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file:\n      format: json\n"), @r#"pipeline.yaml:5:5: outputs.b.file: missing key "path""#);
    insta::assert_snapshot!(error_with("checkpoint_interval:"), @"pipeline.yaml:2:1: checkpoint_interval: expected a duration such as 250ms, 10s, 1m30s or 2h, found nothing");
    insta::assert_snapshot!(error_with("delivery:"), @"pipeline.yaml:2:1: delivery: expected exactly_once, at_least_once or none, found nothing");
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(error("just text"), @r#"pipeline.yaml:1:1: expected a mapping, found the string "just text""#);
    insta::assert_snapshot!(error("- a\n- b\n"), @"pipeline.yaml:1:1: expected a mapping, found a list");
    insta::assert_snapshot!(error("name: 5\n"), @"pipeline.yaml:1:7: name: expected a string, found the number 5; in quotes it is a string");
    insta::assert_snapshot!(error("name: true\n"), @"pipeline.yaml:1:7: name: expected a string, found true");
    insta::assert_snapshot!(error("name: [x]\n"), @"pipeline.yaml:1:7: name: expected a string, found a list");
    insta::assert_snapshot!(error("name: x\ninputs: [a]\n"), @"pipeline.yaml:2:9: inputs: expected a mapping, found a list");
    insta::assert_snapshot!(error("name: x\ninputs:\n  a: file\n"), @r#"pipeline.yaml:3:6: inputs.a: expected a mapping with one key, the kind (file, kafka or recording), found the string "file""#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    file: in.log\n"), @r#"pipeline.yaml:4:11: inputs.a.file: expected a mapping, found the string "in.log""#);
    insta::assert_snapshot!(error_with_input("{paths: 5}"), @"pipeline.yaml:4:19: inputs.a.file.paths: expected a string or a list of strings, found the number 5");
    insta::assert_snapshot!(error_with_input("{paths: {a: b}}"), @"pipeline.yaml:4:19: inputs.a.file.paths: expected a string or a list of strings, found a mapping");
    insta::assert_snapshot!(error_with_input("{paths: [a, [b]]}"), @"pipeline.yaml:4:23: inputs.a.file.paths[1]: expected a string, found a list");
    insta::assert_snapshot!(error_with_input("{paths: [2024]}"), @"pipeline.yaml:4:20: inputs.a.file.paths[0]: expected a string, found the number 2024; in quotes it is a string");
    insta::assert_snapshot!(error_with_input("{paths: i, follow: yes}"), @r#"pipeline.yaml:4:30: inputs.a.file.follow: expected true or false, found the string "yes""#);
    insta::assert_snapshot!(error_with_input("{paths: i, follow: 'true'}"), @r#"pipeline.yaml:4:30: inputs.a.file.follow: expected true or false, found the string "true""#);
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_records: many}"), @r#"pipeline.yaml:4:42: inputs.a.file.max_queued_records: expected a whole number of at least 1, found the string "many""#);
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_records: '5'}"), @r#"pipeline.yaml:4:42: inputs.a.file.max_queued_records: expected a whole number of at least 1, found the string "5""#);
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_records: 1_000}"), @r#"pipeline.yaml:4:42: inputs.a.file.max_queued_records: expected a whole number of at least 1, found the string "1_000""#);
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_records: -1}"), @"pipeline.yaml:4:42: inputs.a.file.max_queued_records: expected a whole number of at least 1, found the number -1");
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_records: 1.5}"), @"pipeline.yaml:4:42: inputs.a.file.max_queued_records: expected a whole number of at least 1, found the number 1.5");
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_records: 0}"), @"pipeline.yaml:4:42: inputs.a.file.max_queued_records: expected a whole number of at least 1, found the number 0");
    insta::assert_snapshot!(error_with_input(&format!("{{paths: {}}}", "9".repeat(1000))), @"pipeline.yaml:4:19: inputs.a.file.paths: expected a string or a list of strings, found a long number");
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_records: 18446744073709551616}"), @"pipeline.yaml:4:42: inputs.a.file.max_queued_records: expected a whole number of at least 1, found the number 18446744073709551616");
    insta::assert_snapshot!(error_with("delivery: {exactly_once: }"), @"pipeline.yaml:2:11: delivery: expected exactly_once, at_least_once or none, found a mapping");
    insta::assert_snapshot!(error_with("delivery: true"), @"pipeline.yaml:2:11: delivery: expected exactly_once, at_least_once or none, found true");
    insta::assert_snapshot!(error_with("state: {dir: x}"), @"pipeline.yaml:2:8: state: expected a string, found a mapping");
}

#[test]
fn sizes_and_durations() {
    insta::assert_snapshot!(error_with("checkpoint_interval: 10"), @"pipeline.yaml:2:22: checkpoint_interval: expected a duration such as 250ms, 10s, 1m30s or 2h, found the number 10");
    insta::assert_snapshot!(error_with("checkpoint_interval: '10'"), @r#"pipeline.yaml:2:22: checkpoint_interval: expected a duration such as 250ms, 10s, 1m30s or 2h, found the string "10""#);
    insta::assert_snapshot!(error_with("checkpoint_interval: ten seconds"), @r#"pipeline.yaml:2:22: checkpoint_interval: expected a duration such as 250ms, 10s, 1m30s or 2h, found the string "ten seconds""#);
    insta::assert_snapshot!(error_with("checkpoint_interval: 0s"), @"pipeline.yaml:2:22: checkpoint_interval: must be longer than zero");
    insta::assert_snapshot!(error_with("stall_timeout: 0ms"), @"pipeline.yaml:2:16: stall_timeout: must be longer than zero");
    insta::assert_snapshot!(error_with("stall_timeout: 99999999999999999999h"), @"pipeline.yaml:2:16: stall_timeout: too long: a duration is at most 8760h");
    insta::assert_snapshot!(error_with("stall_timeout: 8761h"), @"pipeline.yaml:2:16: stall_timeout: too long: a duration is at most 8760h");
    insta::assert_snapshot!(error_with_input("{paths: i, max_record_bytes: 1.5MiB}"), @r#"pipeline.yaml:4:40: inputs.a.file.max_record_bytes: expected a size such as 64KiB, 16MiB, 1GB or a plain number of bytes, found the string "1.5MiB""#);
    insta::assert_snapshot!(error_with_input("{paths: i, max_record_bytes: -1}"), @"pipeline.yaml:4:40: inputs.a.file.max_record_bytes: expected a size such as 64KiB, 16MiB, 1GB or a plain number of bytes, found the number -1");
    insta::assert_snapshot!(error_with_input("{paths: i, max_record_bytes: 0}"), @"pipeline.yaml:4:40: inputs.a.file.max_record_bytes: a size must be at least 1 byte");
    insta::assert_snapshot!(error_with_input("{paths: i, max_record_bytes: 0KiB}"), @"pipeline.yaml:4:40: inputs.a.file.max_record_bytes: a size must be at least 1 byte");
    insta::assert_snapshot!(error_with_input("{paths: i, max_record_bytes: true}"), @"pipeline.yaml:4:40: inputs.a.file.max_record_bytes: expected a size such as 64KiB, 16MiB, 1GB or a plain number of bytes, found true");
    insta::assert_snapshot!(error_with_input("{paths: i, max_record_bytes: [1]}"), @"pipeline.yaml:4:40: inputs.a.file.max_record_bytes: expected a size such as 64KiB, 16MiB, 1GB or a plain number of bytes, found a list");
    insta::assert_snapshot!(error_with_input("{paths: i, max_record_bytes: 65MiB}"), @"pipeline.yaml:4:40: inputs.a.file.max_record_bytes: must not be more than 64MiB");
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_bytes: 99999999TiB}"), @"pipeline.yaml:4:40: inputs.a.file.max_queued_bytes: too large: a size is less than 16 EiB");
}

#[test]
fn kinds() {
    insta::assert_snapshot!(
        error("name: x\ninputs:\n  a:\n    file: {paths: i}\n    kafka: {topic: t}\n"), @r#"pipeline.yaml:4:5: inputs.a: 2 keys ("file", "kafka") where exactly one is expected, the kind (file, kafka or recording)"#);
    insta::assert_snapshot!(
        error("name: x\ninputs:\n  a:\n    file:\n    paths: i\n"), @r#"pipeline.yaml:4:5: inputs.a: 2 keys ("file", "paths") where exactly one is expected, the kind (file, kafka or recording)"#);
    let many: String = (0..100).map(|n| format!("    k{n}: 5\n")).collect();
    insta::assert_snapshot!(error(&format!("name: x\ninputs:\n  a:\n{many}")), @r#"pipeline.yaml:4:5: inputs.a: 100 keys ("k0", "k1", "k2", "k3", ...) where exactly one is expected, the kind (file, kafka or recording)"#);
    insta::assert_snapshot!(error_with_outputs("outputs: {b: null}"), @"pipeline.yaml:3:14: outputs.b: expected a mapping with one key, the kind (file, kafka, stdout or null), found nothing");
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: o}\n    null:\n"), @r#"pipeline.yaml:5:5: outputs.b: 2 keys ("file", "null") where exactly one is expected, the kind (file, kafka, stdout or null)"#);
}

#[test]
fn names() {
    insta::assert_snapshot!(error("name: a/b\ninputs: {a: {file: {paths: i}}}\noutputs: {b: {null: }}"), @r#"pipeline.yaml:1:7: name: a name has only letters (a to z, A to Z), digits, "-", "_" and ".", found the string "a/b""#);
    insta::assert_snapshot!(error("name: ''\ninputs: {a: {file: {paths: i}}}\noutputs: {b: {null: }}"), @r#"pipeline.yaml:1:7: name: a name must not be empty, found the string """#);
    insta::assert_snapshot!(error("name: ..\ninputs: {a: {file: {paths: i}}}\noutputs: {b: {null: }}"), @r#"pipeline.yaml:1:7: name: a name must not be "." or "..", found the string "..""#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  my orders:\n    file: {paths: i}\noutputs: {b: {null: }}"), @r#"pipeline.yaml:3:3: inputs."my orders": a name has only letters (a to z, A to Z), digits, "-", "_" and ".""#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  '${SECRET}':\n    file: {paths: i}\noutputs: {b: {null: }}"), @r#"pipeline.yaml:3:3: inputs."${SECRET}": a key cannot hold a variable"#);
    let long = "x".repeat(65);
    insta::assert_snapshot!(error_with_outputs(&format!("outputs:\n  {long}:\n    null:\n")), @r#"pipeline.yaml:4:3: outputs."xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"...: a name has at most 64 characters"#);
}

#[test]
fn settings_that_do_not_fit_together() {
    insta::assert_snapshot!(error_with("min_batch_records: 6\nmax_batch_records: 5"), @"pipeline.yaml:2:20: min_batch_records: must not be more than max_batch_records");
    insta::assert_snapshot!(error_with("state: ''"), @"pipeline.yaml:2:8: state: a path must not be empty");
    insta::assert_snapshot!(error_with_input("{paths: i, max_queued_bytes: 1KiB}"), @"pipeline.yaml:4:40: inputs.a.file.max_queued_bytes: must not be less than max_record_bytes: a record must fit");
    insta::assert_snapshot!(error_with_input("{paths: i, start_at: end}"), @r#"pipeline.yaml:4:32: inputs.a.file.start_at: "end" needs "follow: true"; there would be nothing to read"#);
    insta::assert_snapshot!(error_with_input("{paths: \"a\\0b\"}"), @"pipeline.yaml:4:19: inputs.a.file.paths[0]: a path must not hold a NUL character");
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    stdout:\n"), @r#"pipeline.yaml:5:5: outputs.b.stdout: standard output cannot be rolled back after a crash, so it cannot be exactly_once; write "delivery: at_least_once", or use a file"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: out/}\n"), @"pipeline.yaml:5:18: outputs.b.file.path: must name a file, not a directory");
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: ''}\n"), @"pipeline.yaml:5:18: outputs.b.file.path: a path must not be empty");
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: 'o/{segment}'}\n"), @"pipeline.yaml:5:18: outputs.b.file.path: {segment} needs segment_bytes or segment_records, to say when a segment is complete");
    insta::assert_snapshot!(
        error_with_outputs("outputs:\n  b:\n    file: {path: '{segment}/o', segment_records: 1}\n"), @"pipeline.yaml:5:18: outputs.b.file.path: {segment} must stand in the file's name, not before it");
    insta::assert_snapshot!(
        error_with_outputs("outputs:\n  b:\n    file: {path: '{segment}{segment}', segment_records: 1}\n"), @"pipeline.yaml:5:18: outputs.b.file.path: {segment} must stand only once");
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: o, segment_bytes: 1MiB}\n"), @r#"pipeline.yaml:5:36: outputs.b.file.segment_bytes: needs {segment} in the path, such as "out/part-{segment}.log""#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: o, segment_records: 1}\n"), @r#"pipeline.yaml:5:38: outputs.b.file.segment_records: needs {segment} in the path, such as "out/part-{segment}.log""#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: o, compression: zstd}\n"), @r#"pipeline.yaml:5:34: outputs.b.file.compression: needs {segment} in the path, such as "out/part-{segment}.log""#);
    insta::assert_snapshot!(
        error_with_outputs("outputs:\n  b: {file: {path: o}}\n  c: {file: {path: ./o}}\n"), @"pipeline.yaml:5:20: outputs.c.file.path: the same file as outputs.b.file.path (line 4)");
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b: {file: {path: i}}\n"), @"pipeline.yaml:4:20: outputs.b.file.path: the same file as inputs.a.file.paths[0] (line 2)");
}

/// The error of an otherwise valid file with these settings of a Kafka input on line 5.
fn error_with_kafka_input(settings: &str) -> String {
    error(&format!(
        "name: x\ndelivery: at_least_once\ninputs:\n  a:\n    kafka: {settings}\noutputs: {{b: {{null: }}}}"
    ))
}

/// The error of an otherwise valid file with these settings of a Kafka output on line 5.
fn error_with_kafka_output(settings: &str) -> String {
    error(&format!(
        "name: x\ninputs: {{a: {{file: {{paths: i}}}}}}\noutputs:\n  b:\n    kafka: {settings}\n"
    ))
}

#[test]
fn kafka_keys_and_words() {
    insta::assert_snapshot!(error_with_kafka_input("{}"), @r#"pipeline.yaml:5:5: inputs.a.kafka: missing key "brokers""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1'}"), @r#"pipeline.yaml:5:5: inputs.a.kafka: missing key "topic" (or "topics")"#);
    insta::assert_snapshot!(error_with_kafka_input("{topic: t}"), @r#"pipeline.yaml:5:5: inputs.a.kafka: missing key "brokers""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, partitons: [1]}"), @r#"pipeline.yaml:5:39: inputs.a.kafka: unknown key "partitons"; did you mean "partitions"? known keys: brokers, topic, topics, start_from, stop_at, partitions, mode, group, group_protocol, group_instance_id, max_pending_records, max_queued_records, max_queued_bytes, start_after, max_records_per_second, on_expired, on_truncated, on_recreated, on_vanished, properties"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, topics: [u]}"), @r#"pipeline.yaml:5:39: inputs.a.kafka.topics: "topic" and "topics" exclude each other; name all of them in topics"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topics: []}"), @"pipeline.yaml:5:37: inputs.a.kafka.topics: at least one topic is needed");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: [], topic: t}"), @"pipeline.yaml:5:22: inputs.a.kafka.brokers: at least one broker is needed");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 9092, topic: t}"), @"pipeline.yaml:5:22: inputs.a.kafka.brokers: expected a string or a list of strings, found the number 9092");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, mode: grup}"), @r#"pipeline.yaml:5:45: inputs.a.kafka.mode: unknown value "grup"; did you mean "group"? known values: assign, group"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, stop_at: now}"), @r#"pipeline.yaml:5:48: inputs.a.kafka.stop_at: unknown value "now"; known values: end"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, on_expired: skip}"), @r#"pipeline.yaml:5:51: inputs.a.kafka.on_expired: unknown value "skip"; known values: refuse, continue"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, mode: group, group: g, group_protocol: sticky}"), @r#"pipeline.yaml:5:78: inputs.a.kafka.group_protocol: unknown value "sticky"; known values: cooperative_sticky, eager, consumer"#);
    insta::assert_snapshot!(error_with_kafka_output("{}"), @r#"pipeline.yaml:5:5: outputs.b.kafka: missing key "brokers""#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1'}"), @r#"pipeline.yaml:5:5: outputs.b.kafka: missing key "topic""#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, partitions: kept}"), @r#"pipeline.yaml:5:39: outputs.b.kafka: unknown key "partitions"; did you mean "partition"? known keys: brokers, topic, partition, timestamp, key, headers, on_refused, exactly_once, commit_interval, properties"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, key: keep}"), @r#"pipeline.yaml:5:44: outputs.b.kafka.key: unknown value "keep"; known values: kept, dropped"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, timestamp: kpt}"), @r#"pipeline.yaml:5:50: outputs.b.kafka.timestamp: unknown value "kpt"; did you mean "kept"? known values: kept, now"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, on_refused: drop}"), @r#"pipeline.yaml:5:51: outputs.b.kafka.on_refused: unknown value "drop"; known values: stop, skip, {dead_letter: TOPIC}"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, on_refused: {deadletter: d}}"), @r#"pipeline.yaml:5:52: outputs.b.kafka.on_refused: unknown key "deadletter"; did you mean "dead_letter"? known keys: dead_letter"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, on_refused: 5}"), @"pipeline.yaml:5:51: outputs.b.kafka.on_refused: expected stop, skip or {dead_letter: TOPIC}, found the number 5");
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: {form: source}}"), @r#"pipeline.yaml:5:37: outputs.b.kafka.topic: unknown key "form"; did you mean "from"? known keys: from, name, position_topic"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: {from: key}}"), @r#"pipeline.yaml:5:43: outputs.b.kafka.topic.from: unknown value "key"; known values: source, header"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: {name: x}}"), @r#"pipeline.yaml:5:29: outputs.b.kafka.topic: missing key "from""#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: 5}"), @"pipeline.yaml:5:36: outputs.b.kafka.topic: expected a topic's name, {from: source} or {from: header, name: NAME}, found the number 5");
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: [a]}"), @"pipeline.yaml:5:36: outputs.b.kafka.topic: expected a topic's name, {from: source} or {from: header, name: NAME}, found a list");
}

#[test]
fn kafka_values() {
    insta::assert_snapshot!(error_with_kafka_input("{brokers: h, topic: t}"), @r#"pipeline.yaml:5:22: inputs.a.kafka.brokers[0]: a broker is HOST:PORT, such as localhost:9092, found "h""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1,,i:2', topic: t}"), @r#"pipeline.yaml:5:22: inputs.a.kafka.brokers[0]: a broker is HOST:PORT, such as localhost:9092, found """#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: ['h:1', 'i:0'], topic: t}"), @r#"pipeline.yaml:5:30: inputs.a.kafka.brokers[1]: a broker is HOST:PORT, such as localhost:9092, found "i:0""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'PLAINTEXT://h:1', topic: t}"), @"pipeline.yaml:5:22: inputs.a.kafka.brokers[0]: a broker is HOST:PORT, without a protocol before it; which one is spoken is said by security.protocol among the properties");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: '${SECRET}', topic: t}"), @"pipeline.yaml:5:22: inputs.a.kafka.brokers[0]: a broker is HOST:PORT, such as localhost:9092, found the value of ${SECRET} (not shown, it may be a secret)");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: a/b}"), @r#"pipeline.yaml:5:36: inputs.a.kafka.topic: a topic's name has only letters (a to z, A to Z), digits, "-", "_" and ".", found the string "a/b""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: ''}"), @r#"pipeline.yaml:5:36: inputs.a.kafka.topic: a topic's name must not be empty, found the string """#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topics: [a, '^b']}"), @r#"pipeline.yaml:5:41: inputs.a.kafka.topics[1]: a pattern stands alone; one pattern can match several names: "^(orders|returns)$""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topics: [a, b, a]}"), @r#"pipeline.yaml:5:44: inputs.a.kafka.topics[2]: topic "a" is named twice"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, partitions: 1}"), @"pipeline.yaml:5:51: inputs.a.kafka.partitions: expected a list of the numbers of partitions, found the number 1");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, partitions: []}"), @"pipeline.yaml:5:51: inputs.a.kafka.partitions: at least one partition is needed; leave the key out to read all");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, partitions: [1, -1]}"), @"pipeline.yaml:5:55: inputs.a.kafka.partitions[1]: expected the number of a partition, from 0 on, found the number -1");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, partitions: [0, 1, 0]}"), @"pipeline.yaml:5:58: inputs.a.kafka.partitions[2]: partition 0 is named twice");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, partitions: [2147483648]}"), @"pipeline.yaml:5:52: inputs.a.kafka.partitions[0]: expected the number of a partition, from 0 on, found the number 2147483648");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, max_pending_records: 0}"), @"pipeline.yaml:5:60: inputs.a.kafka.max_pending_records: expected a whole number of at least 1, found the number 0");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, max_pending_records: 4294967296}"), @"pipeline.yaml:5:60: inputs.a.kafka.max_pending_records: must not be more than 4294967295");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: earlist}"), @r#"pipeline.yaml:5:51: inputs.a.kafka.start_from: unknown value "earlist"; did you mean "earliest"? known values: earliest, latest, {timestamp: TIME}, {offsets: {TOPIC: {PARTITION: OFFSET}}}"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: 5}"), @"pipeline.yaml:5:51: inputs.a.kafka.start_from: expected earliest, latest, {timestamp: TIME} or {offsets: {TOPIC: {PARTITION: OFFSET}}}, found the number 5");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {}}"), @"pipeline.yaml:5:51: inputs.a.kafka.start_from: exactly one key is expected, timestamp or offsets");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {offset: {}}}"), @r#"pipeline.yaml:5:52: inputs.a.kafka.start_from: unknown key "offset"; did you mean "offsets"? known keys: timestamp, offsets"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {timestamp: 1, offsets: {}}}"), @"pipeline.yaml:5:51: inputs.a.kafka.start_from: exactly one key is expected, timestamp or offsets");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {timestamp: yesterday}}"), @r#"pipeline.yaml:5:63: inputs.a.kafka.start_from.timestamp: expected a time in UTC such as 2026-01-31T12:00:00Z, or milliseconds since the Unix epoch, found the string "yesterday""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {timestamp: 1969-12-31T23:59:59Z}}"), @r#"pipeline.yaml:5:63: inputs.a.kafka.start_from.timestamp: expected a time in UTC such as 2026-01-31T12:00:00Z, or milliseconds since the Unix epoch, found the string "1969-12-31T23:59:59Z""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {timestamp: 2026-01-31T12:00:00+01:00}}"), @r#"pipeline.yaml:5:63: inputs.a.kafka.start_from.timestamp: expected a time in UTC such as 2026-01-31T12:00:00Z, or milliseconds since the Unix epoch, found the string "2026-01-31T12:00:00+01:00""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {offsets: {u: {0: 1}}}}"), @"pipeline.yaml:5:62: inputs.a.kafka.start_from.offsets.u: this topic is not among those that are read");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {offsets: {t: 5}}}"), @"pipeline.yaml:5:65: inputs.a.kafka.start_from.offsets.t: expected a mapping, found the number 5");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {offsets: {t: {x: 1}}}}"), @r#"pipeline.yaml:5:66: inputs.a.kafka.start_from.offsets.t: expected the number of a partition, from 0 on, found the key "x""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_from: {offsets: {t: {0: end}}}}"), @r#"pipeline.yaml:5:69: inputs.a.kafka.start_from.offsets.t.0: expected an offset, a whole number from 0 on, found the string "end""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, partitions: [1], start_from: {offsets: {t: {0: 1}}}}"), @"pipeline.yaml:5:83: inputs.a.kafka.start_from.offsets.t.0: this partition is not among those that are read");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, group: ''}"), @"pipeline.yaml:5:46: inputs.a.kafka.group: must not be empty");
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: '^a'}"), @r#"pipeline.yaml:5:36: outputs.b.kafka.topic: a topic's name has only letters (a to z, A to Z), digits, "-", "_" and ".", found the string "^a""#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, commit_interval: 31s}"), @"pipeline.yaml:5:56: outputs.b.kafka.commit_interval: must not be more than 30s: brokers give up a transaction that stays open for too long");
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, on_refused: {dead_letter: t}}"), @"pipeline.yaml:5:65: outputs.b.kafka.on_refused.dead_letter: must be another topic than the one that is written to");
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, on_refused: {dead_letter: a b}}"), @r#"pipeline.yaml:5:65: outputs.b.kafka.on_refused.dead_letter: a topic's name has only letters (a to z, A to Z), digits, "-", "_" and ".", found the string "a b""#);
}

#[test]
fn kafka_settings_that_do_not_fit_together() {
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, mode: group}"), @r#"pipeline.yaml:5:5: inputs.a.kafka: missing key "group": "mode: group" needs the name of the consumer group"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, mode: group, group: g, partitions: [1]}"), @r#"pipeline.yaml:5:62: inputs.a.kafka.partitions: not with "mode: group": the group deals the partitions out; leave this key out, or write "mode: assign""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, mode: group, group: g, stop_at: end}"), @r#"pipeline.yaml:5:62: inputs.a.kafka.stop_at: not with "mode: group": which partitions a member reads changes all the time, so it has no end; leave this key out, or write "mode: assign""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, group_protocol: eager}"), @r#"pipeline.yaml:5:39: inputs.a.kafka.group_protocol: needs "mode: group"; in mode assign no group is joined"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, group_instance_id: w1}"), @r#"pipeline.yaml:5:39: inputs.a.kafka.group_instance_id: needs "mode: group"; in mode assign no group is joined"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: t, exactly_once: false}"), @r#"pipeline.yaml:5:53: outputs.b.kafka.exactly_once: false would break the pipeline's "delivery: exactly_once"; leave this key out, or write "delivery: at_least_once""#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: {from: source}}"), @r#"pipeline.yaml:5:29: outputs.b.kafka.topic: missing key "position_topic": exactly_once needs an existing topic, under whose name the output keeps how far it is"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: {from: header, position_topic: p}}"), @r#"pipeline.yaml:5:29: outputs.b.kafka.topic: missing key "name": "from: header" needs the header's name"#);
    insta::assert_snapshot!(error_with_kafka_output("{brokers: 'h:1', topic: {from: source, name: x, position_topic: p}}"), @r#"pipeline.yaml:5:51: outputs.b.kafka.topic.name: needs "from: header"; "from: source" has no name"#);
    insta::assert_snapshot!(error("name: x\ndelivery: at_least_once\ninputs: {a: {file: {paths: i}}}\noutputs: {b: {kafka: {brokers: 'h:1', topic: t, exactly_once: true}}}"), @r#"pipeline.yaml:4:63: outputs.b.kafka.exactly_once: true needs "delivery: exactly_once" of the pipeline; write that, or leave this key out"#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    kafka: {brokers: 'h:1', topic: t, mode: group, group: g}\n  f: {file: {paths: i}}\noutputs: {b: {kafka: {brokers: 'h:1', topic: u}}}"), @r#"pipeline.yaml:4:45: inputs.a.kafka.mode: the steps of a consumer group cannot be replayed, so exactly_once needs all inputs to be such groups, for one transaction to hold the records and the groups' offsets; write "delivery: at_least_once", or "mode: assign""#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    kafka: {brokers: 'h:1', topic: t, mode: group, group: g}\noutputs: {b: {file: {path: o}}}"), @r#"pipeline.yaml:4:45: inputs.a.kafka.mode: the steps of a consumer group cannot be replayed, so exactly_once needs exactly one output, of kind kafka, for one transaction to hold the records and the groups' offsets; write "delivery: at_least_once", or "mode: assign""#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    kafka: {brokers: 'h:1', topic: t, mode: group, group: g}\noutputs: {b: {kafka: {brokers: 'h:1', topic: u}}, c: {null: }}"), @r#"pipeline.yaml:4:45: inputs.a.kafka.mode: the steps of a consumer group cannot be replayed, so exactly_once needs exactly one output, of kind kafka, for one transaction to hold the records and the groups' offsets; write "delivery: at_least_once", or "mode: assign""#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    kafka: {brokers: 'h:1', topic: t, mode: group, group: g}\noutputs: {b: {kafka: {brokers: 'i:1', topic: t}}}"), @r#"pipeline.yaml:5:32: outputs.b.kafka.brokers: exactly_once needs inputs.a.kafka to be on the same cluster, for one transaction to hold the records and the group's offsets; name one of its brokers here too, or write "delivery: at_least_once""#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    kafka: {brokers: 'h:1, i:1', topics: [s, t]}\noutputs: {b: {kafka: {brokers: 'i:1', topic: t}}}"), @"pipeline.yaml:5:46: outputs.b.kafka.topic: inputs.a.kafka (line 4) reads the same topic, so that it would never end; write to another one");
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    kafka: {brokers: 'h:1', topic: t}\noutputs: {b: {kafka: {brokers: 'h:1', topic: u, on_refused: {dead_letter: t}}}}"), @"pipeline.yaml:5:75: outputs.b.kafka.on_refused.dead_letter: inputs.a.kafka (line 4) reads the same topic, so that it would never end; write to another one");
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n    kafka: {brokers: 'h:1', topic: t}\noutputs: {b: {kafka: {brokers: 'h:1', topic: {from: source, position_topic: p}}}}"), @r#"pipeline.yaml:5:46: outputs.b.kafka.topic: "from: source" would write the records of inputs.a.kafka back to where they are read, for ever; write to other brokers, or to another topic"#);
}

/// Story (L3): whatever is wrong with a property, its value is not shown.
#[test]
fn kafka_properties() {
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: hunter2}"), @"pipeline.yaml:5:51: inputs.a.kafka.properties: expected a mapping from the names of properties to their values");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: [hunter2]}}"), @r#"pipeline.yaml:5:67: inputs.a.kafka.properties."sasl.password": expected a string, a number, true, false or {file: PATH}"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: {hunter2}}}"), @r#"pipeline.yaml:5:68: inputs.a.kafka.properties."sasl.password": unknown key (not shown, it may be a secret); known keys: file; a value that begins with a brace needs quotes"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: {flie: hunter2}}}"), @r#"pipeline.yaml:5:68: inputs.a.kafka.properties."sasl.password": unknown key (not shown, it may be a secret); known keys: file; a value that begins with a brace needs quotes"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: }}"), @r#"pipeline.yaml:5:52: inputs.a.kafka.properties."sasl.password": expected a string, a number, true, false or {file: PATH}"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: .inf}}"), @r#"pipeline.yaml:5:67: inputs.a.kafka.properties."sasl.password": expected a string, a number, true, false or {file: PATH}"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: {file: 5}}}"), @r#"pipeline.yaml:5:74: inputs.a.kafka.properties."sasl.password".file: expected a string, found the number 5; in quotes it is a string"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: {file: nowhere/secret}}}"), @r#"pipeline.yaml:5:74: inputs.a.kafka.properties."sasl.password".file: cannot read "nowhere/secret": No such file or directory (os error 2)"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: {file: '${SECRET}'}}}"), @r#"pipeline.yaml:5:74: inputs.a.kafka.properties."sasl.password".file: cannot read the file: No such file or directory (os error 2)"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {sasl.password: \"a\\0hunter2\"}}"), @r#"pipeline.yaml:5:67: inputs.a.kafka.properties."sasl.password": the value must not hold a NUL character"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {'a b': 1}}"), @r#"pipeline.yaml:5:52: inputs.a.kafka.properties."a b": a property's name has only letters, digits, ".", "_" and "-""#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {isolation.level: none}}"), @r#"pipeline.yaml:5:69: inputs.a.kafka.properties."isolation.level": must be read_committed or read_uncommitted"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, properties: {isolation.level: {file: x}}}"), @r#"pipeline.yaml:5:69: inputs.a.kafka.properties."isolation.level": must be written here, not in a file"#);
}

/// The error of an otherwise valid file with this `control` on line 2; a file `token` holds `content`.
fn error_with_control(control: &str, content: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory for the test");
    std::fs::write(directory.path().join("token"), content).expect("writes");
    let text = format!(
        "name: x\ncontrol: {control}\ninputs: {{a: {{file: {{paths: i}}}}}}\noutputs: {{b: {{null: }}}}"
    );
    let path = directory.path().join("pipeline.yaml");
    let error = match parse(&text, &path, &environment) {
        Ok(pipeline) => panic!("accepted: {pipeline:?}"),
        Err(error) => error.to_string(),
    };
    error.replace(&directory.path().display().to_string(), "DIR")
}

#[test]
fn control() {
    let error = |control: &str| error_with_control(control, "");
    insta::assert_snapshot!(error("{}"), @r#"DIR/pipeline.yaml:2:1: control: missing key "listen""#);
    insta::assert_snapshot!(error("{listen: }"), @"DIR/pipeline.yaml:2:11: control.listen: expected a string, found nothing");
    insta::assert_snapshot!(error("8080"), @"DIR/pipeline.yaml:2:10: control: expected a mapping, found the number 8080");
    insta::assert_snapshot!(error("{listen: 8080}"), @"DIR/pipeline.yaml:2:19: control.listen: expected a string, found the number 8080; in quotes it is a string");
    insta::assert_snapshot!(error("{listen: '8080'}"), @r#"DIR/pipeline.yaml:2:19: control.listen: expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, found the string "8080""#);
    insta::assert_snapshot!(error("{listen: '::1:8080'}"), @r#"DIR/pipeline.yaml:2:19: control.listen: expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, found the string "::1:8080""#);
    insta::assert_snapshot!(error("{listen: '127.0.0.1:65536'}"), @r#"DIR/pipeline.yaml:2:19: control.listen: expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, found the string "127.0.0.1:65536""#);
    insta::assert_snapshot!(error("{listen: 'example.org:8080'}"), @r#"DIR/pipeline.yaml:2:19: control.listen: an IP address is needed before the port, or localhost, since another name may lead anywhere, found the string "example.org:8080""#);
    insta::assert_snapshot!(error("{listen: '${SECRET}:8080'}"), @"DIR/pipeline.yaml:2:19: control.listen: an IP address is needed before the port, or localhost, since another name may lead anywhere, found the value of ${SECRET} (not shown, it may be a secret)");
    insta::assert_snapshot!(error("{listen: '0.0.0.0:8080'}"), @"DIR/pipeline.yaml:2:19: control.listen: other machines reach this address, and whoever does could steer the pipeline: set token_file, or listen on 127.0.0.1");
    insta::assert_snapshot!(error("{listen: '[::]:8080'}"), @"DIR/pipeline.yaml:2:19: control.listen: other machines reach this address, and whoever does could steer the pipeline: set token_file, or listen on 127.0.0.1");
    insta::assert_snapshot!(error("{listen: '10.0.0.1:8080', tls: {certificate: c, key: k}}"), @"DIR/pipeline.yaml:2:19: control.listen: other machines reach this address, and whoever does could steer the pipeline: set token_file, or listen on 127.0.0.1");
    insta::assert_snapshot!(error("{listen: 'localhost:8080', token: hunter2}"), @r#"DIR/pipeline.yaml:2:37: control: unknown key "token"; known keys: listen, token_file, tls"#);
    insta::assert_snapshot!(error("{listen: 'localhost:8080', token_file: ''}"), @"DIR/pipeline.yaml:2:49: control.token_file: a path must not be empty");
    insta::assert_snapshot!(error("{listen: 'localhost:8080', token_file: nowhere}"), @r#"DIR/pipeline.yaml:2:49: control.token_file: cannot read "DIR/nowhere": No such file or directory (os error 2)"#);
    insta::assert_snapshot!(error("{listen: 'localhost:8080', token_file: '${SECRET}'}"), @"DIR/pipeline.yaml:2:49: control.token_file: cannot read the file: No such file or directory (os error 2)");
    insta::assert_snapshot!(error("{listen: 'localhost:8080', token_file: token}"), @"DIR/pipeline.yaml:2:49: control.token_file: the file is no token: it is empty; write a long random word into it, such as `openssl rand -hex 32` gives");
    insta::assert_snapshot!(error("{listen: 'localhost:8080', tls: {certificate: c}}"), @r#"DIR/pipeline.yaml:2:37: control.tls: missing key "key""#);
    insta::assert_snapshot!(error("{listen: 'localhost:8080', tls: {certificate: '', key: k}}"), @"DIR/pipeline.yaml:2:56: control.tls.certificate: a path must not be empty");
    insta::assert_snapshot!(error("{listen: 'localhost:8080', tls: {cert: c, key: k}}"), @r#"DIR/pipeline.yaml:2:43: control.tls: unknown key "cert"; known keys: certificate, key"#);
    for content in [" \n", "hunter2 hunter3", "hunter2\nhunter3", "h\u{fc}nter2", "hunter2\0"] {
        let error = error_with_control("{listen: '0.0.0.0:1', token_file: token}", content);
        assert!(error.starts_with("DIR/pipeline.yaml:2:44: control.token_file: "), "{error}");
        assert!(!error.contains("nter"), "{error}");
    }
    let content = "hunter2 hunter3";
    insta::assert_snapshot!(error_with_control("{listen: '0.0.0.0:1', token_file: token}", content), @"DIR/pipeline.yaml:2:44: control.token_file: the file is no token: it must be one word of visible ASCII characters");
}

#[test]
fn log() {
    insta::assert_snapshot!(error_with("log: debug"), @r#"pipeline.yaml:2:6: log: expected a mapping, found the string "debug""#);
    insta::assert_snapshot!(error_with("log: {level: warning}"), @r#"pipeline.yaml:2:14: log.level: unknown value "warning"; known values: error, warn, info, debug, trace"#);
    insta::assert_snapshot!(error_with("log: {format: jsno}"), @r#"pipeline.yaml:2:15: log.format: unknown value "jsno"; did you mean "json"? known values: text, json"#);
    insta::assert_snapshot!(error_with("log: {levels: warn}"), @r#"pipeline.yaml:2:7: log: unknown key "levels"; did you mean "level"? known keys: level, targets, format"#);
    insta::assert_snapshot!(error_with("log: {targets: [a]}"), @"pipeline.yaml:2:16: log.targets: expected a mapping, found a list");
    insta::assert_snapshot!(error_with("log: {targets: {a: loud}}"), @r#"pipeline.yaml:2:20: log.targets.a: unknown value "loud"; known values: error, warn, info, debug, trace"#);
    insta::assert_snapshot!(error_with("log:\n  targets:\n    a: warn\n    a:b: warn"), @r#"pipeline.yaml:5:5: log.targets."a:b": a target is the name of a part of the program: letters, digits and "_", with "::" between a part and what is below it"#);
    insta::assert_snapshot!(error_with("log: {targets: {'': warn}}"), @r#"pipeline.yaml:2:17: log.targets."": a target is the name of a part of the program: letters, digits and "_", with "::" between a part and what is below it"#);
    insta::assert_snapshot!(error_with("log: {targets: {a: '${SECRET}'}}"), @"pipeline.yaml:2:20: log.targets.a: expected error, warn, info, debug or trace, found the value of ${SECRET} (not shown, it may be a secret)");
}

/// The error of a file with these settings of three inputs on lines 3, 4 and 5, which are recordings.
fn error_with_order(settings: [&str; 3]) -> String {
    let [first, second, third] = settings;
    error(&format!(
        "name: x\ninputs:\n  orders: {{recording: {{path: a{first}}}}}\n  returns: {{recording: {{path: b{second}}}}}\n  \
         refunds: {{recording: {{path: c{third}}}}}\noutputs: {{b: {{null: }}}}"
    ))
}

#[test]
fn the_order_of_inputs() {
    insta::assert_snapshot!(error_with_order(["", ", start_after: ordres", ""]), @r#"pipeline.yaml:4:47: inputs.returns.recording.start_after[0]: unknown input "ordres"; did you mean "orders"? known inputs: orders, returns, refunds"#);
    insta::assert_snapshot!(error_with_order(["", ", start_after: [orders, customers]", ""]), @r#"pipeline.yaml:4:56: inputs.returns.recording.start_after[1]: unknown input "customers"; known inputs: orders, returns, refunds"#);
    insta::assert_snapshot!(error_with_order(["", ", start_after: ['${SECRET}']", ""]), @"pipeline.yaml:4:48: inputs.returns.recording.start_after[0]: unknown input, found the value of ${SECRET} (not shown, it may be a secret); known inputs: orders, returns, refunds");
    insta::assert_snapshot!(error_with_order(["", ", start_after: []", ""]), @"pipeline.yaml:4:47: inputs.returns.recording.start_after: at least one input is needed; leave the key out to wait for none");
    insta::assert_snapshot!(error_with_order(["", ", start_after: 5", ""]), @"pipeline.yaml:4:47: inputs.returns.recording.start_after: expected a string or a list of strings, found the number 5");
    insta::assert_snapshot!(error_with_order(["", ", start_after: returns", ""]), @"pipeline.yaml:4:47: inputs.returns.recording.start_after[0]: an input cannot wait for itself");
    insta::assert_snapshot!(error_with_order(["", ", start_after: [orders, orders]", ""]), @r#"pipeline.yaml:4:56: inputs.returns.recording.start_after[1]: "orders" is named twice"#);
    insta::assert_snapshot!(error_with_order([", start_after: returns", ", start_after: orders", ""]), @"pipeline.yaml:3:46: inputs.orders.recording.start_after: these inputs wait for each other, so none of them would ever be read: orders after returns after orders");
    insta::assert_snapshot!(error_with_order(["", ", start_after: refunds", ", start_after: [orders, returns]"]), @"pipeline.yaml:4:47: inputs.returns.recording.start_after: these inputs wait for each other, so none of them would ever be read: returns after refunds after returns");
    insta::assert_snapshot!(error_with_order([", start_after: refunds", ", start_after: orders", ", start_after: returns"]), @"pipeline.yaml:3:46: inputs.orders.recording.start_after: these inputs wait for each other, so none of them would ever be read: orders after refunds after returns after orders");
    let error_after = |kind: &str| {
        error(&format!(
            "name: x\ndelivery: at_least_once\ninputs:\n  a: {{{kind}}}\n  b: {{file: {{paths: i, start_after: a}}}}\n\
             outputs: {{c: {{null: }}}}"
        ))
    };
    insta::assert_snapshot!(error_after("file: {paths: j, follow: true}"), @r#"pipeline.yaml:5:37: inputs.b.file.start_after[0]: "a" never ends, since it has "follow: true", so this input would never be read"#);
    insta::assert_snapshot!(error_after("kafka: {brokers: 'h:1', topic: t}"), @r#"pipeline.yaml:5:37: inputs.b.file.start_after[0]: "a" never ends, since it has no "stop_at: end", so this input would never be read"#);
    insta::assert_snapshot!(error_after("kafka: {brokers: 'h:1', topic: t, mode: group, group: g}"), @r#"pipeline.yaml:5:37: inputs.b.file.start_after[0]: "a" never ends, since a member of a consumer group reads on, so this input would never be read"#);
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, start_after: b}"), @r#"pipeline.yaml:5:52: inputs.a.kafka.start_after[0]: unknown input "b"; did you mean "a"? known inputs: a"#);
    insta::assert_snapshot!(error_with_input("{paths: i, max_records_per_second: 0}"), @"pipeline.yaml:4:46: inputs.a.file.max_records_per_second: expected a whole number of at least 1, found the number 0");
    insta::assert_snapshot!(error_with_kafka_input("{brokers: 'h:1', topic: t, max_records_per_second: 1.5}"), @"pipeline.yaml:5:63: inputs.a.kafka.max_records_per_second: expected a whole number of at least 1, found the number 1.5");
}

#[test]
fn yaml_that_is_refused() {
    insta::assert_snapshot!(error("name: x\nname: y\n"), @r#"pipeline.yaml:2:1: key "name" appears twice; first at line 1, column 1"#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  a: {}\n  \"a\": {}\n"), @r#"pipeline.yaml:4:3: inputs: key "a" appears twice; first at line 3, column 3"#);
    insta::assert_snapshot!(error("name: &n x\n"), @"pipeline.yaml:1:7: name: anchors (&name) and aliases (*name) are not supported; write the value out");
    insta::assert_snapshot!(error("name: &n x\nstate: *n\n"), @"pipeline.yaml:1:7: name: anchors (&name) and aliases (*name) are not supported; write the value out");
    insta::assert_snapshot!(error("name: *n\n"), @"pipeline.yaml:1:7: not valid YAML: while parsing node, found unknown anchor");
    insta::assert_snapshot!(error("name: x\n<<: {a: b}\n"), @"pipeline.yaml:2:1: merge keys (<<) are not supported; write the keys out");
    insta::assert_snapshot!(error("name: !!str 5\n"), @"pipeline.yaml:1:7: name: tags (!name) are not supported; put text that begins with ! in quotes");
    insta::assert_snapshot!(error("name: x\n---\nname: y\n"), @"pipeline.yaml:2:1: a second document begins here; a pipeline file holds one");
    insta::assert_snapshot!(error("name: x\n? [a]\n: b\n"), @"pipeline.yaml:2:3: a key must be text, not a list or a mapping");
    insta::assert_snapshot!(error("name: [x\n"), @"pipeline.yaml:2:1: not valid YAML: while parsing a flow sequence, expected ',' or ']'");
    insta::assert_snapshot!(error("name: x\n\tstate: y\n"), @"pipeline.yaml:1:7: not valid YAML: while scanning a plain scalar, found a tab; lines are indented by spaces");
    insta::assert_snapshot!(error("name: \"x\n"), @"pipeline.yaml:1:7: not valid YAML: while scanning a quoted scalar, found unexpected end of stream");
    insta::assert_snapshot!(error("name: x\n state: y\n"), @"pipeline.yaml:2:7: not valid YAML: mapping values are not allowed in this context");
    insta::assert_snapshot!(error("name: \"\\ud83d\\ude00\"\n"), @"pipeline.yaml:1:7: not valid YAML: while parsing a quoted scalar, found invalid Unicode character escape code");
    insta::assert_snapshot!(error_with_input("{paths: ${SECRET}}"), @"pipeline.yaml:4:20: not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'; inside { } or [ ] a value with ${...} needs quotes");
}

/// Story: a nest of brackets ended a parser with a stack overflow.
#[test]
fn deep_nesting() {
    insta::assert_snapshot!(error(&"[".repeat(100_000)), @"pipeline.yaml:1:256: nested deeper than 32 levels");
    insta::assert_snapshot!(error(&"- ".repeat(100_000)), @"pipeline.yaml:1:67: nested deeper than 32 levels");
    insta::assert_snapshot!(error(&"{a: ".repeat(100_000)), @"pipeline.yaml:1:1021: nested deeper than 32 levels");
    insta::assert_snapshot!(error(&"? ".repeat(100_000)), @"pipeline.yaml:1:3: a key must be text, not a list or a mapping");
    insta::assert_snapshot!(error(&format!("{}{}", "[".repeat(34), "]".repeat(34))), @"pipeline.yaml:1:34: nested deeper than 32 levels");
    insta::assert_snapshot!(error(&format!("{}: 5", "k".repeat(300))), @"pipeline.yaml:1:1: a key longer than 256 bytes");
    let block: String = (0..1000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    insta::assert_snapshot!(error(&block), @"pipeline.yaml:34:34: nested deeper than 32 levels");
}

/// Story (L1): an undefined variable stayed in the configuration as it was written.
#[test]
fn undefined_variables() {
    insta::assert_snapshot!(error("name: ${NAME}\n"), @r#"pipeline.yaml:1:7: name: variable "NAME" is not set; set it, or give a default: ${NAME:-default}"#);
    insta::assert_snapshot!(error_with_input("\n      paths:\n        - a\n        - b/${DIR}/c"), @r#"pipeline.yaml:7:11: inputs.a.file.paths[1]: variable "DIR" is not set; set it, or give a default: ${DIR:-default}"#);
}

/// Story (L3): a password from the environment was printed by the error about its setting.
#[test]
fn no_error_holds_the_value_of_a_variable() {
    insta::assert_snapshot!(error_with("delivery: ${SECRET}"), @"pipeline.yaml:2:11: delivery: expected exactly_once, at_least_once or none, found the value of ${SECRET} (not shown, it may be a secret)");
    insta::assert_snapshot!(error_with("checkpoint_interval: a${SECRET}"), @"pipeline.yaml:2:22: checkpoint_interval: expected a duration such as 250ms, 10s, 1m30s or 2h, found the value of ${SECRET} (not shown, it may be a secret)");
    insta::assert_snapshot!(error_with_input("{paths: i, follow: '${SECRET}${X:-}'}"), @"pipeline.yaml:4:30: inputs.a.file.follow: expected true or false, found the value of ${SECRET} and ${X} (not shown, it may be a secret)");
    insta::assert_snapshot!(error("name: ${SECRET}/\ninputs: {a: {file: {paths: i}}}\noutputs: {b: {null: }}"), @r#"pipeline.yaml:1:7: name: a name has only letters (a to z, A to Z), digits, "-", "_" and ".", found the value of ${SECRET} (not shown, it may be a secret)"#);

    // Wherever a value can stand, with and without text around it.
    let values = [
        "name",
        "inputs",
        "outputs",
        "delivery",
        "state",
        "checkpoint_interval",
        "min_batch_records",
        "max_buffering_delay",
        "max_batch_records",
        "stall_timeout",
        "on_stall",
        "shutdown_timeout",
        "control",
        "log",
    ];
    let input_values = [
        "paths",
        "format",
        "max_record_bytes",
        "overlong",
        "follow",
        "start_at",
        "max_queued_records",
        "max_queued_bytes",
        "start_after",
        "max_records_per_second",
    ];
    let kafka_input_values = [
        "brokers",
        "topic",
        "topics",
        "start_from",
        "stop_at",
        "partitions",
        "mode",
        "group",
        "group_protocol",
        "group_instance_id",
        "max_pending_records",
        "max_queued_records",
        "max_queued_bytes",
        "start_after",
        "max_records_per_second",
        "on_expired",
        "on_truncated",
        "on_recreated",
        "on_vanished",
        "properties",
    ];
    let kafka_output_values = [
        "brokers",
        "topic",
        "partition",
        "timestamp",
        "key",
        "headers",
        "on_refused",
        "exactly_once",
        "commit_interval",
        "properties",
    ];
    let output_values = ["path", "format", "segment_bytes", "segment_records", "compression"];
    for secret in [
        "'${SECRET}'",
        "'/${SECRET}/'",
        "'${SECRET}{segment}/'",
        "['${SECRET}']",
        "{'k': '${SECRET}'}",
        "{'from': '${SECRET}'}",
        "{'from': 'header', 'name': '${SECRET}', 'position_topic': '${SECRET}'}",
        "{'timestamp': '${SECRET}'}",
        "{'offsets': {'t': {0: '${SECRET}'}}}",
        "{'dead_letter': '${SECRET}/'}",
        "{'sasl.password': ['${SECRET}']}",
        "{'sasl.password': {'file': '${SECRET}'}}",
        "{'isolation.level': '${SECRET}'}",
        "{'listen': '${SECRET}'}",
        "{'listen': '0.0.0.0:1', 'token_file': '${SECRET}'}",
        "{'listen': '127.0.0.1:1', 'tls': {'certificate': '${SECRET}', 'key': ['${SECRET}']}}",
        "{'targets': {'a': '${SECRET}'}}",
        "{'level': '${SECRET}'}",
    ] {
        let top = values.iter().map(|key| format!("{key}: {secret}"));
        let input = input_values.iter().map(|key| {
            format!(
                "name: x\ninputs: {{a: {{file: {{{key}: {secret}}}}}}}\noutputs: {{b: {{null: }}}}"
            )
        });
        let output = output_values.iter().map(|key| {
            format!("name: x\ninputs: {{a: {{file: {{paths: i}}}}}}\noutputs: {{b: {{file: {{{key}: {secret}}}}}}}")
        });
        let kafka_input = kafka_input_values.iter().map(|key| {
            let others = [("brokers", "'h:1'"), ("topic", "t")];
            let others = others.iter().filter(|(other, _)| other != key);
            let others: String = others.map(|(key, value)| format!("{key}: {value}, ")).collect();
            format!(
                "name: x\ninputs: {{a: {{kafka: {{{others}{key}: {secret}}}}}}}\noutputs: {{b: {{null: }}}}"
            )
        });
        let kafka_output = kafka_output_values.iter().map(|key| {
            let others = [("brokers", "'h:1'"), ("topic", "t")];
            let others = others.iter().filter(|(other, _)| other != key);
            let others: String = others.map(|(key, value)| format!("{key}: {value}, ")).collect();
            format!("name: x\ninputs: {{a: {{file: {{paths: i}}}}}}\noutputs: {{b: {{kafka: {{{others}{key}: {secret}}}}}}}")
        });
        let texts = top.chain(input).chain(output).chain(kafka_input).chain(kafka_output);
        for text in texts {
            let Err(error) = parse(&text, Path::new("pipeline.yaml"), &environment) else {
                continue;
            };
            for shown in [error.to_string(), format!("{error:?}")] {
                assert!(!shown.contains(&CANARY[..6]), "{text}: {shown}");
            }
        }
    }
}

#[test]
fn files_that_cannot_be_read() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let error = |name: &str, content: Option<&[u8]>| {
        let path = directory.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).expect("writes");
        }
        let error = load(&path).expect_err("refused");
        let source = match &error {
            PipelineError::Unreadable { source, .. } => format!(": {source}"),
            PipelineError::Invalid { .. } => String::new(),
        };
        let directory = directory.path().display().to_string();
        format!("{error}{source}").replace(&directory, "DIR")
    };
    insta::assert_snapshot!(error("missing.yaml", None), @"DIR/missing.yaml: cannot read the pipeline file: No such file or directory (os error 2)");
    insta::assert_snapshot!(error("latin1.yaml", Some(b"name: x\n# \xc3\xa9 caf\xe9\n")), @"DIR/latin1.yaml:2:8: not valid UTF-8; save the file as UTF-8");
    insta::assert_snapshot!(error("large.yaml", Some(&[b' '; (1 << 20) + 1])), @"DIR/large.yaml:1:1: larger than 1 MiB, which no pipeline file is");
    insta::assert_snapshot!(error("empty.yaml", Some(b"")), @r#"DIR/empty.yaml:1:1: the file is empty; a pipeline has at least the keys name, inputs and outputs ("lockgate init" writes one to start from)"#);
}

/// Text made of what YAML and the pipeline file give a meaning to.
fn almost_a_pipeline() -> impl Strategy<Value = String> {
    let pieces = [
        "name",
        "inputs",
        "outputs",
        "file",
        "kafka",
        "paths",
        "brokers",
        "topic",
        "start_from",
        "properties",
        "control",
        "listen",
        "log",
        "targets",
        "start_after",
        "null",
        "stdout",
        "x",
        "5",
        "10s",
        "${A:-b}",
        "$",
        ":",
        ": ",
        "- ",
        "? ",
        ", ",
        "[",
        "]",
        "{",
        "}",
        "\n",
        "\n  ",
        "\n    ",
        "\t",
        "\"",
        "'",
        "|\n",
        ">-\n",
        "&a ",
        "*a",
        "!t ",
        "# ",
        "%YAML 1.2\n",
        "---\n",
        "...\n",
        "<<",
        "\\x",
        "\u{feff}",
        "\0",
        "é",
        "\r",
        "\u{2028}",
        "@",
        "`",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..60)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = parse(&text, Path::new("pipeline.yaml"), &environment);
    }

    #[test]
    fn almost_a_pipeline_never_panics(text in almost_a_pipeline()) {
        let _ = parse(&text, Path::new("pipeline.yaml"), &environment);
    }
}
