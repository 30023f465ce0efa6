//! A file through decompression and framing: the same records wherever blocks are cut, whether it is compressed, grows or
//! is gone on with; damage is an error.
#![no_main]

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use arbitrary::Arbitrary;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use lockgate_core::Framing;
use lockgate_file_adapter::Overlong;
use lockgate_file_adapter::fuzzing::{Found, Read, Shape, read, read_growing, read_twice};
use lockgate_fuzz::folder;

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Format {
    Plain,
    Gzip,
    Zstd,
    /// Whatever it is.
    Raw,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    is_lines: bool,
    overlong: u8,
    max_record_bytes: u8,
    format: Format,
    /// Where a member ends and the next begins.
    members: [u8; 3],
    block_bytes: [u8; 2],
    blocks: u8,
    repeat: u8,
    damage: Option<(u16, u8)>,
    content: &'a [u8],
}

/// No more of a stream is looked at: a few bytes can be a gigabyte.
const MOST: u64 = 1 << 21;

fuzz_target!(|input: Input<'_>| {
    let shape = Shape {
        framing: if input.is_lines { Framing::Lines } else { Framing::Length32 },
        max_record_bytes: usize::from(input.max_record_bytes) + 1,
        overlong: [Overlong::Truncate, Overlong::Skip, Overlong::Stop]
            [usize::from(input.overlong % 3)],
        most: MOST,
    };
    let repeat = if input.repeat > 250 { 4000 } else { usize::from(input.repeat / 64) + 1 };
    let repeat = repeat.min((200_000 / input.content.len().max(1)).max(1));
    let stream = input.content.repeat(repeat);
    let path = folder().join("in.log");

    let whole = match input.format {
        Format::Plain | Format::Raw => stream.clone(),
        format => compress(format, &cuts(&input, &stream)),
    };
    let sizes = input.block_bytes.map(|bytes| usize::from(bytes) + 1);
    let of_file = |bytes: &[u8]| {
        write(&path, bytes);
        let large = read(&path, shape, 1 << 20);
        for size in sizes {
            compare(&large, &read(&path, shape, size), size);
            let again = read_twice(&path, shape, size, usize::from(input.blocks));
            compare(&large, &again, size);
        }
        large
    };
    let result = of_file(&whole);
    if input.format == Format::Raw {
        return;
    }

    // Plain bytes may begin as if they were compressed.
    let is_plain = input.format != Format::Plain || !looks_compressed(&stream);
    if is_plain && input.format != Format::Plain && !looks_compressed(&stream) {
        write(&path, &stream);
        let plain = read(&path, shape, 4096);
        let are_same = match (&plain, &result) {
            (Ok(plain), Ok(result)) => plain == result,
            (Err((plain, _)), Err((result, _))) => {
                is_front(&plain.records, &result.records)
                    || is_front(&result.records, &plain.records)
            }
            _ => false,
        };
        assert!(are_same, "compressed it is another stream: {plain:?} {result:?}");
    }
    if let Ok(all) = &result
        && input.is_lines
        && is_plain
        && all.applied.is_empty()
        && !all.has_more
    {
        check_lines(&stream, &all.records);
    }

    // It grows; what is there at first must tell how it is compressed.
    let at = (18 + usize::from(input.members[0])).min(whole.len());
    let then = (at + usize::from(input.members[1])).min(whole.len());
    write(&path, &whole[..at]);
    let grown = read_growing(&path, shape, sizes[0], &[&whole[at..then], b"", &whole[then..]]);
    let is_told = !whole[..at].is_empty() || whole.is_empty();
    if is_told {
        compare(&result, &grown, sizes[0]);
    }

    if let Some((place, bits)) = input.damage
        && input.format != Format::Plain
        && bits != 0
        && !whole.is_empty()
    {
        let mut damaged = whole.clone();
        let place = usize::from(place) % damaged.len();
        damaged[place] ^= bits;
        // Without its first bytes it is another, plain file.
        if place >= 4 {
            let read = of_file(&damaged);
            if let (Ok(damaged), Ok(whole)) = (&read, &result)
                && damaged.records != whole.records
            {
                let is_cut = damaged.applied.contains(&"trailing_garbage");
                let is_front = is_front(&damaged.records, &whole.records);
                assert!(is_cut && is_front, "damage was read as records: {damaged:?}");
            }
        }
    }
});

fn write(path: &PathBuf, bytes: &[u8]) {
    fs::write(path, bytes).expect("the file is written");
}

/// The pieces of the stream that become members of their own.
fn cuts<'s>(input: &Input<'_>, stream: &'s [u8]) -> Vec<&'s [u8]> {
    let mut rest = stream;
    let mut pieces = Vec::new();
    for cut in input.members {
        let (piece, after) = rest.split_at(rest.len() * usize::from(cut) / 255);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

fn compress(format: Format, pieces: &[&[u8]]) -> Vec<u8> {
    let mut whole = Vec::new();
    for piece in pieces {
        if format == Format::Gzip {
            let mut encoder = GzEncoder::new(&mut whole, flate2::Compression::fast());
            encoder.write_all(piece).and_then(|()| encoder.finish().map(drop)).expect("in memory");
        } else {
            let mut encoder = zstd::Encoder::new(&mut whole, 1).expect("in memory");
            encoder.include_checksum(true).expect("in memory");
            encoder.write_all(piece).and_then(|()| encoder.finish().map(drop)).expect("in memory");
        }
    }
    whole
}

fn looks_compressed(bytes: &[u8]) -> bool {
    let skippable = bytes.len() > 3 && bytes[0] & 0xf0 == 0x50 && bytes[1..4] == *b"\x2a\x4d\x18";
    bytes.starts_with(b"\x1f\x8b\x08") || bytes.starts_with(b"\x28\xb5\x2f\xfd") || skippable
}

type Outcome = Result<Read, (Read, String)>;

/// The same records whatever the blocks; where reading fails, as many of the same as there were blocks for.
fn compare(one: &Outcome, other: &Outcome, size: usize) {
    let is_same = match (one, other) {
        (Ok(one), Ok(other)) if one.has_more || other.has_more => {
            is_front(&one.records, &other.records) || is_front(&other.records, &one.records)
        }
        (Ok(one), Ok(other)) => {
            assert_eq!(one.applied, other.applied, "blocks of {size}");
            one.records == other.records
        }
        (Err((one, _)), Err((other, _))) => {
            is_front(&one.records, &other.records) || is_front(&other.records, &one.records)
        }
        // The fault may lie behind what is looked at.
        (Ok(read), Err((failed, _))) | (Err((failed, _)), Ok(read)) => {
            read.has_more && is_front(&read.records, &failed.records)
                || read.has_more && is_front(&failed.records, &read.records)
        }
    };
    assert!(is_same, "blocks of {size} bytes: {one:?} is not {other:?}");
}

fn is_front(front: &[Found], all: &[Found]) -> bool {
    all.starts_with(front)
}

/// What lines are, once more and as simply as can be.
fn check_lines(stream: &[u8], records: &[Found]) {
    let mut place = if stream.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut records = records.iter();
    for line in stream[place..].split_inclusive(|byte| *byte == b'\n') {
        let value = line
            .strip_suffix(b"\n")
            .map_or(line, |value| value.strip_suffix(b"\r").unwrap_or(value));
        let end = place + line.len();
        let (from, to, found) = records.next().expect("a line is missing");
        assert_eq!((*from, *to, &found[..]), (place as u64, end as u64, value));
        place = end;
    }
    assert!(records.next().is_none(), "more lines than there are");
}
