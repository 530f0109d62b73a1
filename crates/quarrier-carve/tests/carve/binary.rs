//! ELF, PE, class files, captured packets, ASF, MPEG program streams.

use quarrier_carve::format::pcap::{Pcap, PcapNg};
use quarrier_carve::format::{asf::Asf, class::Class, elf::Elf, mpg::Mpg, pe::Pe};
use quarrier_carve::{Format, Verdict};

use crate::sample::{check_whole_file, validated};
use crate::sound::noise;

fn whole(format: &dyn Format, bytes: &[u8], after: &[u8]) -> Option<u64> {
    match validated(format, bytes, after) {
        Verdict::Whole { length, .. } => Some(length),
        _ => None,
    }
}

/// Makes a 64-bit program with one segment and two sections, whose table is at the end.
pub(crate) fn elf() -> Vec<u8> {
    let mut file = b"\x7FELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for word in [0u64, 64, 320] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0; 4]);
    for half in [64u16, 56, 1, 64, 2, 1] {
        file.extend(half.to_le_bytes());
    }
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0u64, 0, 0, 300, 300, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(noise(200, 4));
    file.extend([0; 64]);
    file.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    for word in [0u64, 0, 120, 180, 0, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    file
}

#[test]
fn elf_ends_with_the_last_byte_of_its_tables() {
    check_whole_file(&Elf, "elf", &elf());
    for (place, bytes) in [(40, [0xFF; 8]), (32, [0xFF; 8]), (408, [0xFF; 8])] {
        let mut file = elf();
        file[place..place + 8].copy_from_slice(&bytes);
        assert_eq!(whole(&Elf, &file, &[0; 500]), None, "at {place}");
    }
    // Simulates fragments: foreign data replace the section table.
    let mut file = elf();
    file[320..448].copy_from_slice(&noise(128, 8));
    assert_eq!(whole(&Elf, &file, &[]), None);
}

/// Makes a program with one section, and optionally a checksum.
pub(crate) fn pe(flags: u16, has_checksum: bool) -> Vec<u8> {
    let mut file = b"MZ\x90\0\x03\0\0\0\x04\0".to_vec();
    file.resize(128, 0);
    file[60] = 128;
    file.extend(b"PE\0\0\x64\x86\x01\0");
    file.extend([0; 12]);
    file.extend(240u16.to_le_bytes());
    file.extend(flags.to_le_bytes());
    let optional = file.len();
    file.resize(optional + 240, 0);
    file[optional..optional + 2].copy_from_slice(&0x20Bu16.to_le_bytes());
    file[optional + 60..optional + 64].copy_from_slice(&512u32.to_le_bytes());
    file[optional + 108] = 16;
    let mut section = b".text\0\0\0".to_vec();
    section.extend([0; 8]);
    section.extend(1000u32.to_le_bytes());
    section.extend(512u32.to_le_bytes());
    section.resize(40, 0);
    file.extend(section);
    file.resize(512, 0);
    file.extend(noise(1000, 6));
    if has_checksum {
        let pairs = file.chunks(2).map(|pair| u64::from(u16::from_le_bytes([pair[0], pair[1]])));
        let mut sum: u64 = pairs.sum();
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        let sum = (sum as u32 + file.len() as u32).to_le_bytes();
        file[optional + 64..optional + 68].copy_from_slice(&sum);
    }
    file
}

#[test]
fn pe_ends_with_the_last_section_and_its_checksum_is_verified() {
    check_whole_file(&Pe, "exe", &pe(0x22, false));
    check_whole_file(&Pe, "dll", &pe(0x2022, true));
    let mut file = pe(0x22, true);
    let last = file.len() - 1;
    file[last] ^= 0x40;
    assert_eq!(whole(&Pe, &file, &[]), None);
}

/// Makes a class with a field and an attribute.
pub(crate) fn class() -> Vec<u8> {
    let mut file = b"\xCA\xFE\xBA\xBE\0\0\0\x41\0\x07".to_vec();
    file.extend(b"\x01\0\x04Name\x07\0\x01\x05\0\0\0\0\0\0\0\x09\x01\0\x01I\x01\0\x01x");
    file.extend(b"\0\x21\0\x02\0\0\0\0\0\x01\0\0\0\x06\0\x05\0\0\0\0\0\x01\0\x01\0\0\0\x05bytes");
    file
}

#[test]
fn class_ends_with_its_last_attribute() {
    check_whole_file(&Class, "class", &class());
    let mut file = class();
    let place = file.len() - 9;
    file[place..place + 4].copy_from_slice(&[0xFF; 4]);
    assert!(matches!(validated(&Class, &file, &[0; 100]), Verdict::Broken { .. }));
    // Apple's fat binaries have the same magic number.
    assert_eq!(
        validated(&Class, b"\xCA\xFE\xBA\xBE\0\0\0\x02\x01\0\0\x07", &[0; 99]),
        Verdict::Not
    );
}

#[test]
fn pcap_is_whole_if_zeros_fill_its_last_sector() {
    let mut file = b"\xD4\xC3\xB2\xA1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x01\0\0\0".to_vec();
    for number in 0..20u32 {
        for word in [1_700_000_000 + number, number, 60 + number, 60 + number] {
            file.extend(word.to_le_bytes());
        }
        file.extend(noise(60 + number as usize, u64::from(number) + 3));
    }
    let length = file.len() as u64;
    assert_eq!(whole(&Pcap, &file, &[0; 4000]), Some(length));
    assert_eq!(whole(&Pcap, &file, &[]), Some(length));
    match validated(&Pcap, &file, &noise(4000, 77)) {
        Verdict::Broken { sure, at, .. } => assert_eq!((sure, at), (length, length)),
        other => panic!("{other:?}"),
    }
    assert_eq!(validated(&Pcap, &file[..24], &[0; 4000]), Verdict::Not);
}

#[test]
fn pcapng_ends_with_the_last_block_that_says_its_length_twice() {
    for is_big in [false, true] {
        let number = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
        let block = |kind: u32, body: &[u8]| {
            let bytes = number(body.len() as u32 + 12);
            [&number(kind)[..], &bytes, body, &bytes].concat()
        };
        let begin = [&number(0x1A2B_3C4D)[..], &[0; 12]].concat();
        let file = [
            block(0x0A0D_0D0A, &begin),
            block(1, &[0; 8]),
            block(6, &noise(120, 4)),
            block(6, &noise(80, 5)),
        ];
        let all = file.concat();
        assert_eq!(whole(&PcapNg, &all, &noise(500, 9)), Some(all.len() as u64));
        let mut broken = all.clone();
        let last = broken.len() - 1;
        broken[last] ^= 8;
        let sure = (all.len() - file[3].len()) as u64;
        match validated(&PcapNg, &broken, &[]) {
            Verdict::Broken { sure: found, .. } => assert_eq!(found, sure),
            other => panic!("{other:?}"),
        }
    }
}

fn object(name: &[u8; 8], body: &[u8]) -> Vec<u8> {
    let bytes = (body.len() as u64 + 24).to_le_bytes();
    [&name[..], &[0xAA; 8], &bytes, body].concat()
}

pub(crate) fn asf() -> Vec<u8> {
    let packets: Vec<u8> =
        (1..5u64).flat_map(|number| [&[0x82, 0, 0][..], &noise(497, number)].concat()).collect();
    let data = object(b"\x36\x26\xB2\x75\x8E\x66\xCF\x11", &[&[0; 26][..], &packets].concat());
    let mut properties = vec![0; 80];
    properties[68..72].copy_from_slice(&500u32.to_le_bytes());
    let kind = [&b"\xC0\xEF\x19\xBC\x4D\x5B\xCF\x11"[..], &[0; 46]].concat();
    let stream = object(b"\x91\x07\xDC\xB7\xB7\xA9\xCF\x11", &kind);
    let of_properties = 24 + properties.len();
    let all = 30 + of_properties + stream.len() + data.len();
    properties[16..24].copy_from_slice(&(all as u64).to_le_bytes());
    let properties = object(b"\xA1\xDC\xAB\x8C\x47\xA9\xCF\x11", &properties);
    let objects = [&[2, 0, 0, 0, 1, 2][..], &properties, &stream].concat();
    let mut header = object(b"\x30\x26\xB2\x75\x8E\x66\xCF\x11", &objects);
    header[8..16].copy_from_slice(b"\xA6\xD9\x00\xAA\x00\x62\xCE\x6C");
    [header, data].concat()
}

#[test]
fn asf_has_its_stated_length_and_packets_begin_alike() {
    let file = asf();
    check_whole_file(&Asf, "wmv", &file);
    let third = file.len() - 1000;
    let mut broken = file.clone();
    broken[third] = 0;
    match validated(&Asf, &broken, &[]) {
        Verdict::Broken { at, .. } => assert_eq!(at, third as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn mpg_ends_with_its_end_code() {
    let mut file = Vec::new();
    for number in 0..6u64 {
        file.extend(b"\0\0\x01\xBA\x44\0\x04\0\x04\x01\x01\x89\xC3\xF8");
        file.extend(b"\0\0\x01\xE0\x01\x00");
        file.extend(noise(256, number + 1));
    }
    let chain = file.len() as u64;
    assert_eq!(whole(&Mpg, &file, &noise(3000, 3)), None);
    assert_eq!(whole(&Mpg, &file, &[0; 3000]), Some(chain));
    file.extend(b"\0\0\x01\xB9");
    assert_eq!(whole(&Mpg, &file, &noise(3000, 3)), Some(chain + 4));
}
