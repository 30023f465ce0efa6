//! The columns of a recording, and how each is encoded.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescPtr, ColumnPath, SchemaDescPtr, SchemaDescriptor};

const MESSAGE: &str = "
message recording {
    optional int64 step;
    required binary source (STRING);
    optional int32 partition;
    required int64 offset;
    required int64 end_offset;
    optional int64 declared_length;
    optional int64 timestamp (TIMESTAMP(MILLIS, true));
    optional binary timestamp_kind (STRING);
    optional int32 leader_epoch;
    optional binary key;
    optional binary value;
    required group headers (LIST) {
        repeated group list {
            required group element {
                required binary name;
                optional binary value;
            }
        }
    }
    required int32 check;
}";

/// The place of each column among the leaves of the schema.
pub(super) mod leaf {
    pub(in crate::recording) const STEP: usize = 0;
    pub(in crate::recording) const SOURCE: usize = 1;
    pub(in crate::recording) const PARTITION: usize = 2;
    pub(in crate::recording) const OFFSET: usize = 3;
    pub(in crate::recording) const END_OFFSET: usize = 4;
    pub(in crate::recording) const DECLARED_LENGTH: usize = 5;
    pub(in crate::recording) const TIMESTAMP: usize = 6;
    pub(in crate::recording) const TIMESTAMP_KIND: usize = 7;
    pub(in crate::recording) const LEADER_EPOCH: usize = 8;
    pub(in crate::recording) const KEY: usize = 9;
    pub(in crate::recording) const VALUE: usize = 10;
    pub(in crate::recording) const HEADER_NAME: usize = 11;
    pub(in crate::recording) const HEADER_VALUE: usize = 12;
    pub(in crate::recording) const CHECK: usize = 13;
}

/// Definition levels of a header: there is one, and it has a value.
pub(super) const HEADER_PRESENT: i16 = 1;
pub(super) const HEADER_HAS_VALUE: i16 = 2;

/// The schema.
pub(super) fn schema() -> Result<SchemaDescPtr> {
    let message = parse_message_type(MESSAGE)?;
    Ok(Arc::new(SchemaDescriptor::new(Arc::new(message))))
}

/// How columns are written.
///
/// Numbers that rise are stored as differences. A dictionary serves what repeats much; keys and values go
/// without, where it would cost a hash per record and be given up after the first thousands.
pub(super) fn properties() -> Result<WriterPropertiesPtr> {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for rising in ["step", "offset", "end_offset", "timestamp"] {
        builder = builder
            .set_column_dictionary_enabled(rising.into(), false)
            .set_column_encoding(rising.into(), Encoding::DELTA_BINARY_PACKED);
    }
    // Other readers skip row groups by these; ours does not decode a column that is known to be empty, or to
    // have a single value. Not of keys and values: a footer should not repeat them.
    let header_name = ["headers", "list", "element", "name"].map(String::from).to_vec();
    let known = [
        "step",
        "source",
        "partition",
        "offset",
        "declared_length",
        "timestamp",
        "timestamp_kind",
        "leader_epoch",
    ];
    for known in known.map(ColumnPath::from).into_iter().chain([ColumnPath::new(header_name)]) {
        builder = builder.set_column_statistics_enabled(known, EnabledStatistics::Chunk);
    }
    let header_value = ["headers", "list", "element", "value"].map(String::from).to_vec();
    for plain in ["key".into(), "value".into(), ColumnPath::new(header_value), "check".into()] {
        builder = builder.set_column_dictionary_enabled(plain, false);
    }
    // Hashes cannot be compressed.
    builder = builder.set_column_compression("check".into(), Compression::UNCOMPRESSED);
    Ok(Arc::new(builder.build()))
}

/// Measured on JSON lines of 100 bytes: level 3 takes a third more time and makes no smaller file.
const ZSTD_LEVEL: i32 = 1;

/// Whether columns of `found` can be read as those of `ours`.
pub(super) fn alike(ours: &SchemaDescriptor, found: &SchemaDescriptor) -> bool {
    let same = |(a, b): (&ColumnDescPtr, &ColumnDescPtr)| {
        a.physical_type() == b.physical_type()
            && a.max_def_level() == b.max_def_level()
            && a.max_rep_level() == b.max_rep_level()
            && a.path().parts().first() == b.path().parts().first()
            && a.name() == b.name()
    };
    ours.num_columns() == found.num_columns()
        && ours.columns().iter().zip(found.columns()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_stand_where_their_numbers_say() {
        let schema = schema().unwrap();
        let at = |leaf: usize| schema.column(leaf).path().string();
        assert_eq!(at(leaf::STEP), "step");
        assert_eq!(at(leaf::DECLARED_LENGTH), "declared_length");
        assert_eq!(at(leaf::LEADER_EPOCH), "leader_epoch");
        assert_eq!(at(leaf::HEADER_NAME), "headers.list.element.name");
        assert_eq!(at(leaf::HEADER_VALUE), "headers.list.element.value");
        assert_eq!(at(leaf::CHECK), "check");
        let value = schema.column(leaf::HEADER_VALUE);
        assert_eq!((value.max_def_level(), value.max_rep_level()), (HEADER_HAS_VALUE, 1));
        assert_eq!(schema.column(leaf::HEADER_NAME).max_def_level(), HEADER_PRESENT);
        assert!(alike(&schema, &super::schema().unwrap()));
    }
}
