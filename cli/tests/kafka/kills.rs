//! `kill -9` at random moments, with Kafka on one side or both: every record is there once, in its order, byte
//! for byte.

use std::fs;
use std::io::{BufRead, BufReader};

use crate::cluster::{Topic, shared};
use crate::data::Seeded;
use crate::rows::{Check, Row};
use crate::scaled;
use crate::site::Site;

const PARTITIONS: u32 = 6;

fn records() -> u64 {
    scaled(2_000_000, 240_000)
}

fn kills() -> u64 {
    scaled(20, 4)
}

fn pipeline(input: &str, output: &str) -> String {
    format!(
        "name: killed\ncheckpoint_interval: 200ms\ninputs: {{in: {input}}}\noutputs: {{out: {output}}}\n"
    )
}

fn kafka_input(topic: &Topic) -> String {
    format!("{{kafka: {{brokers: \"{}\", topic: {}, stop_at: end}}}}", shared(), topic.name)
}

fn kafka_output(topic: &Topic, more: &str) -> String {
    format!("{{kafka: {{brokers: \"{}\", topic: {}{more}}}}}", shared(), topic.name)
}

/// Kills the run again and again, spread over its length as `progress` tells it, then lets it end.
fn run_with_kills(site: &Site, total: u64, progress: impl Fn() -> u64, seed: u64) {
    let mut random = Seeded(seed);
    let kills = kills();
    for kill in 0..kills {
        let target = (total * kill + random.below(total)) / (kills + 1);
        let mut running = site.start();
        // Each look asks the brokers, which takes milliseconds.
        let mut delay = random.below(4);
        let reached = running.until(|| {
            let there = progress() >= target;
            delay = delay.saturating_sub(u64::from(there));
            there && delay == 0
        });
        assert!(reached, "kill {kill}: the run ended before: {}", running.stderr());
        assert!(running.kill(), "kill {kill}: the run ended just before");
    }
    site.run();
}

#[test]
fn kills_do_not_show_between_topics() {
    let from = Topic::new(&shared(), "kk-from", PARTITIONS, 1).filled(records() / 6);
    let to = Topic::new(&shared(), "kk-to", PARTITIONS, 1);
    let site = Site::new(&pipeline(&kafka_input(&from), &kafka_output(&to, ", partition: kept")));
    run_with_kills(&site, records(), || to.size(), 1);
    to.check(&to.each(records() / 6));
}

#[test]
fn kills_do_not_show_from_a_topic_to_a_file() {
    let from = Topic::new(&shared(), "kf-from", PARTITIONS, 1).filled(records() / 6);
    let site =
        Site::new(&pipeline(&kafka_input(&from), "{file: {path: out/all.jsonl, format: json}}"));
    // A record takes more than 200 bytes of JSON.
    run_with_kills(&site, records() * 200, || site.size("out"), 2);
    let (mut check, mut offsets) = (Check::default(), [None; PARTITIONS as usize]);
    for line in BufReader::new(fs::File::open(site.path("out/all.jsonl")).unwrap()).split(b'\n') {
        let (partition, offset, row) = Row::of_json(&line.unwrap());
        check.take(partition, &row);
        let last = &mut offsets[partition as usize];
        assert!(last.replace(offset) < Some(offset), "[{partition}] goes back to {offset}");
    }
    check.end(&from.each(records() / 6));
}

#[test]
fn kills_do_not_show_from_a_file_to_a_topic() {
    // Long enough that a run has not ended before it is killed for the last time.
    let filler = "to be read back ".repeat(20);
    let line = |n: u64| format!("{n} {:x} {filler}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let to = Topic::new(&shared(), "fk-to", PARTITIONS, 1);
    let site = Site::new(&pipeline("{file: {paths: in.log}}", &kafka_output(&to, "")));
    let text: String = (0..records()).map(|n| line(n) + "\n").collect();
    site.write("in.log", text);
    run_with_kills(&site, records(), || to.size(), 3);
    let (mut seen, mut last) = (vec![false; records() as usize], [None; PARTITIONS as usize]);
    to.read_committed(|partition, row| {
        let text = String::from_utf8(row.value.unwrap()).unwrap();
        let n: u64 = text.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(text, line(n));
        assert!(!std::mem::replace(&mut seen[n as usize], true), "{n} is there twice");
        let before = &mut last[partition as usize];
        assert!(before.replace(n) < Some(n), "[{partition}]: {n} comes after {before:?}");
    });
    assert_eq!(seen.iter().filter(|seen| !**seen).count(), 0, "records are missing");
}
