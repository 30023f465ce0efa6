//! Bytes as a recording, and recordings with bytes changed: what is read is what was recorded, or an error.
#![no_main]

use std::fs;
use std::sync::{Arc, OnceLock};

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use lockgate_core::{
    Batch, BatchBuilder, Framing, Header, NewRecord, PartDigest, Partition, Timestamp,
};
use lockgate_file_adapter::recording::{About, Part, Recording, RecordingWriter};
use lockgate_fuzz::{Harm, folder, panics_may_be_caught};

#[derive(Arbitrary, Debug)]
enum Input {
    /// These, behind the magic bytes.
    Bytes { is_framed: bool, bytes: Vec<u8> },
    /// One of the valid recordings, with changes.
    Harmed { which: u8, harms: Vec<Harm> },
}

fuzz_target!(init: panics_may_be_caught(), |input: Input| {
    match input {
        Input::Bytes { is_framed, mut bytes } => {
            let len = bytes.len() as u32;
            bytes.splice(0..0, *b"PAR1");
            if is_framed {
                bytes.extend_from_slice(&len.to_le_bytes());
                bytes.extend_from_slice(b"PAR1");
            }
            check(&bytes, None);
        }
        Input::Harmed { which, harms } => {
            let valid = valid();
            let (whole, parts) = &valid[usize::from(which) % valid.len()];
            let mut bytes = whole.clone();
            harms.iter().for_each(|harm| harm.apply(&mut bytes));
            let is_same = bytes == *whole;
            let is_front = whole.starts_with(&bytes);
            let read = check(&bytes, Some(parts));
            if is_same {
                assert_eq!(read, Some(parts.len()), "what was written is not read");
            } else if is_front {
                assert!(read.is_none_or(|read| read <= parts.len()));
            }
        }
    }
});

/// Reads and verifies all there is; gives how many parts there are if nothing is wrong.
fn check(bytes: &[u8], original: Option<&[Part]>) -> Option<usize> {
    let path = folder().join("a.parquet");
    fs::write(&path, bytes).expect("the file is written");
    let recording = Recording::open(&path).ok()?;
    let parts = recording.parts();
    let mut is_good = true;
    for start in [0, parts.len() / 2] {
        for part in recording.read(start..parts.len()) {
            let Ok((number, batches)) = part else {
                is_good = false;
                break;
            };
            let digest = PartDigest::of(&batches);
            assert_eq!(digest, parts[number].digest, "another part than was recorded");
            if let Some(original) = original {
                let recorded = original.iter().any(|part| part.digest == digest);
                assert!(recorded, "a part that was never recorded");
                assert_eq!(
                    original.get(number).map(|part| part.digest),
                    Some(digest),
                    "out of order"
                );
            }
        }
    }
    let is_verified = matches!(recording.verify(), Ok(None));
    if let Some(original) = original
        && is_verified
    {
        assert!(original.starts_with(parts), "verified, but not what was recorded");
        assert!(is_good, "verified, but it cannot be read");
    }
    (is_good && is_verified).then_some(parts.len())
}

type Valid = (Vec<u8>, Vec<Part>);

/// Of each kind of source one, with several row groups.
fn valid() -> &'static [Valid] {
    static VALID: OnceLock<Vec<Valid>> = OnceLock::new();
    VALID.get_or_init(|| {
        let topic = |framing| About {
            program: "0.1.0".into(),
            source: if framing == None { "kafka" } else { "file" }.into(),
            origin: "orders".into(),
            framing,
            ..About::default()
        };
        let lines = |n: u64| vec![adjoining(Framing::Lines, n * 6, b"a\r\nbc\n", &[3, 6])];
        let lengths = |n: u64| {
            vec![adjoining(Framing::Length32, n * 11, b"\0\0\0\x01a\0\0\0\x02bc", &[5, 11])]
        };
        vec![
            record(&topic(None), |n| vec![records(n * 4, 3), records(n * 4 + 3, 1)]),
            record(&topic(Some(Framing::Lines)), lines),
            record(&topic(Some(Framing::Length32)), lengths),
        ]
    })
}

fn record(about: &About, give: impl Fn(u64) -> Vec<Batch>) -> Valid {
    let path = folder().join("valid.parquet");
    let _ = fs::remove_file(&path);
    let mut writer = RecordingWriter::create(&path, about).expect("a recording");
    for n in 0..6 {
        let batches = if n == 4 { Vec::new() } else { give(n) };
        let step = (n != 3).then_some(n + 10);
        writer.part(step, &batches, PartDigest::of(&batches)).expect("a part");
        if n % 2 == 1 {
            writer.flush().expect("a row group");
        }
    }
    writer.finish().expect("a recording");
    let parts = Recording::open(&path).expect("a recording").parts().to_vec();
    (fs::read(&path).expect("a recording"), parts)
}

fn records(base: u64, count: u64) -> Batch {
    let partition = Partition { source: "orders".into(), number: Some(3) };
    let mut builder = BatchBuilder::new(Arc::new(partition));
    for offset in base..base + count {
        let value = [b'a' + offset as u8; 5];
        let headers =
            [Header { name: b"h", value: None }, Header { name: b"h", value: Some(b"x") }];
        let record = NewRecord {
            offset,
            timestamp: (offset % 2 == 0).then(|| Timestamp::created(offset as i64)),
            leader_epoch: (offset % 3 == 0).then_some(7),
            key: (offset % 3 == 1).then_some(b"key"),
            value: (offset % 5 != 2).then_some(&value),
            headers: if offset % 4 == 1 { &headers } else { &[] },
        };
        builder.push(record).expect("a record");
    }
    builder.build()
}

fn adjoining(framing: Framing, base: u64, bytes: &'static [u8], ends: &[u32]) -> Batch {
    let partition = Arc::new(Partition { source: "in.log".into(), number: None });
    Batch::adjoining(partition, framing, Bytes::from_static(bytes), base, 0, ends.to_vec())
}
