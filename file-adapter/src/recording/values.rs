//! One column of a row group, decoded a thousand rows at a time and taken value by value.

use std::cell::Cell;
use std::sync::Arc;

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::SerializedPageReader;
use parquet::file::statistics::Statistics;

use super::group::{Group, GroupBytes};

/// The values of a column that come next.
pub(super) enum Values<T: DataType> {
    /// Each is the same, so none is decoded. `None`: null, or for lists, empty.
    Same(Option<T::T>),
    /// They are decoded.
    Decoded(Box<Decoded<T>>),
}

/// The reader of a column, and the values that are decoded.
pub(super) struct Decoded<T: DataType> {
    reader: ColumnReaderImpl<T>,
    max_level: i16,
    is_repeated: bool,
    values: Vec<T::T>,
    levels: Vec<i16>,
    repetitions: Vec<i16>,
    /// The place in `values` and `levels` of what is taken next.
    next_value: Cell<usize>,
    next_level: Cell<usize>,
}

impl<T: DataType> Values<T> {
    /// The column `leaf` from its first row on.
    pub(super) fn open(bytes: &Arc<GroupBytes>, group: &Group, leaf: usize) -> Result<Self> {
        let chunk = group.metadata.column(leaf);
        let nulls = chunk.statistics().and_then(Statistics::null_count_opt);
        if nulls.is_some_and(|nulls| i64::try_from(nulls) == Ok(chunk.num_values())) {
            return Ok(Self::null());
        }
        let descriptor = chunk.column_descr_ptr();
        let pages =
            SerializedPageReader::new(bytes.clone(), chunk, usize::try_from(group.rows)?, None)?;
        Ok(Self::Decoded(Box::new(Decoded {
            max_level: descriptor.max_def_level(),
            is_repeated: descriptor.max_rep_level() > 0,
            reader: ColumnReaderImpl::new(descriptor, Box::new(pages)),
            values: Vec::new(),
            levels: Vec::new(),
            repetitions: Vec::new(),
            next_value: Cell::new(0),
            next_level: Cell::new(0),
        })))
    }

    /// A column without a value.
    pub(super) fn null() -> Self {
        Self::Same(None)
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Same(None))
    }

    pub(super) fn skip(&mut self, rows: usize) -> Result<()> {
        match self {
            Self::Same(_) => Ok(()),
            Self::Decoded(decoded) => expect(rows, decoded.reader.skip_records(rows)?),
        }
    }

    /// Decodes the next rows; those that were decoded before have been taken.
    pub(super) fn fill(&mut self, rows: usize) -> Result<()> {
        match self {
            Self::Same(_) => Ok(()),
            Self::Decoded(decoded) => decoded.fill(rows),
        }
    }

    /// The next value, if it is not null. Not for lists.
    pub(super) fn take(&self) -> Option<&T::T> {
        match self {
            Self::Same(value) => value.as_ref(),
            Self::Decoded(decoded) if decoded.max_level == 0 => decoded.value(),
            Self::Decoded(decoded) => decoded.at_level(decoded.max_level),
        }
    }

    /// The next value, if it has this level.
    pub(super) fn take_level(&self, level: i16) -> Option<&T::T> {
        match self {
            Self::Same(value) => value.as_ref(),
            Self::Decoded(decoded) => decoded.at_level(level),
        }
    }

    /// Leaves out a level without a value.
    pub(super) fn pass(&self) {
        if let Self::Decoded(decoded) = self {
            advance(&decoded.next_level);
        }
    }

    /// Whether the next level belongs to the same row.
    pub(super) fn repeats(&self) -> bool {
        match self {
            Self::Same(_) => false,
            Self::Decoded(decoded) => {
                let repetition = decoded.repetitions.get(decoded.next_level.get());
                decoded.is_repeated && repetition.is_some_and(|repetition| *repetition > 0)
            }
        }
    }
}

impl Values<ByteArrayType> {
    /// As [`open`](Self::open), for a column that often has a single value in all rows.
    pub(super) fn open_bytes(bytes: &Arc<GroupBytes>, group: &Group, leaf: usize) -> Result<Self> {
        match group.metadata.column(leaf).statistics() {
            Some(Statistics::ByteArray(found))
                if found.null_count_opt() == Some(0)
                    && found.min_is_exact()
                    && found.max_is_exact()
                    && found.min_opt() == found.max_opt() =>
            {
                Ok(Self::Same(found.min_opt().map(|value| ByteArray::from(value.data().to_vec()))))
            }
            _ => Self::open(bytes, group, leaf),
        }
    }
}

impl<T: DataType> Decoded<T> {
    fn fill(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        self.levels.clear();
        self.repetitions.clear();
        self.next_value.set(0);
        self.next_level.set(0);
        let Self { reader, levels, repetitions, values, .. } = self;
        let (found, _, _) = reader.read_records(rows, Some(levels), Some(repetitions), values)?;
        let present = self.levels.iter().filter(|level| **level == self.max_level).count();
        let expected = if self.max_level == 0 { rows } else { present };
        expect(rows, found)?;
        expect(expected, self.values.len())
    }

    fn value(&self) -> Option<&T::T> {
        self.values.get(advance(&self.next_value))
    }

    fn at_level(&self, level: i16) -> Option<&T::T> {
        let found = self.levels.get(advance(&self.next_level));
        if found.is_some_and(|found| *found == level) { self.value() } else { None }
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
