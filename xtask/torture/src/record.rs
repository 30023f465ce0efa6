//! Records whose content follows from their source and number, so that each can be checked alone.

use std::io::Write;

/// The letters of what fills a record.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Appends the record of this number, without a newline.
pub(crate) fn write(text: &mut Vec<u8>, source: u32, number: u32) {
    // Writing to memory does not fail.
    let _ = write!(text, "{source:02} {number:07} ");
    let mut bits = fastrand::Rng::with_seed(u64::from(source) << 32 | u64::from(number));
    for _ in 0..4 + bits.usize(..8) {
        let letters = bits.u64(..);
        text.extend((0..10).map(|place| LETTERS[(letters >> (6 * place)) as usize & 63]));
    }
}

/// The records from `first` on, each with its newline.
pub(crate) fn lines(source: u32, numbers: std::ops::Range<u32>) -> Vec<u8> {
    let mut text = Vec::new();
    for number in numbers {
        write(&mut text, source, number);
        text.push(b'\n');
    }
    text
}

/// Source and number of a record; `None` if it is not, byte for byte, one that was written.
pub(crate) fn parse(record: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(record.get(..11)?).ok()?;
    let (source, number) = text.trim_end().split_once(' ')?;
    let (source, number) = (source.parse().ok()?, number.parse().ok()?);
    let mut expected = Vec::with_capacity(record.len());
    write(&mut expected, source, number);
    (expected == record).then_some((source, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_known_by_its_content() {
        let mut record = Vec::new();
        write(&mut record, 3, 1_234_567);
        assert_eq!(parse(&record), Some((3, 1_234_567)));
        let last = record.len() - 1;
        assert_eq!(parse(&record[..last]), None);
        record[last] ^= 1;
        assert_eq!(parse(&record), None);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"03 abcdefg xyz"), None);
    }
}
