//! A running pipeline is found, looked at and steered by the commands in its folder.

use std::net::TcpListener;

use serde_json::Value as JsonValue;

use crate::api::Api;
use crate::site::{Running, Site};

const FOLLOW: &str = "name: followed\ncheckpoint_interval: 1h\ncontrol: {listen: \"127.0.0.1:0\"}\n\
                      inputs:\n  a: {file: {paths: a.log, follow: true}}\n  b: {file: {paths: b.log, follow: true}}\n\
                      outputs: {out: {file: {path: out/all.log}}}\n";

/// The pipeline, reading what is in its two files.
fn started(pipeline: &str) -> (Site, Running) {
    let site = Site::new(pipeline);
    site.write("a.log", "one\n");
    site.write("b.log", "two\n");
    let mut running = site.start();
    assert!(running.until(|| site.size("out") == 8), "{}", running.stderr());
    (site, running)
}

fn said(site: &Site, args: &[&str]) -> String {
    let ended = site.lockgate(args);
    format!("{}{}exit {}\n", ended.stdout, ended.stderr, ended.code)
}

fn status(site: &Site) -> JsonValue {
    let ended = site.lockgate(&["status", "--json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_running_pipeline_is_steered_from_its_folder() {
    let (site, running) = started(FOLLOW);
    let report = status(&site);
    assert_eq!((&report["phase"], &report["pipeline"]), (&"running".into(), &"followed".into()));
    let text = site.lockgate(&["status"]);
    assert!(text.stdout.starts_with("followed is running ("), "{}", text.stdout);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);

    insta::assert_snapshot!(said(&site, &["pause", "b"]), @"
    paused: b
    exit 0
    ");
    insta::assert_snapshot!(said(&site, &["pause", "c"]), @r#"
    lockgate: there is no input "c"; did you mean a?
    exit 64
    "#);
    insta::assert_snapshot!(said(&site, &["resume"]), @"
    resumed: a, b
    exit 0
    ");
    let taken = site.lockgate(&["checkpoint"]);
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    let step = status(&site)["checkpoints"]["step"].clone();
    assert_eq!(taken.stdout, format!("the checkpoint covers step {step}\n"));
    let stopped = site.lockgate(&["stop"]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    assert!(stopped.stdout.starts_with("stopped: the last checkpoint covers step "));
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let gone = site.lockgate(&["status"]);
    assert_eq!(gone.code, 69);
    assert!(gone.stderr.contains("no lockgate that can be asked runs on "), "{}", gone.stderr);
}

#[test]
fn a_suspended_pipeline_has_a_checkpoint_and_has_ended() {
    let (site, running) = started(FOLLOW);
    let suspended = site.lockgate(&["suspend"]);
    assert_eq!(suspended.code, 0, "{}", suspended.stderr);
    assert!(suspended.stdout.starts_with("suspended: the checkpoint covers step "));
    assert_eq!(running.end().code, 0);
    let state = site.lockgate(&["inspect", ".lockgate/followed", "--json"]);
    let state: JsonValue = serde_json::from_str(&state.stdout).unwrap();
    assert_eq!(state["journal"], serde_json::json!([]));
}

#[test]
fn a_pause_survives_a_crash_and_the_file_of_the_dead_process_is_known_as_such() {
    let (site, running) = started(FOLLOW);
    assert_eq!(site.lockgate(&["pause", "b"]).code, 0);
    let process = running.child.id();
    assert!(running.kill());
    let gone = site.lockgate(&["status"]);
    assert_eq!(gone.code, 69);
    let words = format!("(control.json is from process {process}): it has ended");
    assert!(gone.stderr.contains(&words), "{}", gone.stderr);

    site.append("a.log", "three\n");
    site.append("b.log", "four\n");
    let mut running = site.start();
    // One of the two is read: that of the input that is not paused.
    assert!(running.until(|| site.size("out") == 14), "{}", running.stderr());
    assert_eq!(status(&site)["inputs"][1]["paused"], serde_json::json!(["user"]));
    assert_eq!(site.lockgate(&["resume", "b"]).code, 0);
    assert!(running.until(|| site.size("out") == 19), "{}", running.stderr());
}

#[test]
fn who_does_not_know_the_token_is_refused() {
    let listen = "control: {listen: \"127.0.0.1:0\", token_file: token}";
    let pipeline = FOLLOW.replace("control: {listen: \"127.0.0.1:0\"}", listen);
    let site = Site::new(&pipeline);
    for (name, text) in [("token", "s3cret\n"), ("wrong", "guess"), ("a.log", ""), ("b.log", "x\n")]
    {
        site.write(name, text);
    }
    let mut running = site.start();
    assert!(running.until(|| site.size("out") == 2), "{}", running.stderr());
    // The process says where its token is.
    assert_eq!(status(&site)["phase"], "running");
    let refused = site.lockgate(&["stop", "--token-file", "wrong"]);
    assert_eq!(refused.code, 64, "{}", refused.stderr);
    assert!(refused.stderr.contains("a token is needed, and must be the right one"));
    assert!(!running.stderr().contains("s3cret") && !refused.stderr.contains("guess"));
    assert_eq!(site.lockgate(&["stop"]).code, 0);
    assert_eq!(running.end().code, 0);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let site = Site::new(&FOLLOW.replace("127.0.0.1:0", &address));
    site.write("a.log", "");
    site.write("b.log", "");
    let ended = site.lockgate(&["run", "pipeline.yaml"]);
    assert_eq!(ended.code, 78, "{}", ended.stderr);
    let words = format!("control: cannot listen at {address}: ");
    assert!(ended.stderr.contains(&words), "{}", ended.stderr);
    assert!(!site.path("out").exists(), "nothing was done");
}

/// An input that fails ends the run; whoever looks at it is told why before it is gone.
#[test]
fn why_a_run_has_failed_is_seen_by_those_who_look() {
    let stops = "a.log, follow: true, max_record_bytes: 10, overlong: stop";
    let site = Site::new(&FOLLOW.replace("a.log, follow: true", stops));
    site.write("a.log", "one\n");
    site.write("b.log", "two\n");
    let mut running = site.start();
    let api = Api::of(&site, "followed", &mut running);
    assert!(running.until(|| site.size("out") == 8), "{}", running.stderr());
    api.status();
    site.append("a.log", "much longer than ten bytes\n");
    let has_failed = || {
        let status = api.status();
        let worst = status["conditions"][0]["text"].as_str().unwrap_or_default().to_owned();
        worst.starts_with("the run has failed: ") && worst.contains("a.log")
    };
    assert!(running.until(has_failed), "{}", running.stderr());
    assert_eq!(running.end().code, 65);
}
