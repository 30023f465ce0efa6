//! Recordings that no run made.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lockgate_core::{Batch, BatchBuilder, Header, NewRecord, PartDigest, Partition, Timestamp};
use lockgate_file_adapter::recording::{About, RecordingWriter};

use crate::site::Site;

/// A step, its records and the digest that is recorded with them.
pub(crate) type Given = (Option<u64>, Vec<Batch>, PartDigest);

/// Records of `orders[0]` at these offsets.
pub(crate) fn orders(offsets: impl IntoIterator<Item = u64>) -> Batch {
    let orders = Partition { source: "orders".into(), number: Some(0) };
    let mut batch = BatchBuilder::new(Arc::new(orders));
    for offset in offsets {
        let (key, value) = (format!("k{offset}"), format!("order {offset}"));
        let headers = [Header { name: b"trace", value: Some(b"\xff") }];
        let headers = if offset == 11 { &headers[..] } else { &[] };
        let record = NewRecord {
            offset,
            timestamp: Some(Timestamp::created(1_700_000_000_000 + offset as i64)),
            leader_epoch: None,
            key: Some(key.as_bytes()),
            value: (offset != 12).then_some(value.as_bytes()),
            headers,
        };
        batch.push(record).unwrap();
    }
    batch.build()
}

/// A step with its own digest.
pub(crate) fn step(number: u64, batches: Vec<Batch>) -> Given {
    let digest = PartDigest::of(&batches);
    (Some(number), batches, digest)
}

/// Three steps of four records.
pub(crate) fn three_steps() -> Vec<Given> {
    (1..=3).map(|number| step(number, vec![orders(number * 4 + 4..number * 4 + 8)])).collect()
}

pub(crate) fn writer(path: &Path, parts: &[Given]) -> RecordingWriter {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let (source, origin) = ("kafka".into(), "orders at localhost:9092".into());
    let about = About { program: "lockgate 0.1.0".into(), source, origin, ..About::default() };
    let mut writer = RecordingWriter::create(path, &about).unwrap();
    for (step, batches, digest) in parts {
        writer.part(*step, batches, *digest).unwrap();
    }
    writer
}

pub(crate) fn write(site: &Site, name: &str, parts: &[Given]) {
    writer(&site.path(name), parts).finish().unwrap();
}

/// Exit code, standard output and standard error as one text.
pub(crate) fn seen(site: &Site, args: &[&str]) -> String {
    let ended = site.lockgate(args);
    format!("{}{}exit {}\n", ended.stdout, ended.stderr, ended.code)
}
