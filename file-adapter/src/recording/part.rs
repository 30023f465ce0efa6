//! The index of the parts, and how it travels in the file's metadata.
//!
//! Pure. Per part: one byte (0: no step; 1: the step after that of the part before, or step 0 at the start;
//! 2: another step, which follows as a varint), the number of records as a varint, and the hash in eight bytes,
//! little endian. Varints are LEB128. All of it in base64, since metadata is text: 15 bytes for a usual part.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use lockgate_core::PartDigest;

/// One part of a recording: what one input gave to one step, or a block of records where steps are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The step, `None` where steps are not known.
    pub step: Option<u64>,
    /// Count and hash of its records, as they were delivered.
    pub digest: PartDigest,
}

const NO_STEP: u8 = 0;
const NEXT_STEP: u8 = 1;
const OTHER_STEP: u8 = 2;

/// `parts` as text.
pub(super) fn to_text(parts: &[Part]) -> String {
    let mut bytes = Vec::with_capacity(parts.len() * 12);
    let mut next = 0;
    for part in parts {
        match part.step {
            None => bytes.push(NO_STEP),
            Some(step) if step == next => bytes.push(NEXT_STEP),
            Some(step) => {
                bytes.push(OTHER_STEP);
                push_varint(&mut bytes, step);
            }
        }
        next = part.step.map_or(next, |step| step.wrapping_add(1));
        push_varint(&mut bytes, part.digest.records);
        bytes.extend_from_slice(&part.digest.hash.to_le_bytes());
    }
    STANDARD_NO_PAD.encode(bytes)
}

/// The parts in `text`, `None` if it is not what [`to_text`] makes.
pub(super) fn from_text(text: &str) -> Option<Vec<Part>> {
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    let mut bytes = &bytes[..];
    let mut parts = Vec::new();
    let mut next = 0u64;
    while let Some((tag, rest)) = bytes.split_first() {
        bytes = rest;
        let step = match *tag {
            NO_STEP => None,
            NEXT_STEP => Some(next),
            OTHER_STEP => Some(take_varint(&mut bytes)?),
            _ => return None,
        };
        next = step.map_or(next, |step| step.wrapping_add(1));
        let records = take_varint(&mut bytes)?;
        let (hash, rest) = bytes.split_first_chunk()?;
        bytes = rest;
        parts.push(Part { step, digest: PartDigest { records, hash: u64::from_le_bytes(*hash) } });
    }
    Some(parts)
}

fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            // Ten bytes hold 70 bits: what does not fit must not be lost silently.
            return (shift < 63 || *byte <= 1).then_some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_usual_part_takes_15_bytes() {
        let digest = PartDigest { records: 1000, hash: u64::MAX };
        let parts: Vec<_> = (1..=1000).map(|step| Part { step: Some(step), digest }).collect();
        assert_eq!(to_text(&parts).len(), 14_668);
    }

    proptest! {
        #[test]
        fn any_parts_survive(
            parts in proptest::collection::vec((any::<Option<u64>>(), any::<u64>(), any::<u64>()), 0..9),
            steps in 0u64..5,
        ) {
            let part = |(step, records, hash)| Part { step, digest: PartDigest { records, hash } };
            let mut parts: Vec<Part> = parts.into_iter().map(part).collect();
            parts.extend((0..steps).map(|step| part((Some(step), step, step))));
            prop_assert_eq!(from_text(&to_text(&parts)), Some(parts));
        }

        #[test]
        fn any_text_is_parts_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(parts) = from_text(&STANDARD_NO_PAD.encode(bytes)) {
                prop_assert_eq!(from_text(&to_text(&parts)), Some(parts));
            }
        }
    }
}
