//! CRC-32, bit by bit, to give hostile bytes valid checksums.

/// Returns the checksum of zip, xz, 7z and GPT.
pub(crate) fn crc32(bytes: &[u8]) -> [u8; 4] {
    reflected(bytes, 0xEDB8_8320)
}

/// Returns the checksum of the log's headers: CRC-32C.
pub(crate) fn crc32c(bytes: &[u8]) -> [u8; 4] {
    reflected(bytes, 0x82F6_3B78)
}

fn reflected(bytes: &[u8], polynomial: u32) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { polynomial } else { 0 };
        }
    }
    (!crc).to_le_bytes()
}
