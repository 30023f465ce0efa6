//! Where records leave: one file, segments, standard output, or nowhere.
//!
//! | output | what a checkpoint claims | how it goes back |
//! |---|---|---|
//! | [append](append::AppendOutput) | a length of the file | truncates it |
//! | [segments](segments::SegmentOutput) | a length of the segment in progress | truncates it, removes those begun later |
//! | [standard output](StdoutOutput) | nothing | cannot: at least once |
//! | [null](NullOutput) | nothing | nothing to do |

mod append;
mod data_file;
pub(crate) mod disk;
mod format;
mod null;
mod segments;
mod stdout;
#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;

use lockgate_core::{EndpointError, Output};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as JsonValue;

pub use null::NullOutput;
pub use stdout::StdoutOutput;

use crate::config::FileOutputConfig;

/// Formatted records are written in blocks of about this size.
const BLOCK_BYTES: usize = 256 * 1024;

/// Bytes that need no formatting are written from where they lie if there are at least so many; fewer
/// are cheaper to gather than to write one by one.
const DIRECT_BYTES: usize = 16 * 1024;

/// The output that `config` describes: appending to one file, or in segments.
pub fn file_output(config: FileOutputConfig) -> Box<dyn Output> {
    match config.segments {
        None => Box::new(append::AppendOutput::new(config.path, config.format)),
        Some(segments) => {
            Box::new(segments::SegmentOutput::new(config.path, config.format, segments))
        }
    }
}

fn parse_position<T: DeserializeOwned>(
    output: &Path,
    position: &JsonValue,
) -> Result<T, EndpointError> {
    T::deserialize(position).map_err(|error| {
        EndpointError::Data(format!(
            "{}: the checkpoint holds {position}, which is no position of this output ({error}); start \
             anew with another state directory",
            output.display()
        ))
    })
}

fn position_json<T: Serialize>(position: &T) -> Result<JsonValue, EndpointError> {
    serde_json::to_value(position).map_err(|error| EndpointError::Bug(error.to_string()))
}
