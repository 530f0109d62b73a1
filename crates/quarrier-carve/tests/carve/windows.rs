//! Windows formats: event logs, registry hives, shortcuts, and Outlook's mail stores.

use quarrier_carve::Verdict;
use quarrier_carve::format::{evtx::Evtx, hive::Hive, lnk::Lnk, pst::Pst};

use crate::sample::{check_whole_file, validated};

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn crc32(bytes: &[u8]) -> [u8; 4] {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

fn log(chunks: u16) -> Vec<u8> {
    let mut file = vec![0; 4096];
    put(&mut file, 0, b"ElfFile\0");
    put(&mut file, 42, &chunks.to_le_bytes());
    let sum = crc32(&file[..120]);
    put(&mut file, 124, &sum);
    for number in 0..chunks {
        let mut chunk = vec![number as u8; 65536];
        put(&mut chunk, 0, b"ElfChnk\0");
        put(&mut chunk, 48, &3000u32.to_le_bytes());
        let sum = crc32(&chunk[512..3000]);
        put(&mut chunk, 52, &sum);
        let sum = crc32(&[&chunk[..120], &chunk[128..512]].concat());
        put(&mut chunk, 124, &sum);
        file.extend_from_slice(&chunk);
    }
    file
}

#[test]
fn a_log_has_its_stated_or_its_valid_chunks() {
    check_whole_file(&Evtx, "evtx", &log(2));
    let mut broken = log(3);
    broken[4096 + 65536 + 600] ^= 1;
    let verdict = validated(&Evtx, &broken, &[]);
    assert!(matches!(verdict, Verdict::Broken { sure: 69632, at: 69632, .. }), "{verdict:?}");
}

fn hive(bins: u32) -> Vec<u8> {
    let mut file = vec![0; 4096];
    put(&mut file, 0, b"regf");
    put(&mut file, 20, &1u32.to_le_bytes());
    put(&mut file, 40, &(bins * 4096).to_le_bytes());
    let words = file[..508]
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    let sum = words.fold(0, |sum, word| sum ^ word);
    put(&mut file, 508, &sum.to_le_bytes());
    for bin in 0..bins {
        let mut bytes = vec![0x33; 4096];
        put(&mut bytes, 0, b"hbin");
        put(&mut bytes, 4, &(bin * 4096).to_le_bytes());
        put(&mut bytes, 8, &4096u32.to_le_bytes());
        put(&mut bytes, 32, &(-104i32).to_le_bytes());
        put(&mut bytes, 136, &(4096i32 - 136).to_le_bytes());
        file.extend_from_slice(&bytes);
    }
    file
}

#[test]
fn a_hive_is_a_chain_of_bins() {
    check_whole_file(&Hive, "hive", &hive(5));
    let mut broken = hive(5);
    broken[3 * 4096 + 32] = 1;
    let verdict = validated(&Hive, &broken, &[]);
    assert!(matches!(verdict, Verdict::Broken { at: 12288, .. }), "{verdict:?}");
}

#[test]
fn a_shortcut_is_as_long_as_its_structures() {
    let mut file = vec![0; 76];
    put(&mut file, 0, &[0x4C, 0, 0, 0, 1, 0x14, 2, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46]);
    // Items, and a name with two bytes per character.
    put(&mut file, 20, &(1u32 | 4 | 0x80).to_le_bytes());
    file.extend_from_slice(&[12, 0, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
    file.extend_from_slice(&[2, 0, b'a', 0, b'b', 0]);
    file.extend_from_slice(&[16, 0, 0, 0, 5, 0, 0, 0xA0, 1, 2, 3, 4, 5, 6, 7, 8]);
    file.extend_from_slice(&[0; 4]);
    check_whole_file(&Lnk, "lnk", &file);
}

#[test]
fn a_mail_store_has_the_length_in_its_header() {
    let length = 0x4400 + 253_952 + 1024;
    let mut file = vec![0x5A; length];
    put(&mut file, 0, b"!BDN");
    put(&mut file, 8, b"SM");
    put(&mut file, 10, &23u16.to_le_bytes());
    put(&mut file, 184, &(length as u64).to_le_bytes());
    for (at, place, kind) in [(224, 0x5000u64, 0x81u8), (240, 0x5200, 0x80)] {
        put(&mut file, at, &place.to_le_bytes());
        put(&mut file, place as usize + 496, &[kind, kind]);
    }
    for map in [0x4400, 0x4400 + 253_952] {
        put(&mut file, map + 496, &[0x84, 0x84]);
    }
    let sum = file[8..479].iter().fold(0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 * (sum & 1)))
    });
    put(&mut file, 4, &sum.to_le_bytes());
    check_whole_file(&Pst, "pst", &file);
    put(&mut file, 0x4400 + 253_952 + 496, &[0x83]);
    let verdict = validated(&Pst, &file, &[]);
    assert!(matches!(verdict, Verdict::Broken { at: 271_360, .. }), "{verdict:?}");
}
