//! Takes down what the inputs of a run give: one recording for each, in one directory.
//!
//! Not here: what is in a recording, and how several of one input follow one another (`lockgate-file-adapter`).

use std::path::{Path, PathBuf};

use lockgate_controller::Recorder;
use lockgate_core::{EndpointError, Framing, PartDigest, Step};
use lockgate_file_adapter::recording::{About, RecordingError, RecordingWriter};
use lockgate_file_adapter::tape::{self, Tape};

use crate::exit::Failed;
use crate::pipeline::{InputFormat, InputKind, Pipeline, Topics};

/// Writes recordings into a directory, beside those of earlier runs.
pub(crate) struct DirectoryRecorder {
    inputs: Vec<Recorded>,
}

struct Recorded {
    path: PathBuf,
    about: About,
    /// Begun with the first step.
    writer: Option<RecordingWriter>,
}

impl DirectoryRecorder {
    /// # Errors
    /// If the directory cannot be made or looked into.
    pub(crate) fn new(directory: &Path, pipeline: &Pipeline) -> Result<Self, Failed> {
        std::fs::create_dir_all(directory).map_err(|error| {
            Failed::storage(format!("making the directory {}", directory.display()), &error)
        })?;
        let pieces = tape::pieces(directory)?;
        let mut inputs = Vec::new();
        for input in &pipeline.inputs {
            let last = pieces.get(&input.name).and_then(|pieces| pieces.last());
            let number = last.map_or(1, |(number, _)| number + 1);
            let path = tape::piece_path(directory, &input.name, number);
            inputs.push(Recorded { path, about: about_input(&input.kind)?, writer: None });
        }
        Ok(Self { inputs })
    }
}

/// What a recording of an input says about itself.
///
/// # Errors
/// If it is a recording itself, and cannot be read.
fn about_input(kind: &InputKind) -> Result<About, RecordingError> {
    let (source, origin, framing) = match kind {
        InputKind::File(file) => {
            let framing = match file.format {
                InputFormat::Lines => Framing::Lines,
                InputFormat::LengthDelimited => Framing::Length32,
            };
            ("file", file.paths.join(", "), Some(framing))
        }
        InputKind::Kafka(kafka) => {
            let topics = match &kafka.topics {
                Topics::Names(names) => names.join(", "),
                Topics::Pattern(pattern) => pattern.clone(),
            };
            ("kafka", format!("{topics} at {}", kafka.brokers.join(",")), None)
        }
        InputKind::Recording(recording) => {
            let tape = Tape::find(&recording.path, recording.input.as_deref())?;
            return Ok(tape.about().cloned().unwrap_or_default());
        }
    };
    Ok(About { framing, ..about(source, origin) })
}

/// What a recording that this program makes says about itself.
pub(crate) fn about(source: &str, origin: String) -> About {
    let program = concat!("lockgate ", env!("CARGO_PKG_VERSION")).into();
    About { program, source: source.into(), origin, ..About::default() }
}

impl Recorder for DirectoryRecorder {
    fn record(&mut self, step: &Step, digests: &[PartDigest]) -> Result<(), EndpointError> {
        for (part, digest) in step.parts.iter().zip(digests) {
            let Recorded { path, about, writer } = &mut self.inputs[part.input];
            let writer = match writer {
                Some(writer) => writer,
                none => none.insert(RecordingWriter::create(path, about).map_err(endpoint_error)?),
            };
            writer.part(Some(step.number), &part.batches, *digest).map_err(endpoint_error)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), EndpointError> {
        let mut writers = self.inputs.iter_mut().filter_map(|input| input.writer.as_mut());
        writers.try_for_each(|writer| writer.flush().map_err(endpoint_error))
    }
}

/// Without this a recording is read as one that was cut short: nothing is missing, only its end is not certain.
impl Drop for DirectoryRecorder {
    fn drop(&mut self) {
        for writer in self.inputs.iter_mut().filter_map(|input| input.writer.take()) {
            match writer.finish() {
                // What is broken was told when it broke.
                Ok(_) | Err(RecordingError::Broken { .. }) => {}
                Err(error) => tracing::error!("a recording could not be finished: {error}"),
            }
        }
    }
}

/// Why a run cannot be taken down any further.
fn endpoint_error(error: RecordingError) -> EndpointError {
    let what = "recording what the inputs give".to_owned();
    match error {
        RecordingError::StorageFull { .. } => {
            EndpointError::StorageFull { what, source: error.into() }
        }
        RecordingError::Storage { .. } | RecordingError::Exists { .. } => {
            EndpointError::Storage { what, source: error.into() }
        }
        RecordingError::Bug { .. } => EndpointError::Bug(error.to_string()),
        error => EndpointError::Data(error.to_string()),
    }
}
