//! Serialized files, and invalid bytes.

use proptest::prelude::*;
use quarrier_sparse::{OnConflict, Span, SparseFile};

fn sample() -> SparseFile {
    let mut file = SparseFile::builder("näme")
        .modified(1.5)
        .etag("\"abc\"")
        .length(1 << 50)
        .on_conflict(OnConflict::Replace)
        .wipe(true)
        .build();
    for (offset, length) in [(0, 3), (100, 70_000), (1 << 49, 1), ((1 << 50) - 1, 1)] {
        file.write(offset, &vec![offset as u8; length]).unwrap();
    }
    file.read(100, 5).unwrap();
    file
}

#[test]
fn a_file_comes_back_whole() {
    let file = sample();
    let mut back = SparseFile::from_bytes(&file.to_bytes()).unwrap();
    assert_eq!((back.id(), back.modified(), back.etag()), ("näme", Some(1.5), Some("\"abc\"")));
    assert_eq!((back.length(), back.wipes()), (Some(1 << 50), true));
    assert_eq!(back.on_conflict(), OnConflict::Replace);
    assert_eq!((back.blocks(), back.counters()), (file.blocks(), file.counters()));
    // The order of use survives.
    back.evict(65_536);
    assert_eq!(back.blocks(), [Span::new(100, 65_536)]);
    assert_eq!(back.read(100, 65_536).unwrap(), file.read(100, 65_536).unwrap());
}

#[test]
fn every_bit_that_flips_and_every_end_that_is_cut_off_is_noticed() {
    let mut file = SparseFile::new("x");
    file.write(3, b"abc").unwrap();
    let bytes = file.to_bytes();
    for at in 0..bytes.len() {
        assert!(SparseFile::from_bytes(&bytes[..at]).is_err());
        for bit in 0..8 {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << bit;
            assert!(SparseFile::from_bytes(&wrong).is_err(), "bit {bit} of byte {at}");
        }
    }
}

proptest! {
    #[test]
    fn bytes_that_are_no_file_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let with_head = [&b"QRYSPRS\n\x01"[..], &bytes].concat();
        prop_assert!(SparseFile::from_bytes(&bytes).is_err());
        prop_assert!(SparseFile::from_bytes(&with_head).is_err());
    }
}
