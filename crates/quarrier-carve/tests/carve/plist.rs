//! Binary property lists.

use quarrier_carve::Verdict;
use quarrier_carve::format::plist::Plist;

use crate::sample::{check_whole_file, validated};

/// Makes a list of strings, with references of one byte and offsets of two.
fn list(count: u8) -> Vec<u8> {
    let mut file = b"bplist00".to_vec();
    let mut places = vec![8u16];
    file.extend_from_slice(&[0xAF, 0x10, count]);
    file.extend(1..=count);
    for index in 0..count {
        places.push(file.len() as u16);
        file.push(0x50 | (index % 8));
        file.extend((0..index % 8).map(|n| b'a' + n));
    }
    let table = file.len() as u64;
    places.iter().for_each(|place| file.extend_from_slice(&place.to_be_bytes()));
    file.extend_from_slice(&[0, 0, 0, 0, 0, 0, 2, 1]);
    for value in [places.len() as u64, 0, table] {
        file.extend_from_slice(&value.to_be_bytes());
    }
    file
}

#[test]
fn a_list_ends_after_its_trailer() {
    check_whole_file(&Plist, "bplist", &list(40));
}

#[test]
fn counts_without_measure_come_to_an_end() {
    for marker in [0x4F, 0x5F, 0x6F, 0xAF, 0xDF] {
        for count in [0x13u8, 0x1F, 0x10] {
            let file = [b"bplist00", &[marker, count][..], &[0x80; 8]].concat();
            let verdict = validated(&Plist, &file, &[0xFF; 100]);
            assert!(!matches!(verdict, Verdict::Whole { .. }), "{verdict:?}");
        }
    }
}
