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
use super::discover::{Found, Missing, Scan, beside};
use super::identity::{Fingerprint, TAIL_BYTES, Tail};
use super::position::{Begun, Done, DoneFile, Mark, Seek, inode_key, name_key, printable};

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
    /// The files that need not be read.
    pub(super) done: Done,
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
    if let Some((_, error)) = scan.unreadable.into_iter().next() {
        return Err(error);
    }
    if !follow {
        scan.missing.iter().try_for_each(|missing| allow_missing(missing, seek))?;
    }
    let Some(seek) = seek else {
        let files = scan.found.into_iter().map(fresh).collect();
        return Ok(Plan { files, ..Plan::default() });
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
        if let Some(planned) = by_directory(begun)? {
            plan.files.push(planned);
        } else if let Some(planned) = by_content(begun, &mut found)? {
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
    let rest =
        Finished::new(&done, &plan.files, follow).unread(found.into_iter().flatten().collect())?;
    plan.done = match rest.grown.is_empty() {
        true => seek.done.clone(),
        false => done.iter().filter(|file| !rest.grown.contains(file)).copied().collect(),
    };
    plan.files.extend(rest.files);
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

/// Looks for a begun file that no pattern finds where it was, under another name.
fn by_directory(begun: &Begun) -> Result<Option<Planned>, EndpointError> {
    let Some(path) = beside(&begun.path, begun.inode) else { return Ok(None) };
    let mut opened = Source::open(&path)?;
    if opened.inode != begun.inode {
        return Ok(None);
    }
    let mark = compare(begun, &mut opened)?.ok();
    Ok(mark.map(|mark| planned(begun, &mut None, &opened, mark)))
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
struct Finished<'a> {
    by_inode: HashMap<u64, Vec<&'a DoneFile>>,
    /// Those that were begun and are read on.
    begun: &'a [Planned],
    follow: bool,
}

impl<'a> Finished<'a> {
    fn new(done: &'a [DoneFile], begun: &'a [Planned], follow: bool) -> Self {
        let mut by_inode: HashMap<u64, Vec<&DoneFile>> = HashMap::new();
        done.iter().for_each(|file| by_inode.entry(file.inode()).or_default().push(file));
        Self { by_inode, begun, follow }
    }

    /// The files among `found` that were not read, or not to where they end now.
    fn unread(self, found: Vec<Found>) -> Result<Unread, EndpointError> {
        let mut unread = Vec::new();
        let mut here = HashSet::new();
        let mut grown = Vec::new();
        for found in found {
            let key = inode_key(found.inode);
            let past = match self.by_inode.get(&key) {
                Some(files) => past(files.iter().copied(), &mut Source::open(&found.path)?)?,
                None => Past::New,
            };
            match past {
                Past::New => unread.push(fresh(found)),
                Past::Read { file } => {
                    here.insert(file);
                }
                Past::Grown { file, head, mark } => {
                    here.insert(file);
                    grown.push(file);
                    unread.push(Planned { head, mark: Some(mark), ..fresh(found) });
                }
            }
        }
        let gone = |file: &DoneFile| !here.contains(file);
        let mut files = Vec::new();
        for planned in unread {
            if planned.mark.is_some() || !self.is_compressed_copy(&planned.found, gone)? {
                files.push(planned);
            }
        }
        Ok(Unread { files, grown })
    }

    /// Whether `found` is a plain file that was read and is `gone`, compressed meanwhile. What might be such
    /// a copy of any file is left to the first look when following: it need not be complete, and gzip
    /// removes the original last.
    fn is_compressed_copy(
        &self,
        found: &Found,
        gone: impl Fn(&DoneFile) -> bool,
    ) -> Result<bool, EndpointError> {
        let mut opened = Source::open(&found.path)?;
        if !opened.source.is_compressed() {
            return Ok(false);
        }
        let done = self.by_inode.values().flatten();
        let done = done.filter(|file| !file.compressed && file.begins(&opened.head));
        if self.follow {
            let heads = self.begun.iter().map(|begun| begun.head).filter(|head| head.len > 0);
            return Ok(done.count() > 0 || heads.into_iter().any(|head| head.begins(&opened.head)));
        }
        let done: Vec<_> = done.filter(|file| gone(file)).collect();
        if done.is_empty() {
            return Ok(false);
        }
        // A damaged file is not a copy; the damage is reported when it is read.
        let Ok((len, tail)) = opened.source.read_to_end() else { return Ok(false) };
        Ok(done.iter().any(|file| is_all_of(file, &opened.head, len, &tail)))
    }
}

/// Whether a plain file is `len` bytes long and ends with `tail`.
pub(super) fn holds(source: &Source, len: u64, tail: &Tail) -> Result<bool, EndpointError> {
    if source.is_compressed() || source.raw_len()? != len {
        return Ok(false);
    }
    let start = len - tail.bytes().len() as u64;
    Ok(source.bytes_at(start, tail.bytes().len())? == tail.bytes())
}

struct Unread {
    files: Vec<Planned>,
    /// Those that were read and go on.
    grown: Vec<DoneFile>,
}

/// What a file is to those of its inode that were read to their end.
#[derive(Debug)]
pub(super) enum Past {
    New,
    /// It is `file`.
    Read {
        file: DoneFile,
    },
    /// It is `file`, and more was written to it since.
    Grown {
        file: DoneFile,
        head: Fingerprint,
        mark: Mark,
    },
}

/// Holds `opened` against `files` of its inode that were read to their end. Also if its writer had seemed to
/// be gone, what it wrote since is not passed over.
pub(super) fn past<'a>(
    files: impl Iterator<Item = &'a DoneFile>,
    opened: &mut Opened,
) -> Result<Past, EndpointError> {
    let mut longest: Option<&DoneFile> = None;
    for file in files {
        if longest.is_none_or(|longest| longest.raw_len() < file.raw_len())
            && was_read(file, opened)?
        {
            longest = Some(file);
        }
    }
    let Some(file) = longest else { return Ok(Past::New) };
    Ok(match grown(file, opened)? {
        Some(mark) => Past::Grown { file: *file, head: Fingerprint::of(&opened.head), mark },
        None => Past::Read { file: *file },
    })
}

/// Where to go on in a file that was read to its end, if it does.
fn grown(file: &DoneFile, opened: &mut Opened) -> Result<Option<Mark>, EndpointError> {
    let end = file.raw_len();
    if opened.len <= end {
        return Ok(None);
    }
    if !file.compressed {
        let len = end.min(TAIL_BYTES as u64);
        let tail = Fingerprint::of(&opened.source.bytes_at(end - len, len as usize)?);
        return Ok(Some(Mark { offset: end, tail, member: None }));
    }
    // What follows may be garbage. Damage is reported when it is read.
    let _ = opened.source.read_to_end();
    let member = opened.source.take_members().into_iter().find(|member| member.raw == end);
    let more = member.filter(|member| member.start < opened.source.pos());
    let tail = Fingerprint::of(b"");
    Ok(more.map(|member| Mark { offset: member.start, tail, member: Some(member) }))
}

/// Whether `file`, which was read, had the content of `opened`, or its beginning.
fn was_read(file: &DoneFile, opened: &Opened) -> Result<bool, EndpointError> {
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

/// Whether `file`, which was plain, held a stream of `len` bytes that begins and ends so.
pub(super) fn is_all_of(file: &DoneFile, head: &[u8], len: u64, tail: &Tail) -> bool {
    file.begins(head) && file.raw_len() == len && file.ends(tail.bytes())
}
