//! Following: what changed among the files since the last look.
//!
//! A look finds every file again by its inode. Growth is read on; a rename changes the path and nothing
//! else; a file that was rotated away or removed is finished through its open descriptor, its unfinished
//! last line included, once it has been quiet for [`QUIET`], and only then is a new file of its name begun.
//! What was truncated or replaced begins anew, counted.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use lockgate_core::EndpointError;
use tracing::{info, warn};

use super::{After, Live, Stage, Tracked, is_absent};
use crate::input::cursor::{Applied, Cursor, Until};
use crate::input::decode::{Opened, Source};
use crate::input::discover::{Found, Patterns};
use crate::input::identity::{Fingerprint, HEAD_BYTES, Inode, Tail};
use crate::input::plan::{Change, Planned, accept, fresh, is_all_of, was_read};
use crate::input::position::{Done, DoneFile, Mark, inode_key, printable};
use crate::input::queue::{End, FileId, Item};
use crate::input::reader::Wake;
use crate::input::watch::Watch;

/// How often to look without being told of a change.
const POLL: Duration = Duration::from_secs(1);
/// A look takes at most this part of the time: 1 / 10.
const REST: u32 = 10;
/// How long a file that was rotated away must be quiet: its writer may still hold it open.
const QUIET: Duration = Duration::from_secs(1);
/// Most idle files that are kept open.
const MAX_OPEN: usize = 64;
/// Most files that are remembered as read although they are gone, once there are twice as many.
const MAX_GONE: usize = 2000;

/// What following needs besides the files themselves.
pub(super) struct Follow {
    watch: Watch,
    due: Instant,
    /// The earliest time for the next look.
    rested: Instant,
    /// The last file of each name.
    pub(super) names: HashMap<String, FileId>,
    /// Open files at their end, the longest idle first.
    idle: VecDeque<FileId>,
    /// Files known to have been read, as they were when that was found out.
    settled: HashMap<Inode, Found>,
    /// Compressed files that may be copies of others but are not complete, and since when.
    suspects: HashMap<Inode, (Found, Instant)>,
}

impl Follow {
    pub(super) fn new(patterns: &Patterns, wakes: Sender<Wake>) -> Self {
        let now = Instant::now();
        Self {
            watch: Watch::new(patterns, wakes),
            // Something may have changed between the plan and the watch.
            due: now,
            rested: now,
            names: HashMap::new(),
            idle: VecDeque::new(),
            settled: HashMap::new(),
            suspects: HashMap::new(),
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    pub(super) fn until_due(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// A change was reported.
    pub(super) fn changed(&mut self) {
        self.watch.arrived();
        self.due = self.due.min(self.rested);
    }

    fn looked(&mut self, began: Instant, waiting: bool) {
        let now = Instant::now();
        self.rested = now + (now - began) * REST;
        self.due = now + if waiting { QUIET / 4 } else { POLL };
        self.watch.watch_absent();
    }
}

/// Whether a new file is a compressed copy of one that was read.
enum Copy {
    No,
    Yes(DoneFile),
    /// It cannot be told yet.
    Perhaps,
}

impl Live {
    /// Finds out what changed.
    pub(super) fn look_around(&mut self) -> Result<(), EndpointError> {
        let now = Instant::now();
        match self.shared.patterns.scan() {
            Ok(scan) => self.take_in(scan.found, now)?,
            // Nothing can be said of files that could not be looked for.
            Err(error) => warn!(%error, "cannot look for files; trying again"),
        }
        let waiting = self.files.values().any(|file| file.rotated.is_some());
        self.follow.iter_mut().for_each(|follow| follow.looked(now, waiting));
        self.announce();
        Ok(())
    }

    fn take_in(&mut self, found: Vec<Found>, now: Instant) -> Result<(), EndpointError> {
        let taken: HashMap<&PathBuf, Inode> =
            found.iter().map(|found| (&found.path, found.inode)).collect();
        let here: HashMap<Inode, &Found> = found.iter().map(|found| (found.inode, found)).collect();
        let mut known = HashSet::new();
        let ids: Vec<_> = self.files.keys().copied().collect();
        for id in ids {
            let file = self.file(id)?;
            let inode = file.identity.inode;
            if file.stage == Stage::Ended {
                known.insert(inode);
            } else if let Some(found) = here.get(&inode) {
                known.insert(inode);
                self.still_here(id, found)?;
            } else {
                let replaced = taken.contains_key(&file.identity.path);
                self.not_here(id, replaced, now)?;
            }
        }
        for found in &found {
            if !known.contains(&found.inode) {
                self.newcomer(found, now)?;
            }
        }
        self.finish_rotated(now)?;
        self.forget(&here);
        Ok(())
    }

    /// A file that is where a pattern finds it.
    fn still_here(&mut self, id: FileId, found: &Found) -> Result<(), EndpointError> {
        let file = self.file(id)?;
        if file.identity.path != found.path {
            let (from, to) = (printable(&file.identity.path), printable(&found.path));
            info!(from, to, "a file was renamed; it is read on");
            file.identity.path = found.path.clone();
            if let Some(cursor) = &mut file.cursor {
                cursor.source_mut().set_path(found.path.clone());
            }
            let identity = file.identity.clone();
            self.progress.identify(id, &identity);
        }
        let file = self.file(id)?;
        if file.stage != Stage::Idle {
            return Ok(());
        }
        let change = if found.len < file.seen {
            Some(Change::Truncated { len: found.len })
        } else if found.len > file.seen {
            let same = self.is_same_up_to_here(id)?;
            (!same).then_some(Change::Replaced)
        } else {
            return Ok(());
        };
        match change {
            None => self.read_on(id),
            Some(change) => {
                let file = self.file(id)?;
                let offset = file.cursor.as_ref().map(|cursor| cursor.position());
                let offset = offset.or(file.mark.map(|mark| mark.offset)).unwrap_or(0);
                let mark = Mark { offset, tail: Fingerprint::of(b""), member: None };
                let applied = accept(&file.begun(mark), change);
                self.renew(id, offset, applied)
            }
        }
    }

    /// Whether a file that has grown still holds what was read of it. Its first bytes are looked at again
    /// as long as there were few.
    fn is_same_up_to_here(&mut self, id: FileId) -> Result<bool, EndpointError> {
        let file = self.file(id)?;
        // A file that is not open is compared when it is opened.
        let Some(cursor) = &file.cursor else { return Ok(true) };
        let source = cursor.source();
        if source.is_compressed() {
            return Ok(true);
        }
        let tail = cursor.tail();
        let start = tail.end() - tail.bytes().len() as u64;
        if source.bytes_at(start, tail.bytes().len())? != tail.bytes() {
            return Ok(false);
        }
        if (file.identity.head.len as usize) < HEAD_BYTES {
            let head = source.bytes_at(0, HEAD_BYTES)?;
            if !file.identity.head.begins(&head) {
                return Ok(false);
            }
            file.identity.head = Fingerprint::of(&head);
            let identity = file.identity.clone();
            self.progress.identify(id, &identity);
        }
        Ok(true)
    }

    fn read_on(&mut self, id: FileId) -> Result<(), EndpointError> {
        let file = self.file(id)?;
        file.stage = Stage::Reading;
        file.rotated = file.rotated.map(|_| Instant::now());
        self.to_read.push_back(id);
        self.follow.iter_mut().for_each(|follow| follow.idle.retain(|other| *other != id));
        Ok(())
    }

    /// A file that no pattern finds any more.
    fn not_here(&mut self, id: FileId, replaced: bool, now: Instant) -> Result<(), EndpointError> {
        let file = self.file(id)?;
        let Some(cursor) = &file.cursor else { return self.lost(id, replaced) };
        let source = cursor.source();
        // Renamed to where no pattern finds it, it may still be written to; see `rest` for how long.
        if replaced || source.is_unlinked()? {
            file.rotated.get_or_insert(now);
        }
        if file.stage == Stage::Idle && source.raw_len()? > file.seen {
            return self.read_on(id);
        }
        Ok(())
    }

    /// A file that is gone and not open.
    fn lost(&mut self, id: FileId, replaced: bool) -> Result<(), EndpointError> {
        let file = self.file(id)?;
        let mark =
            file.mark.unwrap_or(Mark { offset: 0, tail: Fingerprint::of(b""), member: None });
        let change = if replaced { Change::Replaced } else { Change::Vanished };
        let applied = accept(&file.begun(mark), change);
        if mark.offset > 0 || file.found_len > 0 {
            self.shared.report([applied]);
        }
        let members = mark.member.into_iter().collect();
        self.end(Item::end(id, mark.offset, members, End::Dropped))
    }

    /// What a file holds now is not what was read: it begins anew. `offset` is where it was.
    pub(super) fn renew(
        &mut self,
        id: FileId,
        offset: u64,
        applied: Applied,
    ) -> Result<(), EndpointError> {
        self.shared.report([applied]);
        let identity = self.file(id)?.identity.clone();
        self.end(Item::end(id, offset, Vec::new(), End::Dropped))?;
        let found = Found { path: identity.path, inode: identity.inode, ..Found::default() };
        let head = Fingerprint::of(b"");
        self.track(Planned { name: identity.name, found, head, mark: None });
        Ok(())
    }

    /// A file that is at its end for now stays open, unless too many do.
    pub(super) fn rest(&mut self, id: FileId, cursor: Box<Cursor>) -> Result<(), EndpointError> {
        let file = self.file(id)?;
        file.stage = Stage::Idle;
        file.seen = cursor.source().raw_pos();
        file.cursor = Some(cursor);
        let Some(follow) = &mut self.follow else { return Ok(()) };
        follow.idle.push_back(id);
        while follow.idle.len() > MAX_OPEN {
            if let Some(id) = follow.idle.pop_front()
                && let Some(file) = self.files.get_mut(&id)
                && let Some(cursor) = file.cursor.take()
            {
                file.mark = Some(cursor.mark()?);
            }
        }
        Ok(())
    }

    /// Finishes the files that were rotated away and have been quiet.
    fn finish_rotated(&mut self, now: Instant) -> Result<(), EndpointError> {
        let quiet = |file: &Tracked| {
            file.stage == Stage::Idle
                && file.rotated.is_some_and(|since| now.saturating_duration_since(since) >= QUIET)
        };
        let rotated = self.files.iter().filter(|(_, file)| quiet(file)).map(|(id, _)| *id);
        for id in rotated.collect::<Vec<_>>() {
            let Some(mut cursor) = self.open(id)? else { continue };
            info!(file = printable(cursor.source().path()), "a rotated file is finished");
            loop {
                match self.read_block(id, &mut cursor, Until::End)? {
                    After::More => {}
                    After::AtEnd => break self.finish(id, &cursor)?,
                    After::Renewed => break,
                }
            }
        }
        Ok(())
    }

    /// A file that was not there before, or was read to its end.
    fn newcomer(&mut self, found: &Found, now: Instant) -> Result<(), EndpointError> {
        let Some(follow) = &mut self.follow else { return Ok(()) };
        if found.len == 0 || follow.settled.get(&found.inode) == Some(found) {
            return Ok(());
        }
        let mut opened = match Source::open(&found.path) {
            Ok(opened) if opened.is_undecided() || opened.inode != found.inode => return Ok(()),
            Ok(opened) => opened,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let done = self.progress.done().files();
        let key = inode_key(found.inode);
        for file in done.iter().filter(|file| file.inode() == key) {
            if was_read(file, &opened)? {
                follow.settled.insert(found.inode, found.clone());
                return Ok(());
            }
        }
        match self.is_copy(&done, found, &mut opened)? {
            Copy::No => {}
            Copy::Yes(file) => {
                info!(file = printable(&found.path), "a compressed copy of a file that was read");
                self.progress.add_done(&file);
                let settled = self.follow.as_mut().map(|follow| &mut follow.settled);
                settled.and_then(|settled| settled.insert(found.inode, found.clone()));
                return Ok(());
            }
            Copy::Perhaps => {
                let suspects = self.follow.as_mut().map(|follow| &mut follow.suspects);
                let Some(suspects) = suspects else { return Ok(()) };
                let (seen, since) =
                    suspects.entry(found.inode).or_insert_with(|| (found.clone(), now));
                if seen != found {
                    (*seen, *since) = (found.clone(), now);
                }
                if now.saturating_duration_since(*since) < QUIET {
                    return Ok(());
                }
                // It stays as it is: a file of its own.
                suspects.remove(&found.inode);
            }
        }
        info!(file = printable(&found.path), "a new file");
        let id = self.track(fresh(found.clone()));
        // Held open while it waits, so that it is not lost if it is rotated away itself.
        if let Stage::Behind(_) = self.file(id)?.stage {
            let cursor = self.open(id)?;
            self.file(id)?.cursor = cursor;
        }
        Ok(())
    }

    fn is_copy(
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
        let Ok((len, tail)) = opened.source.read_to_end() else { return Ok(Copy::Perhaps) };
        let Some(end) = opened.source.take_members().pop() else { return Ok(Copy::Perhaps) };
        let name = printable(&found.path);
        let copy = DoneFile::new(&name, found.inode, true, head, end.raw, end.raw_tail);
        if done.iter().any(|file| is_all_of(file, &opened.head, len, &tail)) {
            return Ok(Copy::Yes(copy));
        }
        for file in tracked {
            match &file.cursor {
                // What is not handed over yet is not among the finished ones yet.
                None if file.stage == Stage::Ended => return Ok(Copy::Perhaps),
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

    /// Of the files that were read and are gone only the last ones are remembered.
    fn forget(&mut self, here: &HashMap<Inode, &Found>) {
        let done = self.progress.done();
        if done.len() <= here.len() + 2 * MAX_GONE {
            return;
        }
        let here: HashSet<u64> = here.keys().map(|inode| inode_key(*inode)).collect();
        let files = done.files();
        let gone = files.iter().filter(|file| !here.contains(&file.inode())).count();
        let mut surplus = gone.saturating_sub(MAX_GONE);
        let kept = files.into_iter().filter(|file| {
            let forget = surplus > 0 && !here.contains(&file.inode());
            surplus -= usize::from(forget);
            !forget
        });
        let kept: Done = kept.collect();
        self.progress.set_done(kept);
        if let Some(follow) = &mut self.follow {
            follow.settled.retain(|inode, _| here.contains(&inode_key(*inode)));
            follow.suspects.retain(|inode, _| here.contains(&inode_key(*inode)));
        }
    }
}

/// Whether a plain file is `len` bytes long and ends with `tail`.
fn holds(source: &Source, len: u64, tail: &Tail) -> Result<bool, EndpointError> {
    if source.is_compressed() || source.raw_len()? != len {
        return Ok(false);
    }
    let start = len - tail.bytes().len() as u64;
    Ok(source.bytes_at(start, tail.bytes().len())? == tail.bytes())
}
