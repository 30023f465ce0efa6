//! Files that outputs wrote, compared byte by byte.
//!
//! Block by block: a line may be as long as it likes, and what is compared may be a pipe.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::Compared;
use super::sides::{Cell, Sides};
use crate::exit::Failed;
use crate::progress::counted;

const BLOCK_BYTES: usize = 1 << 20;
/// How much of a line is kept, before a difference and after it.
const SEEN_BYTES: usize = 1 << 10;

pub(super) fn compare(a: &Path, b: &Path) -> Result<Compared, Failed> {
    let open = |path: &Path| {
        let failed = |error| Failed::storage(format!("opening {}", path.display()), &error);
        File::open(path).map_err(failed)
    };
    let failed = |path: &Path, error: &io::Error| {
        Failed::storage(format!("reading {}", path.display()), error)
    };
    let (mut file_a, mut file_b) = (open(a)?, open(b)?);
    let mut place = Place::default();
    let (mut block_a, mut block_b) = (Vec::new(), Vec::new());
    loop {
        fill(&mut file_a, &mut block_a, BLOCK_BYTES).map_err(|error| failed(a, &error))?;
        fill(&mut file_b, &mut block_b, BLOCK_BYTES).map_err(|error| failed(b, &error))?;
        if block_a == block_b {
            if block_a.is_empty() {
                let (lines, bytes) = (counted(place.lines(), "line"), counted(place.at, "byte"));
                return Ok(Compared::Equal(format!("{lines}, {bytes}")));
            }
            place.pass(&block_a);
            block_a.clear();
            block_b.clear();
            continue;
        }
        let same = block_a.iter().zip(&block_b).take_while(|(a, b)| a == b).count();
        place.pass(&block_a[..same]);
        // Enough to show what comes then.
        fill(&mut file_a, &mut block_a, same + SEEN_BYTES).map_err(|error| failed(a, &error))?;
        fill(&mut file_b, &mut block_b, same + SEEN_BYTES).map_err(|error| failed(b, &error))?;
        return Ok(Compared::Different(place.to_sides(&block_a[same..], &block_b[same..])));
    }
}

/// Reads until there are so many bytes, or no more.
fn fill(file: &mut File, block: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
    let wanted = bytes.saturating_sub(block.len()) as u64;
    file.take(wanted).read_to_end(block).map(|_| ())
}

/// How far both files are the same.
#[derive(Default)]
struct Place {
    /// Number of bytes.
    at: u64,
    newlines: u64,
    /// The last line as far as it goes; of a long one, the end.
    line: Vec<u8>,
}

impl Place {
    fn pass(&mut self, bytes: &[u8]) {
        self.at += bytes.len() as u64;
        self.newlines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let line = match bytes.iter().rposition(|byte| *byte == b'\n') {
            None => bytes,
            Some(last) => {
                self.line.clear();
                &bytes[last + 1..]
            }
        };
        self.line.extend_from_slice(&line[line.len().saturating_sub(SEEN_BYTES)..]);
        self.line.drain(..self.line.len().saturating_sub(SEEN_BYTES));
    }

    /// A line that does not end in a newline counts.
    fn lines(&self) -> u64 {
        self.newlines + u64::from(!self.line.is_empty())
    }

    /// What differs from here on, where these bytes come.
    fn to_sides(&self, a: &[u8], b: &[u8]) -> Sides {
        let line = self.newlines + 1;
        let ends = match (a, b) {
            ([], _) => "; A ends there",
            (_, []) => "; B ends there",
            _ => "",
        };
        let at = self.at;
        let mut sides = Sides::new(format!(
            "the first difference is in line {line}, at byte offset {at}{ends}"
        ));
        let cell = |rest: &[u8]| {
            if self.line.is_empty() && rest.is_empty() {
                return Cell::missing();
            }
            let rest = rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
            Cell::Bytes(Some([&self.line, rest].concat()))
        };
        sides.row(format!("line {line}"), cell(a), cell(b));
        sides
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(a: &[u8], b: &[u8]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let [path_a, path_b] = ["a", "b"].map(|name| dir.path().join(name));
        std::fs::write(&path_a, a).unwrap();
        std::fs::write(&path_b, b).unwrap();
        match compare(&path_a, &path_b).unwrap() {
            Compared::Equal(what) => what,
            Compared::Different(sides) => sides.to_text(["a".into(), "b".into()], 80),
        }
    }

    #[test]
    fn equal_files_are_counted() {
        let equal = |text: &[u8]| shown(text, text);
        assert_eq!(equal(b""), "0 lines, 0 bytes");
        assert_eq!(equal(b"one\n"), "1 line, 4 bytes");
        assert_eq!(equal(b"one\ntwo"), "2 lines, 7 bytes");
        assert_eq!(equal(&[b'\n'; 3 * BLOCK_BYTES + 1]), "3,145,729 lines, 3,145,729 bytes");
    }

    #[test]
    fn the_line_and_the_byte_are_named() {
        let long = "x".repeat(5000);
        let seen = [
            shown(b"one\ntwo\nthree\n", b"one\ntwo\nthrEe\n"),
            shown(b"one\ntwo\n", b"one\n"),
            shown(b"one\n", b"one"),
            shown(b"", b"\x1b\xff"),
            shown(format!("\n{long}a{long}").as_bytes(), format!("\n{long}b{long}").as_bytes()),
        ];
        insta::assert_snapshot!(seen.join("\n"), @r"
        the first difference is in line 3, at byte offset 11
                                A: a                         B: b
        * line 3                three\n                      thrEe\n

        the first difference is in line 2, at byte offset 4; B ends there
                                A: a                         B: b
        * line 2                two\n                        (missing)

        the first difference is in line 1, at byte offset 3; B ends there
                                A: a                         B: b
        * line 1                one\n                        one

        the first difference is in line 1, at byte offset 0; A ends there
                                A: a                         B: b
        * line 1                (missing)                    \u{1b}\xff

        the first difference is in line 2, at byte offset 5001
                                A: a                         B: b
        * line 2                …xxxxxxxxxaxxxxxxxxxxxxxxx…  …xxxxxxxxxbxxxxxxxxxxxxxxx…
        ");
    }

    /// Wherever the blocks end, also inside the line.
    #[test]
    fn blocks_do_not_count() {
        for before in [BLOCK_BYTES - 3, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES - 4] {
            let same = [vec![b'\n'; before], b"a line ".to_vec()].concat();
            let shown =
                shown(&[&same, &b"ends\n"[..]].concat(), &[&same, &b"goes on\n"[..]].concat());
            let (line, at) = (before + 1, before + 7);
            let first = format!("the first difference is in line {line}, at byte offset {at}\n");
            assert!(shown.starts_with(&first), "{shown}");
            assert!(
                shown.contains(r"a line ends\n") && shown.contains(r"a line goes on\n"),
                "{shown}"
            );
        }
    }
}
