//! Where recorded records go: a recording, or lines as of `kcat -J`, by the file's name.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use lockgate_core::{Batch, PartDigest};
use lockgate_file_adapter::recording::{About, RecordingWriter};

use crate::envelope;
use crate::exit::Failed;

pub(super) enum Writer {
    Recording(Box<RecordingWriter>),
    Lines { path: PathBuf, file: BufWriter<File>, line: Vec<u8>, bytes: u64 },
}

impl Writer {
    pub(super) fn create(path: &Path, about: &About) -> Result<Self, Failed> {
        if !envelope::is_named(path) {
            return Ok(Self::Recording(Box::new(RecordingWriter::create(path, about)?)));
        }
        let file = File::create_new(path).map_err(|error| failed(path, &error))?;
        let (file, line) = (BufWriter::new(file), Vec::new());
        Ok(Self::Lines { path: path.into(), file, line, bytes: 0 })
    }

    pub(super) fn add(&mut self, batches: &[Batch]) -> Result<(), Failed> {
        match self {
            Self::Recording(writer) => Ok(writer.part(None, batches, PartDigest::of(batches))?),
            Self::Lines { path, file, line, bytes } => {
                line.clear();
                for record in batches.iter().flat_map(Batch::iter) {
                    envelope::write(&record, line);
                }
                *bytes += line.len() as u64;
                file.write_all(line).map_err(|error| failed(path, &error))
            }
        }
    }

    /// Makes durable what there is.
    pub(super) fn flush(&mut self) -> Result<(), Failed> {
        match self {
            Self::Recording(writer) => Ok(writer.flush()?),
            Self::Lines { path, file, .. } => {
                let synced = file.flush().and_then(|()| file.get_ref().sync_all());
                synced.map_err(|error| failed(path, &error))
            }
        }
    }

    /// How many bytes are in the file.
    pub(super) fn finish(mut self) -> Result<u64, Failed> {
        self.flush()?;
        match self {
            Self::Recording(writer) => Ok(writer.finish()?.bytes),
            Self::Lines { bytes, .. } => Ok(bytes),
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failed {
    Failed::storage(format!("writing {}", path.display()), error)
}
