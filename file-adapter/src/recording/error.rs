//! What can go wrong with a recording, sorted by who has to act.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// Why a recording could not be written or read. The message names the file, what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// There is a file already; a recording never takes the place of anything.
    #[error(
        "{} exists: a recording does not replace anything; choose another path or remove the file",
        path.display()
    )]
    Exists {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// What was to be recorded does not fit the format. Nothing of this part is in the recording, which can go
    /// on with the next.
    #[error("{}: {what}", path.display())]
    Refused {
        /// The recording.
        path: PathBuf,
        /// What it was, and what to do.
        what: String,
    },
    /// An earlier call failed; the file is readable up to the last row group that was made durable.
    #[error(
        "{}: writing to this recording failed before, nothing can be added to it; begin another one",
        path.display()
    )]
    Broken {
        /// The recording.
        path: PathBuf,
    },
    /// The disk is full. The recording is readable up to the last row group that was made durable.
    #[error(
        "cannot write to {}: {source}; make room or record to another disk, the file is readable as far as \
         it was complete",
        path.display()
    )]
    StorageFull {
        /// The recording.
        path: PathBuf,
        /// As the system said it.
        source: io::Error,
    },
    /// The disk failed. While writing, the recording is readable up to the last row group that was made durable.
    #[error("cannot {doing} {}: {source}", path.display())]
    Storage {
        /// What was tried: `read`, `write to`, `make durable`.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// As the system said it.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is not a recording: {found}; give a file that lockgate recorded", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// What it is instead, as far as can be told.
        found: String,
    },
    /// The file is a recording of a later version.
    #[error(
        "{} has the recording format {format:?}, this version reads {}; use a newer lockgate",
        path.display(),
        super::FORMAT
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format that it claims.
        format: String,
    },
    /// The recording is not as it was written.
    #[error("{} is damaged: {found}; take another copy of it, or record again", path.display())]
    Damaged {
        /// The recording.
        path: PathBuf,
        /// What was found, and where.
        found: String,
    },
    /// Our own fault.
    #[error("{}: {what}; this is a bug", path.display())]
    Bug {
        /// The recording.
        path: PathBuf,
        /// What happened.
        what: String,
    },
}

impl RecordingError {
    /// A call of the file system that failed.
    pub(super) fn storage(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::StorageFull { path, source },
            ErrorKind::AlreadyExists => Self::Exists { path },
            _ => Self::Storage { doing, path, source },
        }
    }

    pub(super) fn damaged(path: &Path, found: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), found: found.into() }
    }

    /// What the Parquet library said while writing: its own words hide the error of the disk.
    pub(super) fn writing(path: &Path, error: ParquetError) -> Self {
        let what = match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => return Self::storage("write to", path, *source),
                Err(other) => other.to_string(),
            },
            other => other.to_string(),
        };
        Self::Bug { path: path.to_path_buf(), what }
    }
}
