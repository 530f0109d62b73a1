//! The journal of a cached object, which lists the blocks that are in the data file.
//!
//! ```text
//!  0  header, 64 bytes          64  record, 32 bytes      96  record      …
//!
//!  header                                 record
//!   0  8  "QRYCACH\n"                      0  8  offset of the block in object and data file
//!   8  4  version, 1                       8  4  length of the block, 1 to 1,048,576
//!  12  4  0                               12  4  0
//!  16 32  key: SHA-256 of identity        16  8  CRC-64/NVME of the block's bytes
//!         and version, see the cache      24  8  CRC-64/NVME of the key and of bytes 0..24
//!  48  8  length of the object                   of the record
//!  56  8  CRC-64/NVME of bytes 0..56
//! ```
//!
//! Numbers are little-endian. A record is appended, under a lock and by one write, after the
//! block's bytes were written to the data file. It is a *claim*: readers of the block verify its
//! checksum first, so a claim that reached the disk before its bytes (in a power failure) costs
//! only a fetch. Torn and damaged records are skipped, as are the bytes after the last complete
//! record. Of two records for the same offset, the later one counts unless it is shorter.

use std::collections::BTreeMap;

use crc_fast::{CrcAlgorithm, Digest, checksum};
use quarrier_sparse::Span;

/// Size of the header.
pub const HEADER_BYTES: usize = 64;
/// Size of a record.
pub const RECORD_BYTES: usize = 32;
/// Maximum size of a claimed block.
pub const BLOCK_BYTES_MAX: u32 = 1 << 20;

const MAGIC: &[u8; 8] = b"QRYCACH\n";
const VERSION: u32 = 1;

/// The hash of an object's identity and version; a hash, so that no URL is stored on disk.
pub type Key = [u8; 32];

/// The header of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The key of the object.
    pub key: Key,
    /// The object's length in bytes.
    pub length: u64,
}

/// A block that, according to the journal, is in the data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Start of the block, in the object and in the data file.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u32,
    /// [`block_checksum`] of its bytes.
    pub checksum: u64,
}

impl Claim {
    /// Creates a claim for `bytes` at `offset`; `None` if they are empty or too many.
    pub fn of(offset: u64, bytes: &[u8]) -> Option<Self> {
        let length =
            u32::try_from(bytes.len()).ok().filter(|n| (1..=BLOCK_BYTES_MAX).contains(n))?;
        offset.checked_add(u64::from(length))?;
        Some(Claim { offset, length, checksum: block_checksum(bytes) })
    }

    /// The range of the object.
    pub fn span(&self) -> Span {
        Span { offset: self.offset, length: u64::from(self.length) }
    }
}

/// The checksum of a block's bytes.
pub fn block_checksum(bytes: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

impl Header {
    /// Serializes the header.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.key);
        bytes[48..56].copy_from_slice(&self.length.to_le_bytes());
        let sum = checksum(CrcAlgorithm::Crc64Nvme, &bytes[..56]);
        bytes[56..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses the header at the start of `bytes`; `None` if it is invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let key = bytes[16..].first_chunk().copied()?;
        let header = Header { key, length: number(&bytes[48..]) };
        (header.to_bytes() == *bytes).then_some(header)
    }

    /// Serializes a claim as a record.
    pub fn record(&self, claim: &Claim) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&claim.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&claim.length.to_le_bytes());
        bytes[16..24].copy_from_slice(&claim.checksum.to_le_bytes());
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        digest.update(&self.key);
        digest.update(&bytes[..24]);
        bytes[24..].copy_from_slice(&digest.finalize().to_le_bytes());
        bytes
    }

    /// Parses complete records into claims, in order, skipping damaged ones and those outside of
    /// the object.
    pub fn claims<'r>(&'r self, records: &'r [u8]) -> impl Iterator<Item = Claim> + 'r {
        records.chunks_exact(RECORD_BYTES).filter_map(|record| self.claim(record))
    }

    fn claim(&self, record: &[u8]) -> Option<Claim> {
        let length = u32::from_le_bytes(record[8..].first_chunk().copied()?);
        let claim = Claim { offset: number(record), length, checksum: number(&record[16..]) };
        let is_within = (1..=BLOCK_BYTES_MAX).contains(&length)
            && claim.offset.checked_add(u64::from(length)).is_some_and(|end| end <= self.length);
        (is_within && self.record(&claim) == *record).then_some(claim)
    }
}

/// Parses eight little-endian bytes; 0 if there are fewer, which callers prevent.
fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Parses a journal; `None` if the bytes are not one. Never panics.
pub fn read(bytes: &[u8]) -> Option<(Header, Claims)> {
    let header = Header::from_bytes(bytes)?;
    let mut claims = Claims::default();
    header.claims(&bytes[HEADER_BYTES..]).for_each(|claim| claims.add(claim));
    Some((header, claims))
}

/// The claims of a journal, sorted by offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims(BTreeMap<u64, Claim>);

impl Claims {
    /// Adds the claim of the next record.
    pub fn add(&mut self, claim: Claim) {
        let is_longer = self.0.get(&claim.offset).is_some_and(|old| old.length > claim.length);
        if !is_longer {
            self.0.insert(claim.offset, claim);
        }
    }

    /// Removes a claim that turned out to be wrong.
    pub fn remove(&mut self, claim: &Claim) {
        if self.0.get(&claim.offset) == Some(claim) {
            self.0.remove(&claim.offset);
        }
    }

    /// The claims that overlap `span`, sorted by offset.
    pub fn overlapping(&self, span: Span) -> impl Iterator<Item = Claim> + '_ {
        let from = span.offset.saturating_sub(u64::from(BLOCK_BYTES_MAX));
        let claims = self.0.range(from..span.end()).map(|(_, claim)| *claim);
        claims.filter(move |claim| claim.span().end() > span.offset)
    }

    /// All claims, sorted by offset.
    pub fn iter(&self) -> impl Iterator<Item = Claim> + '_ {
        self.0.values().copied()
    }
}
