//! Checked configuration of file inputs and outputs. What was typed is checked before it gets here.

use std::path::{Component, Path, PathBuf};

use lockgate_core::{EndpointError, Framing};

/// A file input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInputConfig {
    /// Paths or glob patterns, absolute. Read in this order; the matches of one pattern in the order of
    /// their names.
    pub paths: Vec<String>,
    /// How records lie in the files.
    pub framing: Framing,
    /// The largest record, in bytes of its value.
    pub max_record_bytes: usize,
    /// What to do with a larger one.
    pub overlong: Overlong,
    /// Whether to wait for more data instead of ending.
    pub follow: bool,
    /// Where the very first start begins.
    pub start_at: StartAt,
}

impl FileInputConfig {
    /// Whether the input would read a file at `path`, which is absolute and need not exist.
    ///
    /// # Errors
    /// If one of `paths` is not absolute, or no pattern.
    pub fn would_read(&self, path: &Path) -> Result<bool, EndpointError> {
        let mut plain = PathBuf::new();
        for component in path.components() {
            match component {
                Component::ParentDir => {
                    plain.pop();
                }
                Component::CurDir => {}
                component => plain.push(component),
            }
        }
        crate::input::would_read(&self.paths, &plain)
    }
}

/// What is done with a record that is larger than `max_record_bytes`. Truncating and skipping are
/// counted under the policies `overlong_truncated` and `overlong_skipped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlong {
    /// Its first `max_record_bytes` bytes are the record.
    Truncate,
    /// It is left out.
    Skip,
    /// The input fails, naming file and position.
    Stop,
}

/// Where the very first start begins; a resumed input always goes on where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At the beginning of every file.
    Beginning,
    /// At the end of the files that exist then; files that appear later are read from their beginning.
    End,
}

/// A file output: one file, or segments if the path has a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOutputConfig {
    /// Where to write, absolute; for segments with `{segment}` in the file's name.
    pub path: PathBuf,
    /// How records are written.
    pub format: OutputFormat,
    /// Set if and only if the path has a counter.
    pub segments: Option<SegmentConfig>,
}

/// When a segment is complete, and how it is stored. At least one limit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentConfig {
    /// A segment is complete when the next record would take it past this many bytes, uncompressed. A
    /// larger record has a segment of its own.
    pub max_bytes: Option<u64>,
    /// A segment is complete when it has this many records.
    pub max_records: Option<u64>,
    /// How complete segments are compressed.
    pub compression: Compression,
}

/// Compression of complete segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Stored as written.
    None,
    /// gzip, one member.
    Gzip,
    /// zstd, one frame.
    Zstd,
}

/// How a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// The value and a newline; an absent value is an empty line.
    Lines,
    /// One JSON object per line with position, timestamp, key, headers and value.
    Json,
}
