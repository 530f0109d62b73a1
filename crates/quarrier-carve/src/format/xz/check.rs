//! The checks at the end of blocks.

use crc_fast::{CrcAlgorithm, Digest};
use sha2::{Digest as _, Sha256};

use crate::crc32::Crc32;

/// The check of a block over its uncompressed bytes so far.
pub(super) enum Check {
    None,
    Crc32(Crc32),
    Crc64(Digest),
    Sha256(Sha256),
    /// A type that no program uses yet: only its length is known.
    Unknown,
}

impl Check {
    /// Makes the check of the type in a stream's header.
    pub(super) fn of_type(number: u8) -> Check {
        match number {
            0 => Check::None,
            1 => Check::Crc32(Crc32::new()),
            4 => Check::Crc64(Digest::new(CrcAlgorithm::Crc64Xz)),
            10 => Check::Sha256(Sha256::new()),
            _ => Check::Unknown,
        }
    }

    /// Returns the length of a check of this type, in bytes.
    pub(super) fn bytes(number: u8) -> u64 {
        match number {
            0 => 0,
            1..=3 => 4,
            4..=6 => 8,
            7..=9 => 16,
            10..=12 => 32,
            _ => 64,
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Check::None | Check::Unknown => {}
            Check::Crc32(crc) => crc.update(bytes),
            Check::Crc64(crc) => crc.update(bytes),
            Check::Sha256(hash) => hash.update(bytes),
        }
    }

    /// Compares it with the check after a block; `None` if its type is unknown.
    pub(super) fn ends(self, stated: &[u8]) -> Option<bool> {
        match self {
            Check::None => Some(true),
            Check::Unknown => None,
            Check::Crc32(crc) => Some(stated == crc.value().to_le_bytes()),
            Check::Crc64(crc) => Some(stated == crc.finalize().to_le_bytes()),
            Check::Sha256(hash) => Some(stated == &hash.finalize()[..]),
        }
    }
}
