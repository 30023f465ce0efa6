//! Reads one file block by block into batches.
//!
//! Each block becomes the arena of the batches cut from it; the unfinished record at its end is copied to
//! the front of the next one. Not here: which file to read, how much may be announced, and where the
//! reader stands.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use lockgate_core::{Batch, EndpointError, Partition};

use super::arena::{Block, Pool};
use super::decode::Source;
use super::frame::{Cut, FrameError, Oversize, Rules, Split, Splitter};
use super::identity::{Fingerprint, TAIL_BYTES, Tail};
use super::position::{Mark, Member};
use crate::config::Overlong;

/// Records that were read, or only a new place to stand.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) batch: Option<Batch>,
    /// Where the record after it begins.
    pub(super) next: u64,
    /// Compressed files: the members that begin in it, and the one in which it begins.
    pub(super) members: Vec<Member>,
}

/// A policy that was applied while reading, with its text.
pub(super) type Applied = (&'static str, String);

/// What one read gave.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) pieces: Vec<Piece>,
    pub(super) applied: Vec<Applied>,
    /// There is nothing more for now.
    pub(super) at_end: bool,
    /// On the way to the place where to go on it was seen that the file is not the one that was begun.
    pub(super) is_another: bool,
}

/// Where reading has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// At the file's end, where an unfinished line is a record.
    End,
    /// At the file's end for now; an unfinished record may be finished later.
    EndForNow,
    /// At this place, as if the file ended there.
    Offset(u64),
}

/// Where the records of a block will lie.
enum Arena {
    /// In the block.
    Shared(Bytes),
    /// Each run in memory of its own: they are too few to hold the block.
    Sparse(Block),
}

/// A file that is being read.
///
/// **Invariant:** `unfinished` holds the bytes between [`position`](Self::position) and `source.pos()`,
/// unless an overlong record is being passed over, or the position has not been reached yet.
pub(super) struct Cursor {
    partition: Arc<Partition>,
    rules: Rules,
    source: Source,
    splitter: Splitter,
    /// The last bytes before the position, as long as that has not been reached.
    expected: Option<Fingerprint>,
    unfinished: Vec<u8>,
    /// The kept part of the overlong record that is being passed over.
    kept: Option<Batch>,
    members: VecDeque<Member>,
    /// The last bytes read.
    tail: Tail,
    /// Where the first record that was not given begins.
    position: u64,
}

impl Cursor {
    /// Reads from the beginning.
    pub(super) fn new(partition: Arc<Partition>, rules: Rules, source: Source) -> Self {
        debug_assert_eq!(source.pos(), 0, "not at the beginning");
        Self {
            partition,
            rules,
            source,
            splitter: Splitter::new(rules),
            expected: None,
            unfinished: Vec::new(),
            kept: None,
            members: VecDeque::new(),
            tail: Tail::at(0),
            position: 0,
        }
    }

    /// Goes on from `mark`. Getting there may take several reads that give nothing: in a compressed file
    /// everything from the start of the member is decompressed.
    ///
    /// # Errors
    /// If `mark` is damaged.
    pub(super) fn go_on(
        partition: Arc<Partition>,
        rules: Rules,
        mut source: Source,
        mark: Mark,
    ) -> Result<Self, EndpointError> {
        source.rewind(mark.offset, mark.member)?;
        Ok(Self {
            partition,
            rules,
            splitter: Splitter::new(rules),
            expected: Some(mark.tail),
            unfinished: Vec::new(),
            kept: None,
            members: VecDeque::new(),
            tail: Tail::at(source.pos()),
            position: mark.offset,
            source,
        })
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn source_mut(&mut self) -> &mut Source {
        &mut self.source
    }

    /// Where the first record that was not given begins.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Whether it reads the file called `name` and stands at `offset`.
    pub(super) fn is_at(&self, name: &str, offset: u64) -> bool {
        self.partition.source == name && self.position == offset && self.source.pos() == offset
    }

    /// The position, to be gone on with when the file is opened again.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn mark(&self) -> Result<Mark, EndpointError> {
        let offset = self.position;
        let tail = if !self.source.is_compressed() {
            let len = offset.min(TAIL_BYTES as u64);
            Fingerprint::of(&self.source.bytes_at(offset - len, len as usize)?)
        } else if offset == self.tail.end() {
            self.tail.fingerprint()
        } else {
            Fingerprint::of(b"")
        };
        Ok(Mark { offset, tail, member: self.member() })
    }

    /// The last bytes read.
    pub(super) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// The last member that begins at or before the position.
    pub(super) fn member(&self) -> Option<Member> {
        self.members.iter().rev().find(|member| member.start <= self.position).copied()
    }

    /// Reads a block.
    ///
    /// # Errors
    /// If the disk fails, or the data is damaged or not allowed.
    pub(super) fn read(&mut self, pool: &Pool, until: Until) -> Result<Reading, EndpointError> {
        if let Some(expected) = self.expected {
            return self.approach(pool, expected);
        }
        let base = self.source.pos() - self.unfinished.len() as u64;
        let scanned = self.unfinished.len();
        let mut block = if scanned < pool.block_bytes() {
            let mut block = pool.block(pool.block_bytes());
            block.extend(&self.unfinished);
            block
        } else {
            // A record that is too long is known to be when it is a block longer than it may be.
            let most = self.rules.max_record_bytes + 2 * pool.block_bytes();
            pool.block_after(std::mem::take(&mut self.unfinished), most)
        };

        let mut at_end = false;
        while !block.spare().is_empty() {
            let spare = block.spare();
            let room = match until {
                Until::Offset(end) => spare.len().min((end - self.source.pos()) as usize),
                Until::End | Until::EndForNow => spare.len(),
            };
            let n = if room == 0 { 0 } else { self.source.read(&mut spare[..room])? };
            if n == 0 {
                at_end = true;
                break;
            }
            block.advance(n);
        }
        let new = &block.filled()[scanned..];
        self.tail.push(base + scanned as u64, new);
        for member in self.source.take_members() {
            match self.members.back_mut() {
                Some(last) if last.start == member.start => *last = member,
                _ => self.members.push_back(member),
            }
        }

        let mut reading = Reading { at_end, ..Reading::default() };
        if let Some(raw) = self.source.take_garbage() {
            reading.applied.push(self.garbage(raw));
        }
        let end = at_end && until != Until::EndForNow;
        if end {
            self.check_end(until, &mut reading.applied)?;
        }
        if new.is_empty() && !end {
            if scanned >= pool.block_bytes() {
                // It was moved into the block.
                self.unfinished = block.into_filled();
            }
            return Ok(reading);
        }
        let split = self.splitter.split(base, block.filled(), scanned, end);
        let split = split.map_err(|error| self.refuse(error))?;
        if split.cuts.is_empty() && split.rest == 0 && block.filled().len() >= pool.block_bytes() {
            self.unfinished = block.into_filled();
        } else {
            self.unfinished.clear();
            self.unfinished.extend_from_slice(&block.filled()[split.rest..]);
            if !split.cuts.is_empty() {
                let arena = match block.is_too_large_for(split.bytes()) {
                    true => Arena::Sparse(block),
                    false => Arena::Shared(block.into_arena()),
                };
                self.cut(base, &arena, split, &mut reading);
            }
        }
        self.forget_members();
        Ok(reading)
    }

    /// Members that begin and end inside an overlong record are no place to go on from.
    fn forget_members(&mut self) {
        let passed = self.source.pos() - self.unfinished.len() as u64;
        while self.members.get(2).is_some_and(|member| member.start <= passed) {
            self.members.remove(1);
        }
    }

    /// Reads on towards the position, at most a block.
    fn approach(&mut self, pool: &Pool, expected: Fingerprint) -> Result<Reading, EndpointError> {
        let mut block = pool.block(0);
        let mut is_another = false;
        while self.source.pos() < self.position && !block.spare().is_empty() && !is_another {
            let pos = self.source.pos();
            let spare = block.spare();
            let want = spare.len().min((self.position - pos) as usize);
            let n = self.source.read(&mut spare[..want])?;
            self.tail.push(pos, &spare[..n]);
            block.advance(n);
            is_another = n == 0;
        }
        for member in self.source.take_members() {
            match self.members.back_mut() {
                Some(last) if last.start == member.start => *last = member,
                _ => self.members.push_back(member),
            }
        }
        while self.members.get(1).is_some_and(|member| member.start <= self.position) {
            self.members.pop_front();
        }
        if self.source.pos() == self.position {
            self.expected = None;
            // At the start of a member the bytes before it cannot be seen.
            let seen = self.tail.bytes().len() as u32 >= expected.len;
            is_another = seen && !expected.ends(self.tail.bytes());
        }
        Ok(Reading { is_another, ..Reading::default() })
    }

    fn check_end(&mut self, until: Until, applied: &mut Vec<Applied>) -> Result<(), EndpointError> {
        match until {
            Until::End => self.source.check_end()?,
            Until::Offset(end) if self.source.pos() < end => {
                let (name, pos) = (&self.partition.source, self.source.pos());
                return Err(EndpointError::Data(format!(
                    "{name}: the file ends at byte {pos} now, but had been read to byte {end}"
                )));
            }
            Until::Offset(_) | Until::EndForNow => {}
        }
        if let Some(raw) = self.source.take_garbage() {
            applied.push(self.garbage(raw));
        }
        Ok(())
    }

    /// Makes batches of the cuts of a block.
    fn cut(&mut self, base: u64, arena: &Arena, split: Split, reading: &mut Reading) {
        for cut in split.cuts {
            match cut {
                Cut::Run { start, ends } => {
                    let next = base + u64::from(ends.last().copied().unwrap_or(start));
                    let batch = self.batch(base, arena, start, ends);
                    reading.pieces.push(self.piece(Some(batch), next));
                }
                Cut::Overlong { kept, oversize } => {
                    let kept = kept.map(|kept| self.batch(base, arena, kept.start, vec![kept.end]));
                    reading.pieces.push(self.piece(kept, oversize.next));
                    reading.applied.push(self.overlong(oversize));
                }
                Cut::OverlongBegins { kept } => {
                    self.kept =
                        kept.map(|kept| self.batch(base, arena, kept.start, vec![kept.end]));
                }
                Cut::OverlongEnds { oversize } => {
                    let kept = self.kept.take();
                    reading.pieces.push(self.piece(kept, oversize.next));
                    reading.applied.push(self.overlong(oversize));
                }
            }
        }
    }

    fn batch(&self, base: u64, arena: &Arena, start: u32, ends: Vec<u32>) -> Batch {
        let (partition, framing) = (self.partition.clone(), self.rules.framing);
        match arena {
            Arena::Shared(arena) => {
                Batch::adjoining(partition, framing, arena.clone(), base, start, ends)
            }
            Arena::Sparse(block) => {
                let end = ends.last().copied().unwrap_or(start);
                let span = &block.filled()[start as usize..end as usize];
                let ends = ends.into_iter().map(|end| end - start).collect();
                let base = base + u64::from(start);
                Batch::adjoining(partition, framing, Bytes::copy_from_slice(span), base, 0, ends)
            }
        }
    }

    fn piece(&mut self, batch: Option<Batch>, next: u64) -> Piece {
        while self.members.get(1).is_some_and(|member| member.start <= self.position) {
            self.members.pop_front();
        }
        self.position = next;
        let members = self.members.iter().take_while(|member| member.start <= next);
        Piece { batch, next, members: members.copied().collect() }
    }

    fn overlong(&self, record: Oversize) -> Applied {
        let (policy, done) = match self.rules.overlong {
            Overlong::Truncate => ("overlong_truncated", "cut short"),
            Overlong::Skip | Overlong::Stop => ("overlong_skipped", "left out"),
        };
        let (name, max) = (&self.partition.source, self.rules.max_record_bytes);
        let Oversize { offset, len, .. } = record;
        let text = format!(
            "{name}: the record at byte {offset} has {len} bytes, more than max_record_bytes {max}; it was \
             {done}"
        );
        (policy, text)
    }

    fn garbage(&self, raw: u64) -> Applied {
        let name = &self.partition.source;
        let text = format!(
            "{name}: what follows at byte {raw} is not compressed data; the file was taken to end there"
        );
        ("trailing_garbage", text)
    }

    fn refuse(&self, error: FrameError) -> EndpointError {
        let name = &self.partition.source;
        let max = self.rules.max_record_bytes;
        EndpointError::Data(match error {
            FrameError::Overlong { offset, len } => format!(
                "{name}: the record at byte {offset} has {len} bytes or more, more than max_record_bytes \
                 {max}; raise it, or set overlong to truncate or skip"
            ),
            FrameError::Utf16 => format!(
                "{name}: the file begins with a byte-order mark of UTF-16; convert it first, for example \
                 with `iconv -f UTF-16 -t UTF-8`"
            ),
            FrameError::Incomplete { offset, declared: None } => format!(
                "{name}: the file ends inside the length of the record that begins at byte {offset}"
            ),
            FrameError::Incomplete { offset, declared: Some(declared) } => format!(
                "{name}: the file ends inside a record that began at byte {offset} and declared \
                 {declared} bytes"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    use lockgate_core::Framing;
    use proptest::prelude::*;

    fn rules(max_record_bytes: usize) -> Rules {
        Rules { framing: Framing::Lines, max_record_bytes, overlong: Overlong::Skip }
    }

    fn open(path: &std::path::Path, rules: Rules) -> Cursor {
        let partition = Partition { source: "in.log".into(), number: None };
        Cursor::new(Arc::new(partition), rules, Source::open(path).unwrap().source)
    }

    /// Reads all there is, and once more when there is nothing.
    fn read_all(cursor: &mut Cursor, pool: &Pool, until: Until) -> Vec<Batch> {
        let mut batches = Vec::new();
        loop {
            let reading = cursor.read(pool, until).unwrap();
            batches.extend(reading.pieces.into_iter().filter_map(|piece| piece.batch));
            if reading.at_end {
                batches.extend(
                    cursor.read(pool, until).unwrap().pieces.into_iter().filter_map(|p| p.batch),
                );
                return batches;
            }
        }
    }

    /// A few bytes once held a whole block.
    #[test]
    fn few_records_do_not_hold_a_block() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("in.log");
        fs::write(&path, format!("short\n{}\nlast\n", "x".repeat(900))).unwrap();
        let pool = Pool::new(1024, 4);
        let batches = read_all(&mut open(&path, rules(10)), &pool, Until::End);
        assert_eq!(batches.iter().map(Batch::len).sum::<usize>(), 2);
        assert_eq!(pool.free_blocks(), 1, "the block is free though the records are held");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// A line that stood unfinished at exactly a block's end, with nothing behind it for a while, once
        /// lost what there was of it.
        #[test]
        fn a_line_that_grows_bit_by_bit_is_whole(
            lengths in proptest::collection::vec(0usize..70, 1..6),
            pieces in proptest::collection::vec(1usize..40, 1..30),
        ) {
            let dir = tempfile::TempDir::new().unwrap();
            let path = dir.path().join("in.log");
            let mut text = Vec::new();
            for (i, length) in lengths.iter().enumerate() {
                text.extend(std::iter::repeat_n(b'a' + i as u8, *length));
                text.push(b'\n');
            }
            fs::write(&path, "").unwrap();
            let mut cursor = open(&path, rules(1000));
            let pool = Pool::new(16, 4);
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            let mut rest = &text[..];
            let mut batches = Vec::new();
            for piece in pieces.into_iter().chain(std::iter::once(usize::MAX)) {
                let (now, later) = rest.split_at(piece.min(rest.len()));
                file.write_all(now).unwrap();
                rest = later;
                batches.extend(read_all(&mut cursor, &pool, Until::EndForNow));
            }
            let records = batches.iter().flat_map(Batch::iter);
            let joined: Vec<u8> =
                records.flat_map(|record| [record.value.unwrap(), b"\n"].concat()).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
