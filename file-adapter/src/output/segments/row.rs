//! The row of segments while it is being written: records go in, segments are completed, and what a full
//! disk left half done is undone.
//!
//! Not here: positions, and coming back to one.

use lockgate_core::{Batch, EndpointError, Record};

use super::super::data_file::{DataFile, Mark};
use super::super::disk::cannot_undo;
use super::super::{BLOCK_BYTES, DIRECT_BYTES, format};
use super::compression::compress;
use super::directory::{Directory, Stage};
use crate::config::{Compression, OutputFormat, SegmentConfig};

/// How many complete segments are held open at most until they are synced.
const MAX_UNSYNCED: usize = 32;

/// Where the next record goes. A segment without records has no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The segment in progress.
    pub(super) segment: u64,
    /// Bytes in it.
    pub(super) length: u64,
    /// Records in it.
    pub(super) records: u64,
}

/// The row.
///
/// **Invariant:** `unnamed_from <= named <= prepared <= end.segment`.
pub(super) struct Row {
    directory: Directory,
    format: OutputFormat,
    config: SegmentConfig,
    end: End,
    /// The file of the segment in progress, if anything of it has been written.
    partial: Option<DataFile>,
    /// What follows `partial`, formatted and not yet written; empty between two steps.
    buffer: Vec<u8>,
    /// Complete segments that have not been synced, by number.
    unsynced: Vec<(u64, DataFile)>,
    /// All segments before this one have their final names.
    unnamed_from: u64,
    /// The next one to be given its final name: ahead of `unnamed_from` while that is under way.
    named: u64,
    /// All segments before this one have been made durable for a checkpoint.
    prepared: u64,
}

impl Row {
    /// A row that goes on at `end`; all segments before have their final names.
    pub(super) fn new(
        directory: Directory,
        format: OutputFormat,
        config: SegmentConfig,
        end: End,
    ) -> Self {
        Self {
            directory,
            format,
            config,
            end,
            partial: None,
            buffer: Vec::new(),
            unsynced: Vec::new(),
            unnamed_from: end.segment,
            named: end.segment,
            prepared: end.segment,
        }
    }

    pub(super) fn end(&self) -> End {
        self.end
    }

    pub(super) fn config(&self) -> SegmentConfig {
        self.config
    }

    pub(super) fn unnamed_from(&self) -> u64 {
        self.unnamed_from
    }

    /// The segment in progress as it is now.
    pub(super) fn mark(&self) -> Result<Mark, EndpointError> {
        self.partial.as_ref().map_or_else(|| Ok(Mark::of_nothing()), DataFile::mark)
    }

    /// Does `change`, or nothing at all if the disk is full.
    pub(super) fn undone_if_full(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<(), EndpointError>,
    ) -> Result<(), EndpointError> {
        let before = self.end;
        let changed = change(self);
        if let Err(EndpointError::StorageFull { .. }) = changed {
            self.cut_back(before).map_err(cannot_undo)?;
        }
        changed
    }

    /// Removes everything that was written after `end`, whether or not this row knows of it.
    pub(super) fn cut_back(&mut self, end: End) -> Result<(), EndpointError> {
        self.buffer.clear();
        self.partial = None;
        self.unsynced.retain(|(number, _)| *number < end.segment);
        for (number, stage) in self.directory.list()?.unwrap_or_default() {
            let is_kept = match stage {
                Stage::Partial => number < end.segment || number == end.segment && end.length > 0,
                Stage::Compressed => number < end.segment,
                Stage::Final => true,
            };
            if !is_kept {
                self.directory.remove(number, stage)?;
            }
        }
        if end.length > 0 {
            let path = || self.directory.path(end.segment, Stage::Partial);
            let partial = self.directory.open_partial(end.segment)?;
            let mut partial = partial.ok_or_else(|| {
                EndpointError::Data(format!("{} was removed while in use", path().display()))
            })?;
            partial.cut(self.directory.disk(), end.length)?;
            self.partial = Some(partial);
        }
        self.end = end;
        Ok(())
    }

    pub(super) fn write(&mut self, batches: &[Batch]) -> Result<(), EndpointError> {
        for batch in batches {
            let (mut ready, formatted) = format::split(self.format, batch);
            while !ready.is_empty() {
                match self.fitting(&ready) {
                    0 => self.close()?,
                    fitting => self.write_ready(&ready.take_front(fitting))?,
                }
            }
            for record in formatted.iter() {
                self.write_record(&record)?;
            }
        }
        self.flush()
    }

    /// How many records of `ready` go into the segment in progress before it is complete. One without
    /// records takes at least one, however large.
    fn fitting(&self, ready: &Batch) -> usize {
        let SegmentConfig { max_bytes, max_records, .. } = self.config;
        let by_bytes = max_bytes
            .map_or(ready.len(), |max| ready.records_within(max.saturating_sub(self.end.length)));
        let by_records = max_records.map_or(ready.len(), |max| {
            usize::try_from(max.saturating_sub(self.end.records)).unwrap_or(usize::MAX)
        });
        let at_least = usize::from(self.end.records == 0);
        by_bytes.min(by_records).clamp(at_least, ready.len())
    }

    fn write_ready(&mut self, front: &Batch) -> Result<(), EndpointError> {
        let bytes = front.framed().map_or(&[][..], |(_, bytes)| bytes);
        self.write_bytes(bytes)?;
        self.advance(front.len() as u64, bytes.len() as u64)
    }

    /// Large pieces go to the file from where they lie, small ones are gathered.
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), EndpointError> {
        if bytes.len() < DIRECT_BYTES {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        self.append(bytes)
    }

    fn write_record(&mut self, record: &Record<'_>) -> Result<(), EndpointError> {
        if let Some(value) = format::large_value(self.format, record) {
            let length = value.len() as u64 + 1;
            if self.end.records > 0 && !self.has_room(length) {
                self.close()?;
            }
            self.write_bytes(value)?;
            self.buffer.push(b'\n');
            return self.advance(1, length);
        }
        let start = self.buffer.len();
        format::append(self.format, record, &mut self.buffer);
        let length = (self.buffer.len() - start) as u64;
        if self.end.records > 0 && !self.has_room(length) {
            let formatted = self.buffer.split_off(start);
            self.close()?;
            self.buffer.extend_from_slice(&formatted);
        }
        self.advance(1, length)
    }

    fn has_room(&self, length: u64) -> bool {
        let SegmentConfig { max_bytes, max_records, .. } = self.config;
        max_bytes.is_none_or(|max| self.end.length + length <= max)
            && max_records.is_none_or(|max| self.end.records < max)
    }

    /// Counts what has been added. A segment that can take no further record is complete at once.
    fn advance(&mut self, records: u64, length: u64) -> Result<(), EndpointError> {
        self.end.records += records;
        self.end.length += length;
        if !self.has_room(1) {
            self.close()
        } else if self.buffer.len() >= BLOCK_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), EndpointError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let appended = self.append(&buffer);
        buffer.clear();
        buffer.shrink_to(2 * BLOCK_BYTES);
        self.buffer = buffer;
        appended
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), EndpointError> {
        let disk = self.directory.disk();
        let partial = match &mut self.partial {
            Some(partial) => partial,
            none => {
                let path = self.directory.path(self.end.segment, Stage::Partial);
                none.insert(DataFile::create(disk, path)?)
            }
        };
        partial.append(disk, bytes)
    }

    /// Completes the segment in progress and begins the next one.
    fn close(&mut self) -> Result<(), EndpointError> {
        self.flush()?;
        let number = self.end.segment;
        let Some(partial) = self.partial.take() else {
            return Err(EndpointError::Bug(format!("segment {number} was closed without records")));
        };
        let complete = match self.config.compression {
            Compression::None => partial,
            compression => {
                let path = self.directory.path(number, Stage::Compressed);
                compress(self.directory.disk(), &partial, path, compression)?
            }
        };
        self.unsynced.push((number, complete));
        self.end = End { segment: number + 1, length: 0, records: 0 };
        if self.unsynced.len() >= MAX_UNSYNCED { self.sync_complete() } else { Ok(()) }
    }

    /// Completes the segment in progress as it is, if it has any record.
    pub(super) fn finish(&mut self) -> Result<(), EndpointError> {
        if self.end.records > 0 { self.close() } else { Ok(()) }
    }

    fn sync_complete(&mut self) -> Result<(), EndpointError> {
        for (_, complete) in self.unsynced.drain(..) {
            complete.sync(self.directory.disk())?;
        }
        Ok(())
    }

    /// Makes everything durable, names included.
    pub(super) fn prepare(&mut self) -> Result<(), EndpointError> {
        self.sync_complete()?;
        if let Some(partial) = &self.partial {
            partial.sync(self.directory.disk())?;
        }
        self.directory.sync()?;
        self.prepared = self.end.segment;
        Ok(())
    }

    /// Shows all segments that were complete at the last `prepare` under their final names.
    pub(super) fn give_final_names(&mut self) -> Result<(), EndpointError> {
        if self.unnamed_from == self.prepared {
            return Ok(());
        }
        let is_compressed = self.config.compression != Compression::None;
        let stage = if is_compressed { Stage::Compressed } else { Stage::Partial };
        // A full disk may stop this anywhere, and the same call comes again.
        while self.named < self.prepared {
            self.directory.give_final_name(self.named, stage)?;
            self.named += 1;
        }
        self.directory.sync()?;
        for number in (self.unnamed_from..self.prepared).filter(|_| is_compressed) {
            self.directory.remove(number, Stage::Partial)?;
        }
        self.unnamed_from = self.prepared;
        Ok(())
    }
}
