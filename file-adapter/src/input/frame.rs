//! Splits a stream of bytes, given block by block, into records.
//!
//! Pure: bytes in, places of records out. Not here: reading, decompression, and the batches that the
//! places become. What is left unfinished at the end of a block must be put in front of the next one.

use std::ops::Range;

use lockgate_core::Framing;
use memchr::{memchr, memchr_iter};

use crate::config::Overlong;

/// How records lie in the stream, and how large they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) framing: Framing,
    /// The largest value, without framing.
    pub(super) max_record_bytes: usize,
    pub(super) overlong: Overlong,
}

impl Rules {
    /// The longest unfinished record that has to be kept to be finished with the next block.
    #[cfg(test)]
    fn max_unfinished(&self) -> usize {
        self.max_record_bytes + 4
    }
}

/// Something found in a block, in the order of the stream. Places are those in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Records that adjoin: the first begins at `start`, each ends at one of `ends`.
    Run { start: u32, ends: Vec<u32> },
    /// A whole overlong record. `kept` is what is given of it, if anything.
    Overlong { kept: Option<Range<u32>>, oversize: Oversize },
    /// An overlong record that begins in this block and ends in a later one; always the last cut.
    OverlongBegins { kept: Option<Range<u32>> },
    /// The overlong record that began in an earlier block ends in this one; always the first cut.
    OverlongEnds { oversize: Oversize },
}

/// An overlong record: where it begins in the stream, how long its value is, and where the next record
/// begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Oversize {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) next: u64,
}

/// What a block holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) cuts: Vec<Cut>,
    /// Where the unfinished record at the block's end begins; the block's length if there is none.
    pub(super) rest: usize,
}

impl Split {
    /// How many bytes of the block belong to records.
    pub(super) fn bytes(&self) -> usize {
        let bytes = self.cuts.iter().map(|cut| match cut {
            Cut::Run { start, ends } => ends.last().map_or(0, |end| end - start),
            Cut::Overlong { kept, .. } | Cut::OverlongBegins { kept } => {
                kept.as_ref().map_or(0, |kept| kept.end - kept.start)
            }
            Cut::OverlongEnds { .. } => 0,
        });
        bytes.map(|bytes| bytes as usize).sum()
    }
}

/// Why a stream cannot be split. Offsets are those of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameError {
    /// An overlong record where the policy is to stop. The length is what is known of it.
    Overlong { offset: u64, len: u64 },
    /// The stream begins with a byte-order mark of UTF-16.
    Utf16,
    /// The stream ends inside a record; `declared` is `None` if it ends inside the length itself.
    Incomplete { offset: u64, declared: Option<u32> },
}

/// The state between two blocks.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    rules: Rules,
    open: Option<Open>,
    /// How many records the last block held: the index of the next one is made that large at once.
    expected: usize,
}

/// An overlong record whose end has not been found.
#[derive(Clone, Copy, Debug)]
struct Open {
    offset: u64,
    /// Length-delimited records: the declared length.
    declared: Option<u32>,
    /// Lines: whether the last byte so far was a `\r`.
    carriage_return: bool,
}

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

impl Splitter {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, open: None, expected: 0 }
    }

    /// Splits `block`, whose first byte has the stream's offset `base`. Its first `scanned` bytes are the
    /// unfinished record of the block before. `end`: nothing comes after this block.
    pub(super) fn split(
        &mut self,
        base: u64,
        block: &[u8],
        scanned: usize,
        end: bool,
    ) -> Result<Split, FrameError> {
        debug_assert!(u32::try_from(block.len()).is_ok(), "a block's places fit 32 bits");
        let mut found = Found::new(self.expected);
        let mut start = match self.open {
            None => 0,
            Some(open) => match self.end_of(open, base, block, end)? {
                None => return Ok(Split { cuts: Vec::new(), rest: block.len() }),
                Some(oversize) => {
                    self.open = None;
                    found.cuts.push(Cut::OverlongEnds { oversize });
                    (oversize.next - base) as usize
                }
            },
        };
        let scanned = scanned.max(start);
        found.start = start;
        let rest = match self.rules.framing {
            Framing::Lines => {
                if base == 0 && start == 0 {
                    match mark(block, end)? {
                        None => return Ok(Split { cuts: found.cuts, rest: 0 }),
                        Some(len) => start = len,
                    }
                    found.start = start;
                }
                self.lines(&mut found, base, block, start, scanned.max(start), end)?
            }
            Framing::Length32 => self.lengths(&mut found, base, block, start, end)?,
        };
        Ok(Split { cuts: found.finish(&mut self.expected), rest })
    }

    /// Looks for the end of the overlong record that began in an earlier block.
    fn end_of(
        &mut self,
        open: Open,
        base: u64,
        block: &[u8],
        end: bool,
    ) -> Result<Option<Oversize>, FrameError> {
        let block_end = base + block.len() as u64;
        match open.declared {
            None => {
                let Open { offset, .. } = open;
                let newline = memchr(b'\n', block);
                let text = &block[..newline.unwrap_or(block.len())];
                let carriage_return =
                    text.last().map_or(open.carriage_return, |last| *last == b'\r');
                let len = base + text.len() as u64 - offset;
                Ok(match newline {
                    Some(newline) => {
                        let len = len - u64::from(carriage_return);
                        Some(Oversize { offset, len, next: base + newline as u64 + 1 })
                    }
                    None if end => Some(Oversize { offset, len, next: block_end }),
                    None => {
                        self.open = Some(Open { carriage_return, ..open });
                        None
                    }
                })
            }
            Some(declared) => {
                let next = open.offset + 4 + u64::from(declared);
                if next <= block_end {
                    return Ok(Some(Oversize { offset: open.offset, len: declared.into(), next }));
                }
                if end {
                    let offset = open.offset;
                    return Err(FrameError::Incomplete { offset, declared: Some(declared) });
                }
                Ok(None)
            }
        }
    }

    fn lines(
        &mut self,
        found: &mut Found,
        base: u64,
        block: &[u8],
        mut start: usize,
        scanned: usize,
        end: bool,
    ) -> Result<usize, FrameError> {
        let max = self.rules.max_record_bytes;
        for newline in memchr_iter(b'\n', &block[scanned..]) {
            let next = scanned + newline + 1;
            // Only a line longer than this can be too long; the exact length is looked at then.
            if next - start > max + 1 && value_len(&block[start..next]) > max {
                let offset = base + start as u64;
                let len = value_len(&block[start..next]) as u64;
                let oversize = Oversize { offset, len, next: base + next as u64 };
                let kept = self.kept(offset, len, start, max)?;
                found.overlong(Cut::Overlong { kept, oversize }, next);
            } else {
                found.ends.push(next as u32);
            }
            start = next;
        }
        let unfinished = block.len() - start;
        let offset = base + start as u64;
        let block_end = base + block.len() as u64;
        if end {
            let len = unfinished as u64;
            if unfinished > max {
                let kept = self.kept(offset, len, start, max)?;
                let oversize = Oversize { offset, len, next: block_end };
                found.overlong(Cut::Overlong { kept, oversize }, block.len());
            } else if unfinished > 0 {
                found.ends.push(block.len() as u32);
            }
            return Ok(block.len());
        }
        // One more than the cap may still be a `\r` before the `\n` to come.
        if unfinished > max + 1 {
            let kept = self.kept(offset, unfinished as u64, start, max)?;
            found.overlong(Cut::OverlongBegins { kept }, block.len());
            let carriage_return = block.ends_with(b"\r");
            self.open = Some(Open { offset, declared: None, carriage_return });
            return Ok(block.len());
        }
        Ok(start)
    }

    fn lengths(
        &mut self,
        found: &mut Found,
        base: u64,
        block: &[u8],
        mut start: usize,
        end: bool,
    ) -> Result<usize, FrameError> {
        let max = self.rules.max_record_bytes;
        loop {
            let rest = &block[start..];
            let offset = base + start as u64;
            let Some(prefix) = rest.first_chunk::<4>() else {
                if end && !rest.is_empty() {
                    return Err(FrameError::Incomplete { offset, declared: None });
                }
                return Ok(start);
            };
            let declared = u32::from_be_bytes(*prefix);
            let len = u64::from(declared);
            let whole = len <= (rest.len() - 4) as u64;
            if len > max as u64 {
                if self.rules.overlong == Overlong::Stop {
                    return Err(FrameError::Overlong { offset, len });
                }
                // What is kept must be in this block, unless the stream ends before it.
                if !whole && rest.len() < 4 + max && !end {
                    return Ok(start);
                }
                if !whole && end {
                    return Err(FrameError::Incomplete { offset, declared: Some(declared) });
                }
                let kept = self.kept(offset, len, start, 4 + max)?;
                if !whole {
                    found.overlong(Cut::OverlongBegins { kept }, block.len());
                    let declared = Some(declared);
                    self.open = Some(Open { offset, declared, carriage_return: false });
                    return Ok(block.len());
                }
                let next = start + 4 + declared as usize;
                let oversize = Oversize { offset, len, next: base + next as u64 };
                found.overlong(Cut::Overlong { kept, oversize }, next);
                start = next;
            } else if whole {
                start += 4 + declared as usize;
                found.ends.push(start as u32);
            } else if end {
                return Err(FrameError::Incomplete { offset, declared: Some(declared) });
            } else {
                return Ok(start);
            }
        }
    }

    /// What the policy keeps of an overlong record that begins at `start`.
    fn kept(
        &self,
        offset: u64,
        len: u64,
        start: usize,
        keep: usize,
    ) -> Result<Option<Range<u32>>, FrameError> {
        match self.rules.overlong {
            Overlong::Truncate => Ok(Some(start as u32..(start + keep) as u32)),
            Overlong::Skip => Ok(None),
            Overlong::Stop => Err(FrameError::Overlong { offset, len }),
        }
    }
}

/// Collects the cuts of one block; neighbouring records become one run.
struct Found {
    cuts: Vec<Cut>,
    start: usize,
    ends: Vec<u32>,
}

impl Found {
    fn new(expected: usize) -> Self {
        // A little more than last time, so that the index is not moved while it grows.
        Self { cuts: Vec::new(), start: 0, ends: Vec::with_capacity(expected + expected / 8) }
    }

    fn overlong(&mut self, cut: Cut, next: usize) {
        self.close_run(next);
        self.cuts.push(cut);
    }

    fn close_run(&mut self, next: usize) {
        let start = std::mem::replace(&mut self.start, next) as u32;
        if !self.ends.is_empty() {
            let mut ends = std::mem::take(&mut self.ends);
            if ends.len() < ends.capacity() / 2 {
                ends.shrink_to_fit();
            }
            self.cuts.push(Cut::Run { start, ends });
        }
    }

    fn finish(mut self, expected: &mut usize) -> Vec<Cut> {
        *expected = self.ends.len();
        self.close_run(0);
        self.cuts
    }
}

/// Length of a line's value: without `\n` or `\r\n`.
fn value_len(line: &[u8]) -> usize {
    match line {
        [value @ .., b'\r', b'\n'] | [value @ .., b'\n'] => value.len(),
        value => value.len(),
    }
}

/// Length of the byte-order mark at the beginning of a stream, `None` if that cannot be told yet.
fn mark(block: &[u8], end: bool) -> Result<Option<usize>, FrameError> {
    if UTF16_MARKS.iter().any(|mark| block.starts_with(mark)) {
        return Err(FrameError::Utf16);
    }
    if block.starts_with(UTF8_MARK) {
        return Ok(Some(UTF8_MARK.len()));
    }
    let may_be = |mark: &[u8]| mark.starts_with(block);
    if !end && (may_be(UTF8_MARK) || UTF16_MARKS.into_iter().any(may_be)) {
        return Ok(None);
    }
    Ok(Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(framing: Framing, max_record_bytes: usize, overlong: Overlong) -> Rules {
        Rules { framing, max_record_bytes, overlong }
    }

    /// A record as it is given: its place in the stream, its bytes with framing (none if it is left out),
    /// the length of its value if it is overlong, and where the next one begins.
    type Given = (u64, Option<Vec<u8>>, Option<u64>, u64);

    /// Splits `stream`, cut into blocks, carrying over what is unfinished.
    fn split(rules: Rules, stream: &[u8], blocks: &[usize]) -> Result<Vec<Given>, FrameError> {
        let mut splitter = Splitter::new(rules);
        let (mut given, mut unfinished) = (Vec::new(), Vec::new());
        let mut kept: Option<(u64, Vec<u8>)> = None;
        let mut from = 0;
        let sizes = blocks.iter().copied().chain([stream.len()]);
        let mut sizes = sizes.peekable();
        while let Some(size) = sizes.next() {
            let to = (from + size).min(stream.len());
            let scanned = unfinished.len();
            let base = (from - scanned) as u64;
            let block = [unfinished.as_slice(), &stream[from..to]].concat();
            from = to;
            let split = splitter.split(base, &block, scanned, sizes.peek().is_none())?;
            for cut in split.cuts {
                match cut {
                    Cut::Run { mut start, ends } => {
                        for end in ends {
                            let bytes = block[start as usize..end as usize].to_vec();
                            let offset = base + u64::from(start);
                            given.push((offset, Some(bytes), None, base + u64::from(end)));
                            start = end;
                        }
                    }
                    Cut::Overlong { kept, oversize } => {
                        let bytes = kept.map(|k| block[k.start as usize..k.end as usize].to_vec());
                        given.push((oversize.offset, bytes, Some(oversize.len), oversize.next));
                    }
                    Cut::OverlongBegins { kept: span } => {
                        kept = span.map(|k| {
                            let bytes = block[k.start as usize..k.end as usize].to_vec();
                            (base + u64::from(k.start), bytes)
                        });
                    }
                    Cut::OverlongEnds { oversize } => {
                        let bytes = kept.take().map(|(offset, bytes)| {
                            assert_eq!(offset, oversize.offset);
                            bytes
                        });
                        given.push((oversize.offset, bytes, Some(oversize.len), oversize.next));
                    }
                }
            }
            unfinished = block[split.rest..].to_vec();
            assert!(unfinished.len() <= rules.max_unfinished(), "{unfinished:?}");
        }
        assert!(unfinished.is_empty());
        Ok(given)
    }

    /// What `split` must give, by the book.
    fn naive(rules: Rules, stream: &[u8]) -> Result<Vec<Given>, FrameError> {
        let mut given = Vec::new();
        let mut at = 0;
        if rules.framing == Framing::Lines {
            if stream.starts_with(b"\xff\xfe") || stream.starts_with(b"\xfe\xff") {
                return Err(FrameError::Utf16);
            }
            if stream.starts_with(b"\xef\xbb\xbf") {
                at = 3;
            }
        }
        while at < stream.len() {
            let rest = &stream[at..];
            let (next, value, prefix) = match rules.framing {
                Framing::Lines => {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    let next = end.map_or(rest.len(), |newline| newline + 1);
                    (next, value_len(&rest[..next]), 0)
                }
                Framing::Length32 => {
                    let offset = at as u64;
                    let Some(prefix) = rest.first_chunk::<4>() else {
                        return Err(FrameError::Incomplete { offset, declared: None });
                    };
                    let declared = u32::from_be_bytes(*prefix);
                    let next = 4 + declared as usize;
                    let overlong = declared as usize > rules.max_record_bytes;
                    if overlong && rules.overlong == Overlong::Stop {
                        return Err(FrameError::Overlong { offset, len: declared.into() });
                    }
                    if next > rest.len() {
                        let declared = Some(declared);
                        return Err(FrameError::Incomplete { offset, declared });
                    }
                    (next, declared as usize, 4)
                }
            };
            let bytes = match rules.overlong {
                _ if value <= rules.max_record_bytes => Some(&rest[..next]),
                Overlong::Truncate => Some(&rest[..prefix + rules.max_record_bytes]),
                Overlong::Skip => None,
                Overlong::Stop => {
                    return Err(FrameError::Overlong { offset: at as u64, len: 0 });
                }
            };
            let len = (value > rules.max_record_bytes).then_some(value as u64);
            given.push((at as u64, bytes.map(<[u8]>::to_vec), len, (at + next) as u64));
            at += next;
        }
        Ok(given)
    }

    fn same(left: &Result<Vec<Given>, FrameError>, right: &Result<Vec<Given>, FrameError>) -> bool {
        match (left, right) {
            // How much is known of the length depends on the blocks.
            (
                Err(FrameError::Overlong { offset: left, .. }),
                Err(FrameError::Overlong { offset: right, .. }),
            ) => left == right,
            _ => left == right,
        }
    }

    fn policies() -> impl Strategy<Value = Overlong> {
        prop_oneof![Just(Overlong::Truncate), Just(Overlong::Skip), Just(Overlong::Stop)]
    }

    /// Newlines, carriage returns and byte-order marks are frequent.
    fn lines() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            Just(b'\n'),
            Just(b'\r'),
            Just(b'a'),
            Just(b'b'),
            Just(0xef),
            Just(0xbb),
            Just(0xbf),
            Just(0xff),
            Just(0xfe),
            any::<u8>()
        ];
        let mark = prop_oneof![Just(&b""[..]), Just(&b"\xef\xbb\xbf"[..]), Just(&b"\xef\xbb"[..])];
        (mark, proptest::collection::vec(byte, 0..60))
            .prop_map(|(mark, bytes)| [mark, &bytes].concat())
    }

    fn lengths() -> impl Strategy<Value = Vec<u8>> {
        let value = proptest::collection::vec(any::<u8>(), 0..12);
        (proptest::collection::vec(value, 0..8), 0usize..5).prop_map(|(values, cut)| {
            let framed = values
                .iter()
                .flat_map(|value| [&(value.len() as u32).to_be_bytes()[..], value].concat());
            let bytes: Vec<u8> = framed.collect();
            // Mostly whole.
            let keep = bytes.len().saturating_sub(cut.saturating_sub(2));
            bytes[..keep].to_vec()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// C12: any blocks × any content × any cap give what splitting the whole gives.
        #[test]
        fn c12_any_blocks_give_the_same_lines(
            stream in lines(),
            blocks in proptest::collection::vec(0usize..9, 0..40),
            max in 0usize..12,
            overlong in policies(),
        ) {
            let rules = rules(Framing::Lines, max, overlong);
            let (ours, book) = (split(rules, &stream, &blocks), naive(rules, &stream));
            prop_assert!(same(&ours, &book), "{ours:?}\n{book:?}");
        }

        #[test]
        fn c12_any_blocks_give_the_same_lengths(
            stream in lengths(),
            blocks in proptest::collection::vec(0usize..9, 0..40),
            max in 0usize..12,
            overlong in policies(),
        ) {
            let rules = rules(Framing::Length32, max, overlong);
            let (ours, book) = (split(rules, &stream, &blocks), naive(rules, &stream));
            prop_assert!(same(&ours, &book), "{ours:?}\n{book:?}");
        }
    }

    #[test]
    fn a_cap_counts_the_value_alone() {
        let rules = rules(Framing::Lines, 3, Overlong::Truncate);
        let check = |line: &[u8], kept: &[u8], overlong: Option<u64>| {
            for blocks in [vec![], vec![1; 20]] {
                let given = split(rules, line, &blocks).unwrap();
                let expected = (0, Some(kept.to_vec()), overlong, line.len() as u64);
                assert_eq!(given, [expected], "{line:?}");
            }
        };
        check(b"abc\r\n", b"abc\r\n", None);
        check(b"abc\n", b"abc\n", None);
        check(b"abc\r", b"abc", Some(4));
        check(b"abcd\r\n", b"abc", Some(4));
        // A cut behind a lone `\r` keeps it: the span has no `\n`, so nothing is taken off.
        check(b"ab\rd\n", b"ab\r", Some(4));
        check(b"ab\r\r\n", b"ab\r\r\n", None);
    }
}
