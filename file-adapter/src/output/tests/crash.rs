//! Crashes at every single call that changes the disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lockgate_core::Batch;
use proptest::prelude::*;

use super::faulty_disk::FaultyDisk;
use super::samples::{cut, mixed};
use super::{Checkpoint, files, output_on, run, scratch};
use crate::config::{Compression, FileOutputConfig, OutputFormat, SegmentConfig};

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Gzip, Compression::Zstd];

fn append(dir: &Path) -> FileOutputConfig {
    FileOutputConfig { path: dir.join("a.log"), format: OutputFormat::Lines, segments: None }
}

fn segments(dir: &Path, compression: Compression) -> FileOutputConfig {
    let limits = SegmentConfig { max_bytes: Some(90), max_records: Some(4), compression };
    FileOutputConfig {
        path: dir.join("a-{segment}.log"),
        format: OutputFormat::Lines,
        segments: Some(limits),
    }
}

/// Steps with empty ones at the start, in the middle and at the end.
fn steps() -> Vec<Vec<Batch>> {
    let mut steps = cut(&mixed(), &[0, 1, 3, 5, 0, 2, 6, 1, 4]);
    steps.push(Vec::new());
    steps
}

/// How the process ends.
#[derive(Clone, Copy, Debug)]
enum Crash {
    /// What it wrote stays.
    Kill,
    /// What it wrote and did not sync is gone, or (every other time) has become zeros.
    PowerLoss,
}

/// One output in a directory of its own, on a disk that can be told to die.
struct Rehearsal {
    dir: tempfile::TempDir,
    disk: FaultyDisk,
    config: FileOutputConfig,
    steps: Vec<Vec<Batch>>,
    checkpoint_every: usize,
    checkpoint: Checkpoint,
}

impl Rehearsal {
    fn new(configure: impl Fn(&Path) -> FileOutputConfig, checkpoint_every: usize) -> Self {
        let dir = scratch();
        let config = configure(&dir.path().join("out"));
        let (disk, checkpoint) = (FaultyDisk::default(), Checkpoint::default());
        Self { dir, disk, config, steps: steps(), checkpoint_every, checkpoint }
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.dir.path().join("out"))
    }

    fn run(&mut self) -> Result<(), String> {
        let output = output_on(Arc::new(self.disk.clone()), &self.config);
        run(output, &mut self.checkpoint, &self.steps, self.checkpoint_every)
            .map_err(|error| error.to_string())
    }

    /// Runs until the end, or until a crash in the call after `calls`. Whether the end was reached.
    fn run_until(&mut self, calls: usize, crash: Crash) -> bool {
        self.disk.die_after(calls);
        let ended = self.run();
        self.disk.revive();
        match ended {
            Ok(()) => return true,
            Err(error) => assert!(error.ends_with("killed"), "after {calls} calls: {error}"),
        }
        if let Crash::PowerLoss = crash {
            self.disk.lose_power(&self.dir.path().join("out"), calls.is_multiple_of(2));
        }
        false
    }
}

/// What is left by a run without a crash.
fn undisturbed(
    configure: impl Fn(&Path) -> FileOutputConfig,
    checkpoint_every: usize,
) -> BTreeMap<String, Vec<u8>> {
    let mut rehearsal = Rehearsal::new(configure, checkpoint_every);
    rehearsal.run().unwrap();
    rehearsal.files()
}

/// Crashes at every call of a run, then at every call of the recovery from that, then runs to the end.
fn crash_everywhere(
    configure: impl Fn(&Path) -> FileOutputConfig + Copy,
    crash: Crash,
    check: impl Fn(&Rehearsal, &BTreeMap<String, Vec<u8>>),
) {
    for checkpoint_every in [2, 100] {
        let expected = undisturbed(configure, checkpoint_every);
        // Both numbers of calls until there is nothing left to disturb.
        let (mut first, mut second) = (0, 0);
        loop {
            let mut rehearsal = Rehearsal::new(configure, checkpoint_every);
            if rehearsal.run_until(first, crash) {
                break;
            }
            check(&rehearsal, &expected);
            rehearsal.run_until(second, crash);
            check(&rehearsal, &expected);
            let recovered = rehearsal.checkpoint.recovered;
            rehearsal.run().unwrap();
            let case = format!("{crash:?} after {first}, then {second} calls");
            assert!(rehearsal.files() == expected, "{case}: {:?}", rehearsal.files());
            (first, second) = if recovered { (first + 1, 0) } else { (first, second + 1) };
        }
        assert!(first > 10, "only {first} calls");
    }
}

/// Whatever a reader of the directory can see is complete, final and covered by a checkpoint.
fn nothing_early_is_visible(rehearsal: &Rehearsal, expected: &BTreeMap<String, Vec<u8>>) {
    let claimed = rehearsal
        .checkpoint
        .position
        .as_ref()
        .map_or(0, |position| position["segment"].as_u64().unwrap());
    for (name, content) in rehearsal.files().into_iter().filter(|(name, _)| !name.starts_with('.'))
    {
        assert_eq!(expected.get(&name), Some(&content), "{name} is visible too early");
        let number = name.trim_start_matches("a-").trim_end_matches(".log");
        assert!(number.parse::<u64>().unwrap() < claimed, "{name} is in no checkpoint");
    }
}

/// C3, C16: a crash between a file's completion and its name lost it, or wrote it again.
#[test]
fn segments_are_the_same_after_a_kill_between_any_two_calls_and_in_the_recovery_from_it() {
    for compression in COMPRESSIONS {
        let configure = |dir: &Path| segments(dir, compression);
        crash_everywhere(configure, Crash::Kill, nothing_early_is_visible);
    }
}

/// C3 (beats#19634, redis#10737): renamed, but the directory was not synced.
#[test]
fn segments_are_the_same_after_losing_power_because_names_and_contents_are_synced_first() {
    for compression in COMPRESSIONS {
        let configure = |dir: &Path| segments(dir, compression);
        crash_everywhere(configure, Crash::PowerLoss, nothing_early_is_visible);
    }
}

/// C3, C16: the same for one file.
#[test]
fn an_appended_file_is_the_same_after_a_kill_or_a_loss_of_power_at_any_call() {
    for crash in [Crash::Kill, Crash::PowerLoss] {
        crash_everywhere(append, crash, |_, _| {});
    }
}

#[test]
fn compressed_segments_hold_what_uncompressed_ones_do() {
    use std::io::Read;
    let plain = undisturbed(|dir| segments(dir, Compression::None), 3);
    assert!(plain.len() >= 8, "{} segments", plain.len());
    let gzip = undisturbed(|dir| segments(dir, Compression::Gzip), 3);
    let zstd = undisturbed(|dir| segments(dir, Compression::Zstd), 3);
    for (name, content) in &plain {
        let mut from_gzip = Vec::new();
        flate2::read::GzDecoder::new(&gzip[name][..]).read_to_end(&mut from_gzip).unwrap();
        assert_eq!(&from_gzip, content);
        assert_eq!(&zstd::decode_all(&zstd[name][..]).unwrap(), content);
        // Neither flags, nor a time, nor an operating system.
        assert_eq!(gzip[name][..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
    }
    assert!([plain.len()].repeat(2) == [gzip.len(), zstd.len()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Where a segment ends depends on the records alone.
    #[test]
    fn any_cutting_into_steps_and_checkpoints_gives_the_same_segments(
        sizes in proptest::collection::vec(0usize..6, 0..12),
        checkpoint_every in 1usize..5,
        max_bytes in proptest::option::of(1u64..200),
        max_records in 1u64..9,
        json in proptest::bool::ANY,
    ) {
        let configure = |dir: &Path| FileOutputConfig {
            path: dir.join("a-{segment}.log"),
            format: if json { OutputFormat::Json } else { OutputFormat::Lines },
            segments: Some(SegmentConfig {
                max_bytes,
                max_records: Some(max_records),
                compression: Compression::None,
            }),
        };
        let mut whole = Rehearsal::new(configure, 1);
        whole.steps = vec![mixed()];
        whole.run().unwrap();
        let mut pieces = Rehearsal::new(configure, checkpoint_every);
        pieces.steps = cut(&mixed(), &sizes);
        pieces.run().unwrap();
        prop_assert_eq!(whole.files(), pieces.files());
    }
}
