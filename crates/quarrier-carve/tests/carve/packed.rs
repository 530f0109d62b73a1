//! Compressed streams: xz, bzip2, Zstandard.

use std::io::Write;

use bzip2::Compression;
use bzip2::write::BzEncoder;
use quarrier_carve::format::bz2::Bz2;
use quarrier_carve::format::xz::Xz;
use quarrier_carve::format::zst::Zst;
use quarrier_carve::{Format, Kind, Verdict};

use crate::sample::{check_whole_file, noise, validated};

pub(crate) fn crc32(bytes: &[u8]) -> [u8; 4] {
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes) as u32;
    crc.to_le_bytes()
}

/// Makes an xz file with one block for each content, stored by LZMA2.
fn xz(contents: &[&[u8]]) -> Vec<u8> {
    let flags = [0, 1];
    let mut xz = [&b"\xFD7zXZ\0"[..], &flags, &crc32(&flags)].concat();
    let mut index = vec![0, contents.len() as u8];
    let number = |bytes: &mut Vec<u8>, mut value: usize| {
        while value > 127 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    for content in contents {
        let header = [2, 0, 0x21, 1, 0, 0, 0, 0];
        let mut block = [&header[..], &crc32(&header)].concat();
        block.push(1);
        block.extend((content.len() as u16 - 1).to_be_bytes());
        block.extend(*content);
        block.push(0);
        let unpadded = block.len() + 4;
        block.resize(block.len().next_multiple_of(4), 0);
        block.extend(crc32(content));
        xz.extend(block);
        number(&mut index, unpadded);
        number(&mut index, content.len());
    }
    index.resize(index.len().next_multiple_of(4), 0);
    let crc = crc32(&index);
    index.extend(crc);
    let footer = [&(index.len() as u32 / 4 - 1).to_le_bytes()[..], &flags].concat();
    xz.extend(index);
    xz.extend(crc32(&footer));
    xz.extend(footer);
    xz.extend(b"YZ");
    xz
}

pub(crate) fn bz2(content: &[u8]) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("writing to memory succeeds");
    encoder.finish().expect("writing to memory succeeds")
}

pub(crate) fn zst(content: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("a valid level");
    encoder.include_checksum(true).expect("a valid parameter");
    encoder.write_all(content).expect("writing to memory succeeds");
    encoder.finish().expect("writing to memory succeeds")
}

/// Checks that consecutive streams form one file, and that broken data after the first do not
/// belong to it.
fn check_streams(format: &dyn Format, kind: &'static str, one: &[u8], two: &[u8]) {
    let whole = |length: usize| Verdict::Whole { length: length as u64, kind: Kind::new(kind) };
    let both = [one, two].concat();
    assert_eq!(validated(format, &both, &[0; 100]), whole(both.len()));
    let cut = &both[..both.len() - two.len() / 2];
    assert_eq!(validated(format, cut, &[0; 100]), whole(one.len()));
}

#[test]
fn an_xz_ends_where_its_index_says() {
    check_whole_file(&Xz, "xz", &xz(&[&noise(1, 20_000), &noise(2, 999), b"text"]));
    check_streams(&Xz, "xz", &xz(&[&noise(1, 2000)]), &xz(&[&noise(3, 5000)]));
}

#[test]
fn an_xz_with_a_gap_is_not_whole() {
    let whole = xz(&[&noise(1, 20_000)]);
    let gap = [&whole[..8192], &noise(7, 4096), &whole[8192..]].concat();
    assert!(matches!(validated(&Xz, &gap, &[]), Verdict::Broken { sure: 12, .. }));
}

#[test]
fn a_bz2_ends_after_its_last_block() {
    check_whole_file(&Bz2, "bz2", &bz2(&noise(1, 120_000)));
    check_streams(&Bz2, "bz2", &bz2(&noise(1, 2000)), &bz2(&noise(3, 50_000)));
    let mut broken = bz2(&noise(1, 120_000));
    broken[5000] ^= 4;
    assert!(matches!(validated(&Bz2, &broken, &[]), Verdict::Broken { .. }));
}

#[test]
fn a_zst_ends_after_its_last_frame() {
    check_whole_file(&Zst, "zst", &zst(&noise(1, 300_000)));
    check_whole_file(&Zst, "zst", &zst(&[7; 1_000_000]));
    check_streams(&Zst, "zst", &zst(&noise(1, 2000)), &zst(&noise(3, 5000)));
    let mut broken = zst(&noise(1, 300_000));
    broken[200_000] ^= 4;
    assert!(matches!(validated(&Zst, &broken, &[]), Verdict::Broken { .. }));
}

#[test]
fn a_zst_with_a_very_large_output_ends_soon() {
    // A million blocks, each of which repeats one byte for 128 KiB.
    let mut bomb = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 0x58];
    (0..1_000_000).for_each(|_| bomb.extend([0x02, 0x00, 0x10, 0]));
    bomb.extend([0x03, 0x00, 0x10, 0]);
    let verdict = validated(&Zst, &bomb, &[]);
    let end = bomb.len() as u64;
    assert!(matches!(verdict, Verdict::Unread { length, .. } if length == end), "{verdict:?}");
}

#[test]
fn a_zst_that_needs_much_memory_is_not_read() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("a valid level");
    encoder.window_log(24).expect("a valid window size");
    encoder.write_all(&noise(1, 30_000)).expect("writing to memory succeeds");
    let file = encoder.finish().expect("writing to memory succeeds");
    match validated(&Zst, &file, &[0; 100]) {
        Verdict::Unread { length, reason, .. } => {
            assert_eq!(length, file.len() as u64);
            assert!(reason.contains("8 MiB"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}
