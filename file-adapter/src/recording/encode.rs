//! A row group that is being filled, in memory and compressed.

use bytes::Bytes;
use lockgate_core::TimestampKind;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::SchemaDescriptor;

use super::column::{BytesColumn, ClosedColumn, Column};
use super::row::Row;
use super::schema::{HEADER_HAS_VALUE, HEADER_PRESENT, leaf};

/// Rows are encoded as many at a time as the library takes at once, and sooner where they are large.
const CHUNK_ROWS: usize = 1024;
const CHUNK_BYTES: usize = 256 * 1024;

/// The columns of one row group.
pub(super) struct Encoder {
    step: Column<Int64Type>,
    source: Column<ByteArrayType>,
    partition: Column<Int32Type>,
    offset: Column<Int64Type>,
    end_offset: Column<Int64Type>,
    declared_length: Column<Int64Type>,
    timestamp: Column<Int64Type>,
    timestamp_kind: Column<ByteArrayType>,
    leader_epoch: Column<Int32Type>,
    key: BytesColumn,
    value: BytesColumn,
    header_name: BytesColumn,
    header_value: BytesColumn,
    check: Column<Int32Type>,
    /// The source of the row before, which is mostly that of the next one.
    last_source: Bytes,
    gathered_rows: usize,
    gathered_bytes: usize,
}

impl Encoder {
    pub(super) fn new(schema: &SchemaDescriptor, properties: &WriterPropertiesPtr) -> Self {
        let (s, p) = (schema, properties);
        Self {
            step: Column::new(s, p, leaf::STEP),
            source: Column::new(s, p, leaf::SOURCE),
            partition: Column::new(s, p, leaf::PARTITION),
            offset: Column::new(s, p, leaf::OFFSET),
            end_offset: Column::new(s, p, leaf::END_OFFSET),
            declared_length: Column::new(s, p, leaf::DECLARED_LENGTH),
            timestamp: Column::new(s, p, leaf::TIMESTAMP),
            timestamp_kind: Column::new(s, p, leaf::TIMESTAMP_KIND),
            leader_epoch: Column::new(s, p, leaf::LEADER_EPOCH),
            key: BytesColumn::new(s, p, leaf::KEY),
            value: BytesColumn::new(s, p, leaf::VALUE),
            header_name: BytesColumn::new(s, p, leaf::HEADER_NAME),
            header_value: BytesColumn::new(s, p, leaf::HEADER_VALUE),
            check: Column::new(s, p, leaf::CHECK),
            last_source: Bytes::new(),
            gathered_rows: 0,
            gathered_bytes: 0,
        }
    }

    /// Adds a row. That its numbers fit their columns has been checked.
    pub(super) fn push(&mut self, step: Option<u64>, row: &Row<'_>, check: u32) -> Result<()> {
        if self.last_source != row.source {
            self.last_source = Bytes::copy_from_slice(row.source);
        }
        self.step.push_option(step.map(|step| step as i64));
        self.source.push(ByteArray::from(self.last_source.clone()));
        self.partition.push_option(row.number.map(|number| number as i32));
        self.offset.push(row.offset as i64);
        self.end_offset.push(row.end_offset as i64);
        self.declared_length.push_option(row.declared_length.map(i64::from));
        self.timestamp.push_option(row.timestamp.map(|timestamp| timestamp.ms));
        self.timestamp_kind.push_option(row.timestamp.map(|timestamp| kind(timestamp.kind)));
        self.leader_epoch.push_option(row.leader_epoch);
        self.key.push(row.key);
        self.value.push(row.value);
        if row.headers.is_empty() {
            self.header_name.push_element(0, 0, None);
            self.header_value.push_element(0, 0, None);
        }
        for (i, header) in row.headers.iter().enumerate() {
            let repetition = i16::from(i > 0);
            let definition = header.value.map_or(HEADER_PRESENT, |_| HEADER_HAS_VALUE);
            self.header_name.push_element(repetition, HEADER_PRESENT, Some(header.name));
            self.header_value.push_element(repetition, definition, header.value);
        }
        self.check.push(check as i32);
        self.gathered_rows += 1;
        self.gathered_bytes += row.bytes();
        if self.gathered_rows == CHUNK_ROWS || self.gathered_bytes >= CHUNK_BYTES {
            self.encode()?;
        }
        Ok(())
    }

    fn encode(&mut self) -> Result<()> {
        self.step.encode()?;
        self.source.encode()?;
        self.partition.encode()?;
        self.offset.encode()?;
        self.end_offset.encode()?;
        self.declared_length.encode()?;
        self.timestamp.encode()?;
        self.timestamp_kind.encode()?;
        self.leader_epoch.encode()?;
        self.key.encode()?;
        self.value.encode()?;
        self.header_name.encode()?;
        self.header_value.encode()?;
        self.check.encode()?;
        self.gathered_rows = 0;
        self.gathered_bytes = 0;
        Ok(())
    }

    /// The finished columns, in the order of the schema's leaves.
    pub(super) fn close(mut self) -> Result<[ClosedColumn; 14]> {
        self.encode()?;
        Ok([
            self.step.close()?,
            self.source.close()?,
            self.partition.close()?,
            self.offset.close()?,
            self.end_offset.close()?,
            self.declared_length.close()?,
            self.timestamp.close()?,
            self.timestamp_kind.close()?,
            self.leader_epoch.close()?,
            self.key.close()?,
            self.value.close()?,
            self.header_name.close()?,
            self.header_value.close()?,
            self.check.close()?,
        ])
    }
}

fn kind(kind: TimestampKind) -> ByteArray {
    ByteArray::from(Bytes::from_static(kind.name().as_bytes()))
}
