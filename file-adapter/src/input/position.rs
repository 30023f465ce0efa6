//! Positions: what is stored of a reader between two steps (`seek`), and what a step consists of
//! (`replay`), and their JSON and MessagePack forms.
//!
//! Pure. All ranges are half-open. Not here: whether a position still fits the files
//! ([`plan`](super::plan)).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use lockgate_core::EndpointError;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as JsonValue;
use twox_hash::XxHash3_64;

use super::identity::{Fingerprint, HEAD_BYTES, Inode, TAIL_BYTES};

/// A place in a compressed file where decompression can begin: the start of a gzip member or zstd frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Member {
    /// Its offset in the file.
    pub(super) raw: u64,
    /// Its offset in the decompressed stream.
    pub(super) start: u64,
    /// The last bytes before `raw`, compressed.
    pub(super) raw_tail: Fingerprint,
}

impl Member {
    /// The first one.
    pub(super) fn first() -> Self {
        Self { raw: 0, start: 0, raw_tail: Fingerprint::of(b"") }
    }
}

/// A place in a file where reading can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The offset of the first record that was not handed over, in the decompressed stream.
    pub(super) offset: u64,
    /// The last bytes before it.
    pub(super) tail: Fingerprint,
    /// Compressed files: the last member that begins at or before `offset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) member: Option<Member>,
}

/// A file that was begun and not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    /// The name under which its records are known: its path when it was first seen.
    pub(super) name: String,
    /// Its path now.
    #[serde(with = "path_text")]
    pub(super) path: PathBuf,
    #[serde(flatten)]
    pub(super) inode: Inode,
    pub(super) head: Fingerprint,
    #[serde(flatten)]
    pub(super) mark: Mark,
}

/// Where a reader stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seek {
    /// In the order in which they will be read on.
    pub(super) begun: Vec<Begun>,
    pub(super) done: Done,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeekForm<'a> {
    version: u32,
    begun: std::borrow::Cow<'a, [Begun]>,
    done: usize,
    done_files: std::borrow::Cow<'a, str>,
}

const VERSION: u32 = 1;

impl Seek {
    pub(super) fn to_json(&self) -> JsonValue {
        let form = SeekForm {
            version: VERSION,
            begun: self.begun.as_slice().into(),
            done: self.done.len(),
            done_files: self.done.packed.as_str().into(),
        };
        // Cannot fail: no map has keys that are not text.
        serde_json::to_value(form).unwrap_or_default()
    }

    /// # Errors
    /// If it is not something that [`to_json`](Self::to_json) gave.
    pub(super) fn from_json(json: &JsonValue) -> Result<Self, EndpointError> {
        let damaged = |what: String| {
            EndpointError::Data(format!("the stored position of a file input is damaged: {what}"))
        };
        let form = SeekForm::deserialize(json).map_err(|error| damaged(error.to_string()))?;
        if form.version != VERSION {
            let version = form.version;
            return Err(damaged(format!("its version is {version}, not {VERSION}")));
        }
        let done = Done::unpack(&form.done_files)
            .filter(|done| done.len() == form.done)
            .ok_or_else(|| damaged("done_files is not a list of `done` files".into()))?;
        Ok(Self { begun: form.begun.into_owned(), done })
    }
}

/// A file that was read to its end, in 30 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DoneFile {
    inode: u64,
    head_len: u16,
    head: u64,
    raw_len: u64,
    raw_tail_len: u8,
    raw_tail: u64,
    name: u32,
    /// Whether the file was compressed.
    pub(super) compressed: bool,
}

const DONE_BYTES: usize = 30;
const COMPRESSED: u16 = 1 << 15;
const _: () = assert!(TAIL_BYTES <= u8::MAX as usize && HEAD_BYTES < COMPRESSED as usize);

impl DoneFile {
    /// `raw_len` is its size on the disk, and `raw_tail` are its last bytes there.
    pub(super) fn new(
        name: &str,
        inode: Inode,
        compressed: bool,
        head: Fingerprint,
        raw_len: u64,
        raw_tail: Fingerprint,
    ) -> Self {
        Self {
            inode: inode_key(inode),
            head_len: head.len as u16,
            head: low48(head.hash),
            raw_len: low48(raw_len),
            raw_tail_len: raw_tail.len as u8,
            raw_tail: low48(raw_tail.hash),
            name: name_key(name),
            compressed,
        }
    }

    /// What [`inode_key`] gives for its inode.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// What [`name_key`] gives for its name.
    pub(super) fn name(&self) -> u32 {
        self.name
    }

    /// How long it was on the disk.
    pub(super) fn raw_len(&self) -> u64 {
        self.raw_len
    }

    /// How many of its last bytes are known.
    pub(super) fn raw_tail_len(&self) -> usize {
        self.raw_tail_len.into()
    }

    /// Whether it began as `head` does.
    pub(super) fn begins(&self, head: &[u8]) -> bool {
        let head = head.get(..usize::from(self.head_len));
        head.is_some_and(|head| low48(XxHash3_64::oneshot(head)) == self.head)
    }

    /// Whether it ended as `bytes` do.
    pub(super) fn ends(&self, bytes: &[u8]) -> bool {
        let start = bytes.len().checked_sub(self.raw_tail_len());
        start.is_some_and(|start| low48(XxHash3_64::oneshot(&bytes[start..])) == self.raw_tail)
    }

    fn pack(&self) -> [u8; DONE_BYTES] {
        let flags = if self.compressed { COMPRESSED } else { 0 };
        let mut bytes = [0; DONE_BYTES];
        bytes[..6].copy_from_slice(&self.inode.to_le_bytes()[..6]);
        bytes[6..8].copy_from_slice(&(self.head_len | flags).to_le_bytes());
        bytes[8..14].copy_from_slice(&self.head.to_le_bytes()[..6]);
        bytes[14..20].copy_from_slice(&self.raw_len.to_le_bytes()[..6]);
        bytes[20] = self.raw_tail_len;
        bytes[21..27].copy_from_slice(&self.raw_tail.to_le_bytes()[..6]);
        bytes[27..].copy_from_slice(&self.name.to_le_bytes()[..3]);
        bytes
    }

    fn unpack(bytes: &[u8; DONE_BYTES]) -> Self {
        let number = |bytes: &[u8]| {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(wide)
        };
        let head_len = number(&bytes[6..8]) as u16;
        Self {
            inode: number(&bytes[..6]),
            head_len: head_len & !COMPRESSED,
            head: number(&bytes[8..14]),
            raw_len: number(&bytes[14..20]),
            raw_tail_len: bytes[20],
            raw_tail: number(&bytes[21..27]),
            name: number(&bytes[27..]) as u32,
            compressed: head_len & COMPRESSED != 0,
        }
    }
}

/// 48 bits are enough: it takes several such hashes to take one file for another.
fn low48(hash: u64) -> u64 {
    hash & ((1 << 48) - 1)
}

/// 48 bits of a hash of the inode.
pub(super) fn inode_key(inode: Inode) -> u64 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&inode.dev.to_le_bytes());
    bytes[8..16].copy_from_slice(&inode.ino.to_le_bytes());
    bytes[16..].copy_from_slice(&inode.born.to_le_bytes());
    low48(XxHash3_64::oneshot(&bytes))
}

/// 24 bits of a hash of the name.
pub(super) fn name_key(name: &str) -> u32 {
    XxHash3_64::oneshot(name.as_bytes()) as u32 & 0xff_ffff
}

/// The files that were read to their end, packed as they are stored: a step copies one string,
/// however many they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    packed: String,
}

/// 30 bytes are 40 characters of base64, without padding.
const DONE_CHARS: usize = DONE_BYTES / 3 * 4;

impl Done {
    pub(super) fn push(&mut self, file: &DoneFile) {
        BASE64.encode_string(file.pack(), &mut self.packed);
    }

    pub(super) fn len(&self) -> usize {
        self.packed.len() / DONE_CHARS
    }

    pub(super) fn files(&self) -> Vec<DoneFile> {
        let bytes = BASE64.decode(&self.packed).unwrap_or_default();
        bytes.as_chunks::<DONE_BYTES>().0.iter().map(DoneFile::unpack).collect()
    }

    fn unpack(packed: &str) -> Option<Self> {
        let bytes = BASE64.decode(packed).ok()?;
        bytes.len().is_multiple_of(DONE_BYTES).then(|| Self { packed: packed.into() })
    }
}

impl FromIterator<DoneFile> for Done {
    fn from_iter<I: IntoIterator<Item = DoneFile>>(files: I) -> Self {
        let mut done = Self::default();
        files.into_iter().for_each(|file| done.push(&file));
        done
    }
}

/// Part of a step: consecutive records of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Range {
    /// The name under which its records are known.
    pub(super) name: String,
    /// Its path then.
    #[serde(with = "path_text")]
    pub(super) path: PathBuf,
    #[serde(flatten)]
    pub(super) inode: Inode,
    pub(super) head: Fingerprint,
    /// Where the first record begins, in the decompressed stream.
    pub(super) start: u64,
    /// Where the first record after them begins.
    pub(super) end: u64,
    pub(super) records: u64,
    /// Compressed files: where to begin decompressing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) member: Option<Member>,
}

/// The MessagePack form of a step.
pub(super) fn ranges_to_msgpack(ranges: &[Range]) -> rmpv::Value {
    // By way of JSON, so that the fields keep their names. Cannot fail, see `Seek::to_json`.
    let json = serde_json::to_value(ranges).unwrap_or_default();
    rmpv::ext::to_value(json).unwrap_or(rmpv::Value::Nil)
}

/// # Errors
/// If it is not something that [`ranges_to_msgpack`] gave.
pub(super) fn ranges_from_msgpack(data: rmpv::Value) -> Result<Vec<Range>, EndpointError> {
    let json = rmpv::ext::from_value::<JsonValue>(data).map_err(|error| error.to_string());
    json.and_then(|json| serde_json::from_value(json).map_err(|error| error.to_string())).map_err(
        |error| {
            EndpointError::Data(format!("a journaled step of a file input is damaged: {error}"))
        },
    )
}

/// A path as text, for people and as the name of a partition: bytes that are not UTF-8 as `\xNN`.
pub(super) fn printable(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02X}");
        }
    }
    text
}

/// Paths as text where they are UTF-8, else as base64.
mod path_text {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form<'a> {
        Text(std::borrow::Cow<'a, str>),
        Bytes { base64: String },
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => Form::Text(text.into()),
            None => Form::Bytes { base64: BASE64.encode(path.as_os_str().as_bytes()) },
        }
        .serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        match Form::deserialize(from)? {
            Form::Text(text) => Ok(text.into_owned().into()),
            Form::Bytes { base64 } => {
                let bytes = BASE64.decode(base64).map_err(D::Error::custom)?;
                Ok(OsString::from_vec(bytes).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(path: &[u8]) -> Begun {
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        Begun {
            name: printable(&path),
            path,
            inode: Inode { dev: u64::MAX, ino: 7, born: 9 },
            head: Fingerprint::of(b"head"),
            mark: Mark {
                offset: 1 << 60,
                tail: Fingerprint::of(b"tail"),
                member: Some(Member { raw: 10, start: 20, raw_tail: Fingerprint::of(b"raw") }),
            },
        }
    }

    fn done_file(name: &str) -> DoneFile {
        let inode = Inode { dev: 1, ino: 2, born: 3 };
        DoneFile::new(name, inode, true, Fingerprint::of(b"head"), 9, Fingerprint::of(b"tail"))
    }

    #[test]
    fn a_seek_survives_json() {
        let seek = Seek {
            begun: vec![begun(b"/in/a.log"), begun(b"/in/\xff.log")],
            done: [done_file("a"), done_file("b")].into_iter().collect(),
        };
        let json = seek.to_json();
        assert_eq!(Seek::from_json(&json).unwrap(), seek);
        assert_eq!(seek.begun[1].name, "/in/\\xFF.log");
        assert_eq!(seek.done.files(), [done_file("a"), done_file("b")]);
    }

    #[test]
    fn a_damaged_seek_is_refused() {
        let mut json = Seek::default().to_json();
        json["done"] = 1.into();
        let message = Seek::from_json(&json).unwrap_err().to_string();
        insta::assert_snapshot!(message, @"the stored position of a file input is damaged: done_files is not a list of `done` files");
        let message = Seek::from_json(&JsonValue::Null).unwrap_err().to_string();
        insta::assert_snapshot!(message, @"the stored position of a file input is damaged: invalid type: null, expected struct SeekForm");
    }

    #[test]
    fn a_done_file_is_known_by_place_and_content() {
        let file = done_file("a");
        assert_eq!(file.inode(), inode_key(Inode { dev: 1, ino: 2, born: 3 }));
        assert_ne!(file.inode(), inode_key(Inode { dev: 1, ino: 2, born: 4 }));
        assert!(file.begins(b"head and more"));
        assert!(!file.begins(b"hea") && !file.begins(b"HEAD"));
        assert!(file.ends(b"and a tail"));
        assert!(!file.ends(b"ail") && !file.ends(b"tail "));
        assert_eq!(file.name(), name_key("a"));
    }

    #[test]
    fn ranges_survive_messagepack() {
        let Begun { name, path, inode, head, mark } = begun(b"/in/a");
        let (start, end, records) = (mark.offset, u64::MAX, 3);
        let range = Range { name, path, inode, head, start, end, records, member: mark.member };
        for ranges in [vec![], vec![range.clone()], vec![range.clone(), range]] {
            let mut bytes = Vec::new();
            rmpv::encode::write_value(&mut bytes, &ranges_to_msgpack(&ranges)).unwrap();
            let data = rmpv::decode::read_value(&mut bytes.as_slice()).unwrap();
            assert_eq!(ranges_from_msgpack(data).unwrap(), ranges);
        }
    }

    #[test]
    fn a_damaged_step_is_refused() {
        let message = ranges_from_msgpack(rmpv::Value::from(3)).unwrap_err().to_string();
        insta::assert_snapshot!(message, @"a journaled step of a file input is damaged: invalid type: integer `3`, expected a sequence");
    }
}
