//! Following: what changed among the files since the last look.
//!
//! A look finds every file again by its inode. Growth is read on; a rename changes the path and nothing
//! else; a file that was rotated away or removed is finished through its open descriptor, its unfinished
//! last line included, once it has been quiet for [`Timing::quiet`], and only then is a new file of its name
//! begun ([`rotated`]). What was truncated or replaced begins anew, counted, unless it was copied before
//! ([`copies`]).

mod copies;
mod rotated;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use lockgate_core::EndpointError;
use tracing::{info, warn};

use self::copies::Copy;
use self::rotated::Lingering;
use super::{Live, Rotated, Stage, Timing, change_behind, is_absent};
use crate::input::cursor::{Applied, Cursor};
use crate::input::decode::Source;
use crate::input::discover::{Found, Patterns, beside};
use crate::input::identity::{Fingerprint, HEAD_BYTES, Inode};
use crate::input::plan::{Change, Past, Planned, accept, fresh, past};
use crate::input::position::{Done, Mark, inode_key, printable};
use crate::input::queue::{End, FileId, Item};
use crate::input::reader::Wake;
use crate::input::watch::Watch;

/// A look takes at most this part of the time: 1 / 10.
const REST: u32 = 10;
/// Most idle files that are kept open.
const MAX_OPEN: usize = 64;
/// Most files that are remembered as read although they are gone, once there are twice as many.
const MAX_GONE: usize = 2000;

/// What following needs besides the files themselves.
pub(super) struct Follow {
    timing: Timing,
    watch: Watch,
    due: Instant,
    /// The earliest time for the next look.
    rested: Instant,
    /// The last file of each name.
    pub(super) names: HashMap<String, FileId>,
    /// Open files at their end, the longest idle first.
    idle: VecDeque<FileId>,
    /// Finished files that no pattern finds, the one that has not grown for longest first.
    lingering: VecDeque<Lingering>,
    /// New files that could not be read, as far as that was said.
    unreadable: HashSet<PathBuf>,
    /// Files known to have been read, as they were when that was found out.
    settled: HashMap<Inode, Found>,
    /// New files that may become copies of others.
    suspects: HashMap<Inode, Suspect>,
}

impl Follow {
    pub(super) fn new(patterns: &Patterns, timing: Timing, wakes: Sender<Wake>) -> Self {
        let now = Instant::now();
        Self {
            timing,
            watch: Watch::new(patterns, wakes),
            // Something may have changed between the plan and the watch.
            due: now,
            rested: now,
            names: HashMap::new(),
            idle: VecDeque::new(),
            lingering: VecDeque::new(),
            unreadable: HashSet::new(),
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
        self.due = self.due.min(self.rested);
    }

    fn looked(&mut self, began: Instant, waiting: bool) {
        let now = Instant::now();
        self.rested = now + (now - began) * REST;
        let Timing { poll, quiet, .. } = self.timing;
        self.due = self.rested.max(now + if waiting { poll.min(quiet / 4) } else { poll });
        self.watch.watch_absent();
    }
}

/// A new file that may be a copy but is not complete.
struct Suspect {
    found: Found,
    /// When it is read as it is, unless it changes before.
    until: Instant,
}

impl Live {
    /// Finds out what changed.
    pub(super) fn look_around(&mut self) -> Result<(), EndpointError> {
        let now = Instant::now();
        // What changes from here on may be overlooked, and is reported anew.
        self.follow.iter().for_each(|follow| follow.watch.arrived());
        match self.shared.patterns.scan() {
            Ok(scan) => {
                let (dirs, errors): (Vec<_>, Vec<_>) = scan.unreadable.into_iter().unzip();
                dirs.iter().zip(&errors).for_each(|(dir, error)| self.set_aside(dir, error));
                self.take_in(scan.found, &dirs, now)?;
            }
            // Nothing can be said of files that could not be looked for.
            Err(error) => warn!(%error, "cannot look for files; trying again"),
        }
        let waiting = self.files.values().any(|file| file.rotated.is_some());
        self.follow.iter_mut().for_each(|follow| follow.looked(now, waiting));
        self.announce();
        Ok(())
    }

    /// `unseen` are the places in which nothing could be looked for.
    fn take_in(
        &mut self,
        found: Vec<Found>,
        unseen: &[PathBuf],
        now: Instant,
    ) -> Result<(), EndpointError> {
        let taken: HashMap<&PathBuf, Inode> =
            found.iter().map(|found| (&found.path, found.inode)).collect();
        let here: HashMap<Inode, &Found> = found.iter().map(|found| (found.inode, found)).collect();
        let mut known = HashSet::new();
        let ids: Vec<_> = self.files.keys().copied().collect();
        for id in ids {
            self.find_copy(id, &found)?;
            let file = self.file(id)?;
            let inode = file.identity.inode;
            if file.stage == Stage::Ended {
                known.insert(inode);
            } else if let Some(found) = here.get(&inode) {
                known.insert(inode);
                self.still_here(id, found)?;
            } else if !unseen.iter().any(|dir| file.identity.path.starts_with(dir)) {
                let replaced = taken.contains_key(&file.identity.path);
                self.not_here(id, replaced, now)?;
            }
        }
        if let Some(follow) = &mut self.follow {
            let there = |path: &PathBuf| taken.contains_key(path) || unseen.contains(path);
            follow.unreadable.retain(there);
        }
        for found in &found {
            if !known.contains(&found.inode) {
                self.newcomer(found, now)?;
            }
        }
        self.finish_rotated(&here, now)?;
        self.look_at_lingering(&here, now)?;
        self.forget(&here);
        Ok(())
    }

    /// A file that is where a pattern finds it.
    fn still_here(&mut self, id: FileId, found: &Found) -> Result<(), EndpointError> {
        self.is_at(id, &found.path)?;
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

    fn is_at(&mut self, id: FileId, path: &Path) -> Result<(), EndpointError> {
        let file = self.file(id)?;
        if file.identity.path == path {
            return Ok(());
        }
        let (from, to) = (printable(&file.identity.path), printable(path));
        info!(from, to, "a file was renamed; it is read on");
        file.identity.path = path.to_owned();
        if let Some(cursor) = &mut file.cursor {
            cursor.source_mut().set_path(path.to_owned());
        }
        let identity = file.identity.clone();
        self.shared.gauges.moved(id, path);
        self.progress.identify(id, &identity);
        Ok(())
    }

    /// Whether a file that has grown still holds what was read of it. Its first bytes are looked at again
    /// as long as there were few.
    fn is_same_up_to_here(&mut self, id: FileId) -> Result<bool, EndpointError> {
        let file = self.file(id)?;
        // A file that is not open is compared when it is opened.
        let Some(cursor) = &file.cursor else { return Ok(true) };
        let source = cursor.source();
        if change_behind(source, source.raw_pos(), cursor.tail())?.is_some() {
            return Ok(false);
        }
        if !source.is_compressed() && (file.identity.head.len as usize) < HEAD_BYTES {
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
        if self.is_waited_for_in_vain(id, Instant::now())? {
            // It is finished where it is.
            return Ok(());
        }
        let file = self.file(id)?;
        file.stage = Stage::Reading;
        file.rotated = file.rotated.map(|rotated| Rotated { grew: Instant::now(), ..rotated });
        self.to_read.push_back(id);
        self.follow.iter_mut().for_each(|follow| follow.idle.retain(|other| *other != id));
        Ok(())
    }

    /// A file that no pattern finds any more.
    fn not_here(&mut self, id: FileId, replaced: bool, now: Instant) -> Result<(), EndpointError> {
        let file = self.file(id)?;
        if file.cursor.is_none() {
            let Some(path) = beside(&file.identity.path, file.identity.inode) else {
                return self.lost(id, replaced);
            };
            self.is_at(id, &path)?;
            let cursor = self.open(id, false)?;
            self.file(id)?.cursor = cursor;
        }
        let file = self.file(id)?;
        if replaced {
            file.rotated.get_or_insert(Rotated::at(now));
        }
        let Some(cursor) = &file.cursor else { return Ok(()) };
        let source = cursor.source();
        // Renamed to where no pattern finds it, it may still be written to; see `rest` for how long.
        if source.is_unlinked()? {
            file.rotated.get_or_insert(Rotated::at(now));
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
        // What was read of a plain file is known again, should it come back, or a compressed copy of it.
        let end = if mark.member.is_none() { End::Done } else { End::Dropped };
        self.end(Item::end(id, mark.offset, members, end))
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
                // By now it may have no name to open it by.
                && file.rotated.is_none()
                && let Some(cursor) = file.cursor.take()
            {
                file.mark = Some(cursor.mark()?);
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
        if let Some(suspect) = follow.suspects.get(&found.inode)
            && suspect.found == *found
            && now < suspect.until
        {
            return Ok(());
        }
        let mut opened = match Source::open(&found.path) {
            Ok(opened) if opened.is_undecided() || opened.inode != found.inode => return Ok(()),
            Ok(opened) => opened,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => {
                self.set_aside(&found.path, &error);
                return Ok(());
            }
        };
        let done = self.progress.done().files();
        let key = inode_key(found.inode);
        match past(done.iter().filter(|file| file.inode() == key), &mut opened)? {
            Past::New => {}
            Past::Read { .. } => {
                follow.settled.insert(found.inode, found.clone());
                return Ok(());
            }
            Past::Grown { file, head, mark } => {
                info!(file = printable(&found.path), "a file that was finished has grown");
                self.progress.remove_done(&file);
                self.track(Planned { head, mark: Some(mark), ..fresh(found.clone()) });
                return Ok(());
            }
        }
        let copy = match self.is_beginning_of_another(&opened)? {
            true => Copy::Incomplete,
            false => self.is_copy(&done, found, &mut opened)?,
        };
        match copy {
            Copy::No => {}
            Copy::Yes(file) => {
                info!(file = printable(&found.path), "a compressed copy of a file that was read");
                self.progress.add_done(&file);
                let settled = self.follow.as_mut().map(|follow| &mut follow.settled);
                settled.and_then(|settled| settled.insert(found.inode, found.clone()));
                return Ok(());
            }
            Copy::Later => return Ok(()),
            Copy::Incomplete => {
                let suspects = self.follow.as_mut().map(|follow| &mut follow.suspects);
                let Some(suspects) = suspects else { return Ok(()) };
                let Timing { quiet, linger, .. } = self.shared.timing;
                // A file is truncated right after it was copied.
                let wait = if opened.source.is_compressed() { linger } else { quiet };
                let anew = || Suspect { found: found.clone(), until: now + wait };
                let suspect = suspects.entry(found.inode).or_insert_with(anew);
                if suspect.found != *found {
                    *suspect = anew();
                }
                if now < suspect.until {
                    return Ok(());
                }
                suspects.remove(&found.inode);
                let file = printable(&found.path);
                info!(file, "it began like a copy, but stays as it is; it is read");
            }
        }
        info!(file = printable(&found.path), "a new file");
        let id = self.track(fresh(found.clone()));
        // Held open while it waits, so that it is not lost if it is rotated away itself.
        if let Stage::Behind(_) = self.file(id)?.stage {
            let cursor = self.open(id, false)?;
            self.file(id)?.cursor = cursor;
        }
        Ok(())
    }

    /// A new file or directory that cannot be read is no reason to stop reading the others.
    pub(super) fn set_aside(&mut self, path: &Path, error: &EndpointError) {
        if let Some(follow) = &mut self.follow
            && follow.unreadable.insert(path.to_owned())
        {
            let text = format!("{error}; it is left out for as long as it cannot be read");
            self.shared.report([("file_unreadable", text)]);
        }
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
