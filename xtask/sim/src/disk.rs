//! A disk that is made of real files in memory and knows what of them would survive: what was written since the last
//! sync may be there, be there in part, or not be there at all when the power is gone.
//!
//! One disk for each thread, because SQLite calls it from wherever the database is used. Not here: the calls of
//! SQLite (`vfs.rs`), and when which fault strikes (`fault.rs`).

mod vfs;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use fastrand::Rng;

pub(crate) use vfs::install;

/// What a disk writes as a whole or not at all, unless the write is torn.
const SECTOR: u64 = 512;

/// What SQLite wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// Write behind the end of the file.
    Extend,
    Overwrite,
    Truncate,
    Delete,
    Sync,
}

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Done,
    Full,
    Failed,
    /// The machine stopped in the middle of it.
    HalfDone,
    /// There is no machine any more.
    Gone,
}

/// What is not on the platter of one file.
#[derive(Debug, Default)]
struct Unsynced {
    /// How long the file is there.
    length: u64,
    /// The sectors written since, with what the platter has of them: nothing behind its end.
    sectors: BTreeMap<u64, Vec<u8>>,
    /// Sectors that a failed sync left behind: later syncs take them for written, and they are not.
    forsaken: BTreeMap<u64, Vec<u8>>,
}

/// What happened to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Struck {
    pub(crate) full: u64,
    pub(crate) failed_syncs: u64,
    pub(crate) failed_writes: u64,
    pub(crate) stopped_inside: u64,
    pub(crate) lost_sectors: u64,
    pub(crate) kept_sectors: u64,
    pub(crate) torn_sectors: u64,
}

impl Struck {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            full: self.full - before.full,
            failed_syncs: self.failed_syncs - before.failed_syncs,
            failed_writes: self.failed_writes - before.failed_writes,
            stopped_inside: self.stopped_inside - before.stopped_inside,
            lost_sectors: self.lost_sectors - before.lost_sectors,
            kept_sectors: self.kept_sectors - before.kept_sectors,
            torn_sectors: self.torn_sectors - before.torn_sectors,
        }
    }
}

/// The disk of this thread.
#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<String, Unsynced>,
    /// Calls that change something, since the beginning of this life.
    calls: u64,
    syncs: u64,
    /// The machine stops inside this call.
    stops_at: Option<u64>,
    /// This sync fails.
    fails_sync: Option<u64>,
    /// This call fails, or the next one that is no sync.
    fails_call: Option<u64>,
    full: bool,
    /// Nothing is written any more.
    gone: bool,
    struck: Struck,
}

thread_local! {
    static DISK: RefCell<Disk> = RefCell::default();
}

fn with<T>(work: impl FnOnce(&mut Disk) -> T) -> T {
    DISK.with(|disk| work(&mut disk.borrow_mut()))
}

/// What will happen to the disk in the next life, by the number of the call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) stops_at: Option<u64>,
    pub(crate) fails_sync: Option<u64>,
    pub(crate) fails_call: Option<u64>,
}

/// A machine with this disk is switched on.
pub(crate) fn begin(fate: Fate) {
    let Fate { stops_at, fails_sync, fails_call } = fate;
    with(|disk| {
        let files = std::mem::take(&mut disk.files);
        let struck = disk.struck;
        *disk = Disk { files, stops_at, fails_sync, fails_call, struck, ..Disk::default() };
    });
}

/// An empty disk takes its place. Gives what happened to the old one.
pub(crate) fn replace() -> Struck {
    with(std::mem::take).struck
}

pub(crate) fn set_full(full: bool) {
    with(|disk| disk.full = full);
}

/// What happened to this disk so far.
pub(crate) fn struck() -> Struck {
    with(|disk| disk.struck)
}

/// From now on nothing is written.
pub(crate) fn stop() {
    with(|disk| disk.gone = true);
}

pub(crate) fn is_gone() -> bool {
    with(|disk| disk.gone)
}

/// The power is gone: of what was not synced, chance decides.
///
/// # Errors
/// If the files cannot be changed.
pub(crate) fn lose_power(rng: &mut Rng) -> io::Result<()> {
    let files = with(|disk| std::mem::take(&mut disk.files));
    let mut struck = Struck::default();
    for (path, unsynced) in files {
        match unsynced.lose(&path, rng, &mut struck) {
            // It was a file of the journal of a database that is complete.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => done?,
        }
    }
    with(|disk| {
        disk.struck.lost_sectors += struck.lost_sectors;
        disk.struck.kept_sectors += struck.kept_sectors;
        disk.struck.torn_sectors += struck.torn_sectors;
    });
    Ok(())
}

impl Unsynced {
    fn lose(mut self, path: &str, rng: &mut Rng, struck: &mut Struck) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        for (sector, old) in std::mem::take(&mut self.forsaken) {
            // What was read back from the system's memory since was never there.
            self.sectors.insert(sector, old);
        }
        if self.sectors.is_empty() && file.metadata()?.len() == self.length {
            return Ok(());
        }
        // How likely it is that a sector has got through: mostly all or nothing is what real disks do.
        let odds = [0.0, 0.5, 0.9][rng.usize(..3)];
        let length = file.metadata()?.len();
        // The end of a file moves back as a whole or not at all.
        let is_cut = length < self.length && rng.bool();
        for (sector, old) in &self.sectors {
            let at = sector * SECTOR;
            let gets_through = if at >= length { is_cut } else { rng.f64() < odds };
            if gets_through {
                struck.kept_sectors += 1;
                continue;
            }
            let mut content = vec![0; SECTOR as usize];
            content[..old.len()].copy_from_slice(old);
            if rng.u8(..) < 16 {
                // The head of the new, the tail of the old.
                let cut = rng.usize(..SECTOR as usize);
                let read = file.read_at(&mut content[..cut], at)?;
                debug_assert!(read <= cut, "no more is read than asked for");
                struck.torn_sectors += 1;
            }
            struck.lost_sectors += 1;
            file.write_all_at(&content, at)?;
        }
        if length > self.length && rng.f64() >= odds || length < self.length && !is_cut {
            file.set_len(self.length)?;
        }
        Ok(())
    }
}

/// A bit of the file at `path` changes, `place` thousandths into it. Whether there is one.
///
/// # Errors
/// If the file cannot be changed.
pub(crate) fn rot(path: &std::path::Path, place: u32, bit: u8) -> io::Result<bool> {
    let length = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if length == 0 {
        return Ok(false);
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let at = length * u64::from(place.min(999)) / 1000;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    byte[0] ^= 1 << (bit % 8);
    file.write_all_at(&byte, at)?;
    Ok(true)
}

impl Disk {
    fn judge(&mut self, call: Call) -> Verdict {
        if self.gone {
            return Verdict::Gone;
        }
        self.calls += 1;
        if self.stops_at == Some(self.calls) {
            self.gone = true;
            self.struck.stopped_inside += 1;
            return Verdict::HalfDone;
        }
        if self.full && call == Call::Extend {
            self.struck.full += 1;
            return Verdict::Full;
        }
        if call != Call::Sync && self.fails_call.take_if(|at| *at <= self.calls).is_some() {
            self.struck.failed_writes += 1;
            return Verdict::Failed;
        }
        if call == Call::Sync {
            self.syncs += 1;
            if self.fails_sync == Some(self.syncs) {
                self.struck.failed_syncs += 1;
                return Verdict::Failed;
            }
        }
        Verdict::Done
    }

    fn unsynced(&mut self, path: &str, length: u64) -> &mut Unsynced {
        if !self.files.contains_key(path) {
            let unsynced = Unsynced { length, ..Unsynced::default() };
            self.files.insert(path.to_owned(), unsynced);
        }
        // It is there.
        self.files.entry(path.to_owned()).or_default()
    }

    /// Before a write: keeps what the platter has of the sectors it touches.
    fn keep(
        &mut self,
        path: &str,
        length: u64,
        at: u64,
        bytes: u64,
        mut read: impl FnMut(u64, &mut [u8]),
    ) {
        let unsynced = self.unsynced(path, length);
        if bytes == 0 {
            return;
        }
        for sector in at / SECTOR..=(at + bytes - 1) / SECTOR {
            let start = sector * SECTOR;
            let on_platter = unsynced.length.saturating_sub(start).min(SECTOR);
            unsynced.sectors.entry(sector).or_insert_with(|| {
                let mut old = vec![0; on_platter as usize];
                if on_platter > 0 {
                    read(start, &mut old);
                }
                old
            });
        }
    }

    fn synced(&mut self, path: &str, length: u64) {
        let unsynced = self.unsynced(path, length);
        unsynced.length = length;
        for sector in std::mem::take(&mut unsynced.sectors).into_keys() {
            // It was written anew.
            unsynced.forsaken.remove(&sector);
        }
    }

    /// The system believes from now on that what was to be written is.
    fn sync_failed(&mut self, path: &str, length: u64) {
        let unsynced = self.unsynced(path, length);
        for (sector, old) in std::mem::take(&mut unsynced.sectors) {
            unsynced.forsaken.entry(sector).or_insert(old);
        }
    }

    fn deleted(&mut self, path: &str) {
        self.files.remove(path);
    }
}
