//! A disk that fails, or is full.

use std::sync::Arc;

use lockgate_core::PartDigest;

use super::samples::{from_topics, ten_parts};
use super::{TINY, add, expect_front, scratch};
use crate::output::tests::faulty_disk::FaultyDisk;
use crate::recording::{Recording, RecordingError, RecordingWriter};

/// Full at every byte: the error says so, nothing can be added, and what was durable is readable.
#[test]
fn a_full_disk_leaves_a_readable_file() {
    let given = ten_parts();
    for room in (1..30_000).step_by(97) {
        let dir = scratch();
        let path = dir.path().join("a.parquet");
        let disk = FaultyDisk::default();
        disk.limit(Some(room));
        let written = RecordingWriter::create_on(Arc::new(disk), &path, &from_topics(), TINY)
            .and_then(|mut writer| {
                for part in &given {
                    if let Err(error) = add(&mut writer, part) {
                        let next = add(&mut writer, part).unwrap_err();
                        assert!(matches!(next, RecordingError::Broken { .. }), "{next:?}");
                        return Err(error);
                    }
                }
                writer.finish()
            });
        match written {
            Ok(_) => assert!(Recording::open(&path).unwrap().complete()),
            Err(RecordingError::StorageFull { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
        match Recording::open(&path) {
            Ok(recording) => {
                expect_front(&recording, &given);
            }
            Err(error) => {
                assert!(matches!(error, RecordingError::NotARecording { .. }), "{error:?}")
            }
        }
    }
}

/// Killed in the middle of every call, and what was not synced is gone, or zeros.
#[test]
fn what_was_reported_durable_survives_a_loss_of_power() {
    let given = ten_parts();
    for calls in 0.. {
        let mut finished = false;
        for zeros in [false, true] {
            let dir = scratch();
            let path = dir.path().join("a.parquet");
            let disk = FaultyDisk::default();
            disk.die_after(calls);
            let mut durable = None;
            let written =
                RecordingWriter::create_on(Arc::new(disk.clone()), &path, &from_topics(), TINY)
                    .and_then(|mut writer| {
                        durable = Some(0);
                        for (number, part) in given.iter().enumerate() {
                            add(&mut writer, part)?;
                            writer.flush()?;
                            durable = Some(number + 1);
                        }
                        writer.finish()
                    });
            finished = written.is_ok();
            disk.revive();
            disk.lose_power(dir.path(), zeros);
            let Some(durable) = durable else { continue };
            let recording = Recording::open(&path).unwrap();
            assert!(expect_front(&recording, &given) >= durable);
            assert!(!finished || recording.complete());
        }
        if finished {
            break;
        }
    }
}

#[test]
fn an_error_of_the_disk_names_the_file() {
    let dir = scratch();
    let path = dir.path().join("missing").join("a.parquet");
    let error = RecordingWriter::create(&path, &from_topics()).err().unwrap();
    assert!(error.to_string().starts_with(&format!("cannot create {}", path.display())), "{error}");
    let disk = FaultyDisk::default();
    let path = dir.path().join("a.parquet");
    let mut writer =
        RecordingWriter::create_on(Arc::new(disk.clone()), &path, &from_topics(), TINY).unwrap();
    disk.limit(Some(0));
    let (step, batches) = &ten_parts()[0];
    writer.part(*step, batches, PartDigest::of(batches)).unwrap();
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write to {}", path.display())), "{error}");
    assert!(error.contains("make room"), "{error}");
}
