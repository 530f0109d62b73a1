//! The checksum of zip, gzip and PNG: CRC-32 of ISO 3309.

use std::ops::Range;

use crc_fast::{CrcAlgorithm, Digest};

use crate::view::View;

const ALGORITHM: CrcAlgorithm = CrcAlgorithm::Crc32IsoHdlc;

/// An incremental checksum.
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

/// Returns the checksum of `bytes`.
pub(crate) fn of(bytes: &[u8]) -> u32 {
    crc_fast::checksum(ALGORITHM, bytes) as u32
}

/// Returns the checksum of the bytes of `range`; `None` if the view ends before.
pub(crate) fn of_range(view: &mut View<'_>, range: Range<u64>) -> Option<u32> {
    let bytes = range.end.checked_sub(range.start)?;
    let mut crc = Crc32::new();
    (view.each(range, |piece| crc.update(piece)) == bytes).then(|| crc.value())
}

/// The polynomial, with the lowest power in the highest bit.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// The effect on a checksum of appending a number of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Appended(u32);

impl Appended {
    pub(crate) fn new(bytes: u64) -> Self {
        // The polynomial x to the power of the number of appended bits, by squaring.
        let (mut power, mut square, mut left) = (1 << 31, 1 << 23, bytes);
        while left > 0 {
            if left & 1 != 0 {
                power = product(square, power);
            }
            square = product(square, square);
            left >>= 1;
        }
        Appended(power)
    }

    /// Returns the checksum of bytes with the checksum `first`, followed by that number of bytes
    /// with the checksum `second`.
    pub(crate) fn joined(self, first: u32, second: u32) -> u32 {
        product(self.0, first) ^ second
    }
}

/// Multiplies two polynomials, whose lowest power is in the highest bit.
fn product(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        product ^= b & 0u32.wrapping_sub(a >> bit & 1);
        b = b >> 1 ^ POLYNOMIAL & 0u32.wrapping_sub(b & 1);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_parts_joined_are_that_of_the_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|n| ((n * n) >> 3) as u8).collect();
        for cut in [0, 1, 2, 63, 64, 1000, 4096, 4999, 5000] {
            let (first, second) = bytes.split_at(cut);
            let appended = Appended::new(second.len() as u64);
            assert_eq!(appended.joined(of(first), of(second)), of(&bytes), "cut at {cut}");
        }
    }
}
