//! A file that was cut short has everything up to the last row group that is complete.

use std::fs;

use super::samples::{from_topics, plain, ten_parts, topic};
use super::{TINY, add, create, expect_front, record, scratch};
use crate::recording::{Recording, RecordingError};

/// Cut at every byte: never less than what was durable there, never a wrong record.
#[test]
fn cut_at_every_byte() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let given = ten_parts();
    let mut writer = create(&path, &from_topics(), TINY);
    // How many parts are durable from which length on.
    let mut durable = vec![(fs::metadata(&path).unwrap().len(), 0)];
    for (number, part) in given.iter().enumerate() {
        add(&mut writer, part).unwrap();
        writer.flush().unwrap();
        durable.push((fs::metadata(&path).unwrap().len(), number + 1));
    }
    writer.finish().unwrap();
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let expected = durable.iter().rev().find(|(from, _)| *from <= length as u64);
        match (Recording::open(&path), expected) {
            (Ok(recording), Some((_, parts))) => {
                assert!(!recording.complete());
                assert_eq!(recording.parts().len(), *parts, "cut at {length}");
                if length % 50 == 0 {
                    assert_eq!(expect_front(&recording, &given), *parts);
                }
            }
            (Err(RecordingError::NotARecording { .. }), None) => {}
            (found, expected) => panic!("cut at {length}: {expected:?}, {:?}", found.err()),
        }
    }
    fs::write(&path, &whole).unwrap();
    assert!(Recording::open(&path).unwrap().complete());
}

/// A writer that is dropped leaves what a crash leaves.
#[test]
fn dropped_without_finish() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let given = ten_parts();
    let mut writer = create(&path, &from_topics(), TINY);
    given[..8].iter().for_each(|part| add(&mut writer, part).unwrap());
    drop(writer);
    let recording = Recording::open(&path).unwrap();
    assert!(!recording.complete());
    let parts = expect_front(&recording, &given);
    assert!((4..=8).contains(&parts), "{parts}");
}

/// A torn tail may be long, hold the marks of a footer, and be zeros.
#[test]
fn whatever_follows_the_last_footer() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let given = ten_parts();
    let mut writer = create(&path, &from_topics(), TINY);
    given.iter().for_each(|part| add(&mut writer, part).unwrap());
    writer.flush().unwrap();
    drop(writer);
    let whole = fs::read(&path).unwrap();
    let copied = &whole[whole.len() - 2000..];
    let tails: [&[u8]; 5] =
        [&[0; 3_000_000], b"PAR1", b"\x08\0\0\0PAR1", copied, &b"PAR1".repeat(600_000)];
    for tail in tails {
        fs::write(&path, [&whole, tail].concat()).unwrap();
        let recording = Recording::open(&path).unwrap();
        assert!(!recording.complete());
        assert_eq!(expect_front(&recording, &given), 10);
    }
}

/// The last footer covers more than an inner one may: parts and row groups that are not in order.
#[test]
fn a_hole_in_the_middle_is_damage() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let given = ten_parts();
    record(&path, &from_topics(), TINY, &given);
    let whole = fs::read(&path).unwrap();
    // Without its last footer, and with a hole in the first inner one.
    let mut cut = whole[..whole.len() - 1].to_vec();
    cut[50] ^= 1;
    fs::write(&path, cut).unwrap();
    let error = Recording::open(&path).err().unwrap();
    assert!(matches!(error, RecordingError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("the footer that should end at byte"), "{error}");
}

/// A part without records is one, also where it is alone.
#[test]
fn parts_without_records_survive_a_crash() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let given =
        [(Some(1), vec![]), (Some(2), vec![plain(&topic("t", None), 0, 1, 9)]), (None, vec![])];
    let mut writer = create(&path, &from_topics(), TINY);
    for part in &given {
        add(&mut writer, part).unwrap();
        writer.flush().unwrap();
    }
    drop(writer);
    assert_eq!(expect_front(&Recording::open(&path).unwrap(), &given), 3);
}
