//! File inputs held against the rules of the protocol: every format, read once and followed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is test code, helpers included")]

use std::io::Write;

use lockgate_conformance::{Conformance, Known, Summary};
use lockgate_core::Framing;
use lockgate_file_adapter::{FileInput, FileInputConfig, Overlong, StartAt};
use tempfile::TempDir;

/// What a file holds, and how it lies on the disk.
struct File {
    name: &'static str,
    stored: Vec<u8>,
    /// Offsets and values.
    records: Vec<(u64, Vec<u8>)>,
}

impl File {
    /// Lines, each with its end; the last may lack it.
    fn of_lines(name: &'static str, text: &str) -> Self {
        let mut offset = 0;
        let record = |line: &str| {
            let at = offset;
            offset += line.len() as u64;
            (at, line.trim_end_matches(['\r', '\n']).as_bytes().to_vec())
        };
        let records = text.split_inclusive('\n').map(record).collect();
        Self { name, stored: text.into(), records }
    }

    /// The same records, stored in another way.
    fn stored_as(mut self, store: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        self.stored = store(&self.stored);
        self
    }
}

/// `n` lines of different lengths, among them empty ones.
fn lines(n: usize) -> String {
    (0..n)
        .map(
            |i| if i % 7 == 3 { "\n".into() } else { format!("line {i} {}\n", "x".repeat(i % 40)) },
        )
        .collect()
}

fn gzip(part: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(part).unwrap();
    encoder.finish().unwrap()
}

fn zstd(part: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(part, 1).unwrap()
}

/// Cut into three parts anywhere, so that records reach over their ends.
fn in_parts(compress: fn(&[u8]) -> Vec<u8>) -> impl Fn(&[u8]) -> Vec<u8> {
    move |content| content.chunks(content.len() / 3 + 1).flat_map(compress).collect()
}

/// An input over `files`, which are read in the order of their names.
struct Source {
    dir: TempDir,
    config: FileInputConfig,
    known: Vec<Known>,
}

impl Source {
    fn new(files: Vec<File>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut known = Vec::new();
        for File { name, stored, records } in files {
            let path = dir.path().join(name);
            std::fs::write(&path, stored).unwrap();
            let path = path.to_str().unwrap();
            let of_file = |(offset, value)| Known::new(path, value).offset(offset).key(None);
            known.extend(records.into_iter().map(of_file));
        }
        let config = FileInputConfig {
            paths: vec![dir.path().join("*").to_str().unwrap().to_owned()],
            framing: Framing::Lines,
            max_record_bytes: 1 << 20,
            overlong: Overlong::Stop,
            follow: false,
            start_at: StartAt::Beginning,
        };
        Self { dir, config, known }
    }

    fn test(&self) -> Conformance<'_> {
        let open = || FileInput::new(self.config.clone());
        Conformance::new(open).holds(self.known.clone()).schedules(20)
    }

    fn holds(&self) -> Summary {
        self.test().run().unwrap_or_else(|report| panic!("{report}"))
    }
}

#[test]
fn plain_files() {
    let source = Source::new(vec![
        File::of_lines("a.log", &lines(40)),
        File::of_lines("b.log", ""),
        File::of_lines("c.log", "windows\r\n\r\nlast line without an end"),
        File::of_lines("d.log", &lines(25)),
        File::of_lines("e.log", ""),
    ]);
    let summary = source.holds();
    assert!(summary.replays > 100 && summary.checkpoints > 30, "{summary}");
}

/// Files are read in blocks of 1 MiB; one record here is larger than that.
#[test]
fn several_blocks() {
    let line =
        |i: usize| format!("{i} {}\n", "x".repeat(if i == 17 { 1_200_000 } else { 300 * i }));
    let long: String = (0..90).map(line).collect();
    let mut source = Source::new(vec![
        File::of_lines("a.log", &long),
        File::of_lines("b.gz", &long).stored_as(in_parts(gzip)),
    ]);
    source.config.max_record_bytes = 2 << 20;
    source.holds();
}

#[test]
fn no_records_at_all() {
    let source = Source::new(vec![File::of_lines("a.log", ""), File::of_lines("b.log", "")]);
    source.holds();
}

#[test]
fn gzip_of_several_members() {
    let source = Source::new(vec![
        File::of_lines("a.gz", &lines(30)).stored_as(in_parts(gzip)),
        File::of_lines("b.log", &lines(10)),
        File::of_lines("c.gz", "one\ntwo").stored_as(in_parts(gzip)),
    ]);
    source.holds();
}

#[test]
fn zstd_of_several_frames() {
    let source = Source::new(vec![
        File::of_lines("a.zst", &lines(30)).stored_as(in_parts(zstd)),
        File::of_lines("b.zst", "").stored_as(zstd),
        File::of_lines("c.zst", "one\ntwo").stored_as(in_parts(zstd)),
    ]);
    source.holds();
}

#[test]
fn length_delimited_records() {
    let values: Vec<Vec<u8>> = (0..40u8).map(|i| vec![i; usize::from(i) * 3 % 50]).collect();
    let mut file = File { name: "a.bin", stored: Vec::new(), records: Vec::new() };
    for value in values {
        let offset = file.stored.len() as u64;
        file.stored.extend((value.len() as u32).to_be_bytes());
        file.stored.extend(&value);
        file.records.push((offset, value));
    }
    let compressed =
        File { name: "b.gz", records: file.records.clone(), stored: file.stored.clone() };
    let compressed = compressed.stored_as(in_parts(gzip));
    let mut source = Source::new(vec![file, compressed]);
    source.config.framing = Framing::Length32;
    source.holds();
}

#[test]
fn followed_files() {
    let mut source = Source::new(vec![
        File::of_lines("a.log", &lines(30)),
        File::of_lines("b.log", ""),
        File::of_lines("c.log", &lines(10)),
    ]);
    source.config.follow = true;
    source.test().endless().check();
}

#[test]
fn what_cannot_be_read_is_reported_before_the_reader_closes() {
    let source = Source::new(vec![File::of_lines("a.log", &lines(5))]);
    let truncated = source.dir.path().join("truncated");
    let mut stored = gzip(lines(30).as_bytes());
    stored.truncate(stored.len() - 9);
    std::fs::write(&truncated, stored).unwrap();
    let test = |path: &std::path::Path| {
        let paths = vec![path.to_str().unwrap().to_owned()];
        let config = FileInputConfig { paths, ..source.config.clone() };
        // The pattern of the good input finds only what lies in its own directory.
        let good = FileInputConfig {
            paths: vec![source.dir.path().join("a.log").to_str().unwrap().to_owned()],
            ..source.config.clone()
        };
        Conformance::new(move || FileInput::new(good.clone()))
            .holds(source.known.clone())
            .schedules(1)
            .fails(move || FileInput::new(config.clone()))
            .run()
    };
    test(&truncated).unwrap_or_else(|report| panic!("{report}"));
    // The test would notice if nothing failed.
    test(&source.dir.path().join("a.log")).expect_err("a whole file was said to fail");
}
