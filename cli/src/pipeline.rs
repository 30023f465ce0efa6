//! The pipeline file: from its text to settings that fit together.
//!
//! For everything that can be said about a pipeline before it runs, as one message with file,
//! line, column and key path. The way of a file: [`node`] reads YAML into a tree that knows its
//! places, [`expand`] puts environment variables in, [`decode`] turns the tree into the [`raw`]
//! settings, [`checked`] makes sure that they fit together. Deliberately not for opening anything
//! that the file names, except files that hold secrets.

use std::fs::File;
use std::io::Read;
use std::path::Path;

mod change;
mod checked;
mod choice;
mod class;
mod decode;
mod error;
#[cfg(test)]
mod error_texts;
mod expand;
mod node;
mod options;
#[cfg(test)]
mod options_page;
mod raw;
mod settings;
mod units;

pub(crate) use change::{Change, refusal};
pub(crate) use checked::Log as LogSettings;
pub(crate) use checked::{
    FileInput, FileOutput, Input, InputKind, KafkaInput, KafkaOutput, Mode, OnRefused, Output,
    OutputKind, Pipeline, SEGMENT, StartFrom, Topic, Topics,
};
pub(crate) use choice::{
    Compression, Delivery, GroupProtocol, InputFormat, Kept, LogFormat, LogLevel, OnGone, OnStall,
    OutputFormat, Overlong, PartitionChoice, StartAt, StopAt, TimestampChoice,
};
pub(crate) use class::Class;
pub(crate) use error::PipelineError;
pub(crate) use expand::Environment;
pub(crate) use raw::schema;
pub(crate) use settings::Setting;

use error::{Fault, KeyPath, Position};

/// The largest pipeline file, in bytes: whatever is larger was not written by a person.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads, expands and checks the pipeline file at `path`, with the environment of this process.
///
/// # Errors
/// The file cannot be read, or the first thing in it that is wrong.
pub(crate) fn load(path: &Path) -> Result<Pipeline, PipelineError> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|open| open.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|source| PipelineError::Unreadable { file: file.clone(), source })?;
    // The paths must stay right when the process changes its directory.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let pipeline = check_bytes(&bytes, directory(&path), &|name| std::env::var_os(name));
    pipeline.map_err(|fault| PipelineError::Invalid { file, fault })
}

/// As [`load`] with what the file at `path` holds. The file is not read.
///
/// # Errors
/// The first thing that is wrong.
#[cfg(fuzzing)]
pub(crate) fn parse_bytes(
    bytes: &[u8],
    path: &Path,
    environment: Environment<'_>,
) -> Result<Pipeline, PipelineError> {
    check_bytes(bytes, directory(path), environment)
        .map_err(|fault| PipelineError::Invalid { file: path.display().to_string(), fault })
}

/// Checks the text of the pipeline file at `path`. The file is not read; its path names it in
/// messages, and relative paths in `text` begin at its directory.
///
/// # Errors
/// The first thing that is wrong.
pub(crate) fn parse(
    text: &str,
    path: &Path,
    environment: Environment<'_>,
) -> Result<Pipeline, PipelineError> {
    check(text, directory(path), environment)
        .map_err(|fault| PipelineError::Invalid { file: path.display().to_string(), fault })
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn check_bytes(
    bytes: &[u8],
    directory: &Path,
    environment: Environment<'_>,
) -> Result<Pipeline, Fault> {
    check(text(bytes)?, directory, environment)
}

fn check(text: &str, directory: &Path, environment: Environment<'_>) -> Result<Pipeline, Fault> {
    let mut root = node::read(text)?;
    expand::expand(&mut root, environment)?;
    let raw = decode::decode(&root)?;
    checked::check(raw, &root, directory)
}

/// The file's bytes as text.
fn text(bytes: &[u8]) -> Result<&str, Fault> {
    let fault = |position, message: &str| Fault {
        position,
        path: KeyPath::root(),
        message: message.to_owned(),
    };
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(fault(Position::START, "larger than 1 MiB, which no pipeline file is"));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line_start = valid.rfind('\n').map_or(0, |newline| newline + 1);
        let position = Position {
            line: valid.matches('\n').count() + 1,
            column: valid[line_start..].chars().count() + 1,
        };
        fault(position, "not valid UTF-8; save the file as UTF-8")
    })
}
