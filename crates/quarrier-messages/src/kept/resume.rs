//! Finds where to begin loading a source: at its start, or where an earlier load was interrupted.
//!
//! Each batch records where it begins and ends in its source. A load resumes after the last batch if the
//! source still has the same bytes there. Otherwise it is another source with the same name, and is loaded
//! from its start.

use std::io::{self, Read};

use crc_fast::{CrcAlgorithm, Digest};
use memchr::memchr_iter;
use quarrier_core::source::Source;

use super::blocks::checked;
use super::load::{LoadOptions, Rest};
use super::store::Store;
use crate::frame::Reader;
use crate::load::{Block, decompressed};
use crate::log::{Encoding, PAYLOAD_BYTES_MAX, Publication};
use crate::{FormatReader, Opening, Result};

/// The position where a load begins.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    pub(super) publisher: Option<u64>,
    /// The sequence of the publisher's last batch; 0 without any.
    pub(super) sequence: u64,
    pub(super) offset: u64,
    /// Number of lines before it.
    pub(super) lines: u64,
}

/// Maximum number of sources of one name that a load can distinguish.
const SOURCES_MAX: u32 = 1 << 16;

/// Bytes of a source to examine first for its header.
const HEAD_BYTES: u64 = 1 << 20;

/// Finds where to begin: returns the position, and the bytes from there on. If these exclude the start of the
/// source, the opening was given that start.
pub(super) fn begin<'s>(
    store: &Store,
    (table, encoding): (u32, Encoding),
    (source, identity): (&'s dyn Source, Option<&str>),
    options: &LoadOptions,
    opening: &Opening,
) -> Result<(Box<dyn Read + Send + 's>, Start)> {
    let plain = Plain { source };
    let Some(identity) = identity else { return Ok((plain.rest(0)?, Start::default())) };
    let log = store.writer()?;
    for generation in 0..SOURCES_MAX {
        let publisher = publisher(table, identity, generation);
        let fresh = Start { publisher: Some(publisher), ..Start::default() };
        let Some(last) = log.last_publication(publisher) else {
            return Ok((plain.rest(0)?, fresh));
        };
        if options.is_again {
            continue;
        }
        // Without the batch, which retention may have removed, the name suffices.
        if let Some(stored) = store.payload(table, &last)?
            && !plain.has(&stored, &last, encoding, options, opening)?
        {
            continue;
        }
        let (sequence, offset) = (last.sequence, last.source_offset);
        let lines = plain.lines_before(offset)?;
        plain.open(&FormatReader::new(&options.format, &options.limits, opening))?;
        return Ok((plain.rest(offset)?, Start { sequence, offset, lines, ..fresh }));
    }
    let reason =
        format!("{SOURCES_MAX} other sources with this name were loaded; use another name");
    Err(crate::Error::Store { place: source.name().to_string(), reason })
}

/// Returns a number, never 0, for a source that is loaded into a table under a name.
pub(super) fn publisher(table: u32, identity: &str, generation: u32) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(&table.to_le_bytes());
    digest.update(&generation.to_le_bytes());
    digest.update(identity.as_bytes());
    digest.finalize().max(1)
}

/// A source, decompressed.
struct Plain<'s> {
    source: &'s dyn Source,
}

impl<'s> Plain<'s> {
    /// Returns its bytes from an offset on.
    fn rest(&self, offset: u64) -> Result<Box<dyn Read + Send + 's>> {
        let source = self.source;
        match decompressed(source)? {
            None => Ok(Box::new(Rest { source, at: offset })),
            Some(mut reader) => {
                let skipped = io::copy(&mut (&mut reader).take(offset), &mut io::sink());
                skipped.map_err(|error| self.failed(error))?;
                Ok(reader)
            }
        }
    }

    fn failed(&self, error: io::Error) -> crate::Error {
        quarrier_core::Error::io(self.source.name(), "read", error).into()
    }

    /// Counts the lines that end before an offset.
    fn lines_before(&self, offset: u64) -> Result<u64> {
        let mut reader = self.rest(0)?.take(offset);
        let mut buffer = vec![0; 256 << 10];
        let mut lines = 0;
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(lines),
                Ok(count) => lines += memchr_iter(b'\n', &buffer[..count]).count() as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Reads the bytes of a range, as far as the source has them.
    fn bytes(&self, start: u64, count: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.rest(start)?.take(count).read_to_end(&mut bytes);
        read.map_err(|error| self.failed(error))?;
        Ok(bytes)
    }

    /// Returns the start of the first message, once the opening was given the bytes before it.
    fn open(&self, reader: &FormatReader) -> Result<usize> {
        let mut wanted = HEAD_BYTES;
        loop {
            let head = self.bytes(0, wanted)?;
            let is_end = (head.len() as u64) < wanted;
            match reader.open(&head, is_end) {
                Some(at) => return Ok(at),
                None if is_end || wanted > PAYLOAD_BYTES_MAX as u64 => return Ok(head.len()),
                None => wanted *= 4,
            }
        }
    }

    /// Returns whether the source still has the messages that were last stored from it.
    fn has(
        &self,
        stored: &[u8],
        last: &Publication,
        encoding: Encoding,
        options: &LoadOptions,
        opening: &Opening,
    ) -> Result<bool> {
        let Some(start) = last.sequence.checked_sub(1) else { return Ok(false) };
        let Some(count) = last.source_offset.checked_sub(start) else { return Ok(false) };
        if count > 2 * PAYLOAD_BYTES_MAX as u64 {
            return Ok(false);
        }
        let mut reader = FormatReader::new(&options.format, &options.limits, opening);
        let first = self.open(&reader)?;
        let bytes = self.bytes(start, count)?;
        if (bytes.len() as u64) < count {
            return Ok(false);
        }
        let at = if start == 0 { first.min(bytes.len()) } else { 0 };
        let header = opening.csv_header().unwrap_or_default();
        let block = Block::whole(start, at);
        let how = (encoding, header.as_slice());
        let checked = checked(&mut reader, (&block, bytes), how, &options.limits);
        Ok(checked.payload == stored)
    }
}
