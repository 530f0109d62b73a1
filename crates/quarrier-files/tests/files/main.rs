//! Tests of file systems.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]

mod known_sets;
mod list;
mod unallocated;

/// CRC-32 of ISO 3309, bit by bit.
fn crc32(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32, byte: &u8| {
        let shift = |crc: u32| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xEDB8_8320 };
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| shift(crc))
    };
    (!bytes.iter().fold(!0, step)).to_le_bytes()
}
