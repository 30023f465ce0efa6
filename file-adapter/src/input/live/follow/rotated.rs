//! Files that were rotated away: finished when they have been quiet, kept in sight in case their writer does
//! not know yet.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lockgate_core::EndpointError;
use tracing::info;

use super::super::{After, Live, Rotated, Stage, Tracked};
use crate::input::cursor::{Cursor, Until};
use crate::input::discover::{Found, beside};
use crate::input::identity::Inode;
use crate::input::plan::Planned;
use crate::input::position::{inode_key, printable};
use crate::input::progress::Identity;
use crate::input::queue::{End, FileId, Item};

/// A file that is waited for is not finished while it grows, but for no longer than this many times
/// [`Timing::quiet`].
const PATIENCE: u32 = 5;
/// Most finished files that no pattern finds and that are kept open in case they grow.
const MAX_LINGERING: usize = 16;

/// A finished file whose writer may not know yet that it was rotated away.
pub(super) struct Lingering {
    /// As which it was finished.
    id: FileId,
    cursor: Box<Cursor>,
    identity: Identity,
    /// When it was finished.
    since: Instant,
}

impl Live {
    /// Finishes the files that were rotated away and have been quiet, or that others wait for in vain.
    pub(super) fn finish_rotated(
        &mut self,
        here: &HashMap<Inode, &Found>,
        now: Instant,
    ) -> Result<(), EndpointError> {
        let quiet = self.shared.timing.quiet;
        let rotated = self.files.iter().filter_map(|(id, file)| Some((*id, file.rotated?)));
        for (id, rotated) in rotated.collect::<Vec<_>>() {
            let Tracked { identity: Identity { inode, .. }, stage, .. } = *self.file(id)?;
            let cursor = match stage {
                Stage::Idle if self.is_waited_for_in_vain(id, now)? => self.finish_for_now(id)?,
                Stage::Idle
                    if now.saturating_duration_since(rotated.grew) >= quiet
                        || self.is_untouched_for(id, quiet)? =>
                {
                    self.finish_quiet(id, here.contains_key(&inode))?
                }
                _ => None,
            };
            if let Some(cursor) = cursor
                && !here.contains_key(&inode)
                && !cursor.source().is_compressed()
                && let Some(follow) = &mut self.follow
            {
                let identity = self.files.get(&id).map(|file| file.identity.clone());
                let since = rotated.grew;
                let lingering = identity.map(|identity| Lingering { id, cursor, identity, since });
                follow.lingering.extend(lingering);
                let surplus = follow.lingering.len().saturating_sub(MAX_LINGERING);
                follow.lingering.drain(..surplus);
            }
        }
        Ok(())
    }

    /// Finishes a file, with what is unfinished at its end. Gives the cursor if that could be done.
    fn finish_quiet(
        &mut self,
        id: FileId,
        here: bool,
    ) -> Result<Option<Box<Cursor>>, EndpointError> {
        let was_open = self.file(id)?.cursor.is_some();
        let Some(mut cursor) = self.open(id, true)? else { return Ok(None) };
        let source = cursor.source();
        if was_open && !source.is_compressed() && source.raw_len()? > source.raw_pos() {
            self.file(id)?.cursor = Some(cursor);
            self.read_on(id)?;
            return Ok(None);
        }
        info!(file = printable(cursor.source().path()), "a rotated file is finished");
        loop {
            match self.read_block(id, &mut cursor, Until::End) {
                Ok(After::More) => {}
                Ok(After::AtEnd) => {
                    self.finish(id, &cursor)?;
                    return Ok(Some(cursor));
                }
                Ok(After::Renewed) => return Ok(None),
                Err(EndpointError::Data(why)) => {
                    self.leave_incomplete(id, &cursor, here, &why)?;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether nobody has written to the file for so long, by the clock of the file system: after a restart
    /// the waiting does not begin anew.
    fn is_untouched_for(&mut self, id: FileId, quiet: Duration) -> Result<bool, EndpointError> {
        let Some(cursor) = &self.file(id)?.cursor else { return Ok(false) };
        Ok(cursor.source().modified()?.elapsed().is_ok_and(|age| age >= quiet))
    }

    /// A rotated file ends inside a record or member. It keeps its place for as long as it is there.
    fn leave_incomplete(
        &mut self,
        id: FileId,
        cursor: &Cursor,
        here: bool,
        why: &str,
    ) -> Result<(), EndpointError> {
        let offset = cursor.position();
        let text = format!("{why}; it was rotated away, and is left at byte {offset}");
        self.shared.report([("file_incomplete", text)]);
        if !here {
            let members = cursor.member().into_iter().collect();
            return self.end(Item::end(id, offset, members, End::Dropped));
        }
        let file = self.file(id)?;
        file.mark = Some(cursor.mark()?);
        file.rotated = None;
        self.release_name(id);
        Ok(())
    }

    /// Whether a rotated file still grows after another has waited for it for long.
    pub(super) fn is_waited_for_in_vain(
        &self,
        id: FileId,
        now: Instant,
    ) -> Result<bool, EndpointError> {
        let patience = self.shared.timing.quiet * PATIENCE;
        let Some(file) = self.files.get(&id) else { return Ok(false) };
        let (Some(rotated), Some(cursor)) = (file.rotated, &file.cursor) else { return Ok(false) };
        let source = cursor.source();
        Ok(now.saturating_duration_since(rotated.at) >= patience
            && !source.is_compressed()
            && self.files.values().any(|file| file.stage == Stage::Behind(id))
            && source.raw_len()? > source.raw_pos())
    }

    /// Finishes a file that still grows, after its last whole record, if another waits for it. What is
    /// written to it from there on is read under the name that it has now.
    fn finish_for_now(&mut self, id: FileId) -> Result<Option<Box<Cursor>>, EndpointError> {
        let Some(cursor) = self.file(id)?.cursor.take() else { return Ok(None) };
        info!(file = printable(cursor.source().path()), "a rotated file still grows");
        self.end(Item::end(id, cursor.position(), Vec::new(), End::Done))?;
        Ok(Some(cursor))
    }

    /// Goes on with finished files that no pattern finds and that have grown since.
    pub(super) fn look_at_lingering(
        &mut self,
        here: &HashMap<Inode, &Found>,
        now: Instant,
    ) -> Result<(), EndpointError> {
        let Some(follow) = &mut self.follow else { return Ok(()) };
        for lingering in std::mem::take(&mut follow.lingering) {
            let Lingering { id, cursor, identity, since } = &lingering;
            if here.contains_key(&identity.inode) {
                // A newcomer.
                continue;
            }
            // As long as its end is in the queue, what comes after it has to wait.
            let ended = !self.files.contains_key(id);
            if ended && cursor.source().raw_len()? > cursor.position() {
                self.go_on(lingering, now)?;
            } else if let Some(follow) = &mut self.follow
                && (!ended || now.saturating_duration_since(*since) < follow.timing.linger)
            {
                follow.lingering.push_back(lingering);
            }
        }
        Ok(())
    }

    fn go_on(&mut self, lingering: Lingering, now: Instant) -> Result<(), EndpointError> {
        let Lingering { cursor, identity, .. } = lingering;
        let Identity { name, path, inode, head } = identity;
        let mark = cursor.mark()?;
        let key = inode_key(inode);
        let mut done = self.progress.done().files().into_iter();
        let done = done.rfind(|file| file.inode() == key && file.raw_len() == mark.offset);
        done.iter().for_each(|file| self.progress.remove_done(file));
        let now_at = beside(&path, inode);
        // Without a name it goes on under the one that it had.
        let cursor = now_at.is_none().then_some(cursor);
        let name = now_at.as_deref().map_or(name, printable);
        let path = now_at.unwrap_or(path);
        info!(file = name, "a file that was finished has grown");
        let found = Found { path, inode, ..Found::default() };
        let planned = Planned { name, found, head, mark: Some(mark) };
        let id = self.track_as(planned, Stage::Reading);
        let cursor = match cursor {
            Some(cursor) => Some(cursor),
            None => self.open(id, false)?,
        };
        // It may have been renewed.
        if let Some(file) = self.files.get_mut(&id) {
            (file.cursor, file.rotated) = (cursor, Some(Rotated::at(now)));
        }
        Ok(())
    }
}
