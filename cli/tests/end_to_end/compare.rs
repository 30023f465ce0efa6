//! What was recorded is compared, and what else can be.

use std::fs;

use serde_json::Value as JsonValue;

use crate::recorded::{orders, seen, step, three_steps, write, writer};
use crate::site::Site;

const COPY: &str = "name: copy\nmax_batch_records: 4\ninputs: {all: {file: {paths: in.log}}}\n\
                    outputs: {out: {file: {path: out.log}}}\n";

#[test]
fn a_run_is_verified_shown_and_compared() {
    let site = Site::new(COPY);
    site.write("in.log", "one\ntwo\nthree\nfour\nfive\nsix\n\nnull\nnine\n");
    let ran = site.lockgate(&["run", "pipeline.yaml", "--record", "rec"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(seen(&site, &["verify", "rec"]), @"
    rec/all-0001.parquet: input all, 9 records in 3 parts, steps 1 to 3, complete
    exit 0
    ");
    insta::assert_snapshot!(seen(&site, &["verify", ".lockgate/copy"]), @"
    .lockgate/copy: a checkpoint of step 3, a journal of 0 records in 0 steps, intact
    exit 0
    ");
    let shown = site.lockgate(&["show", "rec"]).stdout;
    for part in
        ["origin      DIR/in.log\nframing     lines\nrecords     9\n", "28  \"\"\n", "\"null\"\n"]
    {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    let json = site.lockgate(&["show", "rec", "--json", "--partition", "in.log"]).stdout;
    let values: Vec<JsonValue> = json
        .lines()
        .map(|line| serde_json::from_str::<JsonValue>(line).unwrap()["value"].take())
        .collect();
    assert_eq!(values, ["one", "two", "three", "four", "five", "six", "", "null", "nine"]);

    insta::assert_snapshot!(seen(&site, &["diff", "rec", "rec"]), @"
    equal: 9 records, 3 steps
    exit 0
    ");
    insta::assert_snapshot!(seen(&site, &["diff", "rec/all-0001.parquet", "rec", "--records"]), @"
    equal: 9 records, 3 steps
    exit 0
    ");
    // The same run with other data.
    site.write("in.log", "one\ntwo\nthree\nfour\nfive\nSIX\n\nnull\nnine\n");
    fs::rename(site.path("out.log"), site.path("before.log")).unwrap();
    let ran = site.lockgate(&["run", "pipeline.yaml", "--record", "other", "--state-dir", "state"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let differs = site.lockgate(&["diff", "rec", "other"]);
    assert_eq!((differs.code, differs.stderr.as_str()), (1, ""));
    assert!(
        differs.stdout.starts_with("all, step 2: DIR/in.log offset 24 differs\n"),
        "{}",
        differs.stdout
    );
    assert!(
        differs.stdout.contains("\n* value                 six                          SIX\n"),
        "{}",
        differs.stdout
    );
    insta::assert_snapshot!(seen(&site, &["diff", "before.log", "out.log"]), @r"
    the first difference is in line 6, at byte offset 24
                            A: before.log                B: out.log
    * line 6                six\n                        SIX\n
    exit 1
    ");
    let states = site.lockgate(&["diff", ".lockgate/copy", "state"]);
    assert_eq!(states.code, 1, "{}", states.stderr);
    assert!(states.stdout.starts_with("the checkpoint's position of "), "{}", states.stdout);
    let same = site.lockgate(&["diff", "state", "state"]);
    assert_eq!((same.code, same.stdout.contains("equal: a checkpoint of step 3")), (0, true));
}

#[test]
fn what_is_missing_is_named() {
    let site = Site::new("");
    write(&site, "in.parquet", &three_steps());
    let mut dropped = three_steps();
    dropped[1] = step(2, vec![orders([12]), orders([14, 15])]);
    write(&site, "dropped.parquet", &dropped);
    insta::assert_snapshot!(seen(&site, &["diff", "in.parquet", "dropped.parquet"]), @"
    in, step 2: orders[0] offset 13 is missing in B
                            A: in.parquet                B: dropped.parquet
      orders[0] offset 12   null                         null
    * partition             orders[0]                    (missing)
    * offset                13                           (missing)
    * end_offset            14                           (missing)
    * timestamp_ms          1700000000013 (Create)       (missing)
    * key                   k13                          (missing)
    * value                 order 13                     (missing)
    exit 1
    ");
    let steps = three_steps();
    write(&site, "without.parquet", &[steps[0].clone(), steps[2].clone()]);
    insta::assert_snapshot!(seen(&site, &["diff", "without.parquet", "in.parquet"]), @"
    without: only B has step 2 (4 records); A goes on with step 3
                            A: without.parquet           B: in.parquet
    * partition             (missing)                    orders[0]
    * offset                (missing)                    12
    * end_offset            (missing)                    13
    * timestamp_ms          (missing)                    1700000000012 (Create)
    * key                   (missing)                    k12
    * value                 (missing)                    null
    exit 1
    ");
    let mut cut = writer(&site.path("cut.parquet"), &steps[..2]);
    cut.flush().unwrap();
    drop(cut);
    insta::assert_snapshot!(seen(&site, &["verify", "cut.parquet"]), @"
    cut.parquet: input cut, 8 records in 2 parts, steps 1 to 2, cut short there
    exit 0
    ");
    insta::assert_snapshot!(seen(&site, &["diff", "in.parquet", "cut.parquet"]), @"
    in: only A has step 3 (4 records); B was cut short before it
                            A: in.parquet                B: cut.parquet
    * partition             orders[0]                    (missing)
    * offset                16                           (missing)
    * end_offset            17                           (missing)
    * timestamp_ms          1700000000016 (Create)       (missing)
    * key                   k16                          (missing)
    * value                 order 16                     (missing)
    exit 1
    ");
}

/// Without steps it is by chance how records lie in parts.
#[test]
fn without_steps_only_the_records_count() {
    let site = Site::new("");
    let parts = |cuts: &[std::ops::Range<u64>]| -> Vec<_> {
        let part = |offsets: &std::ops::Range<u64>| step(0, vec![orders(offsets.clone())]);
        cuts.iter().map(part).map(|(_, batches, digest)| (None, batches, digest)).collect()
    };
    write(&site, "a.parquet", &parts(&[0..5, 5..20]));
    write(&site, "b.parquet", &parts(&[0..5, 5..9, 9..20]));
    write(&site, "c.parquet", &parts(&[0..5, 5..9, 10..20]));
    insta::assert_snapshot!(seen(&site, &["diff", "a.parquet", "b.parquet"]), @"
    equal: 20 records
    exit 0
    ");
    insta::assert_snapshot!(seen(&site, &["diff", "b.parquet", "c.parquet"]), @"
    b, block 3: orders[0] offset 9 is missing in B
                            A: b.parquet                 B: c.parquet
    * partition             orders[0]                    (missing)
    * offset                9                            (missing)
    * end_offset            10                           (missing)
    * timestamp_ms          1700000000009 (Create)       (missing)
    * key                   k9                           (missing)
    * value                 order 9                      (missing)
    exit 1
    ");
    insta::assert_snapshot!(seen(&site, &["show", "b.parquet", "--step", "2", "-n", "1"]), @"
    b, step 2: 4 records, hash 9ad98fb57c42d533

    partition  offset  timestamp                 key  value
    orders[0]       5  2023-11-14T22:13:20.005Z  k5   order 5
    exit 0
    ");
}

#[test]
fn several_recordings_of_several_inputs() {
    let site = Site::new("");
    let steps = three_steps();
    write(&site, "a/x-0001.parquet", &steps[..2]);
    write(&site, "a/x-0002.parquet", &[steps[1].clone(), step(7, vec![orders([50])])]);
    write(&site, "a/y-0001.parquet", &[step(4, vec![orders([70])])]);
    insta::assert_snapshot!(seen(&site, &["verify", "a"]), @"
    a/x-0001.parquet: input x, 8 records in 2 parts, steps 1 to 2, complete
    a/x-0002.parquet: input x, 5 records in 2 parts, steps 2 to 7, complete
    x: 9 records in 2 recordings, steps 1 to 7; 4 records came again in a later one
    a/y-0001.parquet: input y, 1 record in 1 part, step 4, complete
    not recorded of any input: step 3, steps 5 to 6
    exit 0
    ");
    // The earliest difference comes first, whichever input it is of.
    write(
        &site,
        "b/x-0001.parquet",
        &[steps[0].clone(), steps[1].clone(), step(7, vec![orders([51])])],
    );
    write(&site, "b/y-0001.parquet", &[step(4, vec![orders([71])])]);
    let first = |args: &[&str]| seen(&site, args).lines().next().unwrap_or_default().to_owned();
    site.write("a/z-0001.parquet", "PAR1");
    let said = [
        first(&["diff", "a", "b", "--input", "x"]),
        first(&["diff", "a", "b", "--input", "z"]),
        first(&["verify", "a"]),
    ];
    fs::remove_file(site.path("a/z-0001.parquet")).unwrap();
    let more = [
        first(&["diff", "a", "b"]),
        first(&["diff", "a", "b/y-0001.parquet"]),
        first(&["diff", "a", "b/x-0001.parquet", "--input", "x"]),
        first(&["diff", "a", "pipeline.yaml"]),
        first(&["diff", "pipeline.yaml", "pipeline.yaml", "--input", "x"]),
        first(&["show", "a", "--input", "w"]),
        first(&["show", "a", "--step", "4", "--json"]),
    ];
    insta::assert_snapshot!([said.join("\n"), more.join("\n")].join("\n"), @r#"
    x, step 7: A has orders[0] offset 50, where B has orders[0] offset 51
    lockgate: a/z-0001.parquet is not a recording: it begins like a Parquet file and has no intact footer, as if it had been cut off in its first bytes; give a file that lockgate recorded
    a/x-0001.parquet: input x, 8 records in 2 parts, steps 1 to 2, complete
    y, step 4: A has orders[0] offset 70, where B has orders[0] offset 71
    x: only A has this input, B has none of it
    x, step 7: A has orders[0] offset 50, where B has orders[0] offset 51
    lockgate: a is a directory of recordings, and pipeline.yaml is a file that is no recording: give two things of a kind
    lockgate: --input and --records are for recordings
    lockgate: --input w: a has recordings of x, y
    {"input":"y","step":4,"source":"orders","partition":0,"offset":70,"end_offset":71,"timestamp_ms":1700000000070,"timestamp_kind":"create","key":"k70","value":"order 70","headers":[]}
    "#);
}
