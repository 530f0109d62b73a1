//! The items that reading a log yields.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;

use super::batch::{
    EXTENSION, EXTENSION_BYTES, Encoding, HEADER_BYTES, Header, Publication, ZSTD, publication,
};
use super::error::{Error, Result};

/// A complete batch, as its writer passed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    header: Header,
    stored: Vec<u8>,
    segment: u64,
    offset: u64,
}

/// The place of a batch's messages in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The segment, by its first mark.
    pub(crate) segment: u64,
    /// The offset of the messages in the segment.
    pub(crate) offset: u64,
    /// Their stored length in bytes.
    pub(crate) bytes: u32,
    /// Their length in bytes after decompression.
    pub(crate) bytes_unpacked: u32,
    pub(crate) is_compressed: bool,
    /// Bytes between the header and the messages, also covered by the checksum.
    pub(crate) extension_bytes: u32,
    pub(crate) checksum: u64,
}

impl Place {
    /// Returns the offset of the batch's header in the segment.
    pub(super) fn header_offset(&self) -> u64 {
        let before = HEADER_BYTES + u64::from(self.extension_bytes);
        self.offset.saturating_sub(before)
    }
}

impl Entry {
    /// Makes the batch at `offset` of the segment whose first message has the mark `segment`.
    pub(super) fn new(header: Header, (segment, offset): (u64, u64), stored: Vec<u8>) -> Self {
        Entry { header, stored, segment, offset }
    }

    /// Returns the place of the messages.
    pub(crate) fn place(&self) -> Place {
        let extension = if self.header.has(EXTENSION) { EXTENSION_BYTES as u32 } else { 0 };
        Place {
            segment: self.segment,
            offset: self.offset + HEADER_BYTES + u64::from(extension),
            bytes: self.header.bytes.saturating_sub(extension),
            bytes_unpacked: self.header.bytes_unpacked,
            is_compressed: self.header.has(ZSTD),
            extension_bytes: extension,
            checksum: self.header.checksum,
        }
    }

    /// Returns the marks of the messages.
    pub fn marks(&self) -> Range<u64> {
        self.header.mark..self.header.next_mark()
    }

    /// Returns the number of messages.
    pub fn messages(&self) -> u32 {
        self.header.messages
    }

    /// Returns the table of the messages.
    pub fn table(&self) -> u32 {
        self.header.table
    }

    /// Returns the encoding of the messages.
    pub fn encoding(&self) -> Encoding {
        self.header.encoding
    }

    /// Returns the time of the commit, in microseconds since 1970; never before that of the preceding batch.
    pub fn time_us(&self) -> i64 {
        self.header.time_us
    }

    /// Returns the publication of the batch, if it has one.
    pub fn publication(&self) -> Option<Publication> {
        self.header.has(EXTENSION).then(|| publication(&self.stored)).flatten()
    }

    /// Returns the offset in bytes of the header in its segment.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the messages as they were passed, decompressed if necessary. Decompression allocates at most
    /// [`PAYLOAD_BYTES_MAX`](super::PAYLOAD_BYTES_MAX) bytes.
    ///
    /// # Errors
    /// [`Error::Payload`] if the compressed bytes contradict the header. Their checksum matched, so the
    /// writer was wrong.
    pub fn payload(&self) -> Result<Cow<'_, [u8]>> {
        let extension = if self.header.has(EXTENSION) { EXTENSION_BYTES } else { 0 };
        let stored = self.stored.get(extension..).unwrap_or_default();
        let wanted = self.header.bytes_unpacked as usize;
        let fail = |reason: String| Error::Payload { mark: self.header.mark, reason };
        let payload = if self.header.has(ZSTD) {
            Cow::Owned(unpacked(stored, wanted).map_err(|error| fail(error.to_string()))?)
        } else {
            Cow::Borrowed(stored)
        };
        if payload.len() != wanted {
            return Err(fail(format!("it has {} bytes, not {wanted}", payload.len())));
        }
        Ok(payload)
    }
}

/// Decompresses messages, at most `bytes` bytes.
pub(crate) fn unpacked(stored: &[u8], bytes: usize) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(stored, bytes)
}

/// The events of reading a log, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A batch.
    Batch(Entry),
    /// Acknowledged data is damaged. Everything around it is intact.
    Damage(Damage),
    /// A crash during a write tore the end of the log.
    Cut(Cut),
    /// A chain without its last batch; the reader skips its batches.
    Unfinished {
        /// The marks of the skipped batches.
        marks: Range<u64>,
    },
}

/// Bytes that once were on the disk and now differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The path of the segment.
    pub path: String,
    /// The damaged bytes in it; empty if nothing remains of the lost ones.
    pub bytes: Range<u64>,
    /// The first mark that may be lost.
    pub first_mark: u64,
    /// The mark after the last one that may be lost; equal to the first one if no message is lost. None if
    /// the number of messages is unknown.
    pub end_mark: Option<u64>,
}

impl Damage {
    /// Returns whether messages are or may be lost.
    pub fn loses_messages(&self) -> bool {
        self.end_mark.is_none_or(|end| end > self.first_mark)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { path, bytes, first_mark, end_mark } = self;
        write!(f, "{path}: damaged at bytes {} to {}: ", bytes.start, bytes.end)?;
        match end_mark {
            Some(end) if end <= first_mark => {
                write!(f, "no message is lost; the next mark is {first_mark}")
            }
            Some(end) => write!(f, "the messages of marks {first_mark} to {} are lost", end - 1),
            None => write!(f, "the messages from mark {first_mark} on are lost"),
        }
    }
}

/// The torn end of a log. The log never acknowledged these bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The path of the segment.
    pub path: String,
    /// The skipped bytes.
    pub bytes: Range<u64>,
    /// The mark of the next message.
    pub next_mark: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { path, bytes, next_mark } = self;
        write!(
            f,
            "{path}: cut off at byte {} ({} bytes): a crash tore bytes that were never acknowledged; the \
             next mark is {next_mark}",
            bytes.start,
            bytes.end - bytes.start
        )
    }
}
