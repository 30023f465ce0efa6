//! Each command, and the exit codes.

use crate::site::Site;

#[test]
fn what_init_writes_runs() {
    let site = Site::new("");
    let written = site.lockgate(&["init", "fresh"]);
    assert_eq!((written.code, written.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(written.stdout, @"
    wrote fresh/pipeline.yaml
    run it with: lockgate run fresh/pipeline.yaml
    ");
    let checked = site.lockgate(&["check", "fresh/pipeline.yaml"]);
    assert_eq!((checked.code, checked.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(checked.stdout, @"
    orders: exactly once, a checkpoint every 10s, state in DIR/fresh/.lockgate/orders
      input   orders: lines of up to 1.00 MiB from files, read to their end
                DIR/fresh/in/*.log
      output  copy: lines in one file
                DIR/fresh/out/orders.log
    ");
    assert!(!site.path("fresh/.lockgate").exists(), "check must not touch anything");
    let ran = site.lockgate(&["run", "fresh/pipeline.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(site.read("fresh/out/orders.log"), site.read("fresh/in/orders.log"));
    let refused = site.lockgate(&["init", "fresh"]);
    assert_eq!(refused.code, 64);
    insta::assert_snapshot!(refused.stderr, @"lockgate: fresh/pipeline.yaml exists; name another directory");
}

#[test]
fn inspect_shows_the_checkpoint_and_the_journal() {
    let site = Site::new(
        "name: shown\ninputs: {all: {file: {paths: in.log}}}\noutputs: {out: {file: {path: out.log}}}\n",
    );
    site.write("in.log", "one\ntwo\n");
    site.run();
    let text = site.lockgate(&["inspect", ".lockgate/shown"]).stdout;
    let json = site.lockgate(&["inspect", ".lockgate/shown", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["pipeline"], "shown");
    assert_eq!(json["checkpoint"]["outputs"]["out"]["length"], 8);
    assert_eq!(json["journal"], serde_json::json!([]));
    for part in
        ["pipeline    shown", "checkpoint  step 1, stored 20", "  output  out: {\"length\":8"]
    {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn the_schema_is_one() {
    let site = Site::new("");
    let schema = site.lockgate(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert!(schema["$schema"].as_str().unwrap().contains("json-schema.org"));
    assert!(schema["properties"]["inputs"].is_object());
}

#[test]
fn json_is_a_pipeline_file_too() {
    let site = Site::new(
        r#"{"name": "j", "inputs": {"a": {"file": {"paths": "in.log"}}}, "outputs": {"n": {"null": {}}}}"#,
    );
    site.write("in.log", "one\n");
    site.run();
}

/// Exit status 0 once came after a failure.
#[test]
fn every_failure_has_its_code() {
    let pipeline = |input: &str, output: &str| {
        format!("name: p\ninputs: {{a: {{file: {input}}}}}\noutputs: {{o: {{file: {output}}}}}\n")
    };
    let good = pipeline("{paths: in.log}", "{path: out/o.log}");
    let cases: [(&str, &[&str], String, i32); 10] = [
        ("no command", &[], good.clone(), 64),
        ("an unknown option", &["run", "--frob", "pipeline.yaml"], good.clone(), 64),
        ("no such state", &["inspect", "nowhere"], good.clone(), 64),
        ("no pipeline file", &["run", "nowhere.yaml"], good.clone(), 78),
        ("a wrong key", &["run", "pipeline.yaml"], format!("nmae: x\n{good}"), 78),
        (
            "no such input",
            &["run", "pipeline.yaml"],
            pipeline("{paths: none.log}", "{path: o}"),
            69,
        ),
        (
            "nothing matches",
            &["run", "pipeline.yaml"],
            pipeline("{paths: \"*.none\"}", "{path: o}"),
            69,
        ),
        ("damaged gzip", &["run", "pipeline.yaml"], pipeline("{paths: bad.gz}", "{path: o}"), 65),
        (
            "a line too long",
            &["run", "pipeline.yaml"],
            pipeline("{paths: in.log, max_record_bytes: 3, overlong: stop}", "{path: o}"),
            65,
        ),
        (
            "a folder as output",
            &["run", "pipeline.yaml"],
            pipeline("{paths: in.log}", "{path: folder}"),
            78,
        ),
    ];
    let mut seen = String::new();
    for (what, args, text, code) in cases {
        let site = Site::new(&text);
        site.write("in.log", "one\nlong line\n");
        site.write("bad.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 75, 203]);
        std::fs::create_dir(site.path("folder")).unwrap();
        let ended = site.lockgate(args);
        let said = ended.stderr.lines().filter(|line| line.starts_with("lockgate: "));
        seen += &format!("{what}: {}\n", said.collect::<Vec<_>>().join("\n"));
        assert_eq!(ended.code, code, "{what}: {}", ended.stderr);
    }
    insta::assert_snapshot!(seen, @r#"
    no command: 
    an unknown option: 
    no such state: lockgate: nowhere is not a state directory: it has no state.db
    no pipeline file: lockgate: nowhere.yaml: cannot read the pipeline file: No such file or directory (os error 2)
    a wrong key: lockgate: pipeline.yaml:1:1: unknown key "nmae"; did you mean "name"? known keys: name, inputs, outputs, delivery, state, checkpoint_interval, min_batch_records, max_buffering_delay, max_batch_records, stall_timeout, on_stall, shutdown_timeout, control, log
    no such input: lockgate: input a: cannot read DIR/none.log: there is no such file; check the path, or set `follow: true` to wait for it
    nothing matches: lockgate: input a: no file matches DIR/*.none: check the pattern, or set `follow: true` to wait for files
    damaged gzip: lockgate: input a: DIR/bad.gz: the file ends at byte 12, inside the gzip member that begins at byte 0; it is not complete
    a line too long: lockgate: input a: DIR/in.log: the record at byte 4 has 9 bytes or more, more than max_record_bytes 3; raise it, or set overlong to truncate or skip
    a folder as output: lockgate: output o: DIR/folder is a directory: a file output needs the path of a regular file, or of one that does not exist yet
    "#);
}

#[test]
fn a_level_that_does_not_exist_is_refused() {
    let site =
        Site::new("name: p\ninputs: {a: {file: {paths: in.log}}}\noutputs: {n: {\"null\": {}}}\n");
    let mut command = site.command(&["run", "pipeline.yaml"]);
    let output = command.env("LOCKGATE_LOG", "loud").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    let said = String::from_utf8(output.stderr).unwrap();
    insta::assert_snapshot!(said, @r#"lockgate: LOCKGATE_LOG is "loud": it must be error, warn, info, debug or trace, and after a comma TARGET=LEVEL for single parts"#);
}

#[test]
fn help_has_the_exit_codes() {
    let site = Site::new("");
    let help = site.lockgate(&["--help"]);
    assert_eq!(help.code, 0);
    for code in [1, 64, 65, 69, 70, 74, 75, 78] {
        assert!(help.stdout.contains(&format!("\n{code:>4}  ")), "{code}");
    }
}
