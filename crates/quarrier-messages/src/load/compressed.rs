//! Compressed sources, detected by their magic numbers.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use quarrier_core::Error;
use quarrier_core::source::{Source, read_full_at};

use crate::Result;

const GZIP: [u8; 3] = [0x1F, 0x8B, 8];
const ZSTANDARD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// The bytes after the first one of a skippable frame, with which `pzstd` begins its files.
const SKIPPABLE: [u8; 3] = [0x2A, 0x4D, 0x18];

const BUFFER_BYTES: usize = 256 << 10;

/// Returns a reader of the decompressed source; `None` if it is not compressed.
///
/// # Errors
/// If the source cannot be read.
pub fn reader(source: &dyn Source) -> Result<Option<Box<dyn Read + Send + '_>>> {
    let mut head = [0; 4];
    let count = read_full_at(source, 0, &mut head)
        .map_err(|error| Error::io(source.name(), "read at byte 0", error))?;
    match Compression::detect(&head[..count]) {
        Some(compression) => Ok(Some(compression.decoder(source.name(), in_order(source))?)),
        None => Ok(None),
    }
}

/// Returns the stream, decompressed if necessary. While a reader returns
/// [`io::ErrorKind::WouldBlock`], retries until its first bytes have arrived or `stop` is true;
/// later, passes that error on.
///
/// # Errors
/// If the first bytes cannot be read.
pub fn stream<'r>(
    name: &str,
    mut reader: Box<dyn Read + Send + 'r>,
    stop: &AtomicBool,
) -> Result<Box<dyn Read + Send + 'r>> {
    let mut head = Vec::new();
    while Compression::may_be(&head) && !stop.load(Ordering::Relaxed) {
        let mut bytes = [0; ZSTANDARD.len()];
        match reader.read(&mut bytes[head.len()..]) {
            Ok(0) => break,
            Ok(count) => head.extend_from_slice(&bytes[head.len()..][..count]),
            Err(error) if is_to_be_asked_again(&error) => {}
            Err(error) => return Err(Error::io(name, "read at byte 0", error).into()),
        }
    }
    let compression = Compression::detect(&head);
    let from_start = Cursor::new(head).chain(reader);
    match compression {
        Some(compression) => compression.decoder(name, from_start),
        None => Ok(Box::new(from_start)),
    }
}

fn is_to_be_asked_again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// A compression format.
#[derive(Debug, Clone, Copy)]
enum Compression {
    Gzip,
    Zstandard,
}

impl Compression {
    fn detect(head: &[u8]) -> Option<Self> {
        match head {
            _ if head.starts_with(&GZIP) => Some(Compression::Gzip),
            _ if head.starts_with(&ZSTANDARD) => Some(Compression::Zstandard),
            [0x50..=0x5F, rest @ ..] if rest.starts_with(&SKIPPABLE) => {
                Some(Compression::Zstandard)
            }
            _ => None,
        }
    }

    /// Whether more bytes are needed to decide.
    fn may_be(head: &[u8]) -> bool {
        let begins = |magic: &[u8]| head.len() < magic.len() && magic.starts_with(head);
        let skips = |rest: &[u8]| rest.len() < SKIPPABLE.len() && SKIPPABLE.starts_with(rest);
        let may_skip = matches!(head, [0x50..=0x5F, rest @ ..] if skips(rest));
        begins(&GZIP) || begins(&ZSTANDARD) || may_skip
    }

    fn decoder<'r>(
        self,
        name: &str,
        compressed: impl Read + Send + 'r,
    ) -> Result<Box<dyn Read + Send + 'r>> {
        let compressed = BufReader::with_capacity(BUFFER_BYTES, compressed);
        let failed = |error| Error::io(name, "decompress", error);
        match self {
            Compression::Gzip => Ok(Box::new(MultiGzDecoder::new(compressed))),
            Compression::Zstandard => {
                let decoder = zstd::stream::read::Decoder::with_buffer(compressed);
                let mut decoder = decoder.map_err(failed)?;
                // 128 MiB, the default limit of zstd itself.
                decoder.window_log_max(27).map_err(failed)?;
                Ok(Box::new(decoder))
            }
        }
    }
}

pub(super) fn in_order(source: &dyn Source) -> impl Read + Send + '_ {
    InOrder { source, at: 0 }
}

/// Reads a source from start to end.
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
