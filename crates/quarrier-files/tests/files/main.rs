//! Tests of file systems.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

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
