//! How fields lie in a row, and the hash that seals it.

use std::hash::Hasher;

use lockgate_core::PartDigest;
use serde_json::Value as JsonValue;
use twox_hash::XxHash3_64;

/// xxh3 over the fields, each after its length.
pub(super) fn seal(fields: &[&[u8]]) -> i64 {
    let mut hasher = XxHash3_64::default();
    for field in fields {
        hasher.write(&(field.len() as u64).to_le_bytes());
        hasher.write(field);
    }
    hasher.finish().cast_signed()
}

/// Seals a part of a journaled step with so many parts, so that a part that is gone is missed.
pub(super) fn journal_seal(
    (step, parts): (u64, usize),
    input: &str,
    seek: &str,
    is_whole: bool,
    replay: &[u8],
    PartDigest { records, hash }: PartDigest,
) -> i64 {
    seal(&[
        &step.to_le_bytes(),
        &(parts as u64).to_le_bytes(),
        input.as_bytes(),
        seek.as_bytes(),
        &[u8::from(is_whole)],
        replay,
        &records.to_le_bytes(),
        &hash.to_le_bytes(),
    ])
}

pub(super) fn decode_json(text: &str) -> serde_json::Result<JsonValue> {
    serde_json::from_str(text)
}

pub(super) fn encode_msgpack(value: &rmpv::Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = rmpv::encode::write_value(&mut bytes, value);
    bytes
}

pub(super) fn decode_msgpack(mut bytes: &[u8]) -> Option<rmpv::Value> {
    let value = rmpv::decode::read_value(&mut bytes).ok()?;
    bytes.is_empty().then_some(value)
}
