//! A recording that another program has read and written anew, with its metadata.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use super::samples::{from_topics, ten_parts};
use super::{TINY, expect_front, record, scratch};
use crate::recording::{FaultKind, Recording, RecordingError};

/// Copies every column into one row group; `change` sees the values of the column `value`.
fn rewrite(from: &Path, to: &Path, change: impl Fn(&mut Vec<ByteArray>)) {
    let reader = SerializedFileReader::new(File::open(from).unwrap()).unwrap();
    let file = reader.metadata().file_metadata();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(file.key_value_metadata().cloned())
        .build();
    let schema = Arc::new(file.schema().clone());
    let mut writer =
        SerializedFileWriter::new(File::create(to).unwrap(), schema, properties.into()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for leaf in 0..14 {
        let column = file.schema_descr().column(leaf);
        let mut out = group.next_column().unwrap().unwrap();
        macro_rules! all {
            ($variant:ident, $type:ty, $change:expr) => {{
                let (mut levels, mut repetitions, mut values) = (vec![], vec![], vec![]);
                for i in 0..reader.num_row_groups() {
                    let from = reader.get_row_group(i).unwrap();
                    let ColumnReader::$variant(mut from) = from.get_column_reader(leaf).unwrap()
                    else {
                        panic!("another type");
                    };
                    from.read_records(
                        usize::MAX,
                        Some(&mut levels),
                        Some(&mut repetitions),
                        &mut values,
                    )
                    .unwrap();
                }
                let change: &dyn Fn(&mut Vec<_>) = &$change;
                change(&mut values);
                let levels = (column.max_def_level() > 0).then_some(&levels[..]);
                let repetitions = (column.max_rep_level() > 0).then_some(&repetitions[..]);
                out.typed::<$type>().write_batch(&values, levels, repetitions).unwrap();
            }};
        }
        match column.physical_type() {
            parquet::basic::Type::INT32 => all!(Int32ColumnReader, Int32Type, |_| ()),
            parquet::basic::Type::INT64 => all!(Int64ColumnReader, Int64Type, |_| ()),
            _ if column.name() == "value" && column.max_rep_level() == 0 => {
                all!(ByteArrayColumnReader, ByteArrayType, change)
            }
            _ => all!(ByteArrayColumnReader, ByteArrayType, |_| ()),
        }
        out.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn it_is_read_and_its_changes_are_found() {
    let dir = scratch();
    let (path, copy) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
    let given = ten_parts();
    record(&path, &from_topics(), TINY, &given);
    rewrite(&path, &copy, |_| ());
    let recording = Recording::open(&copy).unwrap();
    assert!(recording.complete());
    assert_eq!(expect_front(&recording, &given), 10);
    rewrite(&path, &copy, |values| values[13] = b"changed".to_vec().into());
    let recording = Recording::open(&copy).unwrap();
    let read: Vec<_> = recording.read(0..10).collect();
    assert_eq!((read.len(), read.iter().filter(|part| part.is_ok()).count()), (5, 4));
    let fault = recording.verify().unwrap().unwrap();
    assert_eq!((fault.part, fault.step, fault.kind), (4, Some(9), FaultKind::Record));
    assert_eq!(
        fault.to_string(),
        "part 4 (step 9), orders[3] offset 41: this record was changed or moved, or the one before it is missing"
    );
}

#[test]
fn without_the_metadata_it_is_no_recording() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let schema = crate::recording::schema::schema().unwrap().root_schema_ptr();
    let file = File::create(&path).unwrap();
    SerializedFileWriter::new(file, schema, Default::default()).unwrap().close().unwrap();
    let error = Recording::open(&path).err().unwrap();
    assert!(matches!(error, RecordingError::NotARecording { .. }), "{error:?}");
    assert!(error.to_string().contains("something else wrote"), "{error}");
}

#[test]
fn a_later_format_is_told() {
    let dir = scratch();
    let (path, copy) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
    record(&path, &from_topics(), TINY, &ten_parts());
    rewrite(&path, &copy, |_| ());
    let mut bytes = fs::read(&copy).unwrap();
    let key = b"lockgate.format\x18\x01";
    let at = memchr::memmem::rfind(&bytes, key).unwrap() + key.len();
    assert_eq!(bytes[at], b'1');
    bytes[at] = b'2';
    fs::write(&copy, bytes).unwrap();
    let error = Recording::open(&copy).err().unwrap().to_string();
    assert!(error.contains("has the recording format \"2\", this version reads 1"), "{error}");
}
