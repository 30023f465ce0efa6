//! A program that stands still for a while, as in a debugger: the group has dealt its partitions anew and the brokers
//! have given its transaction up when it goes on. It comes back by itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::cluster::{Topic, shared};
use crate::rows::{Check, Row};
use crate::scaled;
use crate::site::{Running, Site};

const PARTITIONS: u32 = 3;
/// How long the brokers miss a member, and how long it may do without a poll. The tests' brokers allow so little.
const SESSION: &str = "\"session.timeout.ms\": 2000, \"max.poll.interval.ms\": 2000, \
                       \"heartbeat.interval.ms\": 300";
/// Longer than any of these.
const PAUSE: Duration = Duration::from_secs(5);

fn input(from: &Topic, more: &str) -> String {
    let (servers, name) = (shared(), &from.name);
    format!(
        "{{kafka: {{brokers: \"{servers}\", topic: {name}, {more}start_from: earliest, \
         properties: {{{SESSION}}}}}}}"
    )
}

fn output(to: &Topic) -> String {
    let (servers, name) = (shared(), &to.name);
    format!(
        "{{kafka: {{brokers: \"{servers}\", topic: {name}, partition: kept, commit_interval: 100ms, \
         properties: {{transaction.timeout.ms: 3000}}}}}}"
    )
}

fn pipeline(input: &str, outputs: &str) -> Site {
    Site::new(&format!(
        "name: debugged\ncheckpoint_interval: 300ms\ninputs: {{in: {input}}}\noutputs: {{{outputs}}}\n"
    ))
}

/// Lets the program run and stand still in turn while its input is written to, and stops it in order when it has
/// written everything. `paused` is called after each stop and says when it has been long enough. How many records
/// there were.
fn run_with_pauses(
    site: &Site,
    (from, to): (&Topic, &Topic),
    mut paused: impl FnMut(&mut Running),
) -> BTreeMap<u32, u64> {
    let mut running = site.start();
    let each = from.fed_while(|| {
        for _ in 0..scaled(6, 2) {
            to.grows(&mut running, 500);
            running.signal("STOP");
            paused(&mut running);
            running.signal("CONT");
        }
        to.grows(&mut running, 500);
    });
    to.completed_by(running, &each);
    each
}

/// How many members the brokers count in a group.
fn members(asking: &BaseConsumer, group: &str) -> Option<usize> {
    let groups = asking.fetch_group_list(Some(group), Duration::from_secs(5)).ok()?;
    let found = groups.groups().iter().find(|found| found.name() == group)?;
    Some(found.members().len())
}

#[test]
fn a_member_of_a_group_that_stood_still_comes_back_by_itself() {
    let from = Topic::new(&shared(), "debug-from", PARTITIONS, 1);
    let to = Topic::new(&shared(), "debug-to", PARTITIONS, 1);
    let group = format!("mode: group, group: {}, ", from.name);
    let site = pipeline(&input(&from, &group), &format!("out: {}", output(&to)));
    let asking: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", shared()).create().unwrap();
    run_with_pauses(&site, (&from, &to), |running| {
        assert_eq!(members(&asking, &from.name), Some(1));
        let forgotten = running.until(|| members(&asking, &from.name) == Some(0));
        assert!(forgotten, "{}", running.stderr());
        wait(running);
    });
}

/// No group, but transactions that the brokers give up meanwhile.
#[test]
fn a_program_with_assigned_partitions_that_stood_still_comes_back_by_itself() {
    let from = Topic::new(&shared(), "debug-from", PARTITIONS, 1);
    let to = Topic::new(&shared(), "debug-to", PARTITIONS, 1);
    let file = "file: {file: {path: out/all.jsonl, format: json}}";
    let site = pipeline(&input(&from, ""), &format!("out: {}, {file}", output(&to)));
    let each = run_with_pauses(&site, (&from, &to), wait);
    let mut check = Check::default();
    for line in BufReader::new(fs::File::open(site.path("out/all.jsonl")).unwrap()).split(b'\n') {
        let (partition, _, row) = Row::of_json(&line.unwrap());
        check.take(partition, &row);
    }
    check.end(&each);
}

/// Longer than anybody waits for the program.
fn wait(running: &mut Running) {
    let begun = Instant::now();
    assert!(running.until(|| begun.elapsed() >= PAUSE), "it ended while it stood still");
}
