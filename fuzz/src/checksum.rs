//! CRC-32, bit by bit: so that hostile bytes stand where checksums are right.

/// The checksum of zip, xz, 7z and GPT.
pub(crate) fn crc32(bytes: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 };
        }
    }
    (!crc).to_le_bytes()
}
