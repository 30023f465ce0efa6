//! One column of the row group that is being filled: gathered a thousand values at a time, then encoded and
//! compressed into memory, because the columns of a row group lie in the file one after the other.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::SchemaDescriptor;

/// A buffer that a large record has made larger than this is given back.
const KEPT_BYTES: usize = 1024 * 1024;

/// The pages of one column, shared between its writer and whoever takes them in the end.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Vec<u8>>>);

impl Pages {
    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

impl Write for Pages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The library's page writer borrows what it writes to; this one owns it, so that all columns can be open.
struct OwnedPages(TrackedWrite<Pages>);

impl PageWriter for OwnedPages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        SerializedPageWriter::new(&mut self.0).write_page(page)
    }

    fn close(&mut self) -> Result<()> {
        SerializedPageWriter::new(&mut self.0).close()
    }
}

/// A column that is complete: its pages, and what describes them.
pub(super) type ClosedColumn = (Bytes, ColumnCloseResult);

/// A column of values that need no copy.
pub(super) struct Column<T: DataType> {
    writer: ColumnWriterImpl<'static, T>,
    pages: Pages,
    nullable: bool,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> Column<T> {
    pub(super) fn new(
        schema: &SchemaDescriptor,
        properties: &WriterPropertiesPtr,
        leaf: usize,
    ) -> Self {
        let column = schema.column(leaf);
        let pages = Pages::default();
        let sink = Box::new(OwnedPages(TrackedWrite::new(pages.clone())));
        let nullable = column.max_def_level() > 0;
        let writer = ColumnWriterImpl::new(column, properties.clone(), sink);
        Self { writer, pages, nullable, values: Vec::new(), levels: Vec::new() }
    }

    pub(super) fn push(&mut self, value: T::T) {
        if self.nullable {
            self.levels.push(1);
        }
        self.values.push(value);
    }

    /// `None` for nullable columns only.
    pub(super) fn push_option(&mut self, value: Option<T::T>) {
        debug_assert!(self.nullable, "a required column has a value in each row");
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    /// Encodes what was gathered.
    pub(super) fn encode(&mut self) -> Result<()> {
        if self.values.is_empty() && self.levels.is_empty() {
            return Ok(());
        }
        let levels = self.nullable.then_some(&self.levels[..]);
        self.writer.write_batch(&self.values, levels, None)?;
        self.values.clear();
        self.levels.clear();
        Ok(())
    }

    pub(super) fn close(mut self) -> Result<ClosedColumn> {
        self.encode()?;
        let result = self.writer.close()?;
        Ok((self.pages.take(), result))
    }
}

/// A column of bytes, which are copied until they are encoded.
pub(super) struct BytesColumn {
    column: Column<ByteArrayType>,
    arena: Vec<u8>,
    ends: Vec<usize>,
    repetitions: Vec<i16>,
}

impl BytesColumn {
    pub(super) fn new(
        schema: &SchemaDescriptor,
        properties: &WriterPropertiesPtr,
        leaf: usize,
    ) -> Self {
        let column = Column::new(schema, properties, leaf);
        Self { column, arena: Vec::new(), ends: Vec::new(), repetitions: Vec::new() }
    }

    /// For columns that are nullable and not repeated.
    pub(super) fn push(&mut self, value: Option<&[u8]>) {
        self.push_level(i16::from(value.is_some()), value);
    }

    /// For columns inside a list. `repetition`: 0 for the first of a row, 1 for the others.
    pub(super) fn push_element(&mut self, repetition: i16, definition: i16, value: Option<&[u8]>) {
        self.repetitions.push(repetition);
        self.push_level(definition, value);
    }

    fn push_level(&mut self, definition: i16, value: Option<&[u8]>) {
        self.column.levels.push(definition);
        if let Some(value) = value {
            self.arena.extend_from_slice(value);
            self.ends.push(self.arena.len());
        }
    }

    /// Encodes what was gathered.
    pub(super) fn encode(&mut self) -> Result<()> {
        if self.column.levels.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.arena));
        let mut start = 0;
        for end in self.ends.drain(..) {
            self.column.values.push(ByteArray::from(bytes.slice(start..end)));
            start = end;
        }
        let Column { writer, values, levels, .. } = &mut self.column;
        let repetitions = (!self.repetitions.is_empty()).then_some(&self.repetitions[..]);
        writer.write_batch(values, Some(levels), repetitions)?;
        values.clear();
        levels.clear();
        self.repetitions.clear();
        // Nobody else has the bytes any more, so this takes them back without a copy.
        self.arena = Vec::from(bytes);
        self.arena.clear();
        self.arena.shrink_to(KEPT_BYTES);
        Ok(())
    }

    pub(super) fn close(mut self) -> Result<ClosedColumn> {
        self.encode()?;
        self.column.close()
    }
}
