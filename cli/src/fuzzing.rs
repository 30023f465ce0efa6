//! What the targets in `fuzz/` call. It is there under `cfg(fuzzing)` only, which cargo-fuzz sets: no other build has
//! an interface.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::command;
use crate::pipeline::{self, PipelineError};

pub use crate::control::fuzzing::{Conversation, TOKEN, converse};

/// The value of every environment variable whose name begins with `S`.
pub const SECRET: &str = "S3cr3t-v4lue";

/// Parses and checks the content of a pipeline file: what `lockgate check` says of it, or why it is refused.
///
/// # Errors
/// The message that people see.
pub fn pipeline_file(content: &[u8]) -> Result<String, String> {
    let parsed = pipeline::parse_bytes(content, Path::new("pipeline.yaml"), &environment);
    let pipeline = parsed.map_err(|error: PipelineError| error.to_string())?;
    let described = command::describe(&pipeline);
    // Everything that shows a pipeline or a part of it.
    let _ = format!("{pipeline:?} {:?}", pipeline.settings());
    pipeline.settings().iter().for_each(|setting| drop(setting.stored().map(str::to_owned)));
    let changes = pipeline.changes_to(&pipeline);
    assert!(changes.is_empty(), "a pipeline differs from itself: {changes:?}");
    Ok(described)
}

fn environment(name: &str) -> Option<OsString> {
    match name.as_bytes().first()? {
        b'S' => Some(SECRET.into()),
        b'N' => Some("7".into()),
        b'D' => Some("3s".into()),
        b'B' => Some(OsString::from_vec(vec![b'x', 0xff])),
        _ => None,
    }
}
