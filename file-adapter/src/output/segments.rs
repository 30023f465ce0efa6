//! The output that writes a row of files, each of a limited size, for others to take away.
//!
//! **Invariant:** where a segment ends depends on the sequence of records alone, not on how it was cut
//! into steps, nor on checkpoints or crashes.
//!
//! **Invariant:** whatever is to be seen under a segment's final name is complete and covered by a
//! durable checkpoint, and is never touched again; its reader may take it away at any time.
//!
//! The life of a segment, [stage](Stage) by stage:
//!
//! 1. Its first record creates the *partial*, a hidden file, into which its records go uncompressed.
//! 2. When it is complete, its partial is compressed into a second hidden file (if it is to be). The
//!    partial stays: the last checkpoint may claim a part of it.
//! 3. `prepare` makes all of this durable, names included; the position claims it.
//! 4. `checkpointed` gives it its final name and removes the partial of a compressed one.
//!
//! After a crash between 3 and 4, or within 4, `recover` does 4: a hidden file that is still there has
//! not been given its final name, one that is not there has. Everything that came after the position is
//! removed, and the partial that the position claims a part of is truncated to that. Each of these may
//! be done again, so a crash within `recover` needs nothing of its own.
//!
//! On the very first start the first segment is 1, or follows the highest number for which there is
//! already a file of any stage; such files stay as they are. When all input has ended the last segment
//! is complete as it is, and a later run begins the next one; it is not when the pipeline is only
//! stopped, and a later run goes on with it.

mod compression;
mod directory;
mod row;

use std::path::PathBuf;
use std::sync::Arc;

use lockgate_core::{Batch, EndpointError, Output};
use serde::{Deserialize, Serialize};
use serde_json::Value as JsonValue;

use super::data_file::Mark;
use super::disk::{Disk, SystemDisk};
use super::{parse_position, position_json};
use crate::config::{Compression, OutputFormat, SegmentConfig};
use directory::{Directory, Stage};
use row::{End, Row};

/// Writes segments.
pub(super) struct SegmentOutput {
    path: PathBuf,
    format: OutputFormat,
    config: SegmentConfig,
    disk: Arc<dyn Disk>,
    /// Known after `recover`.
    row: Option<Row>,
}

/// What a checkpoint claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// The segment in progress.
    segment: u64,
    /// Records in it.
    records: u64,
    /// Bytes in it.
    length: u64,
    /// The hash of its last bytes.
    tail: String,
    /// All segments before this one have their final names; from here to `segment` they are complete and
    /// wait for them.
    unnamed_from: u64,
    /// Whether those that wait are compressed.
    compressed: bool,
}

impl Position {
    fn is_waiting(&self, number: u64) -> bool {
        (self.unnamed_from..self.segment).contains(&number)
    }

    /// In which stage those that wait are.
    fn waiting_stage(&self) -> Stage {
        if self.compressed { Stage::Compressed } else { Stage::Partial }
    }
}

impl SegmentOutput {
    pub(super) fn new(path: PathBuf, format: OutputFormat, config: SegmentConfig) -> Self {
        Self::on(Arc::new(SystemDisk), path, format, config)
    }

    pub(super) fn on(
        disk: Arc<dyn Disk>,
        path: PathBuf,
        format: OutputFormat,
        config: SegmentConfig,
    ) -> Self {
        Self { path, format, config, disk, row: None }
    }

    fn row(&mut self) -> Result<&mut Row, EndpointError> {
        self.row
            .as_mut()
            .ok_or_else(|| EndpointError::Bug("a segment output was used before `recover`".into()))
    }

    fn begin(&self, directory: Directory) -> Result<Row, EndpointError> {
        directory.create()?;
        let found = directory.list()?.unwrap_or_default();
        let highest = found.iter().map(|(number, _)| *number).max().unwrap_or(0);
        for (number, stage) in found.into_iter().filter(|(_, stage)| *stage != Stage::Final) {
            tracing::warn!(
                file = %directory.path(number, stage).display(),
                "an unfinished segment of an earlier pipeline stays as it is"
            );
        }
        let end = End { segment: highest.saturating_add(1), length: 0, records: 0 };
        Ok(Row::new(directory, self.format, self.config, end))
    }

    fn return_to(&self, directory: Directory, position: &Position) -> Result<Row, EndpointError> {
        let found = directory.list()?.ok_or_else(|| {
            EndpointError::Data(format!(
                "directory {} does not exist but the checkpoint claims segments in it; {REMEDY}",
                directory.dir().display()
            ))
        })?;
        // Refuse before anything is touched.
        refuse_foreign(&directory, position, &found)?;
        verify_partial(&directory, position)?;

        give_final_names(&directory, position, &found)?;
        let end =
            End { segment: position.segment, length: position.length, records: position.records };
        let mut row = Row::new(directory, self.format, self.config, end);
        row.cut_back(end)?;
        row.prepare()?;
        Ok(row)
    }

    fn position(row: &Row) -> Result<JsonValue, EndpointError> {
        let Mark { length, tail } = row.mark()?;
        let End { segment, records, .. } = row.end();
        let compressed = row.config().compression != Compression::None;
        let unnamed_from = row.unnamed_from();
        position_json(&Position { segment, records, length, tail, unnamed_from, compressed })
    }
}

const REMEDY: &str = "put back what lockgate left there, or start anew with another path and another state \
                      directory";

/// A final name that the position says is not given yet can only be ours if the hidden file is gone.
fn refuse_foreign(
    directory: &Directory,
    position: &Position,
    found: &[(u64, Stage)],
) -> Result<(), EndpointError> {
    for (number, _) in found.iter().filter(|(_, stage)| *stage == Stage::Final) {
        let still_waits =
            position.is_waiting(*number) && found.contains(&(*number, position.waiting_stage()));
        if *number >= position.segment || still_waits {
            return Err(directory.foreign(*number));
        }
    }
    Ok(())
}

/// Makes sure that what the position claims of the segment in progress is there.
fn verify_partial(directory: &Directory, position: &Position) -> Result<(), EndpointError> {
    if position.length == 0 {
        return Ok(());
    }
    let partial = directory.open_partial(position.segment)?.ok_or_else(|| {
        EndpointError::Data(format!(
            "{} does not exist but the checkpoint claims {} bytes of it; {REMEDY}",
            directory.path(position.segment, Stage::Partial).display(),
            position.length
        ))
    })?;
    partial.verify(&Mark { length: position.length, tail: position.tail.clone() })
}

/// Does what a crash kept `checkpointed` from doing.
fn give_final_names(
    directory: &Directory,
    position: &Position,
    found: &[(u64, Stage)],
) -> Result<(), EndpointError> {
    let mut there = 0;
    for (number, stage) in found.iter().filter(|(number, _)| position.is_waiting(*number)) {
        if *stage == position.waiting_stage() {
            directory.give_final_name(*number, *stage)?;
            there += 1;
        } else if *stage == Stage::Final {
            there += 1;
        }
    }
    let taken = position.segment.saturating_sub(position.unnamed_from).saturating_sub(there);
    if taken > 0 {
        tracing::warn!(
            directory = %directory.dir().display(),
            segments = taken,
            "segments that were complete at the last checkpoint are not there any more: their reader has \
             taken them away"
        );
    }
    directory.sync()?;
    // The partials of compressed segments; the others have just been renamed.
    for (number, stage) in found.iter().filter(|(number, _)| position.is_waiting(*number)) {
        if *stage != Stage::Final && *stage != position.waiting_stage() {
            directory.remove(*number, *stage)?;
        }
    }
    Ok(())
}

impl Output for SegmentOutput {
    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        let directory = Directory::of(self.disk.clone(), &self.path)?;
        let row = match position {
            None => self.begin(directory)?,
            Some(position) => self.return_to(directory, &parse_position(&self.path, position)?)?,
        };
        Self::position(self.row.insert(row))
    }

    fn write(&mut self, _step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        self.row()?.undone_if_full(|row| row.write(batches))
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        let row = self.row()?;
        row.prepare()?;
        Self::position(row)
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        self.row()?.give_final_names()
    }

    fn finish(&mut self) -> Result<(), EndpointError> {
        self.row()?.undone_if_full(Row::finish)
    }
}
