//! Records as `kcat -J` writes and reads them: one JSON object on each line.
//!
//! Lossless where that format is: it has no leader epochs and no steps. Bytes that are no UTF-8 stand in its strings as
//! they are, as kcat does it, so such a line is JSON to kcat and lockgate but not to everybody.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use lockgate_core::{
    Batch, BatchBuilder, Header, NewRecord, PartDigest, Partition, Record, Timestamp, TimestampKind,
};
use lockgate_file_adapter::recording::RecordingWriter;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use crate::exit::{Code, Failed};
use crate::recorder::about;

/// Most records of one part of a recording that is made of such lines.
const PART_RECORDS: usize = 10_000;

/// Whether a file of this name holds such lines.
pub(crate) fn is_named(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["json", "jsonl", "ndjson"].contains(&extension))
}

/// Adds a record as a line.
pub(crate) fn write(record: &Record<'_>, line: &mut Vec<u8>) {
    line.extend_from_slice(b"{\"topic\":");
    string(record.partition.source.as_bytes(), line);
    let number = record.partition.number.map_or(-1, i64::from);
    let (kind, ms) = match record.timestamp {
        Some(Timestamp { ms, kind: TimestampKind::Create }) => ("create", ms),
        Some(Timestamp { ms, kind: TimestampKind::LogAppend }) => ("logappend", ms),
        None => ("unknown", 0),
    };
    let offset = record.offset;
    let place = format!(
        ",\"partition\":{number},\"offset\":{offset},\"tstype\":\"{kind}\",\"ts\":{ms},\"broker\":-1"
    );
    line.extend_from_slice(place.as_bytes());
    if !record.headers.is_empty() {
        line.extend_from_slice(b",\"headers\":");
        let mut before = b'[';
        for header in record.headers.iter() {
            line.push(before);
            string(header.name, line);
            line.push(b',');
            string_or_null(header.value, line);
            before = b',';
        }
        line.push(b']');
    }
    line.extend_from_slice(b",\"key\":");
    string_or_null(record.key, line);
    line.extend_from_slice(b",\"payload\":");
    string_or_null(record.value, line);
    line.extend_from_slice(b"}\n");
}

fn string_or_null(bytes: Option<&[u8]>, line: &mut Vec<u8>) {
    match bytes {
        Some(bytes) => string(bytes, line),
        None => line.extend_from_slice(b"null"),
    }
}

fn string(bytes: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            0..0x20 => line.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => line.push(*byte),
        }
    }
    line.push(b'"');
}

/// A line. What else stands in it is kcat's own.
#[derive(Debug, serde::Deserialize)]
struct Line {
    topic: String,
    partition: i64,
    offset: u64,
    #[serde(default)]
    tstype: String,
    #[serde(default)]
    ts: i64,
    #[serde(default)]
    headers: Headers,
    key: Option<Bytes>,
    payload: Option<Bytes>,
}

impl Line {
    fn timestamp(&self) -> Option<Timestamp> {
        let kind = match self.tstype.as_str() {
            "create" => TimestampKind::Create,
            "logappend" => TimestampKind::LogAppend,
            _ => return None,
        };
        Some(Timestamp { ms: self.ts, kind })
    }
}

/// The bytes of a string, whatever they are.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Whatever;
        impl Visitor<'_> for Whatever {
            type Value = Bytes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                Ok(Bytes(text.as_bytes().to_vec()))
            }
        }
        from.deserialize_bytes(Whatever)
    }
}

/// Names and values in turn.
#[derive(Debug, Default)]
struct Headers(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InTurn;
        impl<'de> Visitor<'de> for InTurn {
            type Value = Headers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("names and values of headers in turn")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(Bytes(name)) = seq.next_element()? {
                    let value: Option<Option<Bytes>> = seq.next_element()?;
                    let value = value.ok_or_else(|| de::Error::custom("a header has no value"))?;
                    headers.push((name, value.map(|Bytes(value)| value)));
                }
                Ok(Headers(headers))
            }
        }
        from.deserialize_seq(InTurn)
    }
}

/// Makes a recording of the lines in a file.
///
/// # Errors
/// If a line is none that `kcat -J` writes, or a file cannot be read or written.
pub(crate) fn to_recording(lines: &Path, recording: &Path) -> Result<(), Failed> {
    let shown = lines.display();
    let file = File::open(lines).map_err(|error| {
        let code =
            if error.kind() == std::io::ErrorKind::NotFound { Code::Usage } else { Code::Storage };
        Failed::new(code, format!("reading {shown}: {error}"))
    })?;
    let mut writer = RecordingWriter::create(recording, &about("kafka", shown.to_string()))?;
    let mut block = Block::default();
    let mut lines = BufReader::new(file);
    let (mut line, mut number) = (Vec::new(), 0u64);
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line);
        if read.map_err(|error| Failed::storage(format!("reading {shown}"), &error))? == 0 {
            break;
        }
        number += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let wrong = |why: String| Failed::new(Code::Data, format!("{shown} line {number}: {why}"));
        let line: Line = serde_json::from_slice(&line)
            .map_err(|error| wrong(format!("not a record as kcat -J writes it: {error}")))?;
        block.add(&line).map_err(|error| wrong(error.to_string()))?;
        if block.records >= PART_RECORDS {
            block.write(&mut writer)?;
        }
    }
    block.write(&mut writer)?;
    writer.finish()?;
    Ok(())
}

/// Records on their way into a part.
#[derive(Default)]
struct Block {
    batches: Vec<Batch>,
    /// What follows on them, and the offset of its last record.
    open: Option<(Arc<Partition>, BatchBuilder, u64)>,
    records: usize,
}

impl Block {
    fn add(&mut self, line: &Line) -> Result<(), lockgate_core::ArenaFull> {
        let number = u32::try_from(line.partition).ok();
        let fits = self.open.as_ref().is_some_and(|(partition, _, last)| {
            partition.source == line.topic && partition.number == number && *last < line.offset
        });
        if !fits {
            self.close();
        }
        let (_, builder, last) = self.open.get_or_insert_with(|| {
            let partition = Arc::new(Partition { source: line.topic.clone(), number });
            (partition.clone(), BatchBuilder::new(partition), 0)
        });
        let headers = line.headers.0.iter();
        let headers: Vec<Header<'_>> =
            headers.map(|(name, value)| Header { name, value: value.as_deref() }).collect();
        builder.push(NewRecord {
            offset: line.offset,
            timestamp: line.timestamp(),
            leader_epoch: None,
            key: line.key.as_ref().map(|Bytes(key)| &key[..]),
            value: line.payload.as_ref().map(|Bytes(value)| &value[..]),
            headers: &headers,
        })?;
        *last = line.offset;
        self.records += 1;
        Ok(())
    }

    fn close(&mut self) {
        self.batches.extend(self.open.take().map(|(_, builder, _)| builder.build()));
    }

    fn write(&mut self, writer: &mut RecordingWriter) -> Result<(), Failed> {
        self.close();
        if !self.batches.is_empty() {
            writer.part(None, &self.batches, PartDigest::of(&self.batches))?;
        }
        *self = Self::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_file_adapter::recording::Recording;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_what_kcat_writes() {
        let partition = Arc::new(Partition { source: "t".into(), number: Some(3) });
        let mut builder = BatchBuilder::new(partition);
        let headers =
            [Header { name: b"h", value: None }, Header { name: b"h", value: Some(b"\xff\"") }];
        let timestamp = Some(Timestamp::created(17));
        let (key, value) = (Some(&b""[..]), Some(&b"a\nb\x01"[..]));
        let full = NewRecord {
            offset: 5,
            timestamp,
            key,
            value,
            headers: &headers,
            ..NewRecord::default()
        };
        builder.push(full).unwrap();
        builder.push(NewRecord { offset: 6, ..NewRecord::default() }).unwrap();
        let mut lines = Vec::new();
        builder.build().iter().for_each(|record| write(&record, &mut lines));
        let expected = b"{\"topic\":\"t\",\"partition\":3,\"offset\":5,\"tstype\":\"create\",\"ts\":17,\"broker\":-1,\
            \"headers\":[\"h\",null,\"h\",\"\xff\\\"\"],\"key\":\"\",\"payload\":\"a\\nb\\u0001\"}\n\
            {\"topic\":\"t\",\"partition\":3,\"offset\":6,\"tstype\":\"unknown\",\"ts\":0,\"broker\":-1,\
            \"key\":null,\"payload\":null}\n";
        assert_eq!(lines.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    fn bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
        proptest::option::of(proptest::collection::vec(any::<u8>(), 0..12))
    }

    type Fields =
        (u32, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>, Option<i64>);

    fn fields() -> impl Strategy<Value = Fields> {
        let name = proptest::collection::vec(any::<u8>(), 0..4);
        let headers = proptest::collection::vec((name, bytes()), 0..3);
        (0u32..3, bytes(), bytes(), headers, proptest::option::of(any::<i64>()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_records_survive(records in proptest::collection::vec(fields(), 0..20)) {
            let dir = tempfile::tempdir().unwrap();
            let mut lines = Vec::new();
            let mut written = Vec::new();
            for (offset, (partition, key, value, headers, ms)) in (0..).zip(&records) {
                let partition = Partition { source: "t\u{e9}\"".into(), number: Some(*partition) };
                let mut builder = BatchBuilder::new(Arc::new(partition));
                let headers = headers.iter().map(|(name, value)| Header { name, value: value.as_deref() });
                builder.push(NewRecord {
                    offset,
                    timestamp: ms.map(Timestamp::created),
                    leader_epoch: None,
                    key: key.as_deref(),
                    value: value.as_deref(),
                    headers: &headers.collect::<Vec<_>>(),
                }).unwrap();
                written.push(builder.build());
                written[offset as usize].iter().for_each(|record| write(&record, &mut lines));
            }
            let (from, to) = (dir.path().join("a.jsonl"), dir.path().join("a.parquet"));
            std::fs::write(&from, lines).unwrap();
            to_recording(&from, &to).unwrap();
            let recording = Recording::open(&to).unwrap();
            let read: Vec<Batch> = recording.read(0..9).flat_map(|part| part.unwrap().1).collect();
            prop_assert_eq!(PartDigest::of(&read), PartDigest::of(&written));
        }
    }

    #[test]
    fn what_is_no_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |name: &str, text: &str| {
            let (from, to) = (dir.path().join("a.jsonl"), dir.path().join(name));
            std::fs::write(&from, text).unwrap();
            to_recording(&from, &to).unwrap_err()
        };
        let good =
            "{\"topic\":\"t\",\"partition\":0,\"offset\":1,\"key\":null,\"payload\":\"v\"}\n";
        let error = refused("1", &format!("{good}\n{{\"topic\":1}}"));
        assert!(error.code == Code::Data && error.message.contains("line 3"), "{}", error.message);
        assert!(
            refused("2", "plain").message.contains("line 1: not a record as kcat -J writes it")
        );
        assert!(
            refused("3", &good.replace("\"offset\":1", "\"offset\":-1")).message.contains("line 1")
        );
        let headers = good.replace("\"key\"", "\"headers\":[\"h\"],\"key\"");
        assert!(refused("4", &headers).message.contains("a header has no value"));
    }
}
