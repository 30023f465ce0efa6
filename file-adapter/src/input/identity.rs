//! What makes a file the same file: its place on the disk and hashes of its content.
//!
//! Pure. An inode number alone is used again by the next file, and a name alone is moved to the next
//! file by rotation; so a file is known by device, inode and the first bytes, and a position in it by the
//! last bytes before. All hashes are over decompressed bytes unless said otherwise.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// How many of a file's first bytes identify it.
pub(super) const HEAD_BYTES: usize = 1024;
/// How many bytes before a position identify what was read up to there.
pub(super) const TAIL_BYTES: usize = 128;

/// The place of a file on the disk. A number that is used again belongs to a file that was born later; a
/// rename keeps the birth.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub(super) struct Inode {
    pub(super) dev: u64,
    pub(super) ino: u64,
    /// When it was born, in nanoseconds since the Unix epoch; 0 where the file system does not say.
    #[serde(default)]
    pub(super) born: u64,
}

impl Inode {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let born = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let born = born.map_or(0, |since| since.as_nanos() as u64);
        Self { dev: metadata.dev(), ino: metadata.ino(), born }
    }
}

/// A hash of a few bytes, and how many they were: a file that has grown since keeps its identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    pub(super) len: u32,
    #[serde(with = "hex")]
    pub(super) hash: u64,
}

impl Fingerprint {
    /// The fingerprint of all of `bytes`.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { len: bytes.len() as u32, hash: XxHash3_64::oneshot(bytes) }
    }

    /// Whether `bytes` begin with what this was taken of.
    pub(super) fn begins(&self, bytes: &[u8]) -> bool {
        bytes.get(..self.len as usize).is_some_and(|head| Self::of(head) == *self)
    }

    /// Whether `bytes` end with what this was taken of.
    pub(super) fn ends(&self, bytes: &[u8]) -> bool {
        let start = bytes.len().checked_sub(self.len as usize);
        start.is_some_and(|start| Self::of(&bytes[start..]) == *self)
    }
}

/// The last bytes before a position, gathered while reading.
///
/// **Invariant:** at most [`TAIL_BYTES`] bytes, which adjoin and end at `end`.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    end: u64,
    bytes: Vec<u8>,
    /// What was stored of the bytes, as long as none have been read.
    stored: Option<Fingerprint>,
}

impl Tail {
    /// Before the first byte that will be read at `offset`.
    pub(super) fn at(offset: u64) -> Self {
        Self { end: offset, bytes: Vec::new(), stored: None }
    }

    /// As it was stored: the bytes themselves are not known.
    pub(super) fn stored(offset: u64, fingerprint: Fingerprint) -> Self {
        Self { end: offset, bytes: Vec::new(), stored: Some(fingerprint) }
    }

    /// The position.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// `bytes` were read from `offset` on. Bytes that do not adjoin the ones before begin anew.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8]) {
        if offset != self.end {
            self.bytes.clear();
        }
        if !bytes.is_empty() {
            self.stored = None;
        }
        self.end = offset + bytes.len() as u64;
        let new = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let keep = TAIL_BYTES - new.len();
        self.bytes.drain(..self.bytes.len().saturating_sub(keep));
        self.bytes.extend_from_slice(new);
    }

    /// The position is now `offset`, after bytes that were not kept.
    pub(super) fn skip_to(&mut self, offset: u64) {
        if offset != self.end {
            *self = Self::at(offset);
        }
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Their fingerprint.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.stored.unwrap_or_else(|| Fingerprint::of(&self.bytes))
    }
}

/// Hashes as hexadecimal text: JSON numbers lose bits in many readers.
mod hex {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(hash: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{hash:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_file_keeps_its_head() {
        let head = Fingerprint::of(b"abc");
        assert!(head.begins(b"abc") && head.begins(b"abcd"));
        assert!(!head.begins(b"ab") && !head.begins(b"abd"));
        assert!(head.ends(b"xabc") && !head.ends(b"abcd"));
    }

    #[test]
    fn a_tail_is_the_last_adjoining_bytes() {
        let mut tail = Tail::at(10);
        tail.push(10, b"abc");
        tail.push(13, b"de");
        assert_eq!((tail.end(), tail.bytes()), (15, &b"abcde"[..]));
        tail.push(15, &[b'x'; TAIL_BYTES - 1]);
        assert_eq!(tail.bytes().len(), TAIL_BYTES);
        assert_eq!(tail.bytes()[0], b'e');
        tail.push(1000, b"z");
        assert_eq!((tail.end(), tail.bytes()), (1001, &b"z"[..]));
        tail.skip_to(1001);
        assert_eq!(tail.bytes(), b"z");
        tail.skip_to(2000);
        assert_eq!((tail.end(), tail.bytes()), (2000, &b""[..]));
    }

    #[test]
    fn a_fingerprint_survives_json() {
        let print = Fingerprint { len: 3, hash: u64::MAX - 1 };
        let json = serde_json::to_value(print).unwrap();
        assert_eq!(json.to_string(), r#"{"hash":"fffffffffffffffe","len":3}"#);
        assert_eq!(serde_json::from_value::<Fingerprint>(json).unwrap(), print);
    }
}
