//! What outputs and recordings ask of the file system, one system call at a time, and how its errors are
//! sorted.
//!
//! Everything that changes something on disk goes through [`Disk`], so that a test can stop after any
//! single call, or run out of space at any byte. Reading does not: it changes nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use lockgate_core::EndpointError;

/// The calls that change something.
pub(crate) trait Disk: Send + Sync {
    /// Creates a file that must not exist, for reading and writing.
    fn create(&self, path: &Path) -> io::Result<File>;

    /// Opens a file that must exist, for reading and writing.
    fn open(&self, path: &Path) -> io::Result<File>;

    /// Writes at a place; may write less, as the system call does.
    fn write_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<usize>;

    /// Cuts a file back.
    fn set_len(&self, file: &File, length: u64) -> io::Result<()>;

    /// Makes a file's content and length durable.
    fn sync(&self, file: &File) -> io::Result<()>;

    /// Makes a directory's names durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Creates one directory.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Gives a file another name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The disk of the operating system.
pub(crate) struct SystemDisk;

impl Disk for SystemDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(path)
    }

    fn write_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.write_at(bytes, at)
    }

    fn set_len(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// Creates `dir` and whatever is missing above it, durably.
pub(super) fn create_dirs(disk: &dyn Disk, dir: &Path) -> Result<(), EndpointError> {
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(Path::new("/"));
    create_dirs(disk, parent)?;
    disk.create_dir(dir).map_err(|error| cannot_open("create directory", dir, error))?;
    sync_dir(disk, parent)
}

/// Makes the names in `dir` durable.
pub(super) fn sync_dir(disk: &dyn Disk, dir: &Path) -> Result<(), EndpointError> {
    disk.sync_dir(dir).map_err(|error| cannot_sync(dir, error))
}

/// A change on disk that failed. A full disk and a full quota are told apart from a broken disk.
pub(super) fn cannot(doing: &str, path: &Path, source: io::Error) -> EndpointError {
    let what = format!("cannot {doing} {}", path.display());
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            EndpointError::StorageFull { what, source: source.into() }
        }
        _ => EndpointError::Storage { what, source: source.into() },
    }
}

/// A file or directory that could not be opened or created: out of reach, unless the disk is full.
pub(super) fn cannot_open(doing: &str, path: &Path, source: io::Error) -> EndpointError {
    match cannot(doing, path, source) {
        EndpointError::Storage { what, source } => EndpointError::Unavailable { what, source },
        full => full,
    }
}

/// A sync that failed is never tried again, not even for lack of space: the system may have dropped what
/// it could not write, and the next sync would then succeed without it.
pub(super) fn cannot_sync(path: &Path, source: io::Error) -> EndpointError {
    let what = format!("cannot make {} durable", path.display());
    EndpointError::Storage { what, source: source.into() }
}

/// What a full disk left half written could not be undone, so the call cannot come again.
pub(super) fn cannot_undo(error: EndpointError) -> EndpointError {
    match error {
        EndpointError::StorageFull { what, source } => EndpointError::Storage { what, source },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_from_a_broken_one() {
        let sorted =
            |errno| cannot("write", Path::new("/out/a"), io::Error::from_raw_os_error(errno));
        let (enospc, edquot, eio) = (28, 122, 5);
        assert!(matches!(sorted(enospc), EndpointError::StorageFull { .. }));
        assert!(matches!(sorted(edquot), EndpointError::StorageFull { .. }));
        let EndpointError::Storage { what, .. } = sorted(eio) else { panic!("not a broken disk") };
        assert_eq!(what, "cannot write /out/a");
        let synced = cannot_sync(Path::new("/out/a"), io::Error::from_raw_os_error(enospc));
        assert!(matches!(synced, EndpointError::Storage { .. }));
    }
}
