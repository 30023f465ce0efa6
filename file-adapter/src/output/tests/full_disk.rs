//! A disk that is full stops the step, not the pipeline: nothing of the step stays, and when there is
//! space again the same call writes what it would have written.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lockgate_core::{Batch, EndpointError, Output};

use super::super::disk::{Disk, SystemDisk};
use super::faulty_disk::FaultyDisk;
use super::samples::{cut, lines, mixed};
use super::{files, output_on, scratch};
use crate::config::{Compression, FileOutputConfig, OutputFormat, SegmentConfig};

fn configs(dir: &Path) -> Vec<FileOutputConfig> {
    let format = OutputFormat::Lines;
    let append = FileOutputConfig { path: dir.join("a.log"), format, segments: None };
    let segments = [Compression::None, Compression::Gzip, Compression::Zstd].map(|compression| {
        let limits = SegmentConfig { max_bytes: Some(90), max_records: Some(4), compression };
        FileOutputConfig { path: dir.join("a-{segment}.log"), format, segments: Some(limits) }
    });
    [append].into_iter().chain(segments).collect()
}

/// Calls until it is not refused for want of space, making space after the second refusal. How often it
/// was refused.
fn insist(
    output: &mut dyn Output,
    mut call: impl FnMut(&mut dyn Output) -> Result<(), EndpointError>,
    check: impl Fn(),
    make_space: impl Fn(),
) -> usize {
    for refusals in 0.. {
        match call(output) {
            Ok(()) => return refusals,
            Err(EndpointError::StorageFull { .. }) => check(),
            Err(error) => panic!("{error:?}"),
        }
        if refusals == 1 {
            make_space();
        }
    }
    unreachable!()
}

fn without_faults(config: &FileOutputConfig, steps: &[Vec<Batch>]) {
    let mut output = output_on(Arc::new(SystemDisk), config);
    output.recover(None).unwrap();
    for step in steps {
        output.write(1, step).unwrap();
    }
    output.finish().unwrap();
    output.prepare().unwrap();
    output.checkpointed().unwrap();
}

/// C4 (vector#13044, fluentd#1698): a full disk left half a record.
#[test]
fn a_disk_full_at_any_byte_leaves_nothing_of_the_step_and_the_same_call_can_come_again() {
    let steps = cut(&mixed(), &[3, 8, 9]);
    for kind in 0..4 {
        let expected = scratch();
        without_faults(&configs(expected.path())[kind], &steps);
        // Around the large line every byte is like the next.
        for room in (0..600).chain((600..24_000).step_by(997)) {
            let (dir, disk) = (scratch(), FaultyDisk::default());
            let mut output = output_on(Arc::new(disk.clone()), &configs(dir.path())[kind]);
            output.recover(None).unwrap();
            disk.limit(Some(room));
            let mut refusals = 0;
            for (i, step) in steps.iter().enumerate() {
                let before = files(dir.path());
                let unchanged = || assert!(files(dir.path()) == before, "room for {room}");
                let write = |output: &mut dyn Output| output.write(i as u64, step);
                refusals += insist(&mut *output, write, unchanged, || disk.limit(None));
            }
            let before = files(dir.path());
            let unchanged = || assert!(files(dir.path()) == before, "room for {room}");
            let finish = |output: &mut dyn Output| output.finish();
            refusals += insist(&mut *output, finish, unchanged, || disk.limit(None));
            assert!(refusals == 2 || room > 400, "{refusals} refusals with room for {room}");
            output.prepare().unwrap();
            output.checkpointed().unwrap();
            assert!(files(dir.path()) == files(expected.path()), "room for {room}");
        }
    }
}

/// A small file system of its own, if this process may mount one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(&at)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Self(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// C4 again, on a file system that is really full. Where none may be mounted, the disk of the test above
/// stands in for it, whose error is the kernel's too.
#[test]
fn a_full_file_system_stops_a_step_of_thirty_kilobytes_and_goes_on_when_there_is_space() {
    for kind in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let small = SmallDisk::mount(dir.path().to_owned());
        let (in_the_way, faulty) = (dir.path().join("in-the-way"), FaultyDisk::default());
        let disk: Arc<dyn Disk> = match &small {
            Some(_) => {
                fs::write(&in_the_way, vec![0; 150_000]).unwrap();
                Arc::new(SystemDisk)
            }
            None => {
                faulty.limit(Some(100_000));
                Arc::new(faulty.clone())
            }
        };
        let make_space = || match &small {
            Some(_) => fs::remove_file(&in_the_way).unwrap(),
            None => faulty.limit(None),
        };

        let out = dir.path().join("out");
        let mut config = configs(&out).swap_remove(kind);
        if let Some(segments) = &mut config.segments {
            (segments.max_bytes, segments.max_records) = (Some(50_000), None);
        }
        let mut output = output_on(disk, &config);
        output.recover(None).unwrap();
        let (mut refusals, mut bytes) = (0, 0);
        for i in 0..5 {
            let step = [lines(format!("{i} 0123456789 0123456789\n").repeat(1_200))];
            bytes += step[0].bytes();
            let before = files(&out);
            let unchanged = || assert!(files(&out) == before);
            let write = |output: &mut dyn Output| output.write(i, &step);
            refusals += insist(&mut *output, write, unchanged, make_space);
        }
        assert_eq!(refusals, 2, "kind {kind}");
        output.finish().unwrap();
        output.prepare().unwrap();
        output.checkpointed().unwrap();
        let compression = config.segments.map(|segments| segments.compression);
        let contents = files(&out).into_values();
        let written: usize = contents.map(|content| content_length(&content, compression)).sum();
        assert_eq!(written as u64, bytes, "kind {kind}");
    }
}

fn content_length(stored: &[u8], compression: Option<Compression>) -> usize {
    match compression {
        Some(Compression::Gzip) => {
            let mut content = Vec::new();
            flate2::read::GzDecoder::new(stored).read_to_end(&mut content).unwrap();
            content.len()
        }
        Some(Compression::Zstd) => zstd::decode_all(stored).unwrap().len(),
        Some(Compression::None) | None => stored.len(),
    }
}

/// A second attempt at the final names once took the segment that the first had named for a foreign one.
#[test]
fn names_that_were_given_before_the_disk_was_full_stay() {
    for room in 0..3 {
        for config in &configs(Path::new(""))[1..] {
            let (dir, disk) = (scratch(), FaultyDisk::default());
            let config = FileOutputConfig { path: dir.path().join(&config.path), ..config.clone() };
            let mut output = output_on(Arc::new(disk.clone()), &config);
            output.recover(None).unwrap();
            output.write(1, &[lines("a\n".repeat(12))]).unwrap();
            output.prepare().unwrap();
            disk.limit(Some(room));
            let first = output.checkpointed().unwrap_err();
            assert!(matches!(first, EndpointError::StorageFull { .. }), "{first:?}");
            disk.limit(None);
            output.checkpointed().unwrap();
            let complete = fs::read_dir(dir.path()).unwrap();
            let names = complete.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert_eq!(names.filter(|name| !name.starts_with('.')).count(), 3);
        }
    }
}
