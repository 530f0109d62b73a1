//! Any bytes as the journal of a cached object: none, or claims that lie within the object and are
//! read back as written.

use quarrier_remote::journal::{self, Claims, Header};

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "journal", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    b"QRYCACH\n\x01\0\0\0\0\0\0\0",
    &[0; 40],
    b"\x10\x27\0\0\0\0\0\0\x64\0\0\0\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08",
];

const WORDS: &[&[u8]] = &[
    b"QRYCACH\n",
    b"\x01\0\0\0",
    &[0xFF; 8],
    &[0; 8],
    b"\0\0\x10\0",
    b"\x01\0\x10\0",
    b"\x01\0\0\0\0\0\0\0",
];

/// Reads `bytes` as a whole journal, and after a valid header: unchanged, and as records of 24
/// bytes with corrected checksums.
pub fn run(bytes: &[u8]) -> Verdict {
    if let Some((header, claims)) = journal::read(bytes) {
        check(header, &claims);
    }
    let length = bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let header = Header { key: [7; 32], length };
    let whole = [&header.to_bytes()[..], bytes].concat();
    let Some((read, claims)) = journal::read(&whole) else { panic!("its own header") };
    assert_eq!(read, header);
    check(header, &claims);
    let mut mended = header.to_bytes().to_vec();
    for record in bytes.chunks_exact(24) {
        let (Some(offset), Some(length)) = (record.first_chunk(), record[8..].first_chunk()) else {
            panic!("a record has 24 bytes");
        };
        let claim = journal::Claim {
            offset: u64::from_le_bytes(*offset),
            length: u32::from_le_bytes(*length),
            checksum: record[16..].first_chunk().map_or(0, |sum| u64::from_le_bytes(*sum)),
        };
        mended.extend_from_slice(&header.record(&claim));
    }
    let Some((_, claims)) = journal::read(&mended) else { panic!("its own header") };
    check(header, &claims);
    if claims.iter().next().is_some() { Verdict::Checked } else { Verdict::Skipped }
}

fn check(header: Header, claims: &Claims) {
    let mut written = header.to_bytes().to_vec();
    for claim in claims.iter() {
        let end = claim.offset.checked_add(u64::from(claim.length));
        assert!(end.is_some_and(|end| end <= header.length), "{claim:?} of {}", header.length);
        assert!(claim.length > 0 && claim.length <= journal::BLOCK_BYTES_MAX);
        assert!(claims.overlapping(claim.span()).any(|found| found == claim));
        written.extend_from_slice(&header.record(&claim));
    }
    assert_eq!(journal::read(&written).as_ref(), Some(&(header, claims.clone())));
}
