//! Serialization of indexes that are cached between runs.
//!
//! ```text
//!  "QRYINDEX" │ version, kind │ lengths: of the file, decompressed │ entries … │ CRC-64 of all before
//! ```
//!
//! Numbers are little-endian. The caller of the cache decides which file an index belongs to. In
//! addition, the length is compared, and every decompressed span is verified by a checksum.

use crc_fast::{CrcAlgorithm, checksum};

use crate::bytes::{u32_le, u64_le};

const MAGIC: &[u8; 8] = b"QRYINDEX";
const VERSION: u32 = 1;
const SUM_BYTES: usize = 8;

/// The compression format that an index belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip = 1,
    Bzip2 = 2,
}

/// Serializes an index.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(packing: Packing, file_bytes: u64, unpacked_bytes: u64) -> Self {
        let mut writer = Writer(MAGIC.to_vec());
        writer.u32(VERSION);
        writer.u32(packing as u32);
        writer.u64(file_bytes);
        writer.u64(unpacked_bytes);
        writer
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    /// Writes bytes with a length prefix.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let sum = checksum(CrcAlgorithm::Crc64Nvme, &self.0);
        self.u64(sum);
        self.0
    }
}

/// Parses an index.
pub(super) struct Reader<'i>(&'i [u8]);

impl<'i> Reader<'i> {
    /// Returns the entries of an index and the decompressed length; `None` if it is invalid, damaged,
    /// or of a file with another format or length.
    pub(super) fn new(index: &'i [u8], packing: Packing, file_bytes: u64) -> Option<(Self, u64)> {
        let (index, sum) = index.split_at_checked(index.len().checked_sub(SUM_BYTES)?)?;
        let mut reader = Reader(index.strip_prefix(MAGIC)?);
        let is_right = u64_le(sum, 0) == checksum(CrcAlgorithm::Crc64Nvme, index)
            && reader.u32()? == VERSION
            && reader.u32()? == packing as u32
            && reader.u64()? == file_bytes;
        let unpacked_bytes = reader.u64()?;
        is_right.then_some((reader, unpacked_bytes))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32_le(bytes, 0))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| u64_le(bytes, 0))
    }

    pub(super) fn bytes(&mut self) -> Option<&'i [u8]> {
        let bytes = self.u32()?;
        self.take(bytes as usize)
    }

    /// Reads a number of entries of at least `bytes` bytes each; `None` if that many cannot follow.
    pub(super) fn count(&mut self, bytes: usize) -> Option<usize> {
        let count = self.u32()? as usize;
        (count <= self.0.len() / bytes).then_some(count)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Option<&'i [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }
}
