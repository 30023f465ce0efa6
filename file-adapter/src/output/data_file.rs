//! A file that is written at its end, cut back to a known length, and recognised again by its last bytes.
//!
//! Not here: which file that is, and what is written into it.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use lockgate_core::EndpointError;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::disk::{Disk, cannot, cannot_open, cannot_sync};

/// How many bytes before a position identify the file.
const TAIL_BYTES: u64 = 4096;

/// A file as a position describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The length in bytes.
    pub(super) length: u64,
    /// xxh3, in hexadecimal, of the last 4096 bytes before `length`, or of all if there are fewer.
    pub(super) tail: String,
}

impl Mark {
    /// A file without content.
    pub(super) fn of_nothing() -> Self {
        Self { length: 0, tail: hash(&[]) }
    }
}

fn hash(tail: &[u8]) -> String {
    format!("{:016x}", XxHash3_64::oneshot(tail))
}

/// An open file and how much of it is ours.
///
/// **Invariant:** between two calls that succeeded, `length` is the file's length.
pub(super) struct DataFile {
    path: PathBuf,
    file: File,
    length: u64,
}

/// Lets others have the file at once: a child process that was just forked may hold a copy of the handle for
/// a moment longer.
impl Drop for DataFile {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl DataFile {
    /// Creates the file; that there is none yet is part of what is promised.
    pub(super) fn create(disk: &dyn Disk, path: PathBuf) -> Result<Self, EndpointError> {
        match disk.create(&path) {
            Ok(file) => {
                // Nobody else can have it yet; from now on nobody else gets it.
                let _ = file.try_lock();
                Ok(Self { path, file, length: 0 })
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(EndpointError::Data(format!(
                    "{} exists although nothing has been written to it: another process writes to the \
                     same place; give each output a path of its own",
                    path.display()
                )))
            }
            Err(error) => Err(cannot_open("create", &path, error)),
        }
    }

    /// Opens the file as it is, `None` if there is none.
    pub(super) fn open(disk: &dyn Disk, path: PathBuf) -> Result<Option<Self>, EndpointError> {
        let found = match fs::metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot_open("open", &path, error)),
        };
        if !found.is_file() {
            let kind = if found.is_dir() { "a directory" } else { "not a regular file" };
            return Err(EndpointError::Configuration(format!(
                "{} is {kind}: a file output needs the path of a regular file, or of one that does not \
                 exist yet",
                path.display()
            )));
        }
        let file = disk.open(&path).map_err(|error| cannot_open("open", &path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(EndpointError::Configuration(format!(
                    "{} is being written by another output or process; give each output a path of its own",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(cannot_open("lock", &path, error)),
        }
        let length = file.metadata().map_err(|error| cannot_open("open", &path, error))?.len();
        Ok(Some(Self { path, file, length }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Makes sure that nobody has cut the file short: what is written next would leave a hole.
    pub(super) fn check_length(&self) -> Result<(), EndpointError> {
        let found =
            self.file.metadata().map_err(|error| cannot("look at", &self.path, error))?.len();
        if found < self.length {
            return Err(EndpointError::Data(format!(
                "{} has {found} bytes where {} were written: it was truncated while lockgate runs; let \
                 nothing truncate or rotate it, or write segments",
                self.path.display(),
                self.length
            )));
        }
        Ok(())
    }

    /// Writes `bytes` at the end.
    pub(super) fn append(&mut self, disk: &dyn Disk, bytes: &[u8]) -> Result<(), EndpointError> {
        self.try_append(disk, bytes).map_err(|error| cannot("write to", &self.path, error))
    }

    /// As [`append`](Self::append), with the error as it came.
    pub(super) fn try_append(&mut self, disk: &dyn Disk, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match disk.write_at(&self.file, bytes, self.length) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.length += written as u64;
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes everything from `length` on.
    pub(super) fn cut(&mut self, disk: &dyn Disk, length: u64) -> Result<(), EndpointError> {
        disk.set_len(&self.file, length).map_err(|error| cannot("truncate", &self.path, error))?;
        self.length = length;
        Ok(())
    }

    /// Makes the file durable, and makes sure that it is still the one that its path names and that
    /// nobody else has written to it: a position must not claim what the next start will not find.
    pub(super) fn sync(&self, disk: &dyn Disk) -> Result<(), EndpointError> {
        disk.sync(&self.file).map_err(|error| cannot_sync(&self.path, error))?;
        let ours = self.file.metadata().map_err(|error| cannot_sync(&self.path, error))?;
        let path = self.path.display();
        match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) != (ours.dev(), ours.ino()) => {
                Err(EndpointError::Data(format!(
                    "{path} was replaced by another file while it was being written; let nothing rename \
                     or recreate it while lockgate runs"
                )))
            }
            Ok(found) if found.len() != self.length => Err(EndpointError::Data(format!(
                "{path} has {} bytes where {} were written: another process changes it; give each output \
                 a path of its own",
                found.len(),
                self.length
            ))),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(EndpointError::Data(format!(
                "{path} was removed while it was being written; let nothing rename or remove it while \
                     lockgate runs"
            ))),
            Err(error) => Err(cannot_sync(&self.path, error)),
        }
    }

    /// The file as it is now.
    pub(super) fn mark(&self) -> Result<Mark, EndpointError> {
        Ok(Mark { length: self.length, tail: self.tail(self.length)? })
    }

    /// Makes sure that this is the file that `mark` describes, perhaps with more after it.
    pub(super) fn verify(&self, mark: &Mark) -> Result<(), EndpointError> {
        const REMEDY: &str = "put back the file as lockgate left it, or start anew with another path and \
                              another state directory";
        let path = self.path.display();
        if self.length < mark.length {
            return Err(EndpointError::Data(format!(
                "{path} has {} bytes but the checkpoint claims {}: it was truncated or replaced; {REMEDY}",
                self.length, mark.length
            )));
        }
        let tail = self.tail(mark.length)?;
        if tail != mark.tail {
            return Err(EndpointError::Data(format!(
                "{path} is not the file that was written: before byte {} its hash is {tail} but the \
                 checkpoint claims {}; {REMEDY}",
                mark.length, mark.tail
            )));
        }
        Ok(())
    }

    /// Fills `buffer` with what stands at `at`.
    pub(super) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, at)
    }

    fn tail(&self, length: u64) -> Result<String, EndpointError> {
        let mut buffer = [0; TAIL_BYTES as usize];
        let tail = &mut buffer[..TAIL_BYTES.min(length) as usize];
        self.read_at(tail, length - tail.len() as u64)
            .map_err(|error| cannot("read back", &self.path, error))?;
        Ok(hash(tail))
    }
}
