//! RAR archives.

use quarrier_carve::Verdict;
use quarrier_carve::format::rar::Rar;

use crate::sample::{check_whole_file, noise, validated};

fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// A block of version 4: kind, flags, and what follows them in the header.
fn four(kind: u8, flags: u16, fields: &[u8]) -> Vec<u8> {
    let mut block = vec![kind];
    block.extend(flags.to_le_bytes());
    block.extend((fields.len() as u16 + 7).to_le_bytes());
    block.extend(fields);
    [&(crc32(&block) as u16).to_le_bytes()[..], &block].concat()
}

/// An archive of version 4 with a file that is packed and one that is stored.
fn version_four(has_end: bool) -> Vec<u8> {
    let mut rar = b"Rar!\x1A\x07\0".to_vec();
    rar.extend(four(0x73, 0, &[0; 6]));
    for (method, content) in [(0x33u8, noise(1, 5000)), (0x30, noise(2, 3000))] {
        let mut fields = (content.len() as u32).to_le_bytes().to_vec();
        fields.extend((content.len() as u32).to_le_bytes());
        fields.push(3);
        fields.extend(crc32(&content).to_le_bytes());
        fields.extend([0; 4]);
        fields.extend([if has_end { 29 } else { 20 }, method, 4, 0, 0, 0, 0, 0]);
        fields.extend(b"name");
        rar.extend(four(0x74, 0x8000, &fields));
        rar.extend(content);
    }
    if has_end {
        rar.extend(four(0x7B, 0x4000, &[]));
    }
    rar
}

/// A block of version 5.
fn five(fields: &[u8]) -> Vec<u8> {
    let sized = [&[fields.len() as u8][..], fields].concat();
    [&crc32(&sized).to_le_bytes()[..], &sized].concat()
}

/// An archive of version 5 with a file of 300 bytes that is stored.
fn version_five(end_flags: u8) -> Vec<u8> {
    let content = noise(3, 300);
    let mut rar = b"Rar!\x1A\x07\x01\0".to_vec();
    rar.extend(five(&[1, 0, 0]));
    let mut file = vec![2, 2, 0xAC, 2, 4, 0xAC, 2, 0];
    file.extend(crc32(&content).to_le_bytes());
    file.extend([0, 0, 4, b'n', b'a', b'm', b'e']);
    rar.extend(five(&file));
    rar.extend(content);
    rar.extend(five(&[5, 4, end_flags]));
    rar
}

#[test]
fn a_rar_ends_behind_its_last_block() {
    check_whole_file(&Rar, "rar", &version_four(true));
    check_whole_file(&Rar, "rar", &version_five(0));
}

#[test]
fn an_old_rar_ends_behind_its_last_file() {
    let rar = version_four(false);
    let verdict = validated(&Rar, &rar, &noise(4, 1000));
    assert!(matches!(verdict, Verdict::Whole { length, .. } if length == rar.len() as u64));
}

#[test]
fn a_volume_of_a_newer_program_does_not_end_without_its_last_block() {
    for flags in [0x10, 0x100] {
        let main = |flags| four(0x73, flags, &[0; 6]);
        let old = version_four(false);
        let rar = [&old[..7], &main(flags), &old[7 + main(0).len()..]].concat();
        let verdict = validated(&Rar, &rar, &noise(4, 1000));
        assert!(matches!(verdict, Verdict::Broken { .. }), "{verdict:?}");
        check_whole_file(&Rar, "rar", &[rar, four(0x7B, 0x4000, &[])].concat());
    }
}

#[test]
fn stored_files_are_verified() {
    for (mut rar, back) in [(version_four(true), 500), (version_five(0), 100)] {
        let at = rar.len() - back;
        rar[at] ^= 1;
        assert!(matches!(validated(&Rar, &rar, &[]), Verdict::Broken { .. }));
    }
}

#[test]
fn a_volume_that_another_one_follows_is_filled_with_zeros() {
    let mut rar = version_five(1);
    let end = rar.len() + 40;
    let (head, tail) = (rar[..8].to_vec(), rar.split_off(8));
    // A service block so long that the volume ends 40 bytes before 2000.
    let room = 2000 - end - 9;
    let service = five(&[3, 2, (room & 0x7F) as u8 | 0x80, (room >> 7) as u8]);
    let main = five(&[1, 0, 0]);
    rar = [&head[..], &main, &service, &vec![7; room], &tail[main.len()..]].concat();
    let length = rar.len();
    assert!(length < 2000 && length > 1936, "{length}");
    let verdict = validated(&Rar, &rar, &[0; 500]);
    assert!(matches!(verdict, Verdict::Whole { length: 2000, .. }), "{verdict:?}");
    let verdict = validated(&Rar, &rar, &[1; 500]);
    assert!(matches!(verdict, Verdict::Whole { length: end, .. } if end == length as u64));
}
