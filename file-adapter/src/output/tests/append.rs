//! Appending to one file: where it begins, where it goes back to, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};

use lockgate_core::{EndpointError, Output};
use serde_json::{Value as JsonValue, json};

use super::samples::{lines, mixed, rows};
use crate::config::{FileOutputConfig, OutputFormat};
use crate::output::file_output;

struct Appended {
    dir: tempfile::TempDir,
    path: PathBuf,
}

impl Appended {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out/sub/a.log");
        Self { dir, path }
    }

    fn open(&self) -> Box<dyn Output> {
        output_at(&self.path)
    }

    fn content(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.path).unwrap()).into_owned()
    }

    /// Writes `a` and `b`, then `c` and `d` after the checkpoint whose position is returned.
    fn write_and_crash(&self) -> JsonValue {
        let mut output = self.open();
        output.recover(None).unwrap();
        output.write(1, &[lines("a\nb\n")]).unwrap();
        let position = output.prepare().unwrap();
        output.checkpointed().unwrap();
        output.write(2, &[lines("c\n"), rows(&[Some(b"d")])]).unwrap();
        assert_eq!(self.content(), "a\nb\nc\nd\n");
        position
    }

    /// The error of a recovery that must leave the file as it is.
    fn refusal(&self, position: &JsonValue) -> String {
        let before = fs::read(&self.path).ok();
        let error = self.open().recover(Some(position)).unwrap_err();
        assert_eq!(fs::read(&self.path).ok(), before);
        assert!(matches!(error, EndpointError::Data(_)), "{error:?}");
        error.to_string().replace(self.dir.path().to_str().unwrap(), "DIR")
    }
}

fn output_at(path: &Path) -> Box<dyn Output> {
    let path = path.to_owned();
    file_output(FileOutputConfig { path, format: OutputFormat::Lines, segments: None })
}

/// C16 (kafka-s3-connector#2): the output was written again after a resume.
#[test]
fn what_a_crash_left_after_the_checkpoint_is_rolled_back_not_kept_twice() {
    let appended = Appended::new();
    let position = appended.write_and_crash();
    for _ in 0..2 {
        let mut output = appended.open();
        assert_eq!(output.recover(Some(&position)).unwrap(), position);
        assert_eq!(appended.content(), "a\nb\n");
        output.write(2, &[lines("c\n")]).unwrap();
        assert_eq!(appended.content(), "a\nb\nc\n");
    }
}

#[test]
fn a_first_start_keeps_what_is_there_and_goes_on_after_it() {
    let appended = Appended::new();
    fs::create_dir_all(appended.path.parent().unwrap()).unwrap();
    fs::write(&appended.path, "before\n").unwrap();
    let mut output = appended.open();
    let position = output.recover(None).unwrap();
    output.write(1, &[lines("a\n")]).unwrap();
    assert_eq!(appended.content(), "before\na\n");
    drop(output);
    appended.open().recover(Some(&position)).unwrap();
    assert_eq!(appended.content(), "before\n");
}

/// C15 (iceberg#10892): the output was behind its checkpoint.
#[test]
fn a_file_shorter_than_its_checkpoint_is_refused_and_not_touched() {
    let appended = Appended::new();
    let position = appended.write_and_crash();
    fs::write(&appended.path, "a\n").unwrap();
    insta::assert_snapshot!(appended.refusal(&position), @"DIR/out/sub/a.log has 2 bytes but the checkpoint claims 4: it was truncated or replaced; put back the file as lockgate left it, or start anew with another path and another state directory");
}

/// C15 (seatunnel#10574): the output was not the one of the checkpoint.
#[test]
fn another_file_in_place_of_the_one_written_is_refused_and_not_touched() {
    let appended = Appended::new();
    let position = appended.write_and_crash();
    fs::write(&appended.path, "a\nB\nc\nd\n").unwrap();
    insta::assert_snapshot!(appended.refusal(&position), @"DIR/out/sub/a.log is not the file that was written: before byte 4 its hash is 3ac784794b7e2ede but the checkpoint claims 293443f15261f9de; put back the file as lockgate left it, or start anew with another path and another state directory");
}

#[test]
fn a_file_that_is_gone_is_refused_and_not_begun_anew() {
    let appended = Appended::new();
    let position = appended.write_and_crash();
    fs::remove_file(&appended.path).unwrap();
    insta::assert_snapshot!(appended.refusal(&position), @"DIR/out/sub/a.log does not exist but the checkpoint claims 4 bytes of it; put back the file as lockgate left it, or start anew with another state directory");
}

#[test]
fn a_position_of_another_output_is_refused() {
    let appended = Appended::new();
    appended.write_and_crash();
    insta::assert_snapshot!(appended.refusal(&json!({"segment": 1})), @r#"DIR/out/sub/a.log: the checkpoint holds {"segment":1}, which is no position of this output (missing field `length`); start anew with another state directory"#);
}

#[test]
fn a_directory_or_a_device_is_no_file_to_append_to() {
    let dir = tempfile::tempdir().unwrap();
    let check = |path: &Path| {
        let error = output_at(path).recover(None).unwrap_err();
        assert!(matches!(error, EndpointError::Configuration(_)), "{error:?}");
        error.to_string().replace(dir.path().to_str().unwrap(), "DIR")
    };
    insta::assert_snapshot!(check(dir.path()), @"DIR is a directory: a file output needs the path of a regular file, or of one that does not exist yet");
    insta::assert_snapshot!(check(Path::new("/dev/full")), @"/dev/full is not a regular file: a file output needs the path of a regular file, or of one that does not exist yet");
}

#[test]
fn a_file_that_is_replaced_truncated_or_removed_meanwhile_is_in_no_checkpoint() {
    let check = |meddle: fn(&Path)| {
        let appended = Appended::new();
        let mut output = appended.open();
        output.recover(None).unwrap();
        output.write(1, &[lines("a\n")]).unwrap();
        meddle(&appended.path);
        let error = output.prepare().unwrap_err();
        assert!(matches!(error, EndpointError::Data(_)), "{error:?}");
        error.to_string().replace(appended.dir.path().to_str().unwrap(), "DIR")
    };
    let replaced = |path: &Path| {
        fs::rename(path, path.with_extension("1")).unwrap();
        fs::write(path, "a\n").unwrap();
    };
    insta::assert_snapshot!(check(replaced), @"DIR/out/sub/a.log was replaced by another file while it was being written; let nothing rename or recreate it while lockgate runs");
    insta::assert_snapshot!(check(|path| fs::write(path, "").unwrap()), @"DIR/out/sub/a.log has 0 bytes where 2 were written: another process changes it; give each output a path of its own");
    insta::assert_snapshot!(check(|path| fs::remove_file(path).unwrap()), @"DIR/out/sub/a.log was removed while it was being written; let nothing rename or remove it while lockgate runs");
}

#[test]
fn lines_with_a_carriage_return_null_values_and_a_missing_newline_are_written_alike() {
    let appended = Appended::new();
    let mut output = appended.open();
    output.recover(None).unwrap();
    output.write(1, &mixed()).unwrap();
    let values = mixed()
        .iter()
        .flat_map(|batch| {
            batch.iter().map(|record| record.value.unwrap_or_default().to_vec()).collect::<Vec<_>>()
        })
        .collect::<Vec<_>>();
    let mut expected = values.join(&b'\n');
    expected.push(b'\n');
    assert!(fs::read(&appended.path).unwrap() == expected);
}
