//! Footers, the last one and the inner ones: written, read, and found again in a file that was cut.

use memchr::memmem;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
    ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use super::about::About;
use super::error::RecordingError;
use super::group::{Group, Source, contained};
use super::part::{self, Part};
use super::seal::{self, Seal};
use super::{FORMAT, schema};

/// The bytes at both ends of a Parquet file.
pub(super) const MAGIC: &[u8; 4] = b"PAR1";

/// The length and the magic bytes after a footer.
const TAIL_BYTES: u64 = 8;

/// No footer is larger: this would be 50 million parts.
const MAX_BYTES: u64 = 1 << 30;

const KEY_FORMAT: &str = "lockgate.format";
const KEY_ABOUT: &str = "lockgate.about";
const KEY_PARTS: &str = "lockgate.parts";
const KEY_GROUPS: &str = "lockgate.groups";
const KEY_BEFORE: &str = "lockgate.before";

/// Which of the footers one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It ends a finished file and describes all of it.
    Last,
    /// It describes one row group or none; the inner footer before it ends at `before`.
    Inner { before: Option<u64> },
}

/// What a footer says.
pub(super) struct Footer {
    pub(super) place: Place,
    pub(super) about: About,
    pub(super) parts: Vec<Part>,
    pub(super) groups: Vec<Group>,
}

/// What there is to write into a footer.
pub(super) struct NewFooter<'a> {
    pub(super) place: Place,
    pub(super) about: &'a str,
    pub(super) parts: &'a [Part],
    pub(super) groups: &'a [RowGroupMetaData],
    /// The hash of each group's bytes.
    pub(super) hashes: &'a [u64],
}

impl NewFooter<'_> {
    /// The bytes of the footer and its seal, to be written at `at`.
    pub(super) fn encode(
        &self,
        schema: &SchemaDescPtr,
        at: u64,
    ) -> parquet::errors::Result<Vec<u8>> {
        let hashes: String = self.hashes.iter().map(|hash| format!("{hash:016x}")).collect();
        let mut pairs = vec![
            KeyValue::new(KEY_FORMAT.into(), FORMAT.to_owned()),
            KeyValue::new(KEY_ABOUT.into(), self.about.to_owned()),
            KeyValue::new(KEY_PARTS.into(), part::to_text(self.parts)),
            KeyValue::new(KEY_GROUPS.into(), hashes),
        ];
        if let Place::Inner { before } = self.place {
            let before = before.map_or("none".to_owned(), |before| before.to_string());
            pairs.push(KeyValue::new(KEY_BEFORE.into(), before));
        }
        let rows = self.groups.iter().map(RowGroupMetaData::num_rows).sum();
        let program = concat!("lockgate version ", env!("CARGO_PKG_VERSION")).to_owned();
        let file = FileMetaData::new(1, rows, Some(program), Some(pairs), schema.clone(), None);
        let groups = self.groups.to_vec();
        let metadata = ParquetMetaDataBuilder::new(file).set_row_groups(groups).build();
        let mut bytes = vec![0; seal::BYTES];
        ParquetMetaDataWriter::new(&mut bytes, &metadata).finish()?;
        let footer = &bytes[seal::BYTES..bytes.len() - TAIL_BYTES as usize];
        let seal = seal::of(at, footer);
        bytes[..seal::BYTES].copy_from_slice(&seal);
        Ok(bytes)
    }
}

/// What was found where a footer may end.
pub(super) enum Ending {
    /// No footer, or one that is not as it was written.
    Nothing,
    /// A footer that is none of a recording.
    Foreign,
    /// A footer of ours.
    Footer(Box<Footer>),
}

/// Looks for a footer that ends at `end`. One without a seal counts only where the file was written anew by
/// another program, which keeps the metadata: then `sealed` is false.
pub(super) fn ending_at(
    source: &Source,
    schema: &SchemaDescriptor,
    end: u64,
    sealed: bool,
) -> Result<Ending, RecordingError> {
    let magic_bytes = MAGIC.len() as u64;
    if end < magic_bytes + TAIL_BYTES || end > source.length() {
        return Ok(Ending::Nothing);
    }
    let tail = source.read(end - TAIL_BYTES..end)?;
    let Some((length, magic)) = tail.split_first_chunk::<4>() else { return Ok(Ending::Nothing) };
    let length = u64::from(u32::from_le_bytes(*length));
    let start = (end - TAIL_BYTES).checked_sub(length).filter(|start| *start >= magic_bytes);
    let Some(start) = start.filter(|_| magic == MAGIC && length <= MAX_BYTES) else {
        return Ok(Ending::Nothing);
    };
    let seal_at = start.saturating_sub(seal::BYTES as u64).max(magic_bytes);
    let seal = source.read(seal_at..start)?;
    if sealed && !seal::begins(&seal) {
        return Ok(Ending::Nothing);
    }
    let bytes = source.read(start..start + length)?;
    let seal = seal::check(&seal, seal_at, &bytes);
    let data_end = if seal == Seal::Absent { start } else { seal_at };
    if seal == Seal::Broken || (sealed && seal == Seal::Absent) {
        return Ok(Ending::Nothing);
    }
    match contained(|| ParquetMetaDataReader::decode_metadata(&bytes)) {
        Ok(metadata) => read(source, schema, &metadata, seal, data_end),
        Err(_) if seal == Seal::Absent => Ok(Ending::Nothing),
        Err(found) => Err(RecordingError::damaged(
            source.path(),
            format!("its footer at byte {start} cannot be read ({found})"),
        )),
    }
}

fn read(
    source: &Source,
    schema: &SchemaDescriptor,
    metadata: &ParquetMetaData,
    seal: Seal,
    at: u64,
) -> Result<Ending, RecordingError> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let value = |key: &str| {
        let pair = pairs.into_iter().flatten().find(|pair| pair.key == key);
        pair.and_then(|pair| pair.value.as_deref())
    };
    let Some(format) = value(KEY_FORMAT) else { return Ok(Ending::Foreign) };
    if format != FORMAT {
        let path = source.path().to_path_buf();
        return Err(RecordingError::Format { path, format: format.to_owned() });
    }
    let damaged = |what: &str| {
        RecordingError::damaged(source.path(), format!("in its footer at byte {at}, {what}"))
    };
    let unreadable = |key: &str| damaged(&format!("`{key}` is missing or not readable"));
    let about = value(KEY_ABOUT).and_then(|text| serde_json::from_str(text).ok());
    let about: About = about.ok_or_else(|| unreadable(KEY_ABOUT))?;
    let parts = value(KEY_PARTS).and_then(part::from_text).ok_or_else(|| unreadable(KEY_PARTS))?;
    let place = match value(KEY_BEFORE) {
        None => Place::Last,
        Some("none") => Place::Inner { before: None },
        Some(before) => {
            let before = before.parse().ok().filter(|before| *before <= at);
            Place::Inner { before: Some(before.ok_or_else(|| unreadable(KEY_BEFORE))?) }
        }
    };
    if !schema::alike(schema, metadata.file_metadata().schema_descr()) {
        return Err(damaged("the columns are not those of a recording"));
    }
    // Another program has written other row groups.
    let hashes = match seal {
        Seal::Intact => {
            value(KEY_GROUPS).and_then(hashes).map(|hashes| hashes.into_iter().map(Some).collect())
        }
        _ => Some(vec![None; metadata.num_row_groups()]),
    };
    let hashes: Vec<Option<u64>> = (hashes
        .filter(|hashes| hashes.len() == metadata.num_row_groups()))
    .ok_or_else(|| unreadable(KEY_GROUPS))?;
    let groups = metadata.row_groups().iter().zip(hashes);
    let groups = groups.map(|(group, hash)| Group::checked(group.clone(), hash, at)).collect();
    let groups: Option<Vec<Group>> = groups;
    let groups = groups.ok_or_else(|| damaged("a row group is said to lie outside the file"))?;
    Ok(Ending::Footer(Box::new(Footer { place, about, parts, groups })))
}

fn hashes(text: &str) -> Option<Vec<u64>> {
    let digits = text.as_bytes().chunks(16).map(|hash| std::str::from_utf8(hash).ok());
    digits.map(|digits| u64::from_str_radix(digits?, 16).ok()).collect()
}

/// The last intact inner footer that ends before `end`.
pub(super) fn last_inner(
    source: &Source,
    schema: &SchemaDescriptor,
    mut end: u64,
) -> Result<Option<Footer>, RecordingError> {
    const BLOCK_BYTES: u64 = 1024 * 1024;
    let finder = memmem::FinderRev::new(MAGIC);
    let overlap = MAGIC.len() as u64 - 1;
    while end > overlap {
        let start = end.saturating_sub(BLOCK_BYTES);
        let block = source.read(start..end)?;
        for at in finder.rfind_iter(&block) {
            let found = ending_at(source, schema, start + (at + MAGIC.len()) as u64, true)?;
            if let Ending::Footer(footer) = found {
                return Ok(Some(*footer));
            }
        }
        end = if start == 0 { 0 } else { start + overlap };
    }
    Ok(None)
}
