//! What was recorded is verified, shown and compared.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use lockgate_core::{Batch, BatchBuilder, Header, NewRecord, PartDigest, Partition, Timestamp};
use lockgate_file_adapter::recording::{About, RecordingWriter};
use serde_json::Value as JsonValue;

use crate::site::Site;

const COPY: &str = "name: copy\nmax_batch_records: 4\ninputs: {all: {file: {paths: in.log}}}\n\
                    outputs: {out: {file: {path: out.log}}}\n";

/// Records of `orders[0]` at these offsets.
fn orders(offsets: impl IntoIterator<Item = u64>) -> Batch {
    let orders = Partition { source: "orders".into(), number: Some(0) };
    let mut batch = BatchBuilder::new(Arc::new(orders));
    for offset in offsets {
        let (key, value) = (format!("k{offset}"), format!("order {offset}"));
        let headers = [Header { name: b"trace", value: Some(b"\xff") }];
        let headers = if offset == 11 { &headers[..] } else { &[] };
        let record = NewRecord {
            offset,
            timestamp: Some(Timestamp::created(1_700_000_000_000 + offset as i64)),
            leader_epoch: None,
            key: Some(key.as_bytes()),
            value: (offset != 12).then_some(value.as_bytes()),
            headers,
        };
        batch.push(record).unwrap();
    }
    batch.build()
}

/// A step with its own digest.
fn step(number: u64, batches: Vec<Batch>) -> (Option<u64>, Vec<Batch>, PartDigest) {
    let digest = PartDigest::of(&batches);
    (Some(number), batches, digest)
}

/// Three steps of four records.
fn three_steps() -> Vec<(Option<u64>, Vec<Batch>, PartDigest)> {
    (1..=3).map(|number| step(number, vec![orders(number * 4 + 4..number * 4 + 8)])).collect()
}

fn writer(path: &Path, parts: &[(Option<u64>, Vec<Batch>, PartDigest)]) -> RecordingWriter {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let (source, origin) = ("kafka".into(), "orders at localhost:9092".into());
    let about = About { program: "lockgate 0.1.0".into(), source, origin, ..About::default() };
    let mut writer = RecordingWriter::create(path, &about).unwrap();
    for (step, batches, digest) in parts {
        writer.part(*step, batches, *digest).unwrap();
    }
    writer
}

fn write(site: &Site, name: &str, parts: &[(Option<u64>, Vec<Batch>, PartDigest)]) {
    writer(&site.path(name), parts).finish().unwrap();
}

/// Exit code, standard output and standard error as one text.
fn seen(site: &Site, args: &[&str]) -> String {
    let ended = site.lockgate(args);
    format!("{}{}exit {}\n", ended.stdout, ended.stderr, ended.code)
}

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
fn a_recording_is_shown_as_a_table() {
    let site = Site::new("");
    write(&site, "in.parquet", &three_steps());
    insta::assert_snapshot!(seen(&site, &["show", "in.parquet", "-n", "5"]), @r"
    input       in
    program     lockgate 0.1.0
    source      kafka
    origin      orders at localhost:9092
    records     12
    parts       3
    steps       1 to 3

    step  partition  offset  timestamp                 key  value     headers
       1  orders[0]       8  2023-11-14T22:13:20.008Z  k8   order 8
       1  orders[0]       9  2023-11-14T22:13:20.009Z  k9   order 9
       1  orders[0]      10  2023-11-14T22:13:20.010Z  k10  order 10
       1  orders[0]      11  2023-11-14T22:13:20.011Z  k11  order 11  trace=\xff
       2  orders[0]      12  2023-11-14T22:13:20.012Z  k12  null
    exit 0
    ");
    insta::assert_snapshot!(seen(&site, &["show", "in.parquet", "--step", "2"]), @"
    in, step 2: 4 records, hash 055323d41d59e512

    step  partition  offset  timestamp                 key  value
       2  orders[0]      12  2023-11-14T22:13:20.012Z  k12  null
       2  orders[0]      13  2023-11-14T22:13:20.013Z  k13  order 13
       2  orders[0]      14  2023-11-14T22:13:20.014Z  k14  order 14
       2  orders[0]      15  2023-11-14T22:13:20.015Z  k15  order 15
    exit 0
    ");
    let last =
        ["show", "in.parquet", "--step", "3", "--json", "-n", "1", "--partition", "orders[0]"];
    insta::assert_snapshot!(seen(&site, &last), @r#"
    {"input":"in","step":3,"source":"orders","partition":0,"offset":16,"end_offset":17,"timestamp_ms":1700000000016,"timestamp_kind":"create","key":"k16","value":"order 16","headers":[]}
    exit 0
    "#);
    let wrong = [
        seen(&site, &["show", "in.parquet", "--step", "4"]),
        seen(&site, &["show", "in.parquet", "--partition", "orders[1]", "-n", "3", "--json"]),
        seen(&site, &["show", "nowhere"]),
        seen(&site, &["show", "pipeline.yaml"]),
    ];
    insta::assert_snapshot!(wrong.join("\n"), @"
    lockgate: step 4 was not recorded (in: 1 to 3)
    exit 65

    lockgate: no record of orders[1] is among those asked for
    exit 65

    lockgate: nowhere does not exist
    exit 64

    lockgate: pipeline.yaml is a file that is no recording; give a recording or a directory of them
    exit 64
    ");
}

/// What was swapped has the checks of its new place, so that only the hash of the step tells.
#[test]
fn swapped_records_are_found_by_the_hash_of_their_step() {
    let site = Site::new("");
    write(&site, "in.parquet", &three_steps());
    let mut swapped = three_steps();
    swapped[1].1 = vec![orders([12]), orders([14]), orders([13]), orders([15])];
    write(&site, "swapped.parquet", &swapped);
    insta::assert_snapshot!(seen(&site, &["verify", "swapped.parquet"]), @"
    lockgate: swapped.parquet: part 1 (step 2): the records have another hash than the one recorded for them (they are orders[0] offsets 12 to 15; the first out of order is orders[0] offset 13)
    exit 65
    ");
    insta::assert_snapshot!(seen(&site, &["show", "swapped.parquet", "--step", "2"]), @"
    swapped, step 2: 4 records, hash 055323d41d59e512

    lockgate: step 2 is not what was recorded: the hash of its records is 6c7c178a2afde31e; `lockgate verify` says more
    exit 65
    ");
    let compared = seen(&site, &["diff", "in.parquet", "swapped.parquet", "--records"]);
    insta::assert_snapshot!(compared, @"
    in, step 2: the order differs: A has orders[0] offset 13, where B has orders[0] offset 14
                            A: in.parquet                B: swapped.parquet
      orders[0] offset 12   null                         null
      partition             orders[0]                    orders[0]
    * offset                13                           14
    * end_offset            14                           15
    * timestamp_ms          1700000000013 (Create)       1700000000014 (Create)
    * key                   k13                          k14
    * value                 order 13                     order 14
    exit 1
    ");
    let by_hash = site.lockgate(&["diff", "in.parquet", "swapped.parquet"]);
    assert_eq!(by_hash.code, 0, "the recorded hashes are the same");
}

#[test]
fn one_changed_byte_is_found_where_it_is() {
    let site = Site::new("");
    // Bytes that cannot be compressed are found again in the file.
    let mut random = 7u64;
    let mut noise = || {
        let next = |_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as u8
        };
        (0..300).map(next).collect::<Vec<u8>>()
    };
    let partition = Arc::new(Partition { source: "orders".into(), number: Some(3) });
    let mut wanted = Vec::new();
    let parts: Vec<_> = (1..=3u64)
        .map(|number| {
            let mut batch = BatchBuilder::new(partition.clone());
            for offset in number * 10..number * 10 + 10 {
                let value = noise();
                let record = NewRecord { offset, value: Some(&value), ..NewRecord::default() };
                batch.push(record).unwrap();
                if offset == 24 {
                    wanted = value;
                }
            }
            step(number, vec![batch.build()])
        })
        .collect();
    write(&site, "whole/in-0001.parquet", &parts);
    let mut bytes = site.read("whole/in-0001.parquet");
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap();
    bytes[at + 100] ^= 1;
    site.write("harmed/in-0001.parquet", &bytes);
    assert_eq!(site.lockgate(&["verify", "whole"]).code, 0);
    insta::assert_snapshot!(seen(&site, &["verify", "harmed"]), @"
    lockgate: harmed/in-0001.parquet: part 1 (step 2), orders[3] offset 24: this record was changed or moved, or the one before it is missing
    exit 65
    ");
    let refused = site.lockgate(&["diff", "whole", "harmed", "--records"]);
    assert_eq!(refused.code, 65, "{}", refused.stderr);
    assert!(refused.stderr.contains("harmed/in-0001.parquet is damaged"), "{}", refused.stderr);
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

#[test]
fn a_damaged_state_directory_is_found() {
    let site = Site::new(COPY);
    site.write("in.log", "one\n");
    site.run();
    fs::create_dir(site.path("harmed")).unwrap();
    for (name, mut bytes) in site.files(".lockgate/copy") {
        let pattern = b"\"length\":4";
        let at = bytes.windows(pattern.len()).position(|window| window == pattern);
        if let Some(at) = at {
            bytes[at + pattern.len() - 1] = b'5';
        }
        site.write(&format!("harmed/{name}"), bytes);
    }
    insta::assert_snapshot!(seen(&site, &["verify", "harmed"]), @"
    lockgate: state directory harmed: the position of output out is damaged; nothing was changed: restore the directory from a copy, or remove it to start from the beginning
    exit 65
    ");
    insta::assert_snapshot!(seen(&site, &["show", "harmed", "-n", "3"]), @"
    lockgate: harmed is a state directory, which has positions and hashes of steps, and no records; use `lockgate inspect harmed`, or give what `lockgate run --record` wrote
    exit 64
    ");
}

/// Whoever reads may go away, as `head` does.
#[test]
fn a_reader_may_go_away() {
    let site = Site::new("");
    write(&site, "in.parquet", &[step(1, vec![orders(0..20_000)])]);
    let mut child = site.command(&["show", "in.parquet", "--json"]).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(serde_json::from_str::<JsonValue>(&line).unwrap()["offset"], 0);
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
