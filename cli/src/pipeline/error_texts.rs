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
    insta::assert_snapshot!(error_with("checkpoint_intervall: 1s"), @r#"pipeline.yaml:2:1: unknown key "checkpoint_intervall"; did you mean "checkpoint_interval"? known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout"#);
    insta::assert_snapshot!(error_with("checkpointInterval: 1s"), @r#"pipeline.yaml:2:1: unknown key "checkpointInterval"; did you mean "checkpoint_interval"? known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout"#);
    insta::assert_snapshot!(error_with("colour: red"), @r#"pipeline.yaml:2:1: unknown key "colour"; known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout"#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  orders:\n    fiel:\n      paths: i\n"), @r#"pipeline.yaml:4:5: inputs.orders: unknown kind "fiel"; did you mean "file"? known kinds: file"#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  orders:\n    kafka: {}\n"), @r#"pipeline.yaml:4:5: inputs.orders: unknown kind "kafka"; known kinds: file"#);
    insta::assert_snapshot!(error("name: x\ninputs:\n  orders:\n    file:\n      pathes: i\n"), @r#"pipeline.yaml:5:7: inputs.orders.file: unknown key "pathes"; did you mean "paths"? known keys: paths, format, max_record_bytes, overlong, follow, start_at, max_queued_records, max_queued_bytes"#);
    insta::assert_snapshot!(error_with_input("{paths: i, folow: true}"), @r#"pipeline.yaml:4:22: inputs.a.file: unknown key "folow"; did you mean "follow"? known keys: paths, format, max_record_bytes, overlong, follow, start_at, max_queued_records, max_queued_bytes"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    flie: {path: o}\n"), @r#"pipeline.yaml:5:5: outputs.b: unknown kind "flie"; did you mean "file"? known kinds: file, stdout, null"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: o, compresion: gzip}\n"), @r#"pipeline.yaml:5:21: outputs.b.file: unknown key "compresion"; did you mean "compression"? known keys: path, format, segment_bytes, segment_records, compression"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    stdout: {formt: json}\n"), @r#"pipeline.yaml:5:14: outputs.b.stdout: unknown key "formt"; did you mean "format"? known keys: format"#);
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    null:\n      path: o\n"), @r#"pipeline.yaml:6:7: outputs.b.null: unknown key "path"; there are no keys here"#);
    insta::assert_snapshot!(error_with("\"a\\nb\\e[31m\": 1"), @r#"pipeline.yaml:2:1: unknown key "a\nb\u{1b}[31m"; known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout"#);
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
    insta::assert_snapshot!(error("name: x\ninputs:\n  a:\n"), @"pipeline.yaml:3:3: inputs.a: expected a mapping with one key, the kind (file), found nothing");
    insta::assert_snapshot!(error("name: x\ninputs:\n  a: {}\n"), @"pipeline.yaml:3:6: inputs.a: no kind is given; exactly one key is expected, the kind (file)");
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
    insta::assert_snapshot!(error("name: x\ninputs:\n  a: file\n"), @r#"pipeline.yaml:3:6: inputs.a: expected a mapping with one key, the kind (file), found the string "file""#);
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
        error("name: x\ninputs:\n  a:\n    file: {paths: i}\n    kafka: {topic: t}\n"), @r#"pipeline.yaml:4:5: inputs.a: 2 keys ("file", "kafka") where exactly one is expected, the kind (file)"#);
    insta::assert_snapshot!(
        error("name: x\ninputs:\n  a:\n    file:\n    paths: i\n"), @r#"pipeline.yaml:4:5: inputs.a: 2 keys ("file", "paths") where exactly one is expected, the kind (file)"#);
    let many: String = (0..100).map(|n| format!("    k{n}: 5\n")).collect();
    insta::assert_snapshot!(error(&format!("name: x\ninputs:\n  a:\n{many}")), @r#"pipeline.yaml:4:5: inputs.a: 100 keys ("k0", "k1", "k2", "k3", ...) where exactly one is expected, the kind (file)"#);
    insta::assert_snapshot!(error_with_outputs("outputs: {b: null}"), @"pipeline.yaml:3:14: outputs.b: expected a mapping with one key, the kind (file, stdout or null), found nothing");
    insta::assert_snapshot!(error_with_outputs("outputs:\n  b:\n    file: {path: o}\n    null:\n"), @r#"pipeline.yaml:5:5: outputs.b: 2 keys ("file", "null") where exactly one is expected, the kind (file, stdout or null)"#);
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
    ];
    let output_values = ["path", "format", "segment_bytes", "segment_records", "compression"];
    for secret in [
        "'${SECRET}'",
        "'/${SECRET}/'",
        "'${SECRET}{segment}/'",
        "['${SECRET}']",
        "{'k': '${SECRET}'}",
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
        for text in top.chain(input).chain(output) {
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
        "paths",
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
