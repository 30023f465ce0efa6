//! Rows of a recording in their order, decoded a few thousand at a time.

use std::sync::Arc;

use lockgate_core::{Header, Timestamp};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;

use super::error::RecordingError;
use super::group::{Group, GroupBytes, Source, contained};
use super::row::{Row, kind_named};
use super::schema::{HEADER_HAS_VALUE, HEADER_PRESENT, leaf};
use super::values::Values;

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
        let (b, g) = (&bytes, group);
        let verify = mode == Mode::Verify;
        let header_name = Values::open(b, g, leaf::HEADER_NAME)?;
        // Without names there are no headers.
        let header_value = match header_name.is_null() {
            true => Values::null(),
            false => Values::open(b, g, leaf::HEADER_VALUE)?,
        };
        Ok(Self {
            step: verify.then(|| Values::open(b, g, leaf::STEP)).transpose()?,
            source: Values::open_bytes(b, g, leaf::SOURCE)?,
            partition: Values::open(b, g, leaf::PARTITION)?,
            offset: Values::open(b, g, leaf::OFFSET)?,
            end_offset: Values::open(b, g, leaf::END_OFFSET)?,
            declared_length: Values::open(b, g, leaf::DECLARED_LENGTH)?,
            timestamp: Values::open(b, g, leaf::TIMESTAMP)?,
            timestamp_kind: Values::open_bytes(b, g, leaf::TIMESTAMP_KIND)?,
            leader_epoch: Values::open(b, g, leaf::LEADER_EPOCH)?,
            key: Values::open(b, g, leaf::KEY)?,
            value: Values::open(b, g, leaf::VALUE)?,
            header_name,
            header_value,
            check: verify.then(|| Values::open(b, g, leaf::CHECK)).transpose()?,
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
