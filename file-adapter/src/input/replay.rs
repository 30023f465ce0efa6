//! Reads the ranges of journaled steps again.
//!
//! Consecutive steps are read as fast as they were the first time: a file stays open, and its decompressor
//! goes on, from one step to the next. That the records are the same is checked by count here and by hash
//! where the steps are kept.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockgate_core::{Batch, EndpointError, Partition, count};

use super::arena::Pool;
use super::cursor::{Applied, Cursor, Until};
use super::decode::{Opened, Source};
use super::discover::{Found, Patterns, beside};
use super::frame::Rules;
use super::identity::{Fingerprint, Inode};
use super::position::{Mark, Range, printable};

/// Most files that are kept open between steps.
const MAX_OPEN: usize = 32;

/// Replays steps, one after the other.
pub(super) struct Replayer {
    rules: Rules,
    pool: Pool,
    patterns: Arc<Patterns>,
    /// Set when the reader is disconnected.
    stop: Arc<AtomicBool>,
    /// What is on the disk, once a file was not where it had been.
    found: Option<Vec<Found>>,
    open: HashMap<Inode, Cursor>,
}

/// The records of a step.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) batches: Vec<Batch>,
    pub(super) applied: Vec<Applied>,
}

impl Replayer {
    pub(super) fn new(
        rules: Rules,
        pool: Pool,
        patterns: Arc<Patterns>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self { rules, pool, patterns, stop, found: None, open: HashMap::new() }
    }

    /// Reads the ranges of one step. `None` if the reader was disconnected meanwhile.
    ///
    /// # Errors
    /// If one cannot be read, or holds another number of records.
    pub(super) fn replay(&mut self, ranges: &[Range]) -> Result<Option<Replayed>, EndpointError> {
        let mut replayed = Replayed::default();
        for range in ranges {
            let mut cursor = self.cursor(range)?;
            let before = count(&replayed.batches);
            loop {
                if self.stop.load(Ordering::Acquire) {
                    return Ok(None);
                }
                let reading = cursor.read(&self.pool, Until::Offset(range.end))?;
                if reading.is_another {
                    return Err(refuse(range, "the file is too short now"));
                }
                replayed.applied.extend(reading.applied);
                replayed.batches.extend(reading.pieces.into_iter().filter_map(|piece| piece.batch));
                if reading.at_end {
                    break;
                }
            }
            let records = count(&replayed.batches) - before;
            if records != range.records {
                let wanted = range.records;
                return Err(refuse(
                    range,
                    &format!("it holds {records} records now, not {wanted}"),
                ));
            }
            if self.open.len() >= MAX_OPEN {
                self.open.clear();
            }
            self.open.insert(range.inode, cursor);
        }
        Ok(Some(replayed))
    }

    /// A file that a replay left open.
    pub(super) fn take_open(&mut self, inode: Inode) -> Option<Cursor> {
        self.open.remove(&inode)
    }

    fn cursor(&mut self, range: &Range) -> Result<Cursor, EndpointError> {
        let Range { name, start, end, member, .. } = range;
        if start > end {
            return Err(refuse(range, "the range is damaged"));
        }
        if let Some(cursor) = self.open.remove(&range.inode)
            && cursor.is_at(name, *start)
        {
            return Ok(cursor);
        }
        let opened = self.locate(range)?;
        // Another file with the same content may be compressed in another way.
        let member = member.filter(|_| opened.inode == range.inode);
        let partition = Arc::new(Partition { source: name.clone(), number: None });
        // What was before the range is not known, and does not matter.
        let mark = Mark { offset: *start, tail: Fingerprint::of(b""), member };
        Cursor::go_on(partition, self.rules, opened.source, mark)
    }

    /// Finds the file where it was, or else under another name, or else its content.
    fn locate(&mut self, range: &Range) -> Result<Opened, EndpointError> {
        let is_it = |opened: &Opened| {
            let compressed = range.member.is_some();
            opened.source.is_compressed() == compressed && range.head.begins(&opened.head)
        };
        if let Ok(opened) = Source::open(&range.path)
            && opened.inode == range.inode
            && is_it(&opened)
        {
            return Ok(opened);
        }
        let found = match &mut self.found {
            Some(found) => found,
            found => found.insert(self.patterns.scan()?.found),
        };
        for found in found.iter().filter(|found| found.inode == range.inode) {
            let opened = Source::open(&found.path)?;
            if is_it(&opened) {
                return Ok(opened);
            }
        }
        if let Some(path) = beside(&range.path, range.inode) {
            let opened = Source::open(&path)?;
            if opened.inode == range.inode && is_it(&opened) {
                return Ok(opened);
            }
        }
        let mut candidates: Vec<_> = found.iter().collect();
        candidates.sort_by_key(|found| found.path != range.path);
        for found in candidates {
            let opened = Source::open(&found.path)?;
            if range.head.len > 0 && range.head.begins(&opened.head) {
                return Ok(opened);
            }
        }
        let there = range.path.exists();
        let why =
            if there { "the file was replaced or changed" } else { "there is no such file now" };
        Err(refuse(range, why))
    }
}

fn refuse(range: &Range, why: &str) -> EndpointError {
    let Range { path, start, end, .. } = range;
    EndpointError::Data(format!(
        "{}: a journaled step consists of bytes {start} to {end}, which cannot be read again: {why}",
        printable(path)
    ))
}
