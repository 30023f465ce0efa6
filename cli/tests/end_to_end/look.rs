//! What was recorded is verified and shown, whatever was done to it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use lockgate_core::{BatchBuilder, NewRecord, Partition};
use serde_json::Value as JsonValue;

use crate::recorded::{orders, seen, step, three_steps, write};
use crate::site::Site;

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
fn a_damaged_state_directory_is_found() {
    let site = Site::new(
        "name: copy\ninputs: {all: {file: {paths: in.log}}}\noutputs: {out: {file: {path: out.log}}}\n",
    );
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
