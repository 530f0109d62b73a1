//! The checksum of zip, gzip and PNG: CRC-32 as ISO 3309 has it.

use crc_fast::{CrcAlgorithm, Digest};

const ALGORITHM: CrcAlgorithm = CrcAlgorithm::Crc32IsoHdlc;

/// A checksum that grows with what it is shown.
#[derive(Clone)]
pub(crate) struct Crc32(Digest);

impl Crc32 {
    pub(crate) fn new() -> Self {
        Crc32(Digest::new(ALGORITHM))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}
