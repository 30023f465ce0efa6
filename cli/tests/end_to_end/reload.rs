//! Settings that change while a pipeline runs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use std::{fs, thread};

use crate::api::{Api, reload_again_and_again};
use crate::site::{Running, Site};

/// With other limits for each `n`.
fn pipeline(n: u64) -> String {
    let queued = 1 + n % 7;
    format!(
        "name: changing\ncontrol: {{listen: \"127.0.0.1:0\"}}\ncheckpoint_interval: {interval}ms\n\
         min_batch_records: {batch}\nmax_batch_records: {batch}\nmax_buffering_delay: {delay}ms\n\
         inputs:\n  \
           in: {{file: {{paths: in.log, follow: true, max_queued_bytes: {queued}MiB, max_queued_records: {records}}}}}\n\
         outputs: {{out: {{file: {{path: out/all.log}}}}}}\n",
        interval = 50 + n % 10 * 20,
        batch = 100 * (1 + n % 5),
        delay = n % 4,
        records = 1000 * queued,
    )
}

fn line(n: u64) -> String {
    format!("{n} {:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Appends lines as long as `work` goes on; how many there are then.
fn fed_while(site: &Site, work: impl FnOnce()) -> u64 {
    thread::scope(|scope| {
        let (stop, stopped) = channel::<()>();
        let path = site.path("in.log");
        let fed = scope.spawn(move || {
            let mut file = fs::File::options().append(true).open(path).unwrap();
            let mut n = 0;
            let pause = Duration::from_millis(2);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let lines: String = (n..n + 200).map(line).collect();
                file.write_all(lines.as_bytes()).unwrap();
                n += 200;
            }
            n
        });
        work();
        drop(stop);
        fed.join().unwrap()
    })
}

/// What is lost or doubled shows, and so does a limit that is not the last one that was asked for.
#[test]
fn twenty_reloads_a_second_under_load_lose_nothing_and_the_last_one_counts() {
    let full = std::env::var("LOCKGATE_PROOF").is_ok_and(|form| form == "full");
    let length = Duration::from_secs(if full { 60 } else { 4 });
    let site = Site::new(&pipeline(0));
    site.write("in.log", "");
    let mut running = site.start();
    let api = Api::of(&site, "changing", &mut running);
    let mut last = 0;
    let lines = fed_while(&site, || last = reload_again_and_again(&site, &api, length, pipeline));
    let size: u64 = (0..lines).map(|n| line(n).len() as u64).sum();
    assert!(running.until(|| site.size("out") == size), "{}", running.stderr());
    let status = api.status();
    let queued = (1 + last % 7) << 20;
    assert_eq!(status["inputs"][0]["max_queued_bytes"], queued, "{status:#}");
    assert_eq!(status["reloads"]["pending"], false);
    assert!(status["reloads"]["count"].as_u64().unwrap() > 1, "{status:#}");
    assert_eq!(status["inputs"][0]["paused"], serde_json::json!([]));
    running.signal("TERM");
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut written = BufReader::new(fs::File::open(site.path("out/all.log")).unwrap()).lines();
    for n in 0..lines {
        assert_eq!(written.next().unwrap().unwrap() + "\n", line(n));
    }
    assert!(written.next().is_none());
}

fn started() -> (Site, Running, Api) {
    let site = Site::new(&pipeline(0));
    site.write("in.log", "one\n");
    let mut running = site.start();
    let api = Api::of(&site, "changing", &mut running);
    (site, running, api)
}

/// One bad change refuses all of a file, and what ran before runs on.
#[test]
fn what_cannot_change_while_it_runs_is_refused_with_the_reason() {
    let (site, mut running, api) = started();
    let moved = pipeline(3).replace("out/all.log", "out/other.log");
    site.write("pipeline.yaml", moved);
    let refused = site.lockgate(&["reload"]);
    assert_eq!(refused.code, 78, "{}{}", refused.stdout, refused.stderr);
    assert!(
        refused.stderr.contains("outputs.out.file.path: was out/all.log, is out/other.log"),
        "{}",
        refused.stderr
    );
    site.write("pipeline.yaml", "name: [");
    let (code, text) = api.post("api/v1/reload");
    assert!(code == 422 && text.contains("pipeline.yaml:1:8"), "{code} {text}");
    let status = api.status();
    assert_eq!(status["inputs"][0]["max_queued_bytes"], 1 << 20);
    let metrics = api.get("metrics").1;
    assert!(metrics.contains("lockgate_config_last_reload_successful 0\n"), "{metrics}");
    let said: BTreeSet<_> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .collect::<Vec<_>>()
        .iter()
        .map(|condition| condition["text"].to_string())
        .collect();
    assert!(said.iter().any(|text| text.contains("the last reload was refused")), "{said:?}");
    site.append("in.log", "two\n");
    assert!(running.until(|| site.size("out") == 8), "{}", running.stderr());
    site.write("pipeline.yaml", pipeline(3));
    let done = site.lockgate(&["reload"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("max_queued_bytes"), "{}", done.stdout);
    assert_eq!(api.status()["inputs"][0]["max_queued_bytes"], 4 << 20);
}

/// A signal, and the file alone, do the same as asking.
#[test]
fn the_pipeline_file_is_read_again_by_signal_and_when_it_changes() {
    let (site, mut running, api) = started();
    let limit = |n: u64| serde_json::json!((1 + n % 7) << 20);
    let in_force = |n| api.status()["inputs"][0]["max_queued_bytes"] == limit(n);
    site.write("pipeline.yaml", pipeline(1));
    running.signal("HUP");
    assert!(running.until(|| in_force(1)), "{}", running.stderr());
    site.write("pipeline.new", pipeline(2));
    fs::rename(site.path("pipeline.new"), site.path("pipeline.yaml")).unwrap();
    assert!(running.until(|| in_force(2)), "{}", running.stderr());
    // The level and the form of the log, too.
    let json = format!("log: {{level: debug, format: json}}\n{}", pipeline(2));
    site.write("pipeline.yaml", json);
    assert_eq!(site.lockgate(&["reload"]).code, 0);
    site.append("in.log", "two\n");
    assert_eq!(site.lockgate(&["checkpoint"]).code, 0);
    let is_json = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line["level"] == "DEBUG")
    };
    assert!(running.until(|| running_log(&site).lines().any(is_json)), "{}", running.stderr());
}

fn running_log(site: &Site) -> String {
    fs::read_to_string(site.path("stderr.log")).unwrap_or_default()
}

/// A rate holds the records of its input back, and can be lifted.
#[test]
fn a_rate_can_be_changed_while_it_runs() {
    let slow = "name: slow\ncontrol: {listen: \"127.0.0.1:0\"}\n\
                inputs: {in: {file: {paths: in.log, max_records_per_second: 5}}}\n\
                outputs: {out: {file: {path: out/all.log}}}\n";
    let site = Site::new(slow);
    let lines: String = (0..20_000).map(line).collect();
    site.write("in.log", &lines);
    let mut running = site.start();
    let api = Api::of(&site, "slow", &mut running);
    assert!(running.until(|| site.size("out") > 0), "{}", running.stderr());
    assert!(api.status()["inputs"][0]["records"].as_u64().unwrap() < 10_000);
    site.write("pipeline.yaml", slow.replace(", max_records_per_second: 5", ""));
    let (code, text) = api.post("api/v1/reload");
    assert_eq!(code, 200, "{text}");
    assert_eq!(running.end().code, 0);
    assert_eq!(site.read("out/all.log"), lines.as_bytes());
}

/// One input after the other, over a kill.
#[test]
fn an_input_starts_when_another_has_ended() {
    let site = Site::new(
        "name: ordered\ncheckpoint_interval: 20ms\nmax_batch_records: 500\ninputs:\n  \
         second: {file: {paths: second.log, start_after: first}}\n  first: {file: {paths: first.log}}\n\
         outputs: {out: {file: {path: out/all.log}}}\n",
    );
    let (first, second): (String, String) =
        ((0..200_000).map(line).collect(), (200_000..400_000).map(line).collect());
    site.write("first.log", &first);
    site.write("second.log", &second);
    for part in [3, 2] {
        let mut running = site.start();
        let target = first.len() as u64 * 2 / part;
        assert!(running.until(|| site.size("out") > target), "{}", running.stderr());
        running.kill();
    }
    site.run();
    assert!(site.read("out/all.log") == (first + &second).as_bytes());
}
