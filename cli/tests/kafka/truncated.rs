//! A log that is truncated, and then grows beyond what was read of it: offsets alone no longer tell.

use std::fs;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, Topic};
use crate::rows::Row;
use crate::scaled;
use crate::site::Site;

/// The number of the first of the records that replace others.
const OTHERS: u64 = 1_000_000_000;

const WAIT: Duration = Duration::from_secs(60);

fn site(topic: &Topic, servers: &str, more: &str) -> Site {
    Site::new(&format!(
        "name: truncated\ncheckpoint_interval: 50ms\n\
         inputs: {{in: {{kafka: {{brokers: \"{servers}\", topic: {}{more}}}}}}}\n\
         outputs: {{out: {{file: {{path: out/all.jsonl, format: json}}}}}}\n",
        topic.name
    ))
}

/// The offsets and rows that are in the file.
fn written(site: &Site) -> Vec<(u64, Row)> {
    let text = fs::read(site.path("out/all.jsonl")).unwrap_or_default();
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| line.strip_suffix(b"\n"));
    lines.map(Row::of_json).map(|(_, offset, row)| (offset, row)).collect()
}

/// How many there are, without a look at them.
fn lines(site: &Site) -> u64 {
    let text = fs::read(site.path("out/all.jsonl")).unwrap_or_default();
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The records from number `first` on, at the offsets from `from` to `to`.
fn rows(from: u64, to: u64, first: u64) -> impl Iterator<Item = (u64, Row)> {
    (from..to).map(move |offset| (offset, Row::of(0, first + offset - from)))
}

/// All copies have the first records. The second ones have died with their leader, and were read; a follower took its
/// place, and others were written in theirs, and more of them (librdkafka#5158).
#[test]
fn a_log_that_was_truncated_and_grew_is_not_read_on_as_if_it_were_the_same() {
    let [first, second, other] = scaled([100_000, 50_000, 150_000], [1000, 500, 1500]);
    let cluster = Cluster::start("truncated", 3);
    let servers = &cluster.servers;
    let topic = Topic::careless(servers, "from", 1, 2).filled(first);
    let refuses = [site(&topic, servers, ""), site(&topic, servers, "")];
    let continues = [", on_truncated: continue"; 2].map(|policy| site(&topic, servers, policy));
    cluster.kill(2);
    let mut writer = topic.writer_of(first);
    writer.fill(second);
    writer.finish();
    let read = first + second;
    // Of each two one is stopped now, and one goes on.
    let mut running = Vec::new();
    for sites in [&refuses, &continues] {
        for (site, is_stopped) in sites.iter().zip([true, false]) {
            let mut process = site.start();
            let all = || lines(site) == read;
            assert!(process.until(all), "{}", process.stderr());
            if is_stopped {
                process.signal("TERM");
                let ended = process.end();
                assert_eq!(ended.code, 0, "{}", ended.stderr);
            } else {
                running.push(process);
            }
        }
    }
    cluster.kill(1);
    cluster.start_again(2);
    let begun = Instant::now();
    while topic.leader(0) != Some(2) {
        assert!(begun.elapsed() < WAIT, "the follower does not take over");
        std::thread::sleep(Duration::from_millis(20)); // polls: what the brokers decide
    }
    let mut writer = topic.writer_of(OTHERS);
    writer.fill(other);
    writer.finish();
    let end = first + other;
    assert_eq!(topic.size(), end);

    let expected: Vec<_> = rows(0, read, 0).chain(rows(first, end, OTHERS)).collect();
    let mut survivor = running.pop().unwrap();
    let was_running = running.pop().unwrap().end();
    let mut resumed = refuses[0].start();
    assert!(!resumed.until(|| lines(&refuses[0]) > read), "it reads on as if nothing had happened");
    let ended = resumed.end();
    for (ended, site) in [(&was_running, &refuses[1]), (&ended, &refuses[0])] {
        assert_eq!(ended.code, 65, "{}", ended.stderr);
        assert_eq!(written(site), expected[..read as usize], "nothing of the others was read");
    }
    let place = format!("{}[0] is wanted from offset {read} on", topic.name);
    for part in [place.as_str(), "leader epoch", &format!("up to {first} only"), "500 offsets"] {
        let part = part.replace("500", &second.to_string());
        assert!(ended.stderr.contains(&part), "{}", ended.stderr);
    }

    let all = |site: &Site| lines(site) == expected.len() as u64;
    assert!(survivor.until(|| all(&continues[1])), "{}", survivor.stderr());
    let mut resumed = continues[0].start();
    assert!(resumed.until(|| all(&continues[0])), "{}", resumed.stderr());
    for (process, site) in [(resumed, &continues[0]), (survivor, &continues[1])] {
        process.signal("TERM");
        let ended = process.end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stderr.contains("truncated_continued: 1"), "{}", ended.stderr);
        assert_eq!(written(site), expected);
    }
}
