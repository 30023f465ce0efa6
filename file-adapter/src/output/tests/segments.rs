//! Segments: where they begin and end, what a first start and a later one find, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lockgate_core::{EndpointError, Output};
use serde_json::{Value as JsonValue, json};

use super::files;
use super::samples::lines;
use crate::config::{Compression, FileOutputConfig, OutputFormat, SegmentConfig};
use crate::output::file_output;

fn open(dir: &Path, compression: Compression) -> Box<dyn Output> {
    open_limited(dir, SegmentConfig { max_bytes: None, max_records: Some(2), compression })
}

fn open_limited(dir: &Path, segments: SegmentConfig) -> Box<dyn Output> {
    file_output(FileOutputConfig {
        path: dir.join("a-{segment}.log"),
        format: OutputFormat::Lines,
        segments: Some(segments),
    })
}

fn checkpoint(output: &mut dyn Output) -> JsonValue {
    let position = output.prepare().unwrap();
    output.checkpointed().unwrap();
    position
}

fn listing(dir: &Path) -> String {
    let lines = files(dir)
        .into_iter()
        .map(|(name, content)| format!("{name}: {:?}\n", String::from_utf8_lossy(&content)));
    lines.collect()
}

/// The error of a recovery that must leave everything as it is.
fn refusal(dir: &Path, compression: Compression, position: &JsonValue) -> String {
    let before = files(dir);
    let error = open(dir, compression).recover(Some(position)).unwrap_err();
    assert!(files(dir) == before);
    assert!(matches!(error, EndpointError::Data(_)), "{error:?}");
    error.to_string().replace(dir.to_str().unwrap(), "DIR")
}

#[test]
fn a_segment_is_visible_once_it_is_complete_and_in_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut output = open(dir.path(), Compression::None);
    output.recover(None).unwrap();
    output.write(1, &[lines("1\n2\n3\n")]).unwrap();
    insta::assert_snapshot!(listing(dir.path()), @r#"
    .a-000001.log.partial: "1\n2\n"
    .a-000002.log.partial: "3\n"
    "#);
    insta::assert_snapshot!(checkpoint(&mut *output), @r#"{"compressed":false,"length":2,"records":1,"segment":2,"tail":"2add78c0c5b25d62","unnamed_from":1}"#);
    insta::assert_snapshot!(listing(dir.path()), @r#"
    .a-000002.log.partial: "3\n"
    a-000001.log: "1\n2\n"
    "#);
    output.finish().unwrap();
    output.finish().unwrap();
    checkpoint(&mut *output);
    insta::assert_snapshot!(listing(dir.path()), @r#"
    a-000001.log: "1\n2\n"
    a-000002.log: "3\n"
    "#);
}

#[test]
fn a_segment_completed_after_the_checkpoint_was_prepared_waits_for_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut output = open(dir.path(), Compression::None);
    output.recover(None).unwrap();
    output.write(1, &[lines("1\n2\n3\n")]).unwrap();
    output.prepare().unwrap();
    output.write(2, &[lines("4\n5\n")]).unwrap();
    output.checkpointed().unwrap();
    let names: Vec<_> = files(dir.path()).into_keys().collect();
    assert_eq!(names, [".a-000002.log.partial", ".a-000003.log.partial", "a-000001.log"]);
    checkpoint(&mut *output);
    let names: Vec<_> = files(dir.path()).into_keys().collect();
    assert_eq!(names, [".a-000003.log.partial", "a-000001.log", "a-000002.log"]);
}

#[test]
fn a_stopped_pipeline_goes_on_with_its_segment_and_an_ended_one_begins_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut output = open(dir.path(), Compression::None);
    output.recover(None).unwrap();
    output.write(1, &[lines("1\n")]).unwrap();
    let stopped = checkpoint(&mut *output);
    drop(output);

    let mut output = open(dir.path(), Compression::None);
    assert_eq!(output.recover(Some(&stopped)).unwrap(), stopped);
    output.write(2, &[lines("2\n3\n")]).unwrap();
    output.finish().unwrap();
    let ended = checkpoint(&mut *output);
    drop(output);

    let mut output = open(dir.path(), Compression::None);
    let found = output.recover(Some(&ended)).unwrap();
    assert_eq!((&found["segment"], &found["length"]), (&json!(3), &json!(0)));
    output.finish().unwrap();
    output.write(3, &[lines("4\n")]).unwrap();
    output.finish().unwrap();
    checkpoint(&mut *output);
    insta::assert_snapshot!(listing(dir.path()), @r#"
    a-000001.log: "1\n2\n"
    a-000002.log: "3\n"
    a-000003.log: "4\n"
    "#);
}

#[test]
fn a_first_start_overwrites_nothing_and_goes_on_after_the_highest_number() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a-000007.log", ".a-000009.log.partial", "a-000003.log", "a-12.log"] {
        fs::write(dir.path().join(name), "before").unwrap();
    }
    let mut output = open(dir.path(), Compression::None);
    let position = output.recover(None).unwrap();
    output.write(1, &[lines("1\n2\n")]).unwrap();
    let mut output = open(dir.path(), Compression::None);
    output.recover(Some(&position)).unwrap();
    output.write(1, &[lines("1\n2\n")]).unwrap();
    checkpoint(&mut *output);
    insta::assert_snapshot!(listing(dir.path()), @r#"
    .a-000009.log.partial: "before"
    a-000003.log: "before"
    a-000007.log: "before"
    a-000010.log: "1\n2\n"
    a-12.log: "before"
    "#);
}

#[test]
fn segments_that_their_reader_took_away_are_not_missed() {
    for compression in [Compression::None, Compression::Gzip] {
        let dir = tempfile::tempdir().unwrap();
        let mut output = open(dir.path(), compression);
        output.recover(None).unwrap();
        output.write(1, &[lines("1\n2\n3\n4\n5\n")]).unwrap();
        let position = checkpoint(&mut *output);
        drop(output);
        fs::remove_file(dir.path().join("a-000001.log")).unwrap();
        open(dir.path(), compression).recover(Some(&position)).unwrap();
        let names: Vec<_> = files(dir.path()).into_keys().collect();
        assert_eq!(names, [".a-000003.log.partial", "a-000002.log"]);
    }
}

#[test]
fn a_file_that_is_not_ours_under_a_name_that_is_due_is_refused_not_overwritten() {
    for compression in [Compression::None, Compression::Gzip] {
        let dir = tempfile::tempdir().unwrap();
        let mut output = open(dir.path(), compression);
        output.recover(None).unwrap();
        output.write(1, &[lines("1\n2\n3\n")]).unwrap();
        let position = output.prepare().unwrap();
        let foreign = dir.path().join("a-000001.log");
        fs::write(&foreign, "foreign").unwrap();
        assert!(matches!(output.checkpointed(), Err(EndpointError::Data(_))));
        drop(output);
        let error = refusal(dir.path(), compression, &position);
        insta::allow_duplicates! { insta::assert_snapshot!(error, @"DIR/a-000001.log exists although segment 1 has not been given its name yet: another program made it, or the state directory is older than the output; move the file away, or start anew with another state directory"); }
        assert_eq!(fs::read(&foreign).unwrap(), b"foreign");
        // It goes on where it was when that file has been moved away.
        fs::remove_file(&foreign).unwrap();
        open(dir.path(), compression).recover(Some(&position)).unwrap();
        assert!(foreign.exists());
    }
}

/// C17 (arroyo#802): cleanup removed what a restore needed.
#[test]
fn what_the_last_checkpoint_claims_stays_until_the_next_one_is_durable() {
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let dir = tempfile::tempdir().unwrap();
        let mut output = open(dir.path(), compression);
        output.recover(None).unwrap();
        output.write(1, &[lines("1\n")]).unwrap();
        let durable = checkpoint(&mut *output);
        output.write(2, &[lines("2\n3\n4\n5\n")]).unwrap();
        output.prepare().unwrap();
        // The crash: what `prepare` gave was never stored.
        open(dir.path(), compression).recover(Some(&durable)).unwrap();
        let expected = [(".a-000001.log.partial".to_owned(), b"1\n".to_vec())].into();
        assert_eq!(files(dir.path()), expected);
    }
}

/// C15: the state directory was put back from a backup, the output was not.
#[test]
fn a_state_older_than_the_output_is_refused_because_segments_are_out_already() {
    let dir = tempfile::tempdir().unwrap();
    let mut output = open(dir.path(), Compression::Zstd);
    output.recover(None).unwrap();
    output.write(1, &[lines("1\n2\n3\n")]).unwrap();
    let old = checkpoint(&mut *output);
    output.write(2, &[lines("4\n5\n")]).unwrap();
    checkpoint(&mut *output);
    insta::assert_snapshot!(refusal(dir.path(), Compression::Zstd, &old), @"DIR/a-000002.log exists although segment 2 has not been given its name yet: another program made it, or the state directory is older than the output; move the file away, or start anew with another state directory");
}

#[test]
fn a_lost_truncated_or_changed_segment_in_progress_is_refused_and_nothing_is_touched() {
    let check = |meddle: fn(&Path)| {
        let dir = tempfile::tempdir().unwrap();
        let mut output = open(dir.path(), Compression::None);
        output.recover(None).unwrap();
        output.write(1, &[lines("1\n2\n3\n")]).unwrap();
        let position = output.prepare().unwrap();
        drop(output);
        // The name of segment 1 is due: it must not be given before the refusal.
        meddle(&dir.path().join(".a-000002.log.partial"));
        refusal(dir.path(), Compression::None, &position)
    };
    insta::assert_snapshot!(check(|path| fs::remove_file(path).unwrap()), @"DIR/.a-000002.log.partial does not exist but the checkpoint claims 2 bytes of it; put back what lockgate left there, or start anew with another path and another state directory");
    insta::assert_snapshot!(check(|path| fs::write(path, "3").unwrap()), @"DIR/.a-000002.log.partial has 1 bytes but the checkpoint claims 2: it was truncated or replaced; put back the file as lockgate left it, or start anew with another path and another state directory");
    insta::assert_snapshot!(check(|path| fs::write(path, "4\n").unwrap()), @"DIR/.a-000002.log.partial is not the file that was written: before byte 2 its hash is 565b9450afcfefda but the checkpoint claims 2add78c0c5b25d62; put back the file as lockgate left it, or start anew with another path and another state directory");
    insta::assert_snapshot!(check(|path| fs::remove_dir_all(path.parent().unwrap()).unwrap()), @"directory DIR does not exist but the checkpoint claims segments in it; put back what lockgate left there, or start anew with another path and another state directory");
}

#[test]
fn a_change_of_compression_takes_effect_at_the_next_segment() {
    let kinds = [Compression::None, Compression::Gzip, Compression::Zstd];
    for before in kinds {
        for after in kinds {
            let dir = tempfile::tempdir().unwrap();
            let mut output = open(dir.path(), before);
            output.recover(None).unwrap();
            output.write(1, &[lines("1\n2\n3\n")]).unwrap();
            let position = output.prepare().unwrap();
            drop(output);
            let mut output = open(dir.path(), after);
            output.recover(Some(&position)).unwrap();
            output.write(2, &[lines("4\n")]).unwrap();
            checkpoint(&mut *output);
            let expected: BTreeMap<_, _> = [
                ("a-000001.log".to_owned(), compressed(before, b"1\n2\n")),
                ("a-000002.log".to_owned(), compressed(after, b"3\n4\n")),
            ]
            .into();
            assert!(files(dir.path()) == expected, "{before:?} then {after:?}");
        }
    }
}

fn compressed(compression: Compression, content: &'static [u8]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let mut output = open(dir.path(), compression);
    output.recover(None).unwrap();
    output.write(1, &[lines(content)]).unwrap();
    checkpoint(&mut *output);
    fs::read(dir.path().join("a-000001.log")).unwrap()
}

#[test]
fn more_segments_than_can_be_held_open_are_synced_as_they_come() {
    let dir = tempfile::tempdir().unwrap();
    let mut output = open(dir.path(), Compression::None);
    output.recover(None).unwrap();
    let text: String = (0..200).map(|i| format!("{i}\n")).collect();
    output.write(1, &[lines(text)]).unwrap();
    checkpoint(&mut *output);
    assert_eq!(files(dir.path()).len(), 100);
}

#[test]
fn a_segment_ends_before_the_record_that_would_take_it_past_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let limits =
        SegmentConfig { max_bytes: Some(4), max_records: None, compression: Compression::None };
    let mut output = open_limited(dir.path(), limits);
    output.recover(None).unwrap();
    output.write(1, &[lines("1\n2\n3\n45\nlarger\n6\n7")]).unwrap();
    output.finish().unwrap();
    checkpoint(&mut *output);
    insta::assert_snapshot!(listing(dir.path()), @r#"
    a-000001.log: "1\n2\n"
    a-000002.log: "3\n"
    a-000003.log: "45\n"
    a-000004.log: "larger\n"
    a-000005.log: "6\n7\n"
    "#);
}

#[test]
fn a_position_of_another_output_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let position = json!({"length": 3, "tail": "0"});
    insta::assert_snapshot!(refusal(dir.path(), Compression::None, &position), @r#"DIR/a-{segment}.log: the checkpoint holds {"length":3,"tail":"0"}, which is no position of this output (missing field `segment`); start anew with another state directory"#);
}
