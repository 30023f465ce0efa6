//! Where the reader stands: what was handed over of each file.
//!
//! Pure. Fed with every item that is handed over; gives the position after them and the ranges that they
//! were. Not here: files that were not begun.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::identity::{Fingerprint, Inode, Tail};
use super::position::{Begun, Done, DoneFile, Mark, Member, Range, Seek};
use super::queue::{End, FileId, Item};

/// What identifies a file.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// The name under which its records are known.
    pub(super) name: String,
    /// Its path now.
    pub(super) path: PathBuf,
    pub(super) inode: Inode,
    pub(super) head: Fingerprint,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    begun: BTreeMap<FileId, Place>,
    done: Done,
}

#[derive(Debug)]
struct Place {
    identity: Identity,
    tail: Tail,
    /// Set if and only if the file is compressed.
    member: Option<Member>,
}

impl Place {
    /// Whether going on from here costs nothing.
    fn is_cheap(&self) -> bool {
        self.member.is_none_or(|member| member.start == self.tail.end())
    }

    fn mark(&self) -> Mark {
        Mark { offset: self.tail.end(), tail: self.tail.fingerprint(), member: self.member }
    }
}

impl Progress {
    pub(super) fn new(done: Done) -> Self {
        Self { begun: BTreeMap::new(), done }
    }

    /// A file goes on from a stored place.
    pub(super) fn resume(
        &mut self,
        file: FileId,
        identity: Identity,
        tail: Tail,
        member: Option<Member>,
    ) {
        self.begun.insert(file, Place { identity, tail, member });
    }

    /// The file has another path now, or more of its first bytes are known.
    pub(super) fn identify(&mut self, file: FileId, identity: &Identity) {
        if let Some(place) = self.begun.get_mut(&file) {
            place.identity = identity.clone();
        }
    }

    /// `item`, of a file with `identity`, is handed over. What was given of the file joins `ranges`.
    pub(super) fn hand_over(
        &mut self,
        item: &Item,
        identity: &Identity,
        ranges: &mut Vec<(FileId, Range)>,
    ) {
        let place = self.begun.entry(item.file).or_insert_with(|| Place {
            identity: identity.clone(),
            tail: Tail::at(0),
            member: item.member_at(0),
        });
        if let Some(batch) = &item.batch {
            extend(ranges, item, place, batch.len() as u64);
            if let (Some(offset), Some((_, bytes))) = (batch.offset(), batch.framed()) {
                place.tail.push(offset, bytes);
            }
        }
        debug_assert!(place.tail.end() <= item.next, "a position went back");
        place.tail.skip_to(item.next);
        place.member = item.member_at(item.next).or(place.member);
        if let Some(end) = item.end
            && let Some(place) = self.begun.remove(&item.file)
        {
            self.end(&place, end);
        }
    }

    fn end(&mut self, place: &Place, end: End) {
        let Identity { name, inode, head, .. } = &place.identity;
        // An empty file that gets content later is a new one.
        if end == End::Done && head.len > 0 {
            // After the last member stands the one that did not come.
            let (raw_len, raw_tail) = match place.member {
                None => (place.tail.end(), place.tail.fingerprint()),
                Some(member) => (member.raw, member.raw_tail),
            };
            let compressed = place.member.is_some();
            self.done.push(&DoneFile::new(name, *inode, compressed, *head, raw_len, raw_tail));
        }
    }

    /// How far the file was handed over, and whether it is compressed.
    pub(super) fn reached(&self, file: FileId) -> Option<(u64, bool)> {
        self.begun.get(&file).map(|place| (place.tail.end(), place.member.is_some()))
    }

    /// The files in which going on from here is not free.
    pub(super) fn midway(&self) -> BTreeSet<FileId> {
        let begun = self.begun.iter();
        begun.filter(|(_, place)| !place.is_cheap()).map(|(file, _)| *file).collect()
    }

    pub(super) fn seek(&self) -> Seek {
        let begun = self.begun.values().map(|place| {
            let Identity { name, path, inode, head } = place.identity.clone();
            Begun { name, path, inode, head, mark: place.mark() }
        });
        Seek { begun: begun.collect(), done: self.done.clone() }
    }

    pub(super) fn done(&self) -> &Done {
        &self.done
    }

    /// A file needs not be read, or not again.
    pub(super) fn add_done(&mut self, file: &DoneFile) {
        self.done.push(file);
    }

    /// A file that was read to its end goes on.
    pub(super) fn remove_done(&mut self, file: &DoneFile) {
        self.done = self.done.files().into_iter().filter(|other| other != file).collect();
    }

    pub(super) fn set_done(&mut self, done: Done) {
        self.done = done;
    }
}

fn extend(ranges: &mut Vec<(FileId, Range)>, item: &Item, place: &Place, records: u64) {
    let start = place.tail.end();
    match ranges.last_mut() {
        Some((file, range)) if *file == item.file && range.end == start => {
            range.end = item.next;
            range.records += records;
        }
        _ => {
            let Identity { name, path, inode, head } = place.identity.clone();
            let (end, member) = (item.next, place.member);
            let range = Range { name, path, inode, head, start, end, records, member };
            ranges.push((item.file, range));
        }
    }
}
