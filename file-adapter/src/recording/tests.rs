//! Recordings on real files: what is written is read, however the file was cut, and nothing else is.

mod cut;
mod disk;
mod foreign;
mod hostile;
mod round_trip;
mod samples;
mod size;
mod tamper;

use std::path::Path;
use std::sync::Arc;

use lockgate_core::{Batch, PartDigest};

use super::write::Limits;
use super::{About, Recording, RecordingError, RecordingWriter, Written};
use crate::output::disk::SystemDisk;
use crate::output::tests::scratch;

/// Every part has a row group of its own, or nearly so.
const TINY: Limits = Limits { max_bytes: 600, max_rows: 5 };

/// What one input gave to one step.
type Given = (Option<u64>, Vec<Batch>);

fn create(path: &Path, about: &About, limits: Limits) -> RecordingWriter {
    RecordingWriter::create_on(Arc::new(SystemDisk), path, about, limits).unwrap()
}

fn add(writer: &mut RecordingWriter, (step, batches): &Given) -> Result<(), RecordingError> {
    writer.part(*step, batches, PartDigest::of(batches))
}

fn record(path: &Path, about: &About, limits: Limits, parts: &[Given]) -> Written {
    let mut writer = create(path, about, limits);
    parts.iter().for_each(|part| add(&mut writer, part).unwrap());
    writer.finish().unwrap()
}

/// All parts, and that they are those that were given; `given` may be more.
fn expect_front(recording: &Recording, given: &[Given]) -> usize {
    let parts = recording.parts();
    let read: Vec<_> = recording.read(0..parts.len()).map(Result::unwrap).collect();
    assert_eq!(read.len(), parts.len());
    for ((number, batches), (part, (step, original))) in read.iter().zip(parts.iter().zip(given)) {
        assert_eq!(part.step, *step, "part {number}");
        assert_eq!(part.digest, PartDigest::of(original), "part {number}");
        assert_eq!(part.digest, PartDigest::of(batches), "part {number}");
        assert_eq!(samples::flat(batches), samples::flat(original), "part {number}");
    }
    assert_eq!(recording.verify().unwrap(), None);
    parts.len()
}
