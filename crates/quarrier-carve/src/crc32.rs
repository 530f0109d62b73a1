//! The checksum of zip, gzip and PNG: CRC-32 as ISO 3309 has it.

use std::ops::Range;

use crc_fast::{CrcAlgorithm, Digest};

use crate::view::View;

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

/// The checksum of `bytes`.
pub(crate) fn of(bytes: &[u8]) -> u32 {
    crc_fast::checksum(ALGORITHM, bytes) as u32
}

/// The checksum of the bytes of `range`, or `None` where there are not as many.
pub(crate) fn of_range(view: &mut View<'_>, range: Range<u64>) -> Option<u32> {
    let bytes = range.end.checked_sub(range.start)?;
    let mut crc = Crc32::new();
    (view.each(range, |piece| crc.update(piece)) == bytes).then(|| crc.value())
}

/// The checksum of bytes whose checksum is `first`, followed by `bytes` bytes whose checksum is
/// `second`.
pub(crate) fn joined(first: u32, second: u32, bytes: u64) -> u32 {
    crc_fast::checksum_combine(ALGORITHM, first.into(), second.into(), bytes) as u32
}
