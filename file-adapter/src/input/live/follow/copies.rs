//! Files that hold what another one held: copies made before a truncation, and compressed copies.

use std::collections::HashSet;

use lockgate_core::EndpointError;
use tracing::info;

use super::super::{Live, Stage, Tracked, change_behind};
use crate::input::cursor::Cursor;
use crate::input::decode::{Opened, Source};
use crate::input::discover::Found;
use crate::input::identity::{Fingerprint, HEAD_BYTES, TAIL_BYTES};
use crate::input::plan::{holds, is_all_of};
use crate::input::position::{DoneFile, inode_key, printable};
use crate::input::queue::FileId;

/// Whether a new file is a compressed copy of one that was read.
pub(super) enum Copy {
    No,
    Yes(DoneFile),
    /// It cannot be told before the end of another file is handed over.
    Later,
    /// It may become one.
    Incomplete,
}

impl Live {
    /// Before the truncation of a file is taken note of: whether it was copied before, where a pattern finds
    /// the copy.
    pub(super) fn find_copy(&mut self, id: FileId, found: &[Found]) -> Result<(), EndpointError> {
        let file = self.file(id)?;
        let Some(mut cursor) = file.cursor.take() else { return Ok(()) };
        let source = cursor.source();
        let changed = change_behind(source, source.raw_pos(), cursor.tail())?.is_some();
        if changed {
            self.move_to_copy(id, &mut cursor, found)?;
        }
        self.file(id)?.cursor = Some(cursor);
        Ok(())
    }

    /// A plain file was truncated or replaced in place. If a new file holds all that was read of it, that is
    /// what it was: it is read on there, as if it had been renamed.
    pub(in crate::input::live) fn move_to_copy(
        &mut self,
        id: FileId,
        cursor: &mut Cursor,
        found: &[Found],
    ) -> Result<(), EndpointError> {
        let (read, head) = (cursor.source().raw_pos(), self.file(id)?.identity.head);
        if cursor.source().is_compressed() || read == 0 {
            return Ok(());
        }
        let known: HashSet<_> = self.files.values().map(|file| file.identity.inode).collect();
        let done: HashSet<_> = self.progress.done().files().iter().map(DoneFile::inode).collect();
        for found in found.iter().filter(|found| found.len >= read) {
            if known.contains(&found.inode) || done.contains(&inode_key(found.inode)) {
                continue;
            }
            let Ok(mut opened) = Source::open(&found.path) else { continue };
            if opened.source.is_compressed()
                || !head.begins(&opened.head)
                || change_behind(&opened.source, read, cursor.tail())?.is_some()
            {
                continue;
            }
            let (from, to) = (printable(cursor.source().path()), printable(&found.path));
            info!(from, to, "a file was copied before it was truncated; the copy is read on");
            opened.source.seek(read, None)?;
            *cursor.source_mut() = opened.source;
            let file = self.file(id)?;
            let identity = &mut file.identity;
            (identity.path, identity.inode) = (found.path.clone(), opened.inode);
            let identity = identity.clone();
            self.shared.gauges.moved(id, &identity.path);
            self.progress.identify(id, &identity);
            return Ok(());
        }
        Ok(())
    }

    /// Whether a new plain file holds what a file that is read begins with: it may be a copy that is made
    /// before that one is truncated.
    pub(super) fn is_beginning_of_another(&self, opened: &Opened) -> Result<bool, EndpointError> {
        if opened.source.is_compressed() {
            return Ok(false);
        }
        let head = Fingerprint::of(&opened.head);
        let start = opened.len.saturating_sub(TAIL_BYTES as u64);
        let tail = opened.source.bytes_at(start, TAIL_BYTES)?;
        for file in self.files.values() {
            let Some(cursor) = &file.cursor else { continue };
            let source = cursor.source();
            if !source.is_compressed()
                && source.raw_len()? >= opened.len
                && head.begins(&source.bytes_at(0, HEAD_BYTES)?)
                && source.bytes_at(start, tail.len())? == tail
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn is_copy(
        &mut self,
        done: &[DoneFile],
        found: &Found,
        opened: &mut Opened,
    ) -> Result<Copy, EndpointError> {
        if !opened.source.is_compressed() {
            return Ok(Copy::No);
        }
        let head = Fingerprint::of(&opened.head);
        let begins = |file: &&Tracked| {
            let known = file.identity.head;
            known.len > 0 && known.begins(&opened.head)
        };
        let tracked: Vec<_> = self.files.values().filter(begins).collect();
        let done: Vec<_> =
            done.iter().filter(|file| !file.compressed && file.begins(&opened.head)).collect();
        if tracked.is_empty() && done.is_empty() {
            return Ok(Copy::No);
        }
        // Not complete, or damaged, which is reported when it is read.
        let Ok((len, tail)) = opened.source.read_to_end() else { return Ok(Copy::Incomplete) };
        let Some(end) = opened.source.take_members().pop() else { return Ok(Copy::Incomplete) };
        let name = printable(&found.path);
        let copy = DoneFile::new(&name, found.inode, true, head, end.raw, end.raw_tail);
        if done.iter().any(|file| is_all_of(file, &opened.head, len, &tail)) {
            return Ok(Copy::Yes(copy));
        }
        // A file that is not open, and may be gone, is known by where it was left.
        let left = tracked.iter().filter_map(|file| file.mark.filter(|_| file.cursor.is_none()));
        let mut left = left.filter(|mark| mark.member.is_none() && mark.tail.len > 0);
        if left.any(|mark| mark.offset == len && mark.tail.ends(tail.bytes())) {
            return Ok(Copy::Yes(copy));
        }
        // What is not handed over yet is not among the finished ones yet.
        if tracked.iter().any(|file| file.stage == Stage::Ended) {
            return Ok(Copy::Later);
        }
        for file in tracked {
            match &file.cursor {
                Some(cursor) if holds(cursor.source(), len, &tail)? => return Ok(Copy::Yes(copy)),
                Some(_) => {}
                None => match Source::open(&file.identity.path) {
                    Ok(other) if holds(&other.source, len, &tail)? => return Ok(Copy::Yes(copy)),
                    _ => {}
                },
            }
        }
        Ok(Copy::No)
    }
}
