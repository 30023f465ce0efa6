//! The file that is read, and its row groups: read whole, and known to be as they were written before any of
//! their bytes is decoded.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bytes::{Buf, Bytes, buf::Reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};
use twox_hash::XxHash3_64;

use super::error::RecordingError;

/// Calls into the Parquet library on bytes that may be anything. It returns errors for most of what can be
/// wrong with them, but asserts and indexes its way past the rest; such a panic is damage to the file, not a
/// fault of ours, and this is the one place where it is taken for that.
pub(super) fn contained<T>(
    decode: impl FnOnce() -> parquet::errors::Result<T>,
) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(text.unwrap_or("it makes no sense").to_owned())
        }
    }
}

/// An open recording.
pub(super) struct Source {
    file: File,
    path: PathBuf,
    length: u64,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, RecordingError> {
        let open = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) =
            open().map_err(|error| RecordingError::storage("open", path, error))?;
        Ok(Self { file, path: path.to_path_buf(), length })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file's length when it was opened.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The bytes of `range`, which lies in the file.
    pub(super) fn read(&self, range: Range<u64>) -> Result<Bytes, RecordingError> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = self.file.read_exact_at(&mut bytes, range.start);
        read.map_err(|error| RecordingError::storage("read", &self.path, error))?;
        Ok(bytes.into())
    }
}

/// A row group of which it is known that all its columns lie in the file.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) metadata: RowGroupMetaData,
    pub(super) rows: u64,
    range: Range<u64>,
    /// The xxh3 of its bytes, unless another program wrote them.
    hash: Option<u64>,
}

impl Group {
    /// `None` if it does not lie before `end`.
    pub(super) fn checked(metadata: RowGroupMetaData, hash: Option<u64>, end: u64) -> Option<Self> {
        let mut range = end..0;
        for column in metadata.columns() {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let start = u64::try_from(start).ok()?;
            let column_end = start.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
            range = range.start.min(start)..range.end.max(column_end);
        }
        let rows = u64::try_from(metadata.num_rows()).ok()?;
        let fits = range.start <= range.end && range.end <= end;
        fits.then_some(Self { metadata, rows, range, hash })
    }

    /// Its bytes, and whether they are as they were written.
    pub(super) fn read(&self, source: &Source) -> Result<(GroupBytes, bool), RecordingError> {
        let bytes = source.read(self.range.clone())?;
        let intact = self.hash.is_none_or(|hash| hash == XxHash3_64::oneshot(&bytes));
        Ok((GroupBytes { start: self.range.start, bytes }, intact))
    }

    /// Whether its bytes can be compared with those that were written.
    pub(super) fn has_hash(&self) -> bool {
        self.hash.is_some()
    }

    /// Where it lies in the file.
    pub(super) fn range(&self) -> Range<u64> {
        self.range.clone()
    }
}

/// The bytes of a row group, addressed by their place in the file.
pub(super) struct GroupBytes {
    start: u64,
    bytes: Bytes,
}

impl GroupBytes {
    fn from(&self, start: u64) -> parquet::errors::Result<Bytes> {
        let at = start.checked_sub(self.start).filter(|at| *at <= self.bytes.len() as u64);
        let at = at
            .ok_or_else(|| ParquetError::EOF(format!("byte {start} lies outside the row group")))?;
        Ok(self.bytes.slice(at as usize..))
    }
}

impl Length for GroupBytes {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for GroupBytes {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let mut bytes = self.from(start)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!(
                "{length} bytes from {start} on exceed the row group"
            )));
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}
