//! The output that writes to standard output.
//!
//! What was written cannot be taken back: after a crash the steps since the last checkpoint appear
//! again. Each step is flushed, so a reader at the other end of a pipe sees whole steps without waiting.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use lockgate_core::{Batch, EndpointError, Output, count};
use serde::{Deserialize, Serialize};
use serde_json::Value as JsonValue;

use super::format;
use super::{BLOCK_BYTES, DIRECT_BYTES, parse_position, position_json};
use crate::config::OutputFormat;

/// Writes to standard output, at least once. Its position is the number of records written.
pub struct StdoutOutput {
    format: OutputFormat,
    out: Box<dyn Write + Send>,
    buffer: Vec<u8>,
    written: Position,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Position {
    records: u64,
}

impl StdoutOutput {
    /// Writes records to the standard output of this process, in `format`.
    pub fn new(format: OutputFormat) -> Self {
        Self::to(Box::new(io::stdout()), format)
    }

    fn to(out: Box<dyn Write + Send>, format: OutputFormat) -> Self {
        Self { format, out, buffer: Vec::new(), written: Position::default() }
    }

    fn write_batches(&mut self, batches: &[Batch]) -> io::Result<()> {
        for batch in batches {
            let (ready, formatted) = format::split(self.format, batch);
            let bytes = ready.framed().map_or(&[][..], |(_, bytes)| bytes);
            self.write_bytes(bytes)?;
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
        self.flush()?;
        self.out.flush()
    }

    /// Large pieces go out from where they lie, small ones are gathered.
    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() < DIRECT_BYTES {
            self.buffer.extend_from_slice(bytes);
            return if self.buffer.len() < BLOCK_BYTES { Ok(()) } else { self.flush() };
        }
        self.flush()?;
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.buffer.shrink_to(2 * BLOCK_BYTES);
        Ok(())
    }
}

impl Output for StdoutOutput {
    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        if let Some(position) = position {
            self.written = parse_position(Path::new("standard output"), position)?;
        }
        position_json(&self.written)
    }

    fn write(&mut self, _step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        self.write_batches(batches).map_err(|source| {
            let what = "cannot write to standard output".into();
            match source.kind() {
                ErrorKind::BrokenPipe => EndpointError::Unavailable { what, source: source.into() },
                // A full disk behind a redirection too: part of the step may be out.
                _ => EndpointError::Storage { what, source: source.into() },
            }
        })?;
        self.written.records += count(batches);
        Ok(())
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        position_json(&self.written)
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};

    use super::super::tests::samples::{lines, rows};
    use super::*;

    fn written(output: &mut StdoutOutput) -> Result<(), EndpointError> {
        let many = "0123456789\n".repeat(DIRECT_BYTES);
        output.write(1, &[lines("a\nb\n"), rows(&[Some(b"c"), None]), lines(many), lines("d")])
    }

    #[test]
    fn a_step_is_out_when_write_returns_and_the_position_counts_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut output =
            StdoutOutput::to(Box::new(File::create(&path).unwrap()), OutputFormat::Lines);
        output.recover(Some(&serde_json::json!({"records": 7}))).unwrap();
        written(&mut output).unwrap();
        let expected = format!("a\nb\nc\n\n{}d\n", "0123456789\n".repeat(DIRECT_BYTES));
        assert!(fs::read_to_string(&path).unwrap() == expected);
        assert_eq!(output.prepare().unwrap()["records"], 7 + 5 + DIRECT_BYTES);
    }

    #[test]
    fn a_reader_that_closed_the_pipe_is_an_unavailable_destination() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut output = StdoutOutput::to(Box::new(writer), OutputFormat::Lines);
        let error = written(&mut output).unwrap_err();
        assert!(matches!(error, EndpointError::Unavailable { .. }), "{error:?}");
    }

    #[test]
    fn a_full_disk_behind_a_redirection_stops_because_a_part_may_be_out() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut output = StdoutOutput::to(Box::new(full), OutputFormat::Json);
        let error = written(&mut output).unwrap_err();
        assert!(matches!(error, EndpointError::Storage { .. }), "{error:?}");
    }

    #[test]
    fn a_position_of_another_output_is_refused() {
        let mut output = StdoutOutput::new(OutputFormat::Lines);
        let error = output.recover(Some(&serde_json::json!({"length": 7}))).unwrap_err();
        insta::assert_snapshot!(error, @r#"standard output: the checkpoint holds {"length":7}, which is no position of this output (missing field `records`); start anew with another state directory"#);
    }
}
