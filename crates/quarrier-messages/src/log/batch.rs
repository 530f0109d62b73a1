//! A batch of messages: its header on disk, and the input of a writer.
//!
//! ```text
//!   0  4  "QBAT"                         32  4  bytes after the header, at most 64 MiB and 24
//!   4  1  version, 1                     36  4  bytes of the messages before they were compressed
//!   5  1  encoding                       40  8  committed, µs since 1970, never goes back
//!   6  2  flags                          48  8  CRC-64/NVME of the bytes after the header
//!   8  8  salt of the segment            56  4  distance to the durable end, in 64 bytes
//!  16  8  mark of the first message      60  4  CRC-32C of bytes 0..60 and of the header's place
//!  24  4  table                                 in the segment, 8 bytes
//!  28  4  messages                       64     extension, if flagged: publisher, sequence,
//!                                               source offset, 8 bytes each; then the messages
//! ```
//!
//! A batch begins at a multiple of 64 bytes. The checksum covers the header's place, so a header is valid at
//! one place only: a copy of it inside messages is invalid, even if its author knows the salt.

use crc_fast::{CrcAlgorithm, Digest};

use super::error::{Error, Result};
use super::segment::{crc32, u32_at, u64_at};

/// Length of a header in bytes, and the alignment of batches.
pub(crate) const HEADER_BYTES: u64 = 64;
pub(crate) const EXTENSION_BYTES: usize = 24;
/// Maximum length in bytes of the messages of a batch, compressed or not.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
const MAGIC: &[u8; 4] = b"QBAT";
const VERSION: u8 = 1;

/// The batch belongs to the same chain as the next one.
pub(crate) const MORE: u16 = 1;
pub(crate) const ZSTD: u16 = 2;
pub(crate) const EXTENSION: u16 = 4;
/// The batch belongs to the same chain as the one before.
pub(crate) const CONTINUES: u16 = 8;
/// No messages; the chain before this batch was abandoned.
pub(crate) const ABANDONED: u16 = 16;
/// No messages; the log was closed here, and the file truncated.
pub(crate) const CLOSED: u16 = 32;

/// The encoding of the messages of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// A table's definition in the catalog.
    Definition,
    /// JSON lines, as received.
    Json,
    /// FIX, as received.
    Fix,
    /// NVFIX, as received.
    NvFix,
    /// CSV, as received.
    Csv,
    /// XML, as received.
    Xml,
    /// Typed rows: see [`rows`](super::rows).
    Rows,
    /// Keys of removed rows, as rows.
    KeysRemoved,
    /// No messages: a note of the log itself.
    Note,
    /// An encoding of a later version.
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

/// Identifies a batch by its publisher and sequence, so that the log stores it only once and the publisher
/// can resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// The publisher's number, such as a hash of its name.
    pub publisher: u64,
    /// Increases with each batch of the publisher. A batch whose sequence does not exceed the last one is a
    /// duplicate.
    pub sequence: u64,
    /// The start of the next batch in the publisher's source, in bytes.
    pub source_offset: u64,
}

/// A header as stored on disk.
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
    /// Encodes the header for `place` in the segment.
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

    /// Decodes the header at `place` of any segment; None if there is none.
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

    /// Decodes the header at `place` of the segment with this salt.
    #[inline]
    pub(crate) fn of(bytes: &[u8], place: u64, salt: u64) -> Option<Header> {
        // Most places have no header, and this is the cheapest test.
        if !bytes.starts_with(MAGIC) || u64_at(bytes, 8) != salt {
            return None;
        }
        Header::of_any_segment(bytes, place)
    }

    /// Returns the mark after its last message.
    pub(crate) fn next_mark(&self) -> u64 {
        self.mark.saturating_add(u64::from(self.messages))
    }

    /// Returns the length of the batch with its payload, up to the next place where a batch may begin.
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

/// Computes the checksum of a payload, which may come in pieces.
pub(crate) fn payload_sum<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    pieces.into_iter().for_each(|piece| digest.update(piece));
    digest.finalize()
}

/// Computes the same checksum of bytes that arrive one piece after another.
pub(crate) struct SumOfPieces(Digest);

impl Default for SumOfPieces {
    fn default() -> Self {
        SumOfPieces(Digest::new(CrcAlgorithm::Crc64Nvme))
    }
}

impl SumOfPieces {
    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(crate) fn finish(self) -> u64 {
        self.0.finalize()
    }
}

/// Messages of one table to append to the log.
///
/// A batch keeps their bytes unchanged. Constructing one takes no time. [`compressed`](Batch::compressed)
/// runs on the calling thread, as does the checksum, which [`Log::append`](super::Log::append) computes.
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
    /// Makes a batch of `messages` messages (at least 1), at most [`PAYLOAD_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] without messages or bytes, [`Error::TooLarge`].
    pub fn new(table: u32, encoding: Encoding, messages: u32, payload: Vec<u8>) -> Result<Self> {
        if messages == 0 || payload.is_empty() {
            return Err(Error::Invalid { reason: "it has no messages" });
        }
        if matches!(encoding, Encoding::Note | Encoding::Other(_)) {
            return Err(Error::Invalid { reason: "writers may not use its encoding" });
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

    /// Names the publisher, so that the log stores the batch only once, however often it is sent.
    #[must_use]
    pub fn published(mut self, publication: Publication) -> Self {
        self.publication = Some(publication);
        self
    }

    /// Makes the log accept the batch only if the last one of its publisher has this sequence (0: none). A
    /// publisher that sends more batches before it learns that one was refused thus leaves no gap.
    #[must_use]
    pub fn after(mut self, sequence: u64) -> Self {
        self.after = Some(sequence);
        self
    }

    /// Compresses the messages with zstd at `level` (1 is fast, 3 usual), unless the result would be longer.
    ///
    /// # Errors
    /// [`Error::Payload`] if the library runs out of memory.
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

    /// Returns the bytes that the batch takes in the log, including its header but no padding.
    pub fn stored_bytes(&self) -> u64 {
        let extension = if self.publication.is_some() { EXTENSION_BYTES } else { 0 };
        (HEADER_BYTES + (self.payload.len() + extension) as u64).next_multiple_of(HEADER_BYTES)
    }
}

/// A batch with every field of its header that does not depend on its position in the log.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) header: Header,
    pub(crate) extension: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) publication: Option<Publication>,
    /// The sequence that the publisher's last batch must have.
    pub(crate) after: Option<u64>,
    /// The position in the log: the segment, by its first mark, and the place in it.
    pub(crate) place: (u64, u64),
}

impl Sealed {
    /// Seals a batch and sets further flags.
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
            // `Batch::new` checked both lengths.
            bytes: (extension.len() + batch.payload.len()) as u32,
            bytes_unpacked: batch.bytes_unpacked,
            time_us: 0,
            checksum,
            synced: 0,
        };
        let Batch { payload, publication, after, .. } = batch;
        Sealed { header, extension, payload, publication, after, place: (0, 0) }
    }

    /// Copies a batch without its payload, for counting.
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

    /// Makes a batch without messages.
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

/// Decodes the publication at the start of a payload with [`EXTENSION`].
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
    fn a_header_survives_a_round_trip_only_in_its_place() {
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
    fn encodings_survive_a_round_trip() {
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
    fn incompressible_messages_are_stored_uncompressed() {
        let short =
            Batch::new(1, Encoding::Json, 1, b"{}".to_vec()).unwrap().compressed(3).unwrap();
        assert!(!short.is_compressed && short.payload == b"{}");
        let long = Batch::new(1, Encoding::Json, 1, vec![b' '; 1000]).unwrap();
        assert!(long.compressed(3).unwrap().payload.len() < 100);
    }
}
