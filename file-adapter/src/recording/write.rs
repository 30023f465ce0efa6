//! Writing a recording: part by part, made durable row group by row group.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockgate_core::{Batch, Framing, PartDigest, Record};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::SchemaDescPtr;
use twox_hash::XxHash3_64;

use super::about::About;
use super::check::Chain;
use super::encode::Encoder;
use super::error::RecordingError;
use super::footer::{MAGIC, NewFooter, Place};
use super::part::Part;
use super::row::{Prefixes, Row};
use super::schema;
use crate::output::disk::{Disk, SystemDisk};

/// When a row group is closed. A part is never split, so one larger than this has a row group of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// What a reader holds decoded and a crash may take: a second of a fast topic. Smaller groups compress
    /// worse, and other programs read them slowly.
    pub(super) max_bytes: u64,
    /// What other programs take for a large row group; bounds what small records cost beside their bytes.
    pub(super) max_rows: u64,
}

const LIMITS: Limits = Limits { max_bytes: 32 * 1024 * 1024, max_rows: 1_000_000 };

/// What a record takes in the columns of numbers, before they are compressed.
const ROW_BYTES: u64 = 64;

/// What a part takes in the index, and more: a part without records counts, too.
const PART_BYTES: u64 = 64;

/// The largest record: a page of a column holds at least one whole record, and its length has 31 bits.
const MAX_RECORD_BYTES: usize = 1 << 30;

/// The index stands in the last footer, which readers take into memory: this is 750 MB of it.
const MAX_PARTS: usize = 50_000_000;

/// Parquet has no unsigned numbers of 64 bits that all its readers know.
const MAX_NUMBER: u64 = i64::MAX as u64;

/// How much a finished recording holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Number of records.
    pub records: u64,
    /// Number of parts.
    pub parts: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// Writes a recording.
///
/// Memory: one row group, compressed, and the index, 32 bytes per part; the batches are only read. Dropped without
/// [`finish`](Self::finish), the file is what a crash would leave: readable up to the last row group.
pub struct RecordingWriter {
    path: PathBuf,
    out: TrackedWrite<Out>,
    schema: SchemaDescPtr,
    properties: WriterPropertiesPtr,
    limits: Limits,
    about: String,
    framing: Option<Framing>,
    chain: Chain,
    /// The row group that is being filled.
    open: Option<OpenGroup>,
    /// All parts; those of the open row group come last.
    parts: Vec<Part>,
    records: u64,
    groups: Vec<RowGroupMetaData>,
    hashes: Vec<u64>,
    /// Where the last inner footer ends.
    footer_end: Option<u64>,
    broken: bool,
}

struct OpenGroup {
    encoder: Encoder,
    parts: usize,
    rows: u64,
    bytes: u64,
}

impl RecordingWriter {
    /// Creates the file, durably, with nothing recorded yet.
    ///
    /// # Errors
    /// [`RecordingError::Exists`] if there is something at `path`; an error of the disk.
    pub fn create(path: &Path, about: &About) -> Result<Self, RecordingError> {
        Self::create_on(Arc::new(SystemDisk), path, about, LIMITS)
    }

    pub(super) fn create_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        about: &About,
        limits: Limits,
    ) -> Result<Self, RecordingError> {
        let bug = |what: String| RecordingError::Bug { path: path.to_path_buf(), what };
        let schema = schema::schema().map_err(|error| bug(error.to_string()))?;
        let properties = schema::properties().map_err(|error| bug(error.to_string()))?;
        let text = serde_json::to_string(about).map_err(|error| bug(error.to_string()))?;
        let file =
            disk.create(path).map_err(|error| RecordingError::storage("create", path, error))?;
        let out = Out { disk, file, length: 0, hash: XxHash3_64::default() };
        let mut writer = Self {
            path: path.to_path_buf(),
            out: TrackedWrite::new(out),
            schema,
            properties,
            limits,
            about: text,
            framing: about.framing,
            chain: Chain::default(),
            open: None,
            parts: Vec::new(),
            records: 0,
            groups: Vec::new(),
            hashes: Vec::new(),
            footer_end: None,
            broken: false,
        };
        writer.guarded(|writer| {
            writer.write(MAGIC)?;
            writer.write_inner_footer(0, 0)?;
            let dir =
                path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let synced = writer.out.inner().disk.sync_dir(dir);
            synced.map_err(|error| RecordingError::storage("make durable", dir, error))
        })?;
        Ok(writer)
    }

    /// Adds what the input gave to `step` (or a block of records, where steps are not known). `digest` is what
    /// was computed when it was delivered; it is stored as it is given.
    ///
    /// # Errors
    /// [`RecordingError::Refused`] if the records do not fit the format, and then nothing of them is recorded;
    /// an error of the disk, after which nothing can be added.
    pub fn part(
        &mut self,
        step: Option<u64>,
        batches: &[Batch],
        digest: PartDigest,
    ) -> Result<(), RecordingError> {
        let size = self.accept(step, batches, digest)?;
        let bytes = size + PART_BYTES + digest.records * ROW_BYTES;
        self.guarded(|writer| {
            let Limits { max_bytes, max_rows } = writer.limits;
            let exceeds = |open: &OpenGroup, bytes, rows| {
                open.bytes + bytes > max_bytes || open.rows + rows > max_rows
            };
            if writer.open.as_ref().is_some_and(|open| exceeds(open, bytes, digest.records)) {
                writer.close_group()?;
            }
            let open = writer.open.get_or_insert_with(|| OpenGroup {
                encoder: Encoder::new(&writer.schema, &writer.properties),
                parts: 0,
                rows: 0,
                bytes: 0,
            });
            let encoded = encode(&mut open.encoder, &mut writer.chain, step, batches);
            encoded.map_err(|error| RecordingError::writing(&writer.path, error))?;
            open.parts += 1;
            open.rows += digest.records;
            open.bytes += bytes;
            let is_full = exceeds(open, 1, 1);
            writer.parts.push(Part { step, digest });
            writer.records += digest.records;
            if is_full { writer.close_group() } else { Ok(()) }
        })
    }

    /// Adds rows with checks of the test's choice as a part that is not what it claims.
    #[cfg(test)]
    pub(super) fn forge(&mut self, part: Part, rows: &[(Row<'_>, u32)]) {
        let mut encoder = Encoder::new(&self.schema, &self.properties);
        for (row, check) in rows {
            encoder.push(part.step, row, *check).unwrap();
        }
        self.open = Some(OpenGroup { encoder, parts: 1, rows: rows.len() as u64, bytes: 0 });
        self.parts.push(part);
        self.close_group().unwrap();
    }

    /// Makes durable what was added so far. This ends a row group: called for each part, it makes a large file.
    ///
    /// # Errors
    /// An error of the disk, after which nothing can be added.
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        self.guarded(Self::close_group)
    }

    /// Completes the file, durably.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn finish(mut self) -> Result<Written, RecordingError> {
        self.guarded(|writer| {
            writer.close_group()?;
            writer.write_footer(Place::Last, 0, 0)?;
            let (records, parts) = (writer.records, writer.parts.len() as u64);
            Ok(Written { records, parts, bytes: writer.out.bytes_written() as u64 })
        })
    }

    /// Runs `change` unless one failed before.
    fn guarded<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, RecordingError>,
    ) -> Result<T, RecordingError> {
        if self.broken {
            return Err(RecordingError::Broken { path: self.path.clone() });
        }
        let result = change(self);
        self.broken = result.is_err();
        result
    }

    /// Makes sure that a part fits the format, and says how many bytes its records have.
    fn accept(
        &self,
        step: Option<u64>,
        batches: &[Batch],
        digest: PartDigest,
    ) -> Result<u64, RecordingError> {
        let refused = |what| Err(RecordingError::Refused { path: self.path.clone(), what });
        if let Some(step) = step.filter(|step| *step > MAX_NUMBER) {
            return refused(format!(
                "step {step} is above {MAX_NUMBER}, the largest that can be recorded"
            ));
        }
        if self.parts.len() >= MAX_PARTS {
            return refused(format!(
                "it has {MAX_PARTS} parts, the most it can have; begin another one"
            ));
        }
        let records = lockgate_core::count(batches);
        if records != digest.records {
            let claimed = digest.records;
            return refused(format!(
                "the digest is one of {claimed} records, but there are {records}"
            ));
        }
        for batch in batches.iter().filter(|batch| !batch.is_empty()) {
            let framing = batch.framed().map(|(framing, _)| framing);
            if framing != self.framing {
                return refused(format!(
                    "records of {} are framed as {framing:?}, but the recording is one of {:?}; record each input \
                     to a file of its own",
                    batch.partition(),
                    self.framing
                ));
            }
            if batch.partition().number.is_some_and(|number| i32::try_from(number).is_err()) {
                return refused(format!(
                    "the partition {} has a number above {}",
                    batch.partition(),
                    i32::MAX
                ));
            }
            if let Some(record) = batch.iter().find(does_not_fit) {
                return refused(format!(
                    "the record at offset {} of {} does not fit: offsets go up to {MAX_NUMBER}, records to \
                     {MAX_RECORD_BYTES} bytes; leave it out",
                    record.offset, record.partition
                ));
            }
        }
        Ok(lockgate_core::size(batches).bytes)
    }

    /// Writes the open row group and its footer, and makes both durable.
    fn close_group(&mut self) -> Result<(), RecordingError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let first = self.groups.len();
        if open.rows > 0 {
            self.out.inner_mut().hash = XxHash3_64::default();
            let written = self.write_columns(open.encoder);
            let group = written.map_err(|error| RecordingError::writing(&self.path, error))?;
            self.groups.push(group);
            self.hashes.push(self.out.inner().hash.finish());
        }
        self.write_inner_footer(first, self.parts.len() - open.parts)
    }

    fn write_columns(&mut self, encoder: Encoder) -> parquet::errors::Result<RowGroupMetaData> {
        let number = i32::try_from(self.groups.len())
            .map_err(|_| parquet::errors::ParquetError::General("too many row groups".into()))?;
        let (schema, properties) = (self.schema.clone(), self.properties.clone());
        let mut group =
            SerializedRowGroupWriter::new(schema, properties, &mut self.out, number, None);
        for (pages, column) in encoder.close()? {
            group.append_column(&pages, column)?;
        }
        let group = group.close()?;
        self.out.flush()?;
        Ok(Arc::unwrap_or_clone(group))
    }

    fn write_inner_footer(&mut self, group: usize, part: usize) -> Result<(), RecordingError> {
        self.write_footer(Place::Inner { before: self.footer_end }, group, part)?;
        self.footer_end = Some(self.out.bytes_written() as u64);
        Ok(())
    }

    /// Writes a footer over the row groups and parts from these on, and makes the file durable.
    fn write_footer(
        &mut self,
        place: Place,
        group: usize,
        part: usize,
    ) -> Result<(), RecordingError> {
        let footer = NewFooter {
            place,
            about: &self.about,
            parts: &self.parts[part..],
            groups: &self.groups[group..],
            hashes: &self.hashes[group..],
        };
        let footer = footer.encode(&self.schema, self.out.bytes_written() as u64);
        let footer = footer.map_err(|error| RecordingError::writing(&self.path, error))?;
        self.write(&footer)?;
        let out = self.out.inner();
        let synced = out.disk.sync(&out.file);
        synced.map_err(|error| RecordingError::storage("make durable", &self.path, error))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordingError> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(|error| RecordingError::storage("write to", &self.path, error))
    }
}

fn does_not_fit(record: &Record<'_>) -> bool {
    let headers =
        record.headers.iter().map(|header| header.name.len() + header.value.map_or(0, <[u8]>::len));
    let fields = record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
    record.end_offset > MAX_NUMBER || fields + headers.sum::<usize>() > MAX_RECORD_BYTES
}

fn encode(
    encoder: &mut Encoder,
    chain: &mut Chain,
    step: Option<u64>,
    batches: &[Batch],
) -> parquet::errors::Result<()> {
    chain.restart();
    for batch in batches {
        let mut prefixes = Prefixes::new(batch.framed());
        let mut headers = Vec::new();
        for record in batch.iter() {
            headers.clear();
            headers.extend(record.headers.iter());
            let row = Row::new(&record, &headers, prefixes.next(&record));
            encoder.push(step, &row, chain.next(&row))?;
        }
    }
    Ok(())
}

/// The file, written at its end, and a hash of what was written since it was set.
struct Out {
    disk: Arc<dyn Disk>,
    file: File,
    length: u64,
    hash: XxHash3_64,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.disk.write_at(&self.file, bytes, self.length)?;
        self.hash.write(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
