//! `start_at: end`: turns "the end" into numbers, before anything is read.
//!
//! The end of a file is where the record begins that is not finished yet, so that it is read whole when it
//! is. Not here: any start after the first.

use std::sync::Arc;

use lockgate_core::{EndpointError, Framing, Partition};
use memchr::memrchr;

use super::arena::Pool;
use super::cursor::{Cursor, Until};
use super::decode::{Opened, Source};
use super::frame::Rules;
use super::identity::Fingerprint;
use super::plan::{Plan, Planned};
use super::position::{Begun, Mark, Seek};

const BLOCK_BYTES: usize = 256 << 10;

/// Moves every file of `plan` to its end, and gives the position that this is.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn skip_to_end(plan: &mut Plan, rules: Rules) -> Result<Seek, EndpointError> {
    let mut seek = Seek::default();
    for planned in &mut plan.files {
        let opened = Source::open(&planned.found.path)?;
        if opened.is_undecided() {
            // Empty, or nearly: its end is its beginning, and how it is compressed shows later.
            continue;
        }
        planned.found.inode = opened.inode;
        planned.head = Fingerprint::of(&opened.head);
        let mark = end(opened, planned, rules)?;
        planned.mark = Some(mark);
        let Planned { name, found, head, .. } = planned.clone();
        seek.begun.push(Begun { name, path: found.path, inode: found.inode, head, mark });
    }
    Ok(seek)
}

fn end(opened: Opened, planned: &Planned, rules: Rules) -> Result<Mark, EndpointError> {
    let Opened { mut source, len, .. } = opened;
    if rules.framing == Framing::Lines && !source.is_compressed() {
        let offset = last_line(&source, len)?;
        let tail = source.seek(offset, None)?.fingerprint();
        return Ok(Mark { offset, tail, member: None });
    }
    // Only reading it shows where its records lie.
    let pool = Pool::new(BLOCK_BYTES, 1);
    let partition = Partition { source: planned.name.clone(), number: None };
    let mut cursor = Cursor::new(Arc::new(partition), rules, source);
    while !cursor.read(&pool, Until::EndForNow)?.at_end {}
    let (offset, member) = (cursor.position(), cursor.member());
    let mut source = Source::open(&planned.found.path)?.source;
    let tail = source.seek(offset, member)?.fingerprint();
    Ok(Mark { offset, tail, member })
}

/// Where the last line begins that has no newline yet.
fn last_line(source: &Source, len: u64) -> Result<u64, EndpointError> {
    let mut end = len;
    while end > 0 {
        let start = end.saturating_sub(BLOCK_BYTES as u64);
        let bytes = source.bytes_at(start, (end - start) as usize)?;
        if let Some(newline) = memrchr(b'\n', &bytes) {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
