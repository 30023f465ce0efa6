//! Whatever the bytes are: an error or what was recorded, never a panic or another record.

use std::fs;

use lockgate_core::{Framing, PartDigest};
use proptest::prelude::*;

use super::samples::{any_topics, from_files, from_topics, lines};
use super::{TINY, record, scratch};
use crate::recording::Recording;

/// Reads everything there is to read.
fn exhaust(path: &std::path::Path) {
    let Ok(recording) = Recording::open(path) else { return };
    for start in [0, 1, recording.parts().len() / 2] {
        for part in recording.read(start..recording.parts().len()) {
            let Ok((number, batches)) = part else { break };
            let digest = PartDigest::of(&batches);
            assert_eq!(
                digest,
                recording.parts()[number].digest,
                "another record than was recorded"
            );
        }
    }
    let _ = recording.verify();
}

#[derive(Clone, Debug)]
enum Harm {
    Flip { at: prop::sample::Index, bit: u8 },
    Set { at: prop::sample::Index, bytes: Vec<u8> },
    Cut { at: prop::sample::Index },
    Remove { at: prop::sample::Index, len: usize },
    Copy { from: prop::sample::Index, to: prop::sample::Index, len: usize },
}

fn harm() -> impl Strategy<Value = Harm> {
    use prop::sample::Index;
    prop_oneof![
        (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Harm::Flip { at, bit }),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Harm::Set { at, bytes }),
        any::<Index>().prop_map(|at| Harm::Cut { at }),
        (any::<Index>(), 1usize..40).prop_map(|(at, len)| Harm::Remove { at, len }),
        (any::<Index>(), any::<Index>(), 1usize..400).prop_map(|(from, to, len)| Harm::Copy {
            from,
            to,
            len
        }),
    ]
}

impl Harm {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match self {
            Harm::Flip { at, bit } => bytes[at.index(length)] ^= 1 << bit,
            Harm::Set { at, bytes: new } => {
                let at = at.index(length);
                let end = (at + new.len()).min(length);
                bytes[at..end].copy_from_slice(&new[..end - at]);
            }
            Harm::Cut { at } => bytes.truncate(at.index(length)),
            Harm::Remove { at, len } => {
                let at = at.index(length);
                bytes.drain(at..(at + len).min(length));
            }
            Harm::Copy { from, to, len } => {
                let (from, to) = (from.index(length), to.index(length));
                let len = (*len).min(length - from).min(length - to);
                bytes.copy_within(from..from + len, to);
            }
        }
    }
}

/// Each bit of a whole small file.
#[test]
fn any_bit() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    record(
        &path,
        &from_files(Framing::Lines),
        TINY,
        &[(Some(1), vec![lines("a", 0, b"a\nb\nccc\n")])],
    );
    let whole = fs::read(&path).unwrap();
    let harmed = dir.path().join("b.parquet");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&harmed, &bytes).unwrap();
        exhaust(&harmed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_harm(parts in any_topics(), harms in prop::collection::vec(harm(), 1..4)) {
        let dir = scratch();
        let path = dir.path().join("a.parquet");
        record(&path, &from_topics(), TINY, &parts);
        let mut bytes = fs::read(&path).unwrap();
        harms.iter().for_each(|harm| harm.apply(&mut bytes));
        fs::write(&path, bytes).unwrap();
        exhaust(&path);
    }

    #[test]
    fn any_bytes_behind_the_magic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), framed: bool) {
        let dir = scratch();
        let path = dir.path().join("a.parquet");
        let len = bytes.len() as u32;
        bytes.splice(0..0, *b"PAR1");
        if framed {
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend_from_slice(b"PAR1");
        }
        fs::write(&path, bytes).unwrap();
        exhaust(&path);
    }
}
