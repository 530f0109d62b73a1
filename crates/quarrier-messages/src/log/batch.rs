//! A batch of messages: its header, byte by byte, and what a writer is given.
//!
//! ```text
//!   0  4  "QBAT"                         32  4  bytes behind the header, at most 64 MiB and 24
//!   4  1  version, 1                     36  4  bytes of the messages before they were compressed
//!   5  1  encoding                       40  8  committed, µs since 1970, never goes back
//!   6  2  flags                          48  8  CRC-64/NVME of the bytes behind the header
//!   8  8  salt of the segment            56  4  how far back the log is durable, in 64 bytes
//!  16  8  mark of the first message      60  4  CRC-32C of bytes 0..60 and of the header's place
//!  24  4  table                                 in the segment, 8 bytes
//!  28  4  messages                       64     extension, if flagged: publisher, sequence,
//!                                               source offset, 8 bytes each; then the messages
//! ```
//!
//! A batch begins at a multiple of 64 bytes. The place in the checksum makes a header true in one
//! place only, so a copy of it among the messages is none, also for who knows the salt.

use crc_fast::{CrcAlgorithm, Digest};

use super::error::{Error, Result};
use super::segment::{crc32, u32_at, u64_at};

/// Bytes of a header, and what batches are aligned to.
pub(crate) const HEADER_BYTES: u64 = 64;
pub(crate) const EXTENSION_BYTES: usize = 24;
/// The most bytes of messages in a batch, compressed or not.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
const MAGIC: &[u8; 4] = b"QBAT";
const VERSION: u8 = 1;

/// The batch belongs with the one after it.
pub(crate) const MORE: u16 = 1;
pub(crate) const ZSTD: u16 = 2;
pub(crate) const EXTENSION: u16 = 4;
/// The batch belongs with the one before it.
pub(crate) const CONTINUES: u16 = 8;
/// No messages; the chain before it was given up.
pub(crate) const ABANDONED: u16 = 16;
/// No messages; the log was closed here, and the file cut off.
pub(crate) const CLOSED: u16 = 32;

/// How the messages of a batch are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// What a table is: a definition of the catalog.
    Definition,
    /// JSON lines, as they came.
    Json,
    /// FIX, as it came.
    Fix,
    /// NVFIX, as it came.
    NvFix,
    /// CSV, as it came.
    Csv,
    /// XML, as it came.
    Xml,
    /// Typed rows: see [`rows`](super::rows).
    Rows,
    /// Keys of rows that were removed, as rows.
    KeysRemoved,
    /// No messages: a note of the log to itself.
    Note,
    /// Of a later version.
    Other(u8),
}

impl Encoding {
    const ALL: [Encoding; 9] = [
        Encoding::Definition,
        Encoding::Json,
        Encoding::Fix,
        Encoding::NvFix,
        Encoding::Csv,
        Encoding::Xml,
        Encoding::Rows,
        Encoding::KeysRemoved,
        Encoding::Note,
    ];

    pub(crate) fn code(self) -> u8 {
        if let Encoding::Other(code) = self {
            return code;
        }
        Encoding::ALL.iter().position(|other| *other == self).unwrap_or_default() as u8
    }

    pub(crate) fn of(code: u8) -> Self {
        Encoding::ALL.get(usize::from(code)).copied().unwrap_or(Encoding::Other(code))
    }
}

/// Who sent a batch, so that it is taken once and sending can go on where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// The publisher: a number of its own, such as a hash of its name.
    pub publisher: u64,
    /// Rises with each batch of the publisher; a batch whose sequence is not above the last one is
    /// a duplicate.
    pub sequence: u64,
    /// Where in the publisher's source the next batch begins, in bytes.
    pub source_offset: u64,
}

/// A header as it is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) encoding: Encoding,
    pub(crate) flags: u16,
    pub(crate) salt: u64,
    pub(crate) mark: u64,
    pub(crate) table: u32,
    pub(crate) messages: u32,
    pub(crate) bytes: u32,
    pub(crate) bytes_unpacked: u32,
    pub(crate) time_us: i64,
    pub(crate) checksum: u64,
    pub(crate) synced: u32,
}

impl Header {
    /// As it is written at `place` of the segment.
    pub(crate) fn to_bytes(self, place: u64) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = VERSION;
        bytes[5] = self.encoding.code();
        bytes[6..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.salt.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.mark.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.table.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.messages.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.bytes_unpacked.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.time_us.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.synced.to_le_bytes());
        let sum = header_sum(&bytes, place);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header at `place`, of any segment; None where there is none.
    pub(crate) fn of_any_segment(bytes: &[u8], place: u64) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES as usize] = bytes.first_chunk()?;
        if !bytes.starts_with(MAGIC) || bytes[4] != VERSION {
            return None;
        }
        let header = Header {
            encoding: Encoding::of(bytes[5]),
            flags: u16::from_le_bytes([bytes[6], bytes[7]]),
            salt: u64_at(bytes, 8),
            mark: u64_at(bytes, 16),
            table: u32_at(bytes, 24),
            messages: u32_at(bytes, 28),
            bytes: u32_at(bytes, 32),
            bytes_unpacked: u32_at(bytes, 36),
            time_us: i64::from_le_bytes(u64_at(bytes, 40).to_le_bytes()),
            checksum: u64_at(bytes, 48),
            synced: u32_at(bytes, 56),
        };
        let is_possible = header.bytes as usize <= PAYLOAD_BYTES_MAX + EXTENSION_BYTES
            && header.bytes_unpacked as usize <= PAYLOAD_BYTES_MAX
            && header.mark.checked_add(u64::from(header.messages)).is_some();
        (is_possible && u32_at(bytes, 60) == header_sum(bytes, place)).then_some(header)
    }

    /// The header at `place` of the segment with this salt.
    #[inline]
    pub(crate) fn of(bytes: &[u8], place: u64, salt: u64) -> Option<Header> {
        // Most places that are looked at are none, and this is the cheapest test.
        if !bytes.starts_with(MAGIC) || u64_at(bytes, 8) != salt {
            return None;
        }
        Header::of_any_segment(bytes, place)
    }

    /// The mark after its last message.
    pub(crate) fn next_mark(&self) -> u64 {
        self.mark.saturating_add(u64::from(self.messages))
    }

    /// Its length with what follows, up to where another may begin.
    pub(crate) fn extent(&self) -> u64 {
        (HEADER_BYTES + u64::from(self.bytes)).next_multiple_of(HEADER_BYTES)
    }

    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

fn header_sum(bytes: &[u8; HEADER_BYTES as usize], place: u64) -> u32 {
    let mut checked = [0; 68];
    checked[..60].copy_from_slice(&bytes[..60]);
    checked[60..].copy_from_slice(&place.to_le_bytes());
    crc32(&checked)
}

/// The checksum of what follows a header, which may come in pieces.
pub(crate) fn payload_sum<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    pieces.into_iter().for_each(|piece| digest.update(piece));
    digest.finalize()
}

/// Messages for a table, to be appended to the log.
///
/// Their bytes are kept as they are. Making one takes no time; [`compressed`](Batch::compressed) and
/// the checksum, which [`Log::append`](super::Log::append) makes, take the time of the thread that
/// calls.
#[derive(Debug, Clone)]
pub struct Batch {
    pub(crate) table: u32,
    pub(crate) encoding: Encoding,
    pub(crate) messages: u32,
    pub(crate) bytes_unpacked: u32,
    pub(crate) payload: Vec<u8>,
    pub(crate) is_compressed: bool,
    pub(crate) publication: Option<Publication>,
    pub(crate) after: Option<u64>,
}

impl Batch {
    /// A batch of `messages` messages (at least 1), at most [`PAYLOAD_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] without messages or bytes, [`Error::TooLarge`].
    pub fn new(table: u32, encoding: Encoding, messages: u32, payload: Vec<u8>) -> Result<Self> {
        if messages == 0 || payload.is_empty() {
            return Err(Error::Invalid { reason: "it has no messages" });
        }
        if matches!(encoding, Encoding::Note | Encoding::Other(_)) {
            return Err(Error::Invalid { reason: "its encoding is none that a writer may use" });
        }
        let bytes_max = PAYLOAD_BYTES_MAX as u64;
        let bytes_unpacked = u32::try_from(payload.len())
            .ok()
            .filter(|bytes| u64::from(*bytes) <= bytes_max)
            .ok_or(Error::TooLarge { bytes: payload.len() as u64, bytes_max })?;
        Ok(Batch {
            table,
            encoding,
            messages,
            bytes_unpacked,
            payload,
            is_compressed: false,
            publication: None,
            after: None,
        })
    }

    /// Names the publisher, so that the batch is taken once however often it is sent.
    #[must_use]
    pub fn published(mut self, publication: Publication) -> Self {
        self.publication = Some(publication);
        self
    }

    /// Takes the batch only if the last one of its publisher has this sequence (0: if there is none), so
    /// that a publisher leaves no gap when it sends the next batches before it learns that one was refused.
    #[must_use]
    pub fn after(mut self, sequence: u64) -> Self {
        self.after = Some(sequence);
        self
    }

    /// Compresses the messages with zstd at `level` (1 is fast, 3 usual), unless that makes them
    /// longer.
    ///
    /// # Errors
    /// [`Error::Payload`] where the library fails, for want of memory.
    pub fn compressed(mut self, level: i32) -> Result<Self> {
        if self.is_compressed {
            return Ok(self);
        }
        let packed = zstd::bulk::compress(&self.payload, level)
            .map_err(|error| Error::Payload { mark: 0, reason: error.to_string() })?;
        if packed.len() < self.payload.len() {
            self.payload = packed;
            self.is_compressed = true;
        }
        Ok(self)
    }

    /// Bytes that it takes in the log, header included, without padding.
    pub fn stored_bytes(&self) -> u64 {
        let extension = if self.publication.is_some() { EXTENSION_BYTES } else { 0 };
        (HEADER_BYTES + (self.payload.len() + extension) as u64).next_multiple_of(HEADER_BYTES)
    }
}

/// A batch with all of its header that does not depend on where it comes to lie.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) header: Header,
    pub(crate) extension: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) publication: Option<Publication>,
    /// The sequence that the publisher's last batch must have.
    pub(crate) after: Option<u64>,
    /// Where it came to lie: the segment, by its first mark, and the place there.
    pub(crate) place: (u64, u64),
}

impl Sealed {
    /// Seals a batch, with more flags of its own.
    pub(crate) fn of(batch: Batch, mut flags: u16) -> Self {
        let mut extension = Vec::new();
        if let Some(publication) = batch.publication {
            flags |= EXTENSION;
            extension.reserve_exact(EXTENSION_BYTES);
            extension.extend_from_slice(&publication.publisher.to_le_bytes());
            extension.extend_from_slice(&publication.sequence.to_le_bytes());
            extension.extend_from_slice(&publication.source_offset.to_le_bytes());
        }
        if batch.is_compressed {
            flags |= ZSTD;
        }
        let checksum = payload_sum([extension.as_slice(), batch.payload.as_slice()]);
        let header = Header {
            encoding: batch.encoding,
            flags,
            salt: 0,
            mark: 0,
            table: batch.table,
            messages: batch.messages,
            // Both were checked when the batch was made.
            bytes: (extension.len() + batch.payload.len()) as u32,
            bytes_unpacked: batch.bytes_unpacked,
            time_us: 0,
            checksum,
            synced: 0,
        };
        let Batch { payload, publication, after, .. } = batch;
        Sealed { header, extension, payload, publication, after, place: (0, 0) }
    }

    /// The same without its bytes, for whoever only counts them.
    pub(crate) fn hollow(other: &Sealed) -> Self {
        Sealed {
            header: other.header,
            extension: Vec::new(),
            payload: Vec::new(),
            publication: other.publication,
            after: other.after,
            place: other.place,
        }
    }

    /// A batch without messages.
    pub(crate) fn note(flags: u16) -> Self {
        let header = Header {
            encoding: Encoding::Note,
            flags,
            salt: 0,
            mark: 0,
            table: 0,
            messages: 0,
            bytes: 0,
            bytes_unpacked: 0,
            time_us: 0,
            checksum: payload_sum([]),
            synced: 0,
        };
        let (extension, payload) = (Vec::new(), Vec::new());
        Sealed { header, extension, payload, publication: None, after: None, place: (0, 0) }
    }
}

/// The publication at the beginning of what follows a header with [`EXTENSION`].
pub(crate) fn publication(bytes: &[u8]) -> Option<Publication> {
    let bytes: &[u8; EXTENSION_BYTES] = bytes.first_chunk()?;
    Some(Publication {
        publisher: u64_at(bytes, 0),
        sequence: u64_at(bytes, 8),
        source_offset: u64_at(bytes, 16),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let batch = Batch::new(3, Encoding::Json, 2, b"{}\n{}\n".to_vec()).unwrap();
        let publication = Publication { publisher: 7, sequence: 8, source_offset: 9 };
        let mut header = Sealed::of(batch.published(publication), MORE).header;
        (header.salt, header.mark, header.time_us, header.synced) = (5, 6, 7, 8);
        header
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_only_in_its_place() {
        let bytes = header().to_bytes(4096);
        assert_eq!(Header::of(&bytes, 4096, 5), Some(header()));
        assert_eq!(Header::of(&bytes, 4096 + 64, 5), None);
        assert_eq!(Header::of(&bytes, 4096, 6), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            assert_eq!(Header::of(&damaged, 4096, 5), None, "byte {at}");
        }
    }

    #[test]
    fn encodings_are_read_as_they_were_written() {
        for code in 0..=u8::MAX {
            assert_eq!(Encoding::of(code).code(), code);
        }
    }

    #[test]
    fn a_batch_needs_messages_and_a_length_that_fits() {
        for (messages, payload) in [(0, vec![1]), (1, vec![]), (1, vec![0; PAYLOAD_BYTES_MAX + 1])]
        {
            assert!(Batch::new(1, Encoding::Json, messages, payload).is_err());
        }
        assert!(Batch::new(1, Encoding::Note, 1, vec![1]).is_err());
    }

    #[test]
    fn what_does_not_get_shorter_is_not_compressed() {
        let short =
            Batch::new(1, Encoding::Json, 1, b"{}".to_vec()).unwrap().compressed(3).unwrap();
        assert!(!short.is_compressed && short.payload == b"{}");
        let long = Batch::new(1, Encoding::Json, 1, vec![b' '; 1000]).unwrap();
        assert!(long.compressed(3).unwrap().payload.len() < 100);
    }
}
