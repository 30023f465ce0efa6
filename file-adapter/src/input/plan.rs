//! Which files to read from where: what is on the disk now, held against a stored position.
//!
//! A file that was begun is found again by device, inode and content; failing that, by content alone
//! under another name, also when it was compressed meanwhile. A file that was read to its end is not read
//! again. Everything else is new and read from its beginning. What was begun and cannot be found is an
//! error, or, when following, a counted policy: never a silent choice.

use std::collections::{HashMap, HashSet};

use lockgate_core::EndpointError;

use super::cursor::Applied;
use super::decode::{Opened, Source};
use super::discover::{Found, Missing, Scan};
use super::identity::{Fingerprint, Tail};
use super::position::{Begun, DoneFile, Mark, Seek, inode_key, name_key, printable};

/// A file to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// The name under which its records are known.
    pub(super) name: String,
    pub(super) found: Found,
    /// Of its first bytes; of none if they have not been looked at.
    pub(super) head: Fingerprint,
    /// `None`: from its beginning.
    pub(super) mark: Option<Mark>,
}

/// What is to be read, in order, and what had to be decided for that.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) files: Vec<Planned>,
    pub(super) applied: Vec<Applied>,
}

/// What became of a file that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Vanished,
    Truncated { len: u64 },
    Replaced,
}

/// Makes the plan. `seek` is `None` on the very first start.
///
/// # Errors
/// If a file is missing, or not the one that was begun, and the files are not followed.
pub(super) fn make_plan(
    scan: Scan,
    seek: Option<&Seek>,
    follow: bool,
) -> Result<Plan, EndpointError> {
    if !follow {
        scan.missing.iter().try_for_each(|missing| allow_missing(missing, seek))?;
    }
    let Some(seek) = seek else {
        let files = scan.found.into_iter().map(fresh).collect();
        return Ok(Plan { files, applied: Vec::new() });
    };
    let mut plan = Plan::default();
    let mut found: Vec<Option<Found>> = scan.found.into_iter().map(Some).collect();
    let mut lost = Vec::new();
    for begun in &seek.begun {
        match by_inode(begun, &mut found)? {
            Ok(planned) => plan.files.push(planned),
            Err(change) => lost.push((begun, change)),
        }
    }
    for (begun, change) in lost {
        if let Some(planned) = by_content(begun, &mut found)? {
            plan.files.push(planned);
        } else if begun.mark.offset > 0 {
            if !follow {
                return Err(refuse(begun, change));
            }
            plan.applied.push(accept(begun, change));
        }
    }
    // Reading order is that of the stored position, whatever had to be searched.
    let order: HashMap<_, _> = seek.begun.iter().enumerate().map(|(i, b)| (&b.name, i)).collect();
    plan.files.sort_by_key(|planned| order.get(&planned.name).copied());

    let done = seek.done.files();
    let rest = Finished::new(&done).unread(found.into_iter().flatten().collect())?;
    plan.files.extend(rest.into_iter().map(fresh));
    Ok(plan)
}

/// A file that is read from its beginning.
pub(super) fn fresh(found: Found) -> Planned {
    Planned { name: printable(&found.path), found, head: Fingerprint::of(b""), mark: None }
}

/// After a restart a file may be gone because it was read and removed.
fn allow_missing(missing: &Missing, seek: Option<&Seek>) -> Result<(), EndpointError> {
    let read = seek.is_some_and(|seek| match missing {
        Missing::Match(_) => true,
        Missing::File(path) => {
            let name = printable(path);
            seek.begun.iter().any(|begun| begun.name == name)
                || seek.done.files().iter().any(|file| file.name() == name_key(&name))
        }
    });
    if read { Ok(()) } else { Err(missing.error()) }
}

/// Looks for a begun file where it was on the disk, under whatever name.
fn by_inode(
    begun: &Begun,
    found: &mut [Option<Found>],
) -> Result<Result<Planned, Change>, EndpointError> {
    let same = |slot: &&mut Option<Found>| slot.as_ref().is_some_and(|f| f.inode == begun.inode);
    let Some(slot) = found.iter_mut().find(same) else {
        let taken = found.iter().flatten().any(|found| found.path == begun.path);
        return Ok(Err(if taken { Change::Replaced } else { Change::Vanished }));
    };
    let Some(candidate) = slot else { return Ok(Err(Change::Vanished)) };
    let mut opened = Source::open(&candidate.path)?;
    let change = compare(begun, &mut opened)?;
    Ok(match change {
        Ok(mark) => Ok(planned(begun, slot, &opened, mark)),
        Err(change) => Err(change),
    })
}

/// Takes a file out of those found, to go on in it.
fn planned(begun: &Begun, slot: &mut Option<Found>, opened: &Opened, mark: Mark) -> Planned {
    *slot = None;
    let found =
        Found { path: opened.source.path().to_owned(), inode: opened.inode, ..Found::default() };
    let head = Fingerprint::of(&opened.head);
    Planned { name: begun.name.clone(), found, head, mark: Some(mark) }
}

/// Looks for the content of a begun file: first under its path, then under any other.
fn by_content(
    begun: &Begun,
    found: &mut [Option<Found>],
) -> Result<Option<Planned>, EndpointError> {
    if begun.mark.tail.len == 0 || begun.head.len == 0 {
        return Ok(None);
    }
    let mut slots: Vec<_> = found.iter_mut().filter(|slot| slot.is_some()).collect();
    slots.sort_by_key(|slot| slot.as_ref().is_some_and(|found| found.path != begun.path));
    for slot in slots {
        let Some(candidate) = slot else { continue };
        let mut opened = Source::open(&candidate.path)?;
        if begun.head.begins(&opened.head)
            && let Some(mark) = same_up_to_mark(begun, &mut opened)
        {
            return Ok(Some(planned(begun, slot, &opened, mark)));
        }
    }
    Ok(None)
}

/// Whether `opened` still is the file that was begun: where to go on in it, or what became of it.
pub(super) fn compare(
    begun: &Begun,
    opened: &mut Opened,
) -> Result<Result<Mark, Change>, EndpointError> {
    let Begun { head, mark, .. } = begun;
    let compressed = opened.source.is_compressed();
    if compressed != mark.member.is_some() {
        let same = head.begins(&opened.head);
        let mark = same.then(|| same_up_to_mark(begun, opened)).flatten();
        return Ok(mark.ok_or(Change::Replaced));
    }
    let (place, tail) = match mark.member {
        None => (mark.offset, mark.tail),
        Some(member) => (member.raw, member.raw_tail),
    };
    if opened.len < place {
        return Ok(Err(Change::Truncated { len: opened.len }));
    }
    if !head.begins(&opened.head) {
        return Ok(Err(Change::Replaced));
    }
    let start = place.saturating_sub(tail.len.into());
    let bytes = opened.source.bytes_at(start, tail.len as usize)?;
    Ok(if tail.ends(&bytes) { Ok(*mark) } else { Err(Change::Replaced) })
}

/// Compares the last bytes before the mark, from the decompressed stream. `None` as well if the file
/// cannot be read that far.
fn same_up_to_mark(begun: &Begun, opened: &mut Opened) -> Option<Mark> {
    let offset = begun.mark.offset;
    let tail = opened.source.seek(offset, None).ok()?;
    if !begun.mark.tail.ends(tail.bytes()) {
        return None;
    }
    let mut members = opened.source.take_members().into_iter();
    let member = members.rfind(|member| member.start <= offset);
    Some(Mark { offset, tail: tail.fingerprint(), member })
}

/// The error for a file that was begun and cannot be read on.
pub(super) fn refuse(begun: &Begun, change: Change) -> EndpointError {
    let (name, path) = (&begun.name, printable(&begun.path));
    let now = match change {
        Change::Vanished => "there is no such file now".to_owned(),
        Change::Truncated { len } => format!("it holds {len} bytes now: it was truncated"),
        Change::Replaced => "it holds something else now: it was replaced".to_owned(),
    };
    let known = if *name == path { String::new() } else { format!(" (known as {name})") };
    EndpointError::Data(format!(
        "{path}{known} was read to byte {}, and {now}; the rest of it cannot be read. Put the file back, or \
         start over without the stored state",
        begun.mark.offset
    ))
}

/// The policy for a followed file that was begun and cannot be read on.
pub(super) fn accept(begun: &Begun, change: Change) -> Applied {
    let path = printable(&begun.path);
    let offset = begun.mark.offset;
    match change {
        Change::Vanished => (
            "file_vanished",
            format!(
                "{path} was read to byte {offset} and is gone; whether it held more cannot be known"
            ),
        ),
        Change::Truncated { len } => (
            "file_truncated",
            format!(
                "{path} was read to byte {offset} and holds {len} bytes now; whether more was written \
                 before it was truncated cannot be known. What it holds now is read from its beginning"
            ),
        ),
        Change::Replaced => (
            "file_replaced",
            format!(
                "{path} was read to byte {offset} and holds something else now; whether the old file held \
                 more cannot be known. The new one is read from its beginning"
            ),
        ),
    }
}

/// The files that were read to their end, for looking them up.
pub(super) struct Finished<'a> {
    by_inode: HashMap<u64, Vec<&'a DoneFile>>,
}

impl<'a> Finished<'a> {
    pub(super) fn new(done: &'a [DoneFile]) -> Self {
        let mut by_inode: HashMap<u64, Vec<&DoneFile>> = HashMap::new();
        done.iter().for_each(|file| by_inode.entry(file.inode()).or_default().push(file));
        Self { by_inode }
    }

    /// The files among `found` that were not read.
    fn unread(mut self, found: Vec<Found>) -> Result<Vec<Found>, EndpointError> {
        let mut unread = Vec::new();
        let mut here = HashSet::new();
        for found in found {
            if self.is_done(&found)? {
                here.insert(inode_key(found.inode));
            } else {
                unread.push(found);
            }
        }
        // A plain file that was read and is gone may have been compressed meanwhile.
        self.by_inode.retain(|key, _| !here.contains(key));
        let mut gone = self.by_inode.values().flatten().filter(|file| !file.compressed).peekable();
        if gone.peek().is_none() {
            return Ok(unread);
        }
        let gone: Vec<_> = gone.copied().collect();
        let mut rest = Vec::new();
        for found in unread {
            if !is_compressed_copy(&gone, &found)? {
                rest.push(found);
            }
        }
        Ok(rest)
    }

    /// Whether this very file was read. It may have grown since.
    fn is_done(&self, found: &Found) -> Result<bool, EndpointError> {
        let Some(files) = self.by_inode.get(&inode_key(found.inode)) else { return Ok(false) };
        let opened = Source::open(&found.path)?;
        for file in files {
            if was_read(file, &opened)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether `file`, which was read, had the content of `opened`, or its beginning.
pub(super) fn was_read(file: &DoneFile, opened: &Opened) -> Result<bool, EndpointError> {
    if !file.begins(&opened.head)
        || file.compressed != opened.source.is_compressed()
        || file.raw_len() > opened.len
    {
        return Ok(false);
    }
    let tail_len = file.raw_tail_len();
    let start = file.raw_len().saturating_sub(tail_len as u64);
    Ok(file.ends(&opened.source.bytes_at(start, tail_len)?))
}

/// Whether `found` is one of the plain files `gone`, compressed.
fn is_compressed_copy(gone: &[&DoneFile], found: &Found) -> Result<bool, EndpointError> {
    let mut opened = Source::open(&found.path)?;
    if !opened.source.is_compressed() || !gone.iter().any(|file| file.begins(&opened.head)) {
        return Ok(false);
    }
    // A damaged file is not a copy; the damage is reported when it is read.
    let Ok((len, tail)) = opened.source.read_to_end() else { return Ok(false) };
    Ok(gone.iter().any(|file| is_all_of(file, &opened.head, len, &tail)))
}

/// Whether `file`, which was plain, held a stream of `len` bytes that begins and ends so.
pub(super) fn is_all_of(file: &DoneFile, head: &[u8], len: u64, tail: &Tail) -> bool {
    file.begins(head) && file.raw_len() == len && file.ends(tail.bytes())
}
