//! The output that appends to one file.
//!
//! A position is the file's length and a hash of its last bytes; going back to it is a truncation. The
//! file belongs to one process: whatever else is written to it is noticed at the next checkpoint and
//! refused. Not here: how bytes reach the disk ([`DataFile`]) and how records become bytes
//! ([`format`](super::format)).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockgate_core::{Batch, EndpointError, Output};
use serde_json::Value as JsonValue;

use super::data_file::{DataFile, Mark};
use super::disk::{Disk, SystemDisk, cannot_undo, create_dirs, sync_dir};
use super::format;
use super::{BLOCK_BYTES, DIRECT_BYTES, parse_position, position_json};
use crate::config::OutputFormat;

/// Appends to one file.
pub(super) struct AppendOutput {
    path: PathBuf,
    format: OutputFormat,
    disk: Arc<dyn Disk>,
    /// Open after `recover`.
    file: Option<DataFile>,
    /// Formatted and not yet written; empty between two steps.
    buffer: Vec<u8>,
}

impl AppendOutput {
    pub(super) fn new(path: PathBuf, format: OutputFormat) -> Self {
        Self::on(Arc::new(SystemDisk), path, format)
    }

    pub(super) fn on(disk: Arc<dyn Disk>, path: PathBuf, format: OutputFormat) -> Self {
        Self { path, format, disk, file: None, buffer: Vec::new() }
    }

    /// What is already there stays, and is made durable: the first position claims it.
    fn begin(&self) -> Result<DataFile, EndpointError> {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        create_dirs(&*self.disk, dir)?;
        let file = match DataFile::open(&*self.disk, self.path.clone())? {
            Some(file) => file,
            None => DataFile::create(&*self.disk, self.path.clone())?,
        };
        file.sync(&*self.disk)?;
        sync_dir(&*self.disk, dir)?;
        Ok(file)
    }

    fn return_to(&self, position: &JsonValue) -> Result<DataFile, EndpointError> {
        let mark: Mark = parse_position(&self.path, position)?;
        let file = DataFile::open(&*self.disk, self.path.clone())?;
        let mut file = file.ok_or_else(|| {
            EndpointError::Data(format!(
                "{} does not exist but the checkpoint claims {} bytes of it; put back the file as lockgate \
                 left it, or start anew with another state directory",
                self.path.display(),
                mark.length
            ))
        })?;
        file.verify(&mark)?;
        if file.length() > mark.length {
            let (path, bytes) = (self.path.display(), file.length() - mark.length);
            tracing::info!(
                "{path}: the last {bytes} bytes came after the checkpoint; they are cut off"
            );
        }
        file.cut(&*self.disk, mark.length)?;
        file.sync(&*self.disk)?;
        Ok(file)
    }

    fn write_batches(&mut self, batches: &[Batch]) -> Result<(), EndpointError> {
        for batch in batches {
            let (ready, formatted) = format::split(self.format, batch);
            if let Some((_, bytes)) = ready.framed() {
                self.write_bytes(bytes)?;
            }
            for record in formatted.iter() {
                match format::large_value(self.format, &record) {
                    Some(value) => {
                        self.write_bytes(value)?;
                        self.buffer.push(b'\n');
                    }
                    None => format::append(self.format, &record, &mut self.buffer),
                }
                if self.buffer.len() >= BLOCK_BYTES {
                    self.flush()?;
                }
            }
        }
        self.flush()
    }

    /// Large pieces go to the file from where they lie, small ones are gathered.
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), EndpointError> {
        if bytes.len() < DIRECT_BYTES {
            self.buffer.extend_from_slice(bytes);
            return if self.buffer.len() < BLOCK_BYTES { Ok(()) } else { self.flush() };
        }
        self.flush()?;
        opened(&mut self.file)?.append(&*self.disk, bytes)
    }

    fn flush(&mut self) -> Result<(), EndpointError> {
        opened(&mut self.file)?.append(&*self.disk, &self.buffer)?;
        self.buffer.clear();
        self.buffer.shrink_to(2 * BLOCK_BYTES);
        Ok(())
    }
}

fn opened(file: &mut Option<DataFile>) -> Result<&mut DataFile, EndpointError> {
    file.as_mut()
        .ok_or_else(|| EndpointError::Bug("a file output was used before `recover`".into()))
}

impl Output for AppendOutput {
    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        let file = match position {
            None => self.begin()?,
            Some(position) => self.return_to(position)?,
        };
        let mark = file.mark()?;
        self.file = Some(file);
        position_json(&mark)
    }

    fn write(&mut self, _step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        let file = opened(&mut self.file)?;
        file.check_length()?;
        let before = file.length();
        let written = self.write_batches(batches);
        if let Err(EndpointError::StorageFull { .. }) = written {
            self.buffer.clear();
            opened(&mut self.file)?.cut(&*self.disk, before).map_err(cannot_undo)?;
        }
        written
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        let file = opened(&mut self.file)?;
        file.sync(&*self.disk)?;
        position_json(&file.mark()?)
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        Ok(())
    }
}
