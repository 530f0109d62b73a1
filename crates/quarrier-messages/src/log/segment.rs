//! The head of a segment on disk.
//!
//! ```text
//!     0  8  "QUARRLOG"                     40  8  bytes that were made for the segment
//!     8  4  version, 1                     48  8  salt of the segment before, 0 if there is none
//!    12  4  block that groups are          56  8  where that one ends
//!           padded to, in bytes            64    zeros
//!    16  8  salt, random, never 0        2044  4  CRC-32C of bytes 0..2044
//!    24  8  mark of the first message    2048     the same 2,048 bytes once more
//!    32  8  made, µs since 1970          4096     batches
//! ```
//!
//! Numbers are little-endian. The head is synced before the segment is renamed, so an unreadable head is
//! damage, never a torn write. If both copies are damaged, every batch still has the salt.

use crc_fast::{CrcAlgorithm, checksum};

/// Length of the head in bytes, with both copies.
pub(crate) const HEAD_BYTES: u64 = 4096;
const COPY_BYTES: usize = 2048;
const CHECKED_BYTES: usize = COPY_BYTES - 4;
pub(crate) const MAGIC: &[u8; 8] = b"QUARRLOG";
const VERSION: u32 = 1;
/// The extension of a segment's name.
const ENDING: &str = ".qlog";

/// The contents of a segment's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) block_bytes: u32,
    pub(crate) salt: u64,
    pub(crate) first_mark: u64,
    pub(crate) made_us: i64,
    pub(crate) segment_bytes: u64,
    pub(crate) before: Option<Before>,
}

/// The end of the previous segment; later bytes there do not belong to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) salt: u64,
    pub(crate) end: u64,
}

impl Head {
    /// Encodes the head with both copies.
    pub(crate) fn to_bytes(self) -> [u8; HEAD_BYTES as usize] {
        let mut bytes = [0; HEAD_BYTES as usize];
        let before = self.before.unwrap_or(Before { salt: 0, end: 0 });
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.block_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.salt.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_mark.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.made_us.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.segment_bytes.to_le_bytes());
        bytes[48..56].copy_from_slice(&before.salt.to_le_bytes());
        bytes[56..64].copy_from_slice(&before.end.to_le_bytes());
        let sum = crc32(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..COPY_BYTES].copy_from_slice(&sum.to_le_bytes());
        bytes.copy_within(..COPY_BYTES, COPY_BYTES);
        bytes
    }

    /// Decodes the head at the start of `bytes`, and returns whether both copies are intact.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<(Head, bool)> {
        let copy = |at: usize| bytes.get(at..at + COPY_BYTES).and_then(Head::copy);
        match (copy(0), copy(COPY_BYTES)) {
            (Some(head), second) => Some((head, second == Some(head))),
            (None, Some(head)) => Some((head, false)),
            (None, None) => None,
        }
    }

    fn copy(bytes: &[u8]) -> Option<Head> {
        let is_whole = bytes.starts_with(MAGIC)
            && u32_at(bytes, 8) == VERSION
            && u32_at(bytes, CHECKED_BYTES) == crc32(&bytes[..CHECKED_BYTES]);
        let before = Before { salt: u64_at(bytes, 48), end: u64_at(bytes, 56) };
        let head = Head {
            block_bytes: u32_at(bytes, 12),
            salt: u64_at(bytes, 16),
            first_mark: u64_at(bytes, 24),
            made_us: i64::from_le_bytes(u64_at(bytes, 32).to_le_bytes()),
            segment_bytes: u64_at(bytes, 40),
            before: (before.salt != 0).then_some(before),
        };
        let is_possible = head.block_bytes.is_power_of_two()
            && (512..=4096).contains(&head.block_bytes)
            && head.salt != 0
            && head.first_mark != 0;
        (is_whole && is_possible).then_some(head)
    }
}

/// Returns the name of the segment whose first message has this mark.
pub(crate) fn name(first_mark: u64) -> String {
    format!("{first_mark:016x}{ENDING}")
}

/// Parses the mark in a segment's name; None for other names.
pub(crate) fn mark_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(ENDING)?;
    let mark = u64::from_str_radix(digits, 16).ok()?;
    (self::name(mark) == *name).then_some(mark)
}

/// Computes the CRC-32C.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Reads the number at `at`; 0 if there are too few bytes, which no caller passes.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

/// Like [`u32_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head {
        block_bytes: 512,
        salt: 0x0102_0304_0506_0708,
        first_mark: 17,
        made_us: 1_700_000_000_000_000,
        segment_bytes: 1 << 28,
        before: Some(Before { salt: 9, end: 8192 }),
    };

    #[test]
    fn a_head_survives_a_round_trip() {
        let first = Head { before: None, ..HEAD };
        for head in [HEAD, first] {
            assert_eq!(Head::from_bytes(&head.to_bytes()), Some((head, true)));
        }
    }

    #[test]
    fn every_flipped_byte_is_noticed_and_the_other_copy_read() {
        let bytes = HEAD.to_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert_eq!(Head::from_bytes(&damaged), Some((HEAD, false)), "byte {at}");
            damaged[(at + COPY_BYTES) % bytes.len()] ^= 1;
            assert_eq!(Head::from_bytes(&damaged), None, "byte {at} in both");
        }
        assert_eq!(Head::from_bytes(&bytes[..COPY_BYTES]), Some((HEAD, false)));
        assert_eq!(Head::from_bytes(&bytes[..COPY_BYTES - 1]), None);
    }

    #[test]
    fn names_say_marks() {
        assert_eq!(name(0x1f), "000000000000001f.qlog");
        for mark in [1, u64::MAX] {
            assert_eq!(mark_of(&name(mark)), Some(mark));
        }
        for other in ["next.qlog", "1f.qlog", "000000000000001F.qlog", "+00000000000001f.qlog", ""]
        {
            assert_eq!(mark_of(other), None, "{other}");
        }
    }
}
