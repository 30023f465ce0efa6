//! What is read is what was recorded.

use lockgate_core::{Framing, PartDigest};
use proptest::prelude::*;

use super::samples::{
    any_lengths, any_lines, any_topics, from_files, from_topics, lengths, lines, plain, ten_parts,
    topic,
};
use super::{Given, TINY, expect_front, record, scratch};
use crate::recording::write::Limits;
use crate::recording::{About, Part, Recording, RecordingError, RecordingWriter, Written};

fn check(about: &About, limits: Limits, parts: &[Given]) {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let written = record(&path, about, limits, parts);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.about(), about);
    assert!(recording.complete());
    assert_eq!(expect_front(&recording, parts), parts.len());
    let records = parts.iter().map(|(_, batches)| lockgate_core::count(batches)).sum();
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert_eq!(written, Written { records, parts: parts.len() as u64, bytes });
    assert_eq!((recording.records(), recording.bytes()), (records, bytes));
}

#[test]
fn an_empty_recording_is_one() {
    check(&from_topics(), TINY, &[]);
    check(&from_files(Framing::Lines), TINY, &[(None, vec![]), (Some(3), vec![])]);
}

#[test]
fn any_range_of_parts_can_be_read() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let given = ten_parts();
    record(&path, &from_topics(), TINY, &given);
    let recording = Recording::open(&path).unwrap();
    for start in 0..12 {
        for end in start..12 {
            let read: Vec<_> = recording.read(start..end).map(Result::unwrap).collect();
            let numbers: Vec<usize> = read.iter().map(|(number, _)| *number).collect();
            let expected: Vec<usize> = (start..end.min(10)).collect();
            assert_eq!(numbers, expected, "{start}..{end}");
            for (number, batches) in read {
                assert_eq!(PartDigest::of(&batches), recording.parts()[number].digest);
            }
        }
    }
}

/// A row group holds many parts, and starting within one skips the parts before.
#[test]
fn parts_share_row_groups() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let partition = topic("orders", Some(0));
    let part = |i: u64| (Some(i), vec![plain(&partition, 700 * i, i % 700, 30)]);
    let given: Vec<Given> = (0..40).map(part).collect();
    record(&path, &from_topics(), Limits { max_bytes: u64::MAX, max_rows: 300 }, &given);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(expect_front(&recording, &given), 40);
    for start in 0..40 {
        let (_, batches) = recording.read(start..start + 1).next().unwrap().unwrap();
        assert_eq!(PartDigest::of(&batches), recording.parts()[start].digest, "part {start}");
    }
}

#[test]
fn framing_is_kept() {
    let text = lines("in/a.log", 3, b"a\n\r\n\nb\r\r\nlast");
    let cut = lines("in/a.log", 90, b"no end");
    check(&from_files(Framing::Lines), TINY, &[(Some(1), vec![text.clone(), cut, text])]);
    // The second was truncated by the reader: the file gives it another length.
    let values = [(b"abc".to_vec(), None), (b"ab".to_vec(), Some(900)), (vec![], None)];
    check(&from_files(Framing::Length32), TINY, &[(None, vec![lengths("in/a.bin", 0, &values)])]);
}

#[test]
fn what_does_not_fit_is_refused_and_the_rest_goes_on() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let mut writer = RecordingWriter::create(&path, &from_topics()).unwrap();
    let good = vec![plain(&topic("t", Some(0)), 0, 2, 5)];
    let bad = |number, offset| vec![plain(&topic("t", Some(number)), offset, 1, 5)];
    let digest = PartDigest::of;
    let mut refuse = |step, batches: &[_], digest, said: &str| {
        let error = writer.part(step, batches, digest).unwrap_err();
        assert!(matches!(error, RecordingError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
    };
    let large = bad(0, i64::MAX as u64);
    refuse(None, &large, digest(&large), "offset 9223372036854775807 of t[0]");
    let large = bad(1 << 31, 0);
    refuse(None, &large, digest(&large), "t[2147483648] has a number above");
    refuse(Some(1 << 63), &good, digest(&good), "step 9223372036854775808 is above");
    refuse(None, &good, digest(&[]), "one of 0 records, but there are 2");
    let file = vec![lines("a", 0, b"a\n")];
    refuse(None, &file, digest(&file), "framed as Some(Lines)");
    writer.part(Some(7), &good, digest(&good)).unwrap();
    assert_eq!(writer.finish().unwrap().records, 2);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.parts(), [Part { step: Some(7), digest: digest(&good) }]);
}

#[test]
fn nothing_is_replaced() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    std::fs::write(&path, "precious").unwrap();
    let error = RecordingWriter::create(&path, &from_topics()).err().unwrap();
    assert!(matches!(error, RecordingError::Exists { .. }));
    assert!(error.to_string().ends_with("choose another path or remove the file"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn what_is_no_recording_is_told() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let told = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        Recording::open(&path).err().unwrap().to_string()
    };
    assert!(told(b"").contains("its 0 bytes do not begin with PAR1"));
    assert!(told(b"{\"a\": 1}\n").contains("is not a recording"));
    assert!(told(b"PAR1PAR1PAR1").contains("no intact footer"));
    let missing = Recording::open(&dir.path().join("b")).err().unwrap().to_string();
    assert!(missing.starts_with("cannot open "), "{missing}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_records_of_topics(parts in any_topics(), max_rows in 1u64..40, max_bytes in 1u64..9000) {
        check(&from_topics(), Limits { max_bytes, max_rows }, &parts);
    }

    #[test]
    fn any_lines_of_files(parts in any_lines(), max_rows in 1u64..40, max_bytes in 1u64..9000) {
        check(&from_files(Framing::Lines), Limits { max_bytes, max_rows }, &parts);
    }

    #[test]
    fn any_lengths_of_files(parts in any_lengths(), max_rows in 1u64..40, max_bytes in 1u64..9000) {
        check(&from_files(Framing::Length32), Limits { max_bytes, max_rows }, &parts);
    }
}
