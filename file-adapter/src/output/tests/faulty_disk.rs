//! A disk that dies at a given call, is full at a given byte, and forgets what was not synced.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::disk::{Disk, SystemDisk};

/// Clones share their faults. Nothing is really synced: only what would be is recorded.
#[derive(Clone, Default)]
pub(crate) struct FaultyDisk {
    faults: Arc<Mutex<Faults>>,
}

#[derive(Default)]
struct Faults {
    /// The calls that are left before the process is killed.
    calls_left: Option<usize>,
    /// The bytes and new files that are left before the disk is full.
    room: Option<usize>,
    durable: Durable,
}

/// What is there after a loss of power at the worst moment: nothing that was not synced.
#[derive(Default)]
struct Durable {
    names: BTreeMap<PathBuf, u64>,
    /// By inode.
    contents: HashMap<u64, Vec<u8>>,
}

impl FaultyDisk {
    /// From now on only `calls` calls succeed; the one after them is a kill in its middle.
    pub(crate) fn die_after(&self, calls: usize) {
        self.lock().calls_left = Some(calls);
    }

    /// The process is started again.
    pub(crate) fn revive(&self) {
        self.lock().calls_left = None;
    }

    /// From now on there is space for `room` bytes and new files; without it, for everything.
    pub(crate) fn limit(&self, room: Option<usize>) {
        self.lock().room = room;
    }

    /// Puts `dir` into the state that would be found after a loss of power. What was written and not
    /// synced is gone, or zeros if `zeros`, as file systems leave it that store lengths before contents.
    pub(crate) fn lose_power(&self, dir: &Path, zeros: bool) {
        let durable = &mut self.lock().durable;
        let mut lengths = HashMap::new();
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            let found = fs::metadata(&path).unwrap();
            lengths.insert(found.ino(), found.len() as usize);
            fs::remove_file(path).unwrap();
        }
        let mut contents = HashMap::new();
        for (path, inode) in &mut durable.names {
            let mut content = durable.contents.remove(inode).unwrap_or_default();
            contents.insert(path.clone(), content.clone());
            if zeros {
                let length = lengths.get(inode).copied().unwrap_or_default();
                content.resize(length.max(content.len()), 0);
            }
            fs::write(path, content).unwrap();
        }
        durable.contents.clear();
        for (path, inode) in &mut durable.names {
            *inode = fs::metadata(path).unwrap().ino();
            durable.contents.insert(*inode, contents.remove(path).unwrap());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap()
    }

    fn call(&self) -> io::Result<MutexGuard<'_, Faults>> {
        let mut faults = self.lock();
        match &mut faults.calls_left {
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                *left -= 1;
                Ok(faults)
            }
            None => Ok(faults),
        }
    }
}

/// The error of a disk that is really full.
fn disk_is_full() -> io::Error {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap().write_all(b"a");
    full.unwrap_err()
}

impl Faults {
    /// Takes the room that a new name needs.
    fn take_entry(&mut self) -> io::Result<()> {
        match &mut self.room {
            Some(0) => return Err(disk_is_full()),
            Some(room) => *room -= 1,
            None => {}
        }
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        let mut faults = self.call()?;
        faults.take_entry()?;
        let file = SystemDisk.create(path)?;
        // The inode may have been that of a file that is gone.
        let inode = file.metadata()?.ino();
        faults.durable.contents.remove(&inode);
        faults.durable.names.retain(|_, named| *named != inode);
        Ok(file)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        SystemDisk.open(path)
    }

    fn write_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        let mut faults = match self.call() {
            Ok(faults) => faults,
            Err(killed) => {
                // It may have got as far as this, but only once.
                let half = &bytes[..bytes.len() / 2];
                if file.metadata()?.len() == at {
                    file.write_all_at(half, at)?;
                }
                return Err(killed);
            }
        };
        let room = faults.room.unwrap_or(bytes.len()).min(bytes.len());
        if room == 0 {
            return Err(disk_is_full());
        }
        if let Some(left) = &mut faults.room {
            *left -= room;
        }
        file.write_all_at(&bytes[..room], at)?;
        Ok(room)
    }

    fn set_len(&self, file: &File, length: u64) -> io::Result<()> {
        let _faults = self.call()?;
        SystemDisk.set_len(file, length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        let mut faults = self.call()?;
        let found = file.metadata()?;
        let mut content = vec![0; found.len() as usize];
        file.read_exact_at(&mut content, 0)?;
        faults.durable.contents.insert(found.ino(), content);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut faults = self.call()?;
        faults.durable.names.retain(|path, _| path.parent() != Some(dir));
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let found = fs::metadata(&path)?;
            if found.is_file() {
                faults.durable.names.insert(path, found.ino());
            }
        }
        Ok(())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let _faults = self.call()?;
        SystemDisk.create_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut faults = self.call()?;
        // A new entry may take a new block of the directory.
        faults.take_entry()?;
        SystemDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let _faults = self.call()?;
        SystemDisk.remove(path)
    }
}
