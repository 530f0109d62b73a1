//! What a log is read as.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;

use super::batch::{
    EXTENSION, EXTENSION_BYTES, Encoding, HEADER_BYTES, Header, Publication, ZSTD, publication,
};
use super::error::{Error, Result};

/// A batch as it was read: whole, and as its writer gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    header: Header,
    stored: Vec<u8>,
    segment: u64,
    offset: u64,
}

/// Where the messages of a batch lie, so that they can be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The segment, by the mark of its first message.
    pub(crate) segment: u64,
    /// Their first byte in it.
    pub(crate) offset: u64,
    /// How many bytes they take there.
    pub(crate) bytes: u32,
    /// How many they have when they are unpacked.
    pub(crate) bytes_unpacked: u32,
    pub(crate) is_compressed: bool,
    /// Bytes between the header and the messages, which the checksum covers, too.
    pub(crate) extension_bytes: u32,
    pub(crate) checksum: u64,
}

impl Entry {
    /// A batch at `offset` of the segment whose first message has the mark `segment`.
    pub(super) fn new(header: Header, (segment, offset): (u64, u64), stored: Vec<u8>) -> Self {
        Entry { header, stored, segment, offset }
    }

    /// Where its messages lie.
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

    /// The marks of its messages.
    pub fn marks(&self) -> Range<u64> {
        self.header.mark..self.header.next_mark()
    }

    /// How many messages it has.
    pub fn messages(&self) -> u32 {
        self.header.messages
    }

    /// The table that they belong to.
    pub fn table(&self) -> u32 {
        self.header.table
    }

    /// How they are written.
    pub fn encoding(&self) -> Encoding {
        self.header.encoding
    }

    /// When they were committed, in microseconds since 1970; never before the batch ahead of it.
    pub fn time_us(&self) -> i64 {
        self.header.time_us
    }

    /// Who sent them, where that was said.
    pub fn publication(&self) -> Option<Publication> {
        self.header.has(EXTENSION).then(|| publication(&self.stored)).flatten()
    }

    /// Where its header lies in its segment, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The messages as they were given, unpacked where they were compressed; then at most
    /// [`PAYLOAD_BYTES_MAX`](super::PAYLOAD_BYTES_MAX) bytes are allocated.
    ///
    /// # Errors
    /// [`Error::Payload`] where the compressed bytes are not what the header says. Their checksum
    /// was right, so whoever wrote them was wrong.
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

/// Messages as they were before they were compressed; at most `bytes` of them.
pub(crate) fn unpacked(stored: &[u8], bytes: usize) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(stored, bytes)
}

/// What reading a log comes across, in the order of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A batch.
    Batch(Entry),
    /// Something that was acknowledged is damaged. All around it is kept.
    Damage(Damage),
    /// The end of the log was torn by a crash, while it was written.
    Cut(Cut),
    /// Batches that belong together, of which the last never came: they are left out.
    Unfinished {
        /// Their marks.
        marks: Range<u64>,
    },
}

/// Bytes that were on the disk once and are not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The path of the segment.
    pub path: String,
    /// Which bytes of it; empty where nothing is left of what is missing.
    pub bytes: Range<u64>,
    /// The first mark that may be lost.
    pub first_mark: u64,
    /// The mark after the last one that may be lost: the first one where no message is. None where
    /// nothing tells how many there were.
    pub end_mark: Option<u64>,
}

impl Damage {
    /// Whether messages are lost, or may be.
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

/// The torn end of a log: nobody was told that what lay there was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The path of the segment.
    pub path: String,
    /// Which bytes are left out.
    pub bytes: Range<u64>,
    /// The mark that the next message gets.
    pub next_mark: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { path, bytes, next_mark } = self;
        write!(
            f,
            "{path}: cut off at byte {} ({} bytes): a crash tore what was never acknowledged; the \
             next mark is {next_mark}",
            bytes.start,
            bytes.end - bytes.start
        )
    }
}
