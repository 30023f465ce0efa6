//! What was recorded of topics, replayed without them.

use std::fs;

use crate::cluster::{Topic, shared};
use crate::rows::{Check, Row};
use crate::scaled;
use crate::site::Site;

const PARTITIONS: u32 = 5;

fn pipeline(input: &str, output: &str) -> String {
    format!(
        "name: recorded\ncheckpoint_interval: 300ms\ninputs: {{in: {input}}}\noutputs: {{out: {output}}}\n"
    )
}

/// Records of every kind, written in transactions, whose markers leave gaps among the offsets.
fn with_gaps(purpose: &str, records: u64) -> Topic {
    let plain =
        Topic::new(&shared(), "plain", PARTITIONS, 1).filled(records / u64::from(PARTITIONS));
    let topic = Topic::new(&shared(), purpose, PARTITIONS, 1);
    let output = format!(
        "{{kafka: {{brokers: \"{}\", topic: {}, partition: kept, commit_interval: 20ms}}}}",
        shared(),
        topic.name
    );
    Site::new(&pipeline(&input(&plain), &output)).run();
    topic
}

fn input(topic: &Topic) -> String {
    format!("{{kafka: {{brokers: \"{}\", topic: {}, stop_at: end}}}}", shared(), topic.name)
}

const OUTPUT: &str = "{file: {path: out.jsonl, format: json}}";

/// The same output from the recording of a run that was killed as from the run itself, every time; the hash of every
/// step is compared by the replay.
#[test]
fn a_run_that_was_killed_is_replayed_byte_for_byte() {
    let records = scaled(1_000_000, 60_000);
    let topic = with_gaps("recorded", records);
    let site = Site::new(&pipeline(&input(&topic), OUTPUT));
    // A record takes more than 200 bytes of JSON.
    for target in [records * 60, records * 120] {
        let mut running = site.start_with(&["--record", "take"]);
        let reached = running.until(|| site.size(".") > target);
        assert!(reached, "{}", running.stderr());
        assert!(running.kill(), "the run ended just before");
    }
    let ended = site.lockgate(&["run", "pipeline.yaml", "--record", "take"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let expected = site.read("out.jsonl");
    check(&expected, &topic, records);
    for _ in 0..3 {
        fs::remove_file(site.path("out.jsonl")).unwrap();
        let replayed = site.lockgate(&["replay", "take", "pipeline.yaml"]);
        assert_eq!(replayed.code, 0, "{}", replayed.stderr);
        assert!(site.read("out.jsonl") == expected, "another output: {}", replayed.stderr);
    }
}

fn check(lines: &[u8], topic: &Topic, records: u64) {
    let mut check = Check::default();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let (partition, _, row) = Row::of_json(line.strip_suffix(b"\n").unwrap());
        check.take(partition, &row);
    }
    check.end(&topic.each(records / u64::from(PARTITIONS)));
}

#[test]
fn a_slice_of_a_topic_is_taken_home() {
    let records = scaled(1_000_000, 20_000);
    let topic = with_gaps("slice", records);
    let site = Site::new(&pipeline(&input(&topic), OUTPUT));
    let servers = shared();
    let record = |more: &[&str]| {
        let args = [&["record", "--brokers", &servers, "--topic", &topic.name], more].concat();
        site.lockgate(&args)
    };
    let all = record(&["-e", "end", "--out", "all.parquet"]);
    assert_eq!(all.code, 0, "{}", all.stderr);
    assert!(all.stderr.contains("the end was reached"), "{}", all.stderr);
    let replayed = site.lockgate(&["replay", "all.parquet", "pipeline.yaml"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    check(&site.read("out.jsonl"), &topic, records);

    // And back into a topic, partition by partition.
    let back = Topic::new(&shared(), "back", PARTITIONS, 1);
    let args = ["replay", "all.parquet", "--to-kafka", &servers, "--topic", &back.name];
    let written = site.lockgate(&args);
    assert_eq!(written.code, 0, "{}", written.stderr);
    back.check(&back.each(records / u64::from(PARTITIONS)));

    // In the form that other tools use.
    assert_eq!(record(&["-e", "end", "--out", "all.jsonl"]).code, 0);
    fs::remove_file(site.path("out.jsonl")).unwrap();
    let replayed = site.lockgate(&["replay", "all.jsonl", "pipeline.yaml"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    check(&site.read("out.jsonl"), &topic, records);

    let count = |file: &str| {
        let tape = lockgate_file_adapter::tape::Tape::find(&site.path(file), None).unwrap();
        tape.records()
    };
    assert_eq!(
        record(&["-o", "10", "-e", "15", "--partitions", "0,3", "--out", "ten.parquet"]).code,
        0
    );
    assert_eq!(count("ten.parquet"), 10);
    assert_eq!(record(&["-c", "7", "--out", "seven.parquet"]).code, 0);
    assert_eq!(count("seven.parquet"), 7);
    // Each partition ends with a marker.
    assert_eq!(record(&["-o", "-3", "-e", "end", "--out", "last.parquet"]).code, 0);
    assert_eq!(count("last.parquet"), 2 * u64::from(PARTITIONS));
    assert_eq!(record(&["-e", "e@0", "--out", "none.parquet"]).code, 0);
    assert_eq!(count("none.parquet"), 0);
    fs::remove_file(site.path("out.jsonl")).unwrap();
    let nothing = site.lockgate(&["replay", "none.parquet", "pipeline.yaml"]);
    assert!(nothing.code == 0 && site.read("out.jsonl").is_empty(), "{}", nothing.stderr);
    let timed = record(&["-o", "end", "--for", "200ms", "--out", "late.parquet"]);
    assert!(timed.code == 0 && timed.stderr.contains("the time was over"), "{}", timed.stderr);

    let again = record(&["-e", "end", "--out", "all.parquet"]);
    assert!(again.code == 78 && again.stderr.contains("all.parquet exists"), "{}", again.stderr);
    let beyond = record(&["-o", "99999999", "--out", "x.parquet"]);
    assert!(beyond.code == 65 && beyond.stderr.contains("beyond its end"), "{}", beyond.stderr);
    let stored = record(&["-o", "stored", "--group", "nobody", "--out", "x.parquet"]);
    assert!(stored.code == 78 && stored.stderr.contains("no offset"), "{}", stored.stderr);
    assert!(!site.path("x.parquet").exists(), "nothing is left behind");
    // Its values are no JSON.
    let masked = record(&["-e", "end", "--mask", "email", "--out", "m.parquet"]);
    assert!(masked.code == 65 && masked.stderr.contains("offset 0"), "{}", masked.stderr);
}

/// An end in order, whenever somebody has enough.
#[test]
fn a_slice_without_an_end_is_ended_by_a_signal() {
    let topic = Topic::new(&shared(), "endless", PARTITIONS, 1).filled(100);
    let site = Site::new("");
    let servers = shared();
    let args = ["record", "--brokers", &servers, "--topic", &topic.name, "--out", "slice.parquet"];
    let mut running = site.begin(&args);
    // It is made when the brokers have answered.
    assert!(running.until(|| site.path("slice.parquet").exists()), "{}", running.stderr());
    running.signal("INT");
    let ended = running.end();
    assert!(ended.code == 0 && ended.stderr.contains("stopped by a signal"), "{}", ended.stderr);
    let tape = lockgate_file_adapter::tape::Tape::find(&site.path("slice.parquet"), None).unwrap();
    assert!(tape.complete() && tape.records() <= 100 * u64::from(PARTITIONS));
}
