//! A run that is recorded, and what comes of the recording.

use std::fs;

use crate::site::Site;

const TWO: &str = "name: two\n\
    inputs: {a: {file: {paths: a.log}}, b: {file: {paths: b.bin, format: length_delimited}}}\n\
    outputs: {out: {file: {path: out.jsonl, format: json}}}\n";

/// Recorded, with the output of the run.
fn recorded() -> (Site, Vec<u8>) {
    let site = Site::new(TWO);
    let lines: String = (0..30_000).map(|n| format!("line {n}\r\n")).collect();
    site.write("a.log", lines + "\n\nlast");
    let framed = (0..9_000u32).flat_map(|n| {
        let value = n.to_string().into_bytes();
        [(value.len() as u32).to_be_bytes().to_vec(), value].concat()
    });
    site.write("b.bin", framed.collect::<Vec<u8>>());
    let ended = site.lockgate(&["run", "pipeline.yaml", "--record", "take"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let output = site.read("out.jsonl");
    fs::remove_file(site.path("out.jsonl")).unwrap();
    (site, output)
}

#[test]
fn a_replay_needs_neither_the_inputs_nor_the_state() {
    let (site, output) = recorded();
    for gone in ["a.log", "b.bin"] {
        fs::remove_file(site.path(gone)).unwrap();
    }
    fs::remove_dir_all(site.path(".lockgate")).unwrap();
    let replayed = site.lockgate(&["replay", "take", "pipeline.yaml"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    assert!(site.read("out.jsonl") == output);
    assert!(!site.path(".lockgate").exists(), "nothing is stored");
    // What is there already is not mixed with what comes.
    let again = site.lockgate(&["replay", "take", "pipeline.yaml"]);
    assert!(
        again.code == 78 && again.stderr.contains("out.jsonl has something in it"),
        "{}",
        again.stderr
    );
}

#[test]
fn parts_of_a_recording_are_replayed() {
    let (site, output) = recorded();
    let replayed = |args: &[&str]| {
        let _ = fs::remove_file(site.path("out.jsonl"));
        let ended = site.lockgate(&[&["replay", "take", "pipeline.yaml"], args].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        site.read("out.jsonl")
    };
    let first = replayed(&["--to-step", "1"]);
    let rest = replayed(&["--from-step", "2", "--speed", "10x"]);
    assert!([first, rest].concat() == output);
    let path = site.path("b.bin");
    let only = replayed(&["--only", path.to_str().unwrap()]);
    let expected: Vec<&[u8]> = output
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| String::from_utf8_lossy(line).contains("b.bin"))
        .collect();
    assert!(only == expected.concat() && expected.len() == 9_000);
}

#[test]
fn a_recording_is_an_input_like_others() {
    let (site, output) = recorded();
    let pipeline =
        TWO.replace("{file: {paths: a.log}}", "{recording: {path: take, input: a}}").replace(
            "{file: {paths: b.bin, format: length_delimited}}",
            "{recording: {path: take/b-0001.parquet}}",
        );
    site.write("again.yaml", pipeline.replace("name: two", "name: again"));
    let ended = site.lockgate(&["run", "again.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let sorted = |bytes: &[u8]| {
        let mut lines: Vec<Vec<u8>> =
            bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    assert!(sorted(&site.read("out.jsonl")) == sorted(&output));
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let (site, _) = recorded();
    let refused = |args: &[&str], code: i32, says: &str| {
        let ended = site.lockgate(&[&["replay"], args].concat());
        assert!(
            ended.code == code && ended.stderr.contains(says),
            "{}: {}",
            ended.code,
            ended.stderr
        );
        assert!(!site.path("out.jsonl").exists(), "nothing was written");
    };
    refused(&["take/a-0001.parquet", "pipeline.yaml"], 64, "say by --input which of a, b");
    refused(&["take", "pipeline.yaml", "--input", "c"], 64, "the pipeline's inputs are a, b");
    refused(&["nothing", "pipeline.yaml", "--input", "a"], 64, "nothing");
    refused(&["a.log", "pipeline.yaml", "--input", "a"], 65, "is not a recording");
    refused(&["take", "pipeline.yaml", "--from-step", "1000000"], 65, "none of the wanted steps");
    refused(&["take", "pipeline.yaml", "--speed", "fast"], 64, "10x");
    site.write("one.yaml", TWO.replace("b: {file: {paths: b.bin, format: length_delimited}}", ""));
    refused(&["take", "one.yaml"], 64, "a recording of the input b");
}

/// A recording that is not what was delivered does not pass for it.
#[test]
fn a_changed_recording_does_not_replay() {
    let (site, _) = recorded();
    let path = site.path("take/a-0001.parquet");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let ended = site.lockgate(&["replay", "take", "pipeline.yaml"]);
    assert_eq!(ended.code, 65, "{}", ended.stderr);
    assert!(ended.stderr.contains("a-0001.parquet is damaged"), "{}", ended.stderr);
}

#[test]
fn a_recording_that_was_cut_short_says_so_when_it_is_replayed() {
    let (site, output) = recorded();
    for name in ["take/a-0001.parquet", "take/b-0001.parquet"] {
        let bytes = site.read(name);
        site.write(name, &bytes[..bytes.len() - 1]);
    }
    let replayed = site.lockgate(&["replay", "take", "pipeline.yaml"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    assert_eq!(replayed.stderr.matches("the recording was cut short").count(), 2);
    assert!(site.read("out.jsonl") == output, "only the end is missing");
}

/// What a crash left in the journal is taken out of it before anybody goes on, and nothing is changed by that.
#[test]
fn journaled_steps_are_recorded_after_a_crash() {
    let site = Site::new(
        "name: crashed\ncheckpoint_interval: 1h\n\
         inputs: {in: {file: {paths: in.log, follow: true}}}\noutputs: {out: {file: {path: out.log}}}\n",
    );
    let lines =
        |from: u32| (from..from + 20_000).map(|n| format!("line {n}\n")).collect::<String>();
    site.write("in.log", lines(0));
    let mut running = site.start();
    let size = lines(0).len() as u64;
    let written = || fs::metadata(site.path("out.log")).map_or(0, |found| found.len());
    assert!(running.until(|| written() == size), "{}", running.stderr());
    assert!(running.kill());
    site.append("in.log", &lines(20_000));
    let record = |out: &str| {
        let state = ".lockgate/crashed";
        site.lockgate(&[
            "record",
            "--from-state",
            state,
            "--pipeline",
            "pipeline.yaml",
            "--out",
            out,
        ])
    };
    // Whoever reads the database marks that in its shared memory.
    let stored = || {
        let mut files = site.files(".lockgate/crashed");
        files.retain(|(name, _)| !name.ends_with("-shm"));
        files
    };
    let before = stored();
    let recorded = record("take");
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    assert!(stored() == before, "the state directory is as it was");
    let tape = lockgate_file_adapter::tape::Tape::find(&site.path("take"), None).unwrap();
    assert_eq!(tape.records(), 20_000, "what came later is not among them");
    assert!(tape.complete() && tape.parts()[0].step == Some(1));
    // The run goes on as if nobody had looked.
    let mut running = site.start();
    assert!(
        running.until(|| site.read("out.log").len() > size as usize * 2),
        "{}",
        running.stderr()
    );
    running.signal("TERM");
    assert_eq!(running.end().code, 0);
    assert!(site.read("out.log") == [lines(0), lines(20_000)].concat().into_bytes());
    let none = record("none");
    assert!(none.code == 65 && none.stderr.contains("no journaled steps"), "{}", none.stderr);
}
