//! Input data, made from a seed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A small generator of random numbers (splitmix64): the same seed gives the same numbers.
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// About `bytes` of numbered lines that begin with `tag`, 40 to 270 bytes each, which hardly compress.
pub(crate) fn lines(tag: &str, bytes: usize, seed: u64) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut random = Seeded(seed);
    let mut text = Vec::with_capacity(bytes + 300);
    let mut number = 0;
    while text.len() < bytes {
        write!(text, "{tag} {number} ").unwrap();
        number += 1;
        for _ in 0..4 + random.below(24) {
            let bits = random.next();
            text.extend((0..10).map(|i| LETTERS[(bits >> (6 * i)) as usize & 63]));
        }
        text.push(b'\n');
    }
    text
}

/// Writes `text` as gzip with `members` members, cut anywhere.
pub(crate) fn gzip(path: &Path, text: &[u8], members: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for part in text.chunks(text.len().div_ceil(members)) {
        let mut encoder = GzEncoder::new(&mut file, Compression::fast());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap();
    }
    file.flush().unwrap();
}

/// Writes `text` as zstd with `frames` frames, cut anywhere.
pub(crate) fn zstd(path: &Path, text: &[u8], frames: usize) {
    let mut file = File::create(path).unwrap();
    for part in text.chunks(text.len().div_ceil(frames)) {
        file.write_all(&zstd::encode_all(part, 1).unwrap()).unwrap();
    }
}
