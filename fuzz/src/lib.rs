//! What the targets share.

pub mod schedules;

use std::path::PathBuf;
use std::sync::OnceLock;

use tempfile::TempDir;

/// A folder that this process has for itself.
pub fn folder() -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| TempDir::new().expect("a folder"));
    folder.path().to_owned()
}

/// A change to bytes.
#[derive(arbitrary::Arbitrary, Clone, Debug)]
pub enum Harm {
    /// These bits of the byte there.
    Flip(u16, u8),
    /// Other bytes there.
    Set(u16, Vec<u8>),
    /// An end there.
    Cut(u16),
    /// So many bytes are gone there.
    Remove(u16, u8),
    /// Bytes come in between.
    Insert(u16, Vec<u8>),
    /// Bytes from one place to another.
    Copy(u16, u16, u8),
    /// More bytes at the end.
    Extend(Vec<u8>),
}

impl Harm {
    /// Does it. Places are fractions of the length, so that all of a large file is in reach.
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        let at = |place: u16| {
            if len < 1 << 16 { place as usize % (len + 1) } else { place as usize * len >> 16 }
        };
        match self {
            Harm::Flip(place, bits) => {
                if let Some(byte) = bytes.get_mut(at(*place)) {
                    *byte ^= bits;
                }
            }
            Harm::Set(place, new) => {
                let from = at(*place);
                let end = (from + new.len()).min(len);
                bytes[from..end].copy_from_slice(&new[..end - from]);
            }
            Harm::Cut(place) => bytes.truncate(at(*place)),
            Harm::Remove(place, count) => {
                let from = at(*place);
                bytes.drain(from..(from + usize::from(*count)).min(len));
            }
            Harm::Insert(place, new) => {
                let from = at(*place);
                bytes.splice(from..from, new.iter().copied());
            }
            Harm::Copy(from, to, count) => {
                let (from, to) = (at(*from), at(*to));
                let count = usize::from(*count).min(len - from).min(len - to);
                bytes.copy_within(from..from + count, to);
            }
            Harm::Extend(new) => bytes.extend_from_slice(new),
        }
    }
}

/// Lets code under test catch panics of its own. Those that nobody catches are found as before.
pub fn panics_may_be_caught() {
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
}
