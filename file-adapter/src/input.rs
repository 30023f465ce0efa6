//! Files as an input: plain, gzip or zstd, lines or length-delimited records, read once or followed.
//!
//! [`FileInput`] opens a reader with a thread of its own. The parts, from the pure to those that touch the
//! disk: `frame` splits blocks into records, `queue` and `progress` keep what was read and where the reader
//! stands, `position` is what is stored of that; `discover` finds files, `decode` and `cursor` read them,
//! `plan` holds the files against a stored position, `replay` reads journaled steps again, `reader` drives, `gauges`
//! shows people where it stands.

mod arena;
mod cursor;
mod decode;
mod discover;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gauges;
mod hint;
mod identity;
mod live;
mod plan;
mod position;
mod progress;
mod queue;
mod reader;
mod replay;
mod start;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::{EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader};
use serde_json::Value as JsonValue;

use crate::config::FileInputConfig;

/// Files as an input. Keeps every level of fault tolerance.
///
/// A plain file can be gone on with at any record. In a compressed one that costs decompressing from the
/// start of the gzip member or zstd frame: at most at-least-once such places are
/// [`Resume::Barrier`](lockgate_core::Resume::Barrier), at exactly-once the cost is paid.
#[derive(Clone, Debug)]
pub struct FileInput {
    config: FileInputConfig,
    timing: live::Timing,
}

impl FileInput {
    /// An input that reads what `config` says.
    pub fn new(config: FileInputConfig) -> Self {
        Self { config, timing: live::Timing::default() }
    }

    /// For tests: looks every `poll` without being told of a change, takes a file that was rotated away for
    /// finished when it has been quiet for `quiet`, and gives up waiting for what was set aside after
    /// `linger`.
    #[doc(hidden)]
    pub fn timed(mut self, poll: Duration, quiet: Duration, linger: Duration) -> Self {
        self.timing = live::Timing { poll, quiet, linger };
        self
    }
}

impl InputEndpoint for FileInput {
    fn fault_tolerance(&self) -> FaultTolerance {
        FaultTolerance::ExactlyOnce
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        Ok(Box::new(reader::FileReader::open(&self.config, self.timing, level, consumer, resume)?))
    }
}

/// Whether an input with these `paths` would read a file at `path`.
pub(crate) fn would_read(paths: &[String], path: &Path) -> Result<bool, EndpointError> {
    Ok(discover::Patterns::new(paths)?.name(path))
}
