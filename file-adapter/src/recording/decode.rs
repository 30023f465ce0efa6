//! Rows of a recording in their order, decoded a few thousand at a time.

use std::cell::Cell;
use std::sync::Arc;

use lockgate_core::{Header, Timestamp};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::SerializedPageReader;

use super::error::RecordingError;
use super::group::{Group, GroupBytes, Source, contained};
use super::row::{Row, kind_named};
use super::schema::{HEADER_HAS_VALUE, HEADER_PRESENT, leaf};

/// How many rows are decoded at once: enough to make the cost of a call small, few enough for the cache.
const CHUNK_ROWS: usize = 1024;

/// A row, and what the recording says about it.
pub(super) struct Stored<'a> {
    pub(super) row: Row<'a>,
    /// Only if they are asked for.
    pub(super) step: Option<u64>,
    pub(super) check: u32,
}

/// How a recording is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// For the records. A row group that is not as it was written is an error.
    Replay,
    /// To find the record that is not as it was delivered: steps and checks are decoded, too, and a row group
    /// that is not as it was written is noted and decoded as far as it goes.
    Verify,
}

/// The rows of some row groups.
pub(super) struct Rows {
    source: Arc<Source>,
    groups: Arc<[Group]>,
    mode: Mode,
    next_group: usize,
    columns: Option<Columns>,
    /// The number of the first row of the current row group.
    first_row: u64,
    /// The first row group that is not as it was written.
    altered: Option<RecordingError>,
}

impl Rows {
    /// The rows from the row group `next_group` on, which begins with the row `first_row`.
    pub(super) fn new(
        source: Arc<Source>,
        groups: Arc<[Group]>,
        mode: Mode,
        next_group: usize,
        first_row: u64,
    ) -> Self {
        Self { source, groups, mode, next_group, columns: None, first_row, altered: None }
    }

    /// Leaves out `rows` rows of the first row group.
    pub(super) fn skip(&mut self, rows: u64) -> std::result::Result<(), RecordingError> {
        if rows > 0 && self.open_group()? {
            let columns = self.columns.as_mut();
            let skipped = contained(|| columns.map_or(Ok(()), |columns| columns.skip(rows)));
            skipped.map_err(|found| self.damaged(&found))?;
        }
        Ok(())
    }

    /// Gives the next rows to `take`, at least one and at most `max`, until it returns false. Returns how many
    /// it took, 0 if there are no more.
    pub(super) fn advance(
        &mut self,
        max: u64,
        mut take: impl FnMut(&Stored<'_>) -> bool,
    ) -> std::result::Result<u64, RecordingError> {
        if !self.open_group()? {
            return Ok(0);
        }
        let Some(columns) = &mut self.columns else { return Ok(0) };
        if columns.chunk_left == 0
            && let Err(found) = contained(|| columns.fill())
        {
            return Err(self.damaged(&found));
        }
        let rows = max.min(columns.chunk_left as u64) as usize;
        Ok(columns.give(rows, &mut take) as u64)
    }

    /// The first row group so far that is not as it was written.
    pub(super) fn take_altered(&mut self) -> Option<RecordingError> {
        self.altered.take()
    }

    /// Goes on to the next row group where the current one is at its end. False if there is none.
    fn open_group(&mut self) -> std::result::Result<bool, RecordingError> {
        while self
            .columns
            .as_ref()
            .is_none_or(|columns| columns.chunk_left + columns.rows_left == 0)
        {
            if self.columns.take().is_some() {
                self.first_row += self.groups[self.next_group - 1].rows;
            }
            let Some(group) = self.groups.get(self.next_group) else { return Ok(false) };
            self.next_group += 1;
            let (bytes, intact) = group.read(&self.source)?;
            if !intact {
                let altered = self.damaged("its bytes are not those that were written");
                if self.mode == Mode::Replay {
                    return Err(altered);
                }
                self.altered.get_or_insert(altered);
            }
            let columns = contained(|| Columns::new(Arc::new(bytes), group, self.mode));
            self.columns = Some(columns.map_err(|found| self.damaged(&found))?);
        }
        Ok(true)
    }

    /// The current row group is damaged.
    fn damaged(&self, found: &str) -> RecordingError {
        let number = self.next_group - 1;
        let group = &self.groups[number];
        let (bytes, rows) = (group.range(), self.first_row..self.first_row + group.rows);
        RecordingError::damaged(
            self.source.path(),
            format!(
                "row group {number} (rows {} to {}, bytes {} to {}): {found}",
                rows.start, rows.end, bytes.start, bytes.end
            ),
        )
    }
}

/// The columns of one row group, and the rows of it that are decoded.
struct Columns {
    step: Option<Values<Int64Type>>,
    source: Values<ByteArrayType>,
    partition: Values<Int32Type>,
    offset: Values<Int64Type>,
    end_offset: Values<Int64Type>,
    declared_length: Values<Int64Type>,
    timestamp: Values<Int64Type>,
    timestamp_kind: Values<ByteArrayType>,
    leader_epoch: Values<Int32Type>,
    key: Values<ByteArrayType>,
    value: Values<ByteArrayType>,
    header_name: Values<ByteArrayType>,
    header_value: Values<ByteArrayType>,
    check: Option<Values<Int32Type>>,
    /// Rows that are decoded and were not given yet.
    chunk_left: usize,
    /// Rows that are not decoded yet.
    rows_left: usize,
}

/// Does the same to every column.
macro_rules! each_column {
    ($columns:expr, $column:ident => $call:expr) => {{
        let columns = $columns;
        if let Some($column) = &mut columns.step {
            $call;
        }
        each_column!(columns, $column => $call,
            source partition offset end_offset declared_length timestamp timestamp_kind leader_epoch key value
            header_name header_value);
        if let Some($column) = &mut columns.check {
            $call;
        }
    }};
    ($columns:expr, $column:ident => $call:expr, $($name:ident)*) => {
        $({
            let $column = &mut $columns.$name;
            $call;
        })*
    };
}

impl Columns {
    fn new(bytes: Arc<GroupBytes>, group: &Group, mode: Mode) -> Result<Self> {
        fn open<T: DataType>(
            bytes: &Arc<GroupBytes>,
            group: &Group,
            leaf: usize,
        ) -> Result<Values<T>> {
            Values::open(bytes, group, leaf)
        }
        let (b, g) = (&bytes, group);
        let verify = mode == Mode::Verify;
        Ok(Self {
            step: verify.then(|| open(b, g, leaf::STEP)).transpose()?,
            source: open(b, g, leaf::SOURCE)?,
            partition: open(b, g, leaf::PARTITION)?,
            offset: open(b, g, leaf::OFFSET)?,
            end_offset: open(b, g, leaf::END_OFFSET)?,
            declared_length: open(b, g, leaf::DECLARED_LENGTH)?,
            timestamp: open(b, g, leaf::TIMESTAMP)?,
            timestamp_kind: open(b, g, leaf::TIMESTAMP_KIND)?,
            leader_epoch: open(b, g, leaf::LEADER_EPOCH)?,
            key: open(b, g, leaf::KEY)?,
            value: open(b, g, leaf::VALUE)?,
            header_name: open(b, g, leaf::HEADER_NAME)?,
            header_value: open(b, g, leaf::HEADER_VALUE)?,
            check: verify.then(|| open(b, g, leaf::CHECK)).transpose()?,
            chunk_left: 0,
            rows_left: usize::try_from(group.rows)?,
        })
    }

    fn skip(&mut self, rows: u64) -> Result<()> {
        let rows = usize::try_from(rows)?;
        each_column!(&mut *self, column => column.skip(rows)?);
        self.rows_left -= rows;
        Ok(())
    }

    /// Decodes the next rows.
    fn fill(&mut self) -> Result<()> {
        let rows = self.rows_left.min(CHUNK_ROWS);
        each_column!(&mut *self, column => column.fill(rows)?);
        self.rows_left -= rows;
        self.chunk_left = rows;
        Ok(())
    }

    /// Gives `rows` of the decoded rows to `take`, or fewer if it returns false.
    ///
    /// Numbers that no record can have are given as they are, without a sign: checks and digests tell.
    fn give(&mut self, rows: usize, take: &mut impl FnMut(&Stored<'_>) -> bool) -> usize {
        let Self { header_name, header_value, .. } = &*self;
        let mut given = 0;
        let mut headers = Vec::new();
        while given < rows {
            headers.clear();
            loop {
                if let Some(name) = header_name.take_level(HEADER_PRESENT) {
                    let value = header_value.take_level(HEADER_HAS_VALUE).map(ByteArray::data);
                    headers.push(Header { name: name.data(), value });
                } else {
                    header_value.pass();
                }
                if !header_name.repeats() {
                    break;
                }
            }
            let ms = self.timestamp.take().copied();
            let kind = self.timestamp_kind.take().and_then(|name| kind_named(name.data()));
            let row = Row {
                source: self.source.take().map(ByteArray::data).unwrap_or_default(),
                number: self.partition.take().map(|number| *number as u32),
                offset: self.offset.take().copied().unwrap_or_default() as u64,
                end_offset: self.end_offset.take().copied().unwrap_or_default() as u64,
                declared_length: self.declared_length.take().map(|length| *length as u32),
                timestamp: ms.zip(kind).map(|(ms, kind)| Timestamp { ms, kind }),
                leader_epoch: self.leader_epoch.take().copied(),
                key: self.key.take().map(ByteArray::data),
                value: self.value.take().map(ByteArray::data),
                headers: &headers,
            };
            let step = self.step.as_ref().and_then(Values::take).map(|step| *step as u64);
            let check = self.check.as_ref().and_then(Values::take).copied().unwrap_or_default();
            given += 1;
            if !take(&Stored { row, step, check: check as u32 }) {
                break;
            }
        }
        self.chunk_left -= given;
        given
    }
}

/// One column: its reader, and the values that are decoded.
struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    max_level: i16,
    is_repeated: bool,
    values: Vec<T::T>,
    /// The place in `levels` and `values` of what is taken next.
    next_level: Cell<usize>,
    next_value: Cell<usize>,
    levels: Vec<i16>,
    repetitions: Vec<i16>,
}

impl<T: DataType> Values<T> {
    fn open(bytes: &Arc<GroupBytes>, group: &Group, leaf: usize) -> Result<Self> {
        let chunk = group.metadata.column(leaf);
        let descriptor = chunk.column_descr_ptr();
        let pages =
            SerializedPageReader::new(bytes.clone(), chunk, usize::try_from(group.rows)?, None)?;
        Ok(Self {
            max_level: descriptor.max_def_level(),
            is_repeated: descriptor.max_rep_level() > 0,
            reader: ColumnReaderImpl::new(descriptor, Box::new(pages)),
            values: Vec::new(),
            next_level: Cell::new(0),
            next_value: Cell::new(0),
            levels: Vec::new(),
            repetitions: Vec::new(),
        })
    }

    fn skip(&mut self, rows: usize) -> Result<()> {
        expect(rows, self.reader.skip_records(rows)?)
    }

    fn fill(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        self.levels.clear();
        self.repetitions.clear();
        self.next_level.set(0);
        self.next_value.set(0);
        let Self { reader, levels, repetitions, values, .. } = self;
        let (found, _, _) = reader.read_records(rows, Some(levels), Some(repetitions), values)?;
        let present = self.levels.iter().filter(|level| **level == self.max_level).count();
        let expected = if self.max_level == 0 { rows } else { present };
        expect(rows, found)?;
        expect(expected, self.values.len())
    }

    /// The next value, if it is not null. Not for lists.
    fn take(&self) -> Option<&T::T> {
        if self.max_level == 0 {
            self.values.get(advance(&self.next_value))
        } else {
            self.take_level(self.max_level)
        }
    }

    /// The next value, if it has this level.
    fn take_level(&self, level: i16) -> Option<&T::T> {
        let found = self.levels.get(advance(&self.next_level));
        let is_here = found.is_some_and(|found| *found == level);
        if is_here { self.values.get(advance(&self.next_value)) } else { None }
    }

    /// Leaves out a level without a value.
    fn pass(&self) {
        advance(&self.next_level);
    }

    /// Whether the next level belongs to the same row.
    fn repeats(&self) -> bool {
        self.is_repeated
            && self.repetitions.get(self.next_level.get()).is_some_and(|repetition| *repetition > 0)
    }
}

/// What the cursor was before it went on by one.
fn advance(cursor: &Cell<usize>) -> usize {
    cursor.replace(cursor.get() + 1)
}

fn expect(rows: usize, found: usize) -> Result<()> {
    if rows == found {
        return Ok(());
    }
    Err(ParquetError::General(format!("a column has {found} values where {rows} should be")))
}
