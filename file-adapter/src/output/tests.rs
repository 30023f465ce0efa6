//! File outputs on real files, on a disk that fails where it is told to.

mod append;
mod crash;
pub(crate) mod faulty_disk;
mod full_disk;
pub(super) mod samples;
mod segments;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use lockgate_core::{Batch, EndpointError, Output};
use serde_json::Value as JsonValue;

use super::append::AppendOutput;
use super::disk::Disk;
use super::segments::SegmentOutput;
use crate::config::FileOutputConfig;

/// As [`file_output`](super::file_output), on a disk of the test's.
fn output_on(disk: Arc<dyn Disk>, config: &FileOutputConfig) -> Box<dyn Output> {
    let FileOutputConfig { path, format, segments } = config.clone();
    match segments {
        None => Box::new(AppendOutput::on(disk, path, format)),
        Some(segments) => Box::new(SegmentOutput::on(disk, path, format, segments)),
    }
}

/// A new directory, in memory where there is one: crash tests make thousands of files.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The names and contents of all files in `dir`, hidden ones included.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(dir) else { return BTreeMap::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// What a pipeline keeps in its state directory, which outlives it.
#[derive(Clone, Debug, Default)]
struct Checkpoint {
    position: Option<JsonValue>,
    /// Steps whose output the position covers.
    steps: usize,
    /// Whether the last run got beyond its recovery.
    recovered: bool,
}

/// Runs `steps` through `output` from the last checkpoint to the end, with a checkpoint after every
/// `checkpoint_every` steps and one at the end.
fn run(
    mut output: Box<dyn Output>,
    checkpoint: &mut Checkpoint,
    steps: &[Vec<Batch>],
    checkpoint_every: usize,
) -> Result<(), EndpointError> {
    checkpoint.recovered = false;
    let position = output.recover(checkpoint.position.as_ref())?;
    checkpoint.recovered = true;
    checkpoint.position.get_or_insert(position);
    for (i, step) in steps.iter().enumerate().skip(checkpoint.steps) {
        output.write(i as u64 + 1, step)?;
        if (i + 1) % checkpoint_every == 0 {
            checkpoint.position = Some(output.prepare()?);
            checkpoint.steps = i + 1;
            output.checkpointed()?;
        }
    }
    output.finish()?;
    checkpoint.position = Some(output.prepare()?);
    checkpoint.steps = steps.len();
    output.checkpointed()
}
