//! What was recorded comes again, as an input that is held against the rules of the protocol.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is test code, helpers included")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockgate_conformance::{Conformance, Known};
use lockgate_core::{Batch, BatchBuilder, NewRecord, PartDigest, Partition, Timestamp};
use lockgate_file_adapter::recording::{About, RecordingWriter};
use lockgate_file_adapter::tape::{Tape, TapeInput, piece_path};
use tempfile::TempDir;

/// So many records of a partition from this offset on, every other offset left out.
fn batch(partition: u32, first: u64, records: u64) -> Batch {
    let mut batch =
        BatchBuilder::new(Arc::new(Partition { source: "t".into(), number: Some(partition) }));
    for offset in (first..).step_by(2).take(records as usize) {
        let value = value(partition, offset);
        let (value, timestamp) = (Some(value.as_bytes()), Some(Timestamp::created(offset as i64)));
        let record = NewRecord { offset, value, timestamp, ..NewRecord::default() };
        batch.push(record).unwrap();
    }
    batch.build()
}

fn value(partition: u32, offset: u64) -> String {
    format!("{partition}:{offset} {}", "x".repeat(offset as usize % 30))
}

fn write(path: &Path, parts: &[(Option<u64>, Vec<Batch>)]) {
    let mut writer = RecordingWriter::create(path, &About::default()).unwrap();
    for (step, batches) in parts {
        writer.part(*step, batches, PartDigest::of(batches)).unwrap();
    }
    writer.finish().unwrap();
}

/// Steps 1 to 12, of which one gives nothing; what two runs recorded overlaps.
fn run() -> (TempDir, Vec<Known>) {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = Vec::new();
    let (mut next, mut known) = ([0; 3], Vec::new());
    for step in 1..=12u64 {
        let mut batches = Vec::new();
        for partition in 0..3 {
            let records = (step * 7 + u64::from(partition)) % 5;
            if step == 5 || records == 0 {
                continue;
            }
            let first = next[partition as usize];
            batches.push(batch(partition, first, records));
            next[partition as usize] += 2 * records;
            known.extend((first..).step_by(2).take(records as usize).map(|offset| {
                let known = Known::new("t", value(partition, offset)).partition(partition);
                known.offset(offset).timestamp(Some(Timestamp::created(offset as i64)))
            }));
        }
        parts.push((Some(step), batches));
    }
    write(&piece_path(dir.path(), "in", 1), &parts[..9]);
    write(&piece_path(dir.path(), "other", 1), &parts[..2]);
    write(&piece_path(dir.path(), "in", 2), &parts[6..]);
    // A run that was killed before it had given anything.
    std::fs::write(piece_path(dir.path(), "in", 3), "PAR1").unwrap();
    (dir, known)
}

#[test]
fn a_tape_is_an_input_like_others() {
    let (dir, known) = run();
    let open = || TapeInput::at(dir.path().to_path_buf(), Some("in".into()));
    let summary = Conformance::new(open).holds(known).schedules(40).run();
    let summary = summary.unwrap_or_else(|report| panic!("{report}"));
    assert!(summary.replays > 100 && summary.checkpoints > 30, "{summary}");
}

#[test]
fn a_later_run_takes_the_place_of_what_came_again() {
    let (dir, known) = run();
    let tape = Tape::find(dir.path(), Some("in")).unwrap();
    let steps: Vec<u64> = tape.parts().iter().map(|part| part.step.unwrap()).collect();
    assert_eq!(steps, (1..=12).collect::<Vec<_>>());
    assert_eq!(tape.records(), known.len() as u64);
    for (part, step) in tape.parts().iter().zip(tape.steps()) {
        let step = step.unwrap();
        assert_eq!(Some(step.number), part.step);
        assert_eq!(PartDigest::of(&step.parts[0].batches), part.digest);
    }
}

#[test]
fn what_is_no_tape_is_refused() {
    let (dir, _) = run();
    let refused = |path: &Path, input| {
        let text = Tape::find(path, input).err().unwrap().to_string();
        text.replace(dir.path().to_str().unwrap(), "DIR")
    };
    let several = refused(dir.path(), None);
    assert!(several.contains("DIR") && several.contains("in, other; say of which"), "{several}");
    let none = refused(dir.path(), Some("out"));
    assert!(none.contains("in, other, none of out"), "{none}");
    let bud = refused(&piece_path(dir.path(), "in", 3), None);
    assert!(bud.contains("DIR/in-0003.parquet is not a recording"), "{bud}");
    let unordered = [2, 1].map(|number| piece_path(dir.path(), "in", number));
    let (blocks, mixed) = (dir.path().join("blocks.parquet"), dir.path().join("mixed.parquet"));
    write(&blocks, &[(None, vec![batch(0, 0, 3)]), (None, vec![])]);
    write(&mixed, &[(Some(1), vec![]), (None, vec![])]);
    let open = |paths: &[PathBuf]| Tape::open(paths).map(|tape| tape.parts().len());
    assert_eq!(open(&unordered).unwrap(), 9, "the last one counts");
    assert_eq!(open(&[blocks]).unwrap(), 2);
    assert!(open(&[mixed]).is_err());
}

/// Written by the first version that could record. Every later one reads it, to the last byte.
#[test]
fn a_recording_of_format_1_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1.parquet");
    let tape = Tape::find(&path, None).unwrap();
    assert!(tape.complete());
    let about = tape.about().unwrap();
    assert_eq!((about.program.as_str(), about.source.as_str()), ("lockgate 0.1.0", "kafka"));
    let digests: Vec<String> = (tape.read(0))
        .map(|part| {
            let (number, batches) = part.unwrap();
            let digest = PartDigest::of(&batches);
            assert_eq!(digest, tape.parts()[number].digest);
            format!("{} records, {:016x}", digest.records, digest.hash)
        })
        .collect();
    insta::assert_debug_snapshot!(digests, @r#"
    [
        "60 records, 291fd2fb072bbeeb",
        "60 records, 01189766b7c8da90",
    ]
    "#);
    let records = |what: fn(&lockgate_core::Record<'_>) -> bool| {
        let parts = tape.read(0).map(|part| part.unwrap().1);
        parts.flatten().map(|batch| batch.iter().filter(what).count()).sum::<usize>()
    };
    let kinds = [
        records(|record| record.key.is_none()),
        records(|record| record.key == Some(b"")),
        records(|record| record.value.is_none()),
        records(|record| record.value == Some(b"")),
        records(|record| record.headers.iter().any(|header| header.value.is_none())),
        records(|record| record.headers.iter().any(|header| header.value == Some(&[0xc3, 0x28]))),
        records(|record| record.timestamp.is_some() && record.leader_epoch == Some(0)),
    ];
    assert_eq!(kinds, [18, 18, 2, 2, 24, 24, 120]);
}
