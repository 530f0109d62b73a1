//! RAR archives.

use quarrier_carve::Verdict;
use quarrier_carve::format::rar::Rar;

use crate::sample::{check_whole_file, noise, validated};

fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// Makes a block of version 4: kind, flags, and the rest of the header.
fn four(kind: u8, flags: u16, fields: &[u8]) -> Vec<u8> {
    let mut block = vec![kind];
    block.extend(flags.to_le_bytes());
    block.extend((fields.len() as u16 + 7).to_le_bytes());
    block.extend(fields);
    [&(crc32(&block) as u16).to_le_bytes()[..], &block].concat()
}

/// Makes an archive of version 4 with two stored files.
fn version_four(has_end: bool) -> Vec<u8> {
    version_four_with(0x30, 0, has_end)
}

/// Makes an archive of version 4 with two files, the first with this method and these flags.
fn version_four_with(first: u8, flags: u16, has_end: bool) -> Vec<u8> {
    let mut rar = b"Rar!\x1A\x07\0".to_vec();
    rar.extend(four(0x73, 0, &[0; 6]));
    for (method, flags, content) in [(first, flags, noise(1, 5000)), (0x30, 0, noise(2, 3000))] {
        let mut fields = (content.len() as u32).to_le_bytes().to_vec();
        fields.extend((content.len() as u32).to_le_bytes());
        fields.push(3);
        fields.extend(crc32(&content).to_le_bytes());
        fields.extend([0; 4]);
        fields.extend([if has_end { 29 } else { 20 }, method, 4, 0, 0, 0, 0, 0]);
        fields.extend(b"name");
        rar.extend(four(0x74, 0x8000 | flags, &fields));
        rar.extend(content);
    }
    if has_end {
        rar.extend(four(0x7B, 0x4000, &[]));
    }
    rar
}

/// Makes a block of version 5.
fn five(fields: &[u8]) -> Vec<u8> {
    let sized = [&[fields.len() as u8][..], fields].concat();
    [&crc32(&sized).to_le_bytes()[..], &sized].concat()
}

/// Makes an archive of version 5 with a stored file of 300 bytes.
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
fn a_rar_ends_after_its_last_block() {
    check_whole_file(&Rar, "rar", &version_four(true));
    check_whole_file(&Rar, "rar", &version_five(0));
}

#[test]
fn an_old_rar_ends_after_its_last_file() {
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
fn a_rar_that_was_not_read_in_part_says_so() {
    let packed_five = |method: u8, extra: &[u8]| {
        let content = noise(3, 300);
        let mut rar = b"Rar!\x1A\x07\x01\0".to_vec();
        rar.extend(five(&[1, 0, 0]));
        let flags = if extra.is_empty() { 2 } else { 3 };
        let mut file = vec![2, flags];
        file.extend((!extra.is_empty()).then_some(extra.len() as u8));
        file.extend([0xAC, 2, 4, 0xAC, 2, 0]);
        file.extend(crc32(&content).to_le_bytes());
        // The method is in bits 7 to 9.
        file.extend([0x80 | (method << 7), method >> 1, 0, 4, b'n', b'a', b'm', b'e']);
        file.extend(extra);
        [rar, five(&file), content, five(&[5, 4, 0])].concat()
    };
    let encryption = [4u8, 1, 0, 0, 15];
    let time = [3u8, 3, 0, 0];
    check_whole_file(&Rar, "rar", &packed_five(0, &time));
    for (file, word) in [
        (version_four_with(0x33, 0, true), "compressed"),
        (version_four_with(0x30, 4, true), "encrypted"),
        (version_four_with(0x30, 2, true), "volumes"),
        (packed_five(3, &[]), "compressed"),
        (packed_five(0, &encryption), "encrypted"),
    ] {
        match validated(&Rar, &file, &[0; 99]) {
            Verdict::Unread { length, reason, .. } => {
                assert_eq!(length, file.len() as u64);
                assert!(reason.contains(word), "{reason}");
            }
            other => panic!("{word}: {other:?}"),
        }
    }
}

#[test]
fn a_rar_of_stored_files_with_any_byte_flipped_is_not_valid() {
    for mut rar in [version_four(true), version_five(0)] {
        let end = rar.len() as u64;
        for at in 0..rar.len() {
            rar[at] ^= 0xFF;
            let verdict = validated(&Rar, &rar, &[]);
            let is_whole = matches!(verdict, Verdict::Whole { length, .. } if length == end);
            assert!(!is_whole, "byte {at} of {end}");
            rar[at] ^= 0xFF;
        }
    }
}

#[test]
fn a_volume_that_another_one_follows_is_filled_with_zeros() {
    let mut rar = version_five(1);
    let end = rar.len() + 40;
    let (head, tail) = (rar[..8].to_vec(), rar.split_off(8));
    // Add a service block, so that the volume ends 40 bytes before 2000.
    let room = 2000 - end - 9;
    let service = five(&[3, 2, (room & 0x7F) as u8 | 0x80, (room >> 7) as u8]);
    let main = five(&[1, 0, 0]);
    rar = [&head[..], &main, &service, &vec![7; room], &tail[main.len()..]].concat();
    let length = rar.len();
    assert!(length < 2000 && length > 1936, "{length}");
    let verdict = validated(&Rar, &rar, &[0; 500]);
    // The service block has no checksum.
    assert!(matches!(verdict, Verdict::Unread { length: 2000, .. }), "{verdict:?}");
    let verdict = validated(&Rar, &rar, &[1; 500]);
    assert!(matches!(verdict, Verdict::Unread { length: end, .. } if end == length as u64));
}
