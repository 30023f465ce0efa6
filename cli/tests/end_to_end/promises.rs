//! What must never happen, with the whole program.

use std::fs;

use crate::data;
use crate::site::Site;

const COPY: &str = "name: copy\ninputs: {all: {file: {paths: in.log}}}\n\
                    outputs: {out: {file: {path: out/all.log}}}\n";

/// Two processes on one state directory once wrote over each other.
#[test]
fn a_second_process_is_refused_and_the_first_goes_on() {
    let site = Site::new(&COPY.replace("paths: in.log", "paths: in.log, follow: true"));
    site.write("in.log", "one\n");
    let mut running = site.start();
    assert!(running.until(|| site.size("out") == 4), "{}", running.stderr());
    let pid = running.child.id();
    let second = site.lockgate(&["run", "pipeline.yaml"]);
    assert_eq!(second.code, 75, "{}", second.stderr);
    let expected = format!("DIR/.lockgate/copy is in use by process {pid} (lockgate)");
    assert!(second.stderr.contains(&expected), "{}", second.stderr);
    // A look from outside is allowed meanwhile.
    assert_eq!(site.lockgate(&["inspect", ".lockgate/copy"]).code, 0);
    running.signal("TERM");
    assert_eq!(running.end().code, 0);
    // The lock died with its process; the file that is left does not block.
    let mut again = site.start();
    assert!(again.until(|| again_started(&site)), "{}", again.stderr());
    assert!(again.kill());
    site.write("pipeline.yaml", COPY.replace("paths: in.log", "paths: in.log, follow: true"));
}

fn again_started(site: &Site) -> bool {
    fs::read_to_string(site.path("stderr.log")).is_ok_and(|log| log.contains("started"))
}

#[test]
fn a_changed_pipeline_says_what_changed() {
    let site = Site::new(COPY);
    site.write("in.log", "one\n");
    site.run();
    site.write("pipeline.yaml", COPY.replace("out/all.log", "out/other.log"));
    let refused = site.lockgate(&["run", "pipeline.yaml"]);
    assert_eq!(refused.code, 78);
    insta::assert_snapshot!(refused.stderr, @"
    lockgate: the pipeline is not the one that state directory DIR/.lockgate/copy belongs to:
      outputs.out.file.path: was out/all.log, is out/other.log
    run the old pipeline to its end, give this one another --state-dir, or go on from the stored positions with --accept
    ");
    assert!(!site.path("out/other.log").exists());
    // What keeps positions may change, and is said once.
    let changed = format!("checkpoint_interval: 3s\nmax_batch_records: 7\n{COPY}");
    site.write("pipeline.yaml", changed.replace("in.log", "in.log, overlong: skip"));
    let said = |stderr: &str| {
        let changes =
            stderr.lines().filter_map(|line| line.split_once("changed since the last run: "));
        changes.map(|(_, change)| change.to_owned()).collect::<Vec<_>>()
    };
    let expected = [
        "checkpoint_interval: was 10s, is 3s",
        "inputs.all.file.overlong: was truncate, is skip",
        "max_batch_records: was not there, is 7",
    ];
    assert_eq!(said(&site.run().stderr), expected);
    assert!(said(&site.run().stderr).is_empty());
    assert_eq!(site.read("out/all.log"), b"one\n");
}

/// A replay once cut records in another way than the run that was killed, and stopped for good.
#[test]
fn what_a_crash_left_is_run_again_as_it_was() {
    let pipeline = format!("checkpoint_interval: 1h\n{COPY}");
    let site = Site::new(&pipeline);
    site.write("in.log", data::lines("x", 100 << 20, 1));
    let mut running = site.start();
    assert!(running.until(|| site.size("out") > 10_000_000), "{}", running.stderr());
    assert!(running.kill());
    site.write("pipeline.yaml", pipeline.replace("in.log", "in.log, overlong: skip"));
    let refused = site.lockgate(&["run", "pipeline.yaml"]);
    assert_eq!(refused.code, 78, "{}", refused.stderr);
    insta::assert_snapshot!(refused.stderr, @"
    lockgate: state directory DIR/.lockgate/copy has steps that have to be run again as they were, and these settings changed meanwhile:
      inputs.all.file.overlong: was truncate, is skip
    start once with the old settings and stop it in order, after which the change needs no consent; or go on from the stored positions with --accept
    ");
    // As it says.
    site.write("pipeline.yaml", &pipeline);
    site.run();
    site.write("pipeline.yaml", pipeline.replace("in.log", "in.log, overlong: skip"));
    site.run();
    assert!(site.read("out/all.log") == site.read("in.log"), "the output differs");
}

/// Whoever reads logs or the state directory does not learn how to steer the pipeline.
#[test]
fn a_token_appears_nowhere() {
    const CANARY: &str = "canary-7f3a9";
    let site = Site::new(&format!("control: {{listen: '127.0.0.1:0', token_file: token}}\n{COPY}"));
    site.write("token", format!("{CANARY}\n"));
    site.write("in.log", "one\n");
    for command in ["check", "run"] {
        let mut command = site.command(&[command, "pipeline.yaml"]);
        let output = command.env("LOCKGATE_LOG", "trace").output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let said = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8_lossy(&said).contains(CANARY));
    }
    for entry in fs::read_dir(site.path(".lockgate/copy")).unwrap() {
        let content = fs::read(entry.unwrap().path()).unwrap();
        assert!(!content.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
    }
}

/// The output must be what the checkpoint says, or nothing is touched.
#[test]
fn an_output_that_was_changed_meanwhile_is_refused() {
    let site = Site::new(COPY);
    site.write("in.log", "one\ntwo\n");
    site.run();
    for content in ["one\n", "one\nTWO\n", ""] {
        site.write("out/all.log", content);
        let refused = site.lockgate(&["run", "pipeline.yaml"]);
        assert_eq!(refused.code, 65, "{}", refused.stderr);
        assert!(refused.stderr.contains("DIR/out/all.log"), "{}", refused.stderr);
        assert_eq!(site.read("out/all.log"), content.as_bytes());
    }
}

/// The output was once wiped on the first start.
#[test]
fn what_is_already_in_the_output_stays() {
    let site = Site::new(COPY);
    site.write("in.log", data::lines("x", 40 << 20, 1));
    site.write("out/all.log", "already here\n");
    let mut running = site.start();
    assert!(running.until(|| site.size("out") > 2_000_000));
    assert!(running.kill());
    site.run();
    let expected = [b"already here\n".as_slice(), &site.read("in.log")].concat();
    assert!(site.read("out/all.log") == expected, "the output differs");
}

/// A zero-length state file once restarted from nothing, in silence.
#[test]
fn a_damaged_state_directory_is_refused() {
    let site = Site::new(COPY);
    site.write("in.log", "one\n");
    site.run();
    site.write(".lockgate/copy/state.db", "");
    let refused = site.lockgate(&["run", "pipeline.yaml"]);
    assert_eq!(refused.code, 65);
    assert!(refused.stderr.contains("state.db is empty"), "{}", refused.stderr);
    assert_eq!(site.read("out/all.log"), b"one\n");
}

/// A byte of the source that changed between crash and restart is noticed by the replay.
#[test]
fn a_changed_source_stops_the_replay() {
    let site = Site::new(&format!("checkpoint_interval: 1h\n{COPY}"));
    site.write("in.log", data::lines("x", 100 << 20, 1));
    let mut running = site.start();
    assert!(running.until(|| site.size("out") > 10_000_000), "{}", running.stderr());
    assert!(running.kill());
    let mut changed = site.read("in.log");
    changed[5_000_000] ^= 1;
    site.write("in.log", changed);
    let refused = site.lockgate(&["run", "pipeline.yaml"]);
    assert_eq!(refused.code, 65, "{}", refused.stderr);
    assert!(refused.stderr.contains("is not what was journaled"), "{}", refused.stderr);
}

/// Passwords once stood in logs.
#[test]
fn a_secret_from_the_environment_appears_nowhere() {
    const CANARY: &str = "canary-7f3a9";
    let site = Site::new(COPY);
    site.write("in.log", "one\n");
    let texts = [
        COPY.replace("name: copy", "name: \"${SECRET}/\""),
        format!("checkpoint_interval: \"${{SECRET}}\"\n{COPY}"),
        format!("delivery: \"${{SECRET}}\"\n{COPY}"),
        format!("min_batch_records: \"${{SECRET}}\"\n{COPY}"),
        COPY.replace("in.log", "in.log, follow: \"${SECRET}\""),
        COPY.replace("in.log", "in.log, max_record_bytes: \"${SECRET}\""),
    ];
    for text in texts {
        site.write("pipeline.yaml", &text);
        for args in [["run", "pipeline.yaml"], ["check", "pipeline.yaml"]] {
            let mut command = site.command(&args);
            command.env("SECRET", CANARY).env("LOCKGATE_LOG", "trace");
            let output = command.output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8(said).unwrap();
            assert!(said.contains("SECRET"), "the variable is named: {said}");
            assert!(!said.contains(CANARY), "{said}");
            assert_eq!(output.status.code(), Some(78));
        }
    }
}

/// A log whose reader had gone away once took the pipeline with it.
#[test]
fn a_log_that_nobody_reads_does_not_stop_a_run() {
    let site = Site::new(COPY);
    site.write("in.log", "one\n");
    let mut command = site.command(&["run", "pipeline.yaml"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(command.stderr(full).status().unwrap().code(), Some(0));
    assert_eq!(site.read("out/all.log"), b"one\n");
}

/// Two spellings of one path once wrote over each other.
#[test]
fn one_file_has_one_output() {
    let site = Site::new(
        "name: two\ninputs: {all: {file: {paths: in.log}}}\n\
         outputs: {a: {file: {path: out/o}}, b: {file: {path: ./out/../out/o}}}\n",
    );
    site.write("in.log", "one\n");
    let refused = site.lockgate(&["run", "pipeline.yaml"]);
    assert_eq!(refused.code, 78, "{}", refused.stderr);
    assert!(refused.stderr.contains("is being written by another output"), "{}", refused.stderr);
}

/// A truncated output once got a hole where its beginning had been.
#[test]
fn an_output_truncated_meanwhile_stops_the_run() {
    let site = Site::new(&COPY.replace("paths: in.log", "paths: in.log, follow: true"));
    site.write("in.log", "one\n");
    let mut running = site.start();
    assert!(running.until(|| site.size("out") == 4), "{}", running.stderr());
    site.write("out/all.log", "");
    site.append("in.log", "two\n");
    let ended = running.end();
    assert_eq!(ended.code, 65, "{}", ended.stderr);
    assert!(ended.stderr.contains("it was truncated while lockgate runs"), "{}", ended.stderr);
}

#[test]
fn accepted_changes_are_said() {
    let site = Site::new(COPY);
    site.write("in.log", "one\n");
    site.run();
    site.write("pipeline.yaml", COPY.replace("all: {file", "renamed: {file"));
    let ended = site.lockgate(&["run", "pipeline.yaml", "--accept"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for said in
        ["accepted change: inputs: was all, is renamed", "input renamed is new", "input all is not"]
    {
        assert!(ended.stderr.contains(said), "{said:?} is not in {}", ended.stderr);
    }
}

/// An output inside the glob of its own input once fed itself until the disk was full.
#[test]
fn an_output_that_its_input_would_read_is_refused() {
    for output in ["in/all.log", "./out/../in/part-{segment}.log"] {
        let site = Site::new(&format!(
            "name: loop\ninputs: {{all: {{file: {{paths: \"in/**/*.log\", follow: true}}}}}}\n\
             outputs: {{out: {{file: {{path: \"{output}\"{}}}}}}}\n",
            if output.contains("segment") { ", segment_records: 5" } else { "" }
        ));
        site.write("in/a.log", "one\n");
        for command in ["check", "run"] {
            let refused = site.lockgate(&[command, "pipeline.yaml"]);
            assert_eq!(refused.code, 78, "{}", refused.stderr);
            assert!(
                refused.stderr.contains("which input all would read again"),
                "{}",
                refused.stderr
            );
        }
    }
}
