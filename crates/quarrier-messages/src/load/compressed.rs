//! Sources that are compressed, told by their first bytes.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use quarrier_core::Error;
use quarrier_core::source::{Source, read_full_at};

use crate::Result;

const GZIP: [u8; 3] = [0x1F, 0x8B, 8];
const ZSTANDARD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

const BUFFER_BYTES: usize = 256 << 10;

/// What a source holds, decompressed; `None` where it is not compressed.
///
/// # Errors
/// Where it cannot be read.
pub fn reader(source: &dyn Source) -> Result<Option<Box<dyn Read + Send + '_>>> {
    let mut head = [0; 4];
    read_full_at(source, 0, &mut head)
        .map_err(|error| Error::io(source.name(), "read at byte 0", error))?;
    let from_start = BufReader::with_capacity(BUFFER_BYTES, in_order(source));
    if head.starts_with(&GZIP) {
        return Ok(Some(Box::new(MultiGzDecoder::new(from_start))));
    }
    if head == ZSTANDARD {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(from_start)
            .map_err(|error| Error::io(source.name(), "decompress", error))?;
        // 128 MiB: what zstd itself allows.
        decoder
            .window_log_max(27)
            .map_err(|error| Error::io(source.name(), "decompress", error))?;
        return Ok(Some(Box::new(decoder)));
    }
    Ok(None)
}

/// A source as a stream.
pub(super) fn in_order(source: &dyn Source) -> impl Read + Send + '_ {
    InOrder { source, at: 0 }
}

/// A source from its start to its end.
struct InOrder<'s> {
    source: &'s dyn Source,
    at: u64,
}

impl Read for InOrder<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}
