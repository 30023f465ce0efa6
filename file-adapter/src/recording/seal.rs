//! What stands before each footer of ours, to know later whether the footer is as it was written.
//!
//! Pure. Parquet has no checksum over a footer, and its format gives none a place after it.

use twox_hash::XxHash3_64;

/// How long a seal is.
pub(super) const BYTES: usize = 16;

const MAGIC: [u8; 8] = *b"lockgate";

/// What a seal says of the footer after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    Intact,
    Broken,
    /// There is none: another program wrote the footer.
    Absent,
}

/// The seal of `footer` that stands at `at` in the file. A copy of both elsewhere is not intact.
pub(super) fn of(at: u64, footer: &[u8]) -> [u8; BYTES] {
    let mut seal = [0; BYTES];
    seal[..8].copy_from_slice(&MAGIC);
    seal[8..].copy_from_slice(&XxHash3_64::oneshot_with_seed(at, footer).to_le_bytes());
    seal
}

/// Whether `bytes` begin like a seal.
pub(super) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// What `seal`, found at `at`, says of `footer`.
pub(super) fn check(seal: &[u8], at: u64, footer: &[u8]) -> Seal {
    if !begins(seal) {
        Seal::Absent
    } else if seal == of(at, footer) {
        Seal::Intact
    } else {
        Seal::Broken
    }
}
