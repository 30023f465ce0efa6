//! Compression of a complete segment, from one file into another.
//!
//! The same content always gives the same bytes: the levels are fixed, the content goes in in blocks of
//! fixed size, and the gzip header carries neither a name nor a time nor an operating system.

use std::io::{self, Write};
use std::path::PathBuf;

use flate2::write::GzEncoder;
use lockgate_core::EndpointError;

use super::super::BLOCK_BYTES;
use super::super::data_file::DataFile;
use super::super::disk::{Disk, cannot};
use crate::config::Compression;

/// gzip's usual level.
const GZIP_LEVEL: u32 = 6;

/// zstd's usual level.
const ZSTD_LEVEL: i32 = 3;

/// Compresses `content` into a new file at `path`.
pub(super) fn compress(
    disk: &dyn Disk,
    content: &DataFile,
    path: PathBuf,
    compression: Compression,
) -> Result<DataFile, EndpointError> {
    let mut compressed = DataFile::create(disk, path)?;
    let sink = Sink { disk, file: &mut compressed };
    let written = match compression {
        Compression::None => copy(content, sink).map(drop),
        Compression::Gzip => {
            let encoder = GzEncoder::new(sink, flate2::Compression::new(GZIP_LEVEL));
            copy(content, encoder).and_then(GzEncoder::finish).map(drop)
        }
        Compression::Zstd => zstd_encoder(sink, content.length())
            .and_then(|encoder| copy(content, encoder))
            .and_then(zstd::Encoder::finish)
            .map(drop),
    };
    written.map_err(|error| {
        cannot(&format!("compress {} into", content.path().display()), compressed.path(), error)
    })?;
    Ok(compressed)
}

fn zstd_encoder(sink: Sink<'_>, length: u64) -> io::Result<zstd::Encoder<'static, Sink<'_>>> {
    let mut encoder = zstd::Encoder::new(sink, ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(length))?;
    Ok(encoder)
}

fn copy<W: Write>(content: &DataFile, mut to: W) -> io::Result<W> {
    let mut block = vec![0; content.length().min(BLOCK_BYTES as u64) as usize];
    let mut at = 0;
    while at < content.length() {
        let size = (content.length() - at).min(block.len() as u64);
        let block = &mut block[..size as usize];
        content.read_at(block, at)?;
        to.write_all(block)?;
        at += size;
    }
    Ok(to)
}

struct Sink<'a> {
    disk: &'a dyn Disk,
    file: &'a mut DataFile,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.try_append(self.disk, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
