//! SIGTERM and SIGINT. A second signal is tested where a first one cannot be obeyed: on a full disk.

use crate::data;
use crate::site::Site;

const FOLLOW: &str = "name: followed\ncheckpoint_interval: 1h\n\
                      inputs: {all: {file: {paths: in.log, follow: true}}}\n\
                      outputs: {out: {file: {path: out/all.log}}}\n";

/// Shutdown once lost what was under way, or never ended.
#[test]
fn a_signal_drains_and_takes_a_checkpoint() {
    for signal in ["TERM", "INT"] {
        let site = Site::new(FOLLOW);
        site.write("in.log", "one\ntwo\n");
        let mut running = site.start();
        assert!(running.until(|| site.size("out") == 8), "{}", running.stderr());
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let state = site.lockgate(&["inspect", ".lockgate/followed", "--json"]);
        let state: serde_json::Value = serde_json::from_str(&state.stdout).unwrap();
        assert_eq!(state["checkpoint"]["outputs"]["out"]["length"], 8);
        assert_eq!(state["journal"], serde_json::json!([]));

        // What came meanwhile is read next time, and nothing twice.
        site.write("in.log", "one\ntwo\nthree\n");
        let mut running = site.start();
        assert!(running.until(|| site.size("out") == 14), "{}", running.stderr());
        running.signal(signal);
        assert_eq!(running.end().code, 0);
        assert_eq!(site.read("out/all.log"), b"one\ntwo\nthree\n");
    }
}

#[test]
fn a_run_stopped_again_and_again_gives_the_same_output() {
    let pipeline = FOLLOW.replace(", follow: true", "");
    let site = Site::new(&pipeline);
    let expected = data::lines("x", 300 << 20, 3);
    site.write("in.log", &expected);
    for stop in 1..5 {
        // A process that has written something of its own listens to signals.
        let target = site.size("out").max(stop * 30_000_000);
        let mut running = site.start();
        assert!(running.until(|| site.size("out") > target), "{}", running.stderr());
        running.signal("TERM");
        let ended = running.end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    site.run();
    assert!(site.read("out/all.log") == expected, "the output differs");
}
