//! Journals truncated and damaged at any byte.

use proptest::prelude::*;
use quarrier_remote::journal::{Claim, Claims, HEADER_BYTES, Header, RECORD_BYTES, read};

const LENGTH: u64 = 1 << 40;

fn claim() -> impl Strategy<Value = Claim> {
    (0..LENGTH - (1 << 20), 1u32..=1 << 20, any::<u64>())
        .prop_map(|(offset, length, checksum)| Claim { offset, length, checksum })
}

fn written(claims: &[Claim]) -> Vec<u8> {
    let header = Header { key: [7; 32], length: LENGTH };
    let records = claims.iter().flat_map(|claim| header.record(claim));
    header.to_bytes().into_iter().chain(records).collect()
}

fn gathered<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> Claims {
    let mut all = Claims::default();
    claims.into_iter().for_each(|claim| all.add(*claim));
    all
}

proptest! {
    #[test]
    fn journals_round_trip(claims in prop::collection::vec(claim(), 0..20)) {
        let (header, read) = read(&written(&claims)).unwrap();
        prop_assert_eq!(header, Header { key: [7; 32], length: LENGTH });
        prop_assert_eq!(read, gathered(&claims));
    }

    #[test]
    fn a_journal_cut_at_any_byte_gives_its_whole_records(
        claims in prop::collection::vec(claim(), 0..6),
    ) {
        let bytes = written(&claims);
        for length in 0..bytes.len() {
            let answer = read(&bytes[..length]);
            prop_assert_eq!(answer.is_some(), length >= HEADER_BYTES);
            if let Some((_, read)) = answer {
                let whole = (length - HEADER_BYTES) / RECORD_BYTES;
                prop_assert_eq!(read, gathered(&claims[..whole]));
            }
        }
    }

    #[test]
    fn a_byte_damaged_anywhere_costs_at_most_its_record(
        claims in prop::collection::vec(claim(), 0..6),
        damage in 1u8..,
    ) {
        let bytes = written(&claims);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= damage;
            let answer = read(&damaged);
            prop_assert_eq!(answer.is_some(), at >= HEADER_BYTES);
            if let Some((_, read)) = answer {
                let lost = (at - HEADER_BYTES) / RECORD_BYTES;
                let left = claims.iter().enumerate().filter(|(n, _)| *n != lost);
                prop_assert_eq!(read, gathered(left.map(|(_, claim)| claim)));
            }
        }
    }

    #[test]
    fn any_bytes_give_claims_within_the_object_or_none(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        length in any::<u64>(),
    ) {
        let header = Header { key: [0; 32], length };
        let whole = [header.to_bytes().to_vec(), bytes].concat();
        let (_, claims) = read(&whole).unwrap();
        for claim in claims.iter() {
            prop_assert!(claim.offset + u64::from(claim.length) <= length);
        }
    }
}

#[test]
fn a_claim_beyond_the_object_is_ignored() {
    let header = Header { key: [1; 32], length: 100 };
    for (offset, length) in [(0, 101), (100, 1), (u64::MAX, 1), (0, 0), (50, 1 << 21)] {
        let claim = Claim { offset, length, checksum: 0 };
        assert_eq!(header.claims(&header.record(&claim)).count(), 0, "{offset} {length}");
    }
    let other = Header { key: [2; 32], length: 100 };
    let claim = Claim { offset: 0, length: 1, checksum: 0 };
    assert_eq!(header.claims(&header.record(&claim)).count(), 1);
    assert_eq!(header.claims(&other.record(&claim)).count(), 0, "a record of another journal");
}

#[test]
fn of_two_claims_at_one_offset_the_later_counts_unless_it_is_shorter() {
    let claim = |length, checksum| Claim { offset: 5, length, checksum };
    assert_eq!(gathered(&[claim(10, 1), claim(10, 2)]), gathered(&[claim(10, 2)]));
    assert_eq!(gathered(&[claim(10, 1), claim(9, 2)]), gathered(&[claim(10, 1)]));
    assert_eq!(gathered(&[claim(9, 1), claim(10, 2)]), gathered(&[claim(10, 2)]));
    let mut claims = gathered(&[claim(10, 1)]);
    claims.remove(&claim(10, 2));
    assert_eq!(claims.iter().count(), 1);
    claims.remove(&claim(10, 1));
    assert_eq!(claims.iter().count(), 0);
}
