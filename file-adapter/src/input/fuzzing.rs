//! A file through decompression and framing, for the targets in `fuzz/`. It is there under `cfg(fuzzing)` only.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lockgate_core::{EndpointError, Framing, Partition};

use super::arena::Pool;
use super::cursor::{Cursor, Until};
use super::decode::Source;
use super::frame::Rules;
use crate::config::Overlong;

/// How records lie in the file.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Lines, or lengths before values.
    pub framing: Framing,
    /// The largest value.
    pub max_record_bytes: usize,
    /// What becomes of larger ones.
    pub overlong: Overlong,
    /// Nothing is read beyond about so many bytes of the stream.
    pub most: u64,
}

/// A record: where it begins and ends in the stream, and its value.
pub type Found = (u64, u64, Vec<u8>);

/// What was read of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The records, in their order.
    pub records: Vec<Found>,
    /// The policies that were applied.
    pub applied: Vec<&'static str>,
    /// Whether there was more of the stream than may be read here.
    pub has_more: bool,
}

/// Reads the file in blocks of `block_bytes`.
///
/// # Errors
/// If it is damaged, or not allowed.
pub fn read(path: &Path, shape: Shape, block_bytes: usize) -> Result<Read, (Read, String)> {
    let mut read = Read::default();
    let pool = Pool::new(block_bytes, 4);
    let mut go = || -> Result<(), EndpointError> {
        let mut cursor = begin(path, shape)?;
        take(&mut cursor, &pool, shape, Until::End, usize::MAX, &mut read)
    };
    match go() {
        Ok(()) => Ok(read),
        Err(error) => Err((read, error.to_string())),
    }
}

/// As [`read`], stopping after so many blocks, and going on at the place that was reached with the file opened anew.
///
/// # Errors
/// As [`read`].
pub fn read_twice(
    path: &Path,
    shape: Shape,
    block_bytes: usize,
    blocks: usize,
) -> Result<Read, (Read, String)> {
    let mut read = Read::default();
    let pool = Pool::new(block_bytes, 4);
    let mut go = || -> Result<(), EndpointError> {
        let mut cursor = begin(path, shape)?;
        take(&mut cursor, &pool, shape, Until::EndForNow, blocks, &mut read)?;
        let (mark, partition) = (cursor.mark()?, partition());
        drop(cursor);
        let source = Source::open(path)?.source;
        let mut cursor = Cursor::go_on(partition, rules(shape), source, mark)?;
        take(&mut cursor, &pool, shape, Until::End, usize::MAX, &mut read)
    };
    match go() {
        Ok(()) => Ok(read),
        Err(error) => Err((read, error.to_string())),
    }
}

/// As [`read`] while the file grows: `later` is appended when all there is has been read.
///
/// # Errors
/// As [`read`].
pub fn read_growing(
    path: &Path,
    shape: Shape,
    block_bytes: usize,
    later: &[&[u8]],
) -> Result<Read, (Read, String)> {
    let mut read = Read::default();
    let pool = Pool::new(block_bytes, 4);
    let mut go = || -> Result<(), EndpointError> {
        let mut cursor = begin(path, shape)?;
        for piece in later {
            take(&mut cursor, &pool, shape, Until::EndForNow, usize::MAX, &mut read)?;
            let file = File::options().append(true).open(path);
            file.and_then(|mut file| file.write_all(piece)).map_err(|error| {
                EndpointError::Storage { what: "growing".into(), source: error.into() }
            })?;
        }
        take(&mut cursor, &pool, shape, Until::End, usize::MAX, &mut read)
    };
    match go() {
        Ok(()) => Ok(read),
        Err(error) => Err((read, error.to_string())),
    }
}

fn partition() -> Arc<Partition> {
    Arc::new(Partition { source: "in.log".into(), number: None })
}

fn rules(shape: Shape) -> Rules {
    let Shape { framing, max_record_bytes, overlong, .. } = shape;
    Rules { framing, max_record_bytes, overlong }
}

fn begin(path: &Path, shape: Shape) -> Result<Cursor, EndpointError> {
    Ok(Cursor::new(partition(), rules(shape), Source::open(path)?.source))
}

fn take(
    cursor: &mut Cursor,
    pool: &Pool,
    shape: Shape,
    until: Until,
    mut blocks: usize,
    read: &mut Read,
) -> Result<(), EndpointError> {
    while blocks > 0 {
        blocks -= 1;
        let reading = cursor.read(pool, until)?;
        assert!(!reading.is_another, "a file that did not change is taken for another one");
        read.applied.extend(reading.applied.iter().map(|(policy, _)| *policy));
        for piece in reading.pieces {
            let Some(batch) = piece.batch else { continue };
            for record in batch.iter() {
                let value = record.value.unwrap_or_default();
                assert!(value.len() <= shape.max_record_bytes, "a record is too large");
                read.records.push((record.offset, record.end_offset, value.to_vec()));
            }
            assert!(batch.end_offset().is_none_or(|end| end <= piece.next), "a place went back");
        }
        if reading.at_end {
            return Ok(());
        }
        if cursor.source().pos() > shape.most {
            read.has_more = true;
            return Ok(());
        }
    }
    Ok(())
}
