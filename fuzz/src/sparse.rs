//! Any bytes as a stored sparse file, with a valid checksum: an error, or a file that is the same
//! when it is stored and read again.

use quarrier_sparse::SparseFile;

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "sparse", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    b"QRYSPRS\n\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"QRYSPRS\n\x01\x02id\x01\0\0\0\0\0\0\xF8\x3F\x01\x03\"e\"\x01\xE8\x07\x01\x01\
      \0\0\0\0\0\0\0\0\x02\x05\x03\x01\x02\x02\0abcde",
];

const WORDS: &[&[u8]] = &[
    b"QRYSPRS\n\x01",
    &[0xFF; 9],
    b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
    b"\x80\x80\x04",
    b"\x01\x01\0x",
    b"\0\x01\0x",
];

/// Reads `bytes` and their checksum.
pub fn run(bytes: &[u8]) -> Verdict {
    let mut stored = bytes.to_vec();
    stored.extend_from_slice(&crc32c(bytes).to_le_bytes());
    let mut file = match SparseFile::from_bytes(&stored) {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Verdict::Skipped;
        }
    };
    assert!(
        file.num_bytes() <= bytes.len() as u64 && file.memory_bytes() < 4096 + 64 * bytes.len()
    );
    let again = SparseFile::from_bytes(&file.to_bytes()).map(|again| again.blocks());
    assert_eq!(again, Ok(file.blocks()));
    for block in file.blocks() {
        assert!(file.read(block.offset, block.length).is_ok());
    }
    let held = file.num_bytes();
    assert_eq!(file.evict(held / 2), held - held / 2);
    Verdict::Checked
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0x82F6_3B78 * (crc & 1)))
    })
}
