//! PNG.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use quarrier_carve::format::png::Png;
use quarrier_carve::{Carver, Verdict};

use crate::sample::{
    carved, check_whole_file, fixed_cases, mixed, noise, scattered, valid, validated,
};

/// Makes a chunk with its checksum.
pub(crate) fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [&name[..], data].concat();
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, &named) as u32;
    [&(data.len() as u32).to_be_bytes()[..], &named, &crc.to_be_bytes()].concat()
}

/// Makes a grey picture with rows of 256 pixels, taken from `pixels`, in chunks of `idat_bytes`.
pub(crate) fn picture(pixels: &[u8], idat_bytes: usize) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in pixels.chunks_exact(256) {
        zlib.write_all(&[0]).expect("writing to memory succeeds");
        zlib.write_all(row).expect("writing to memory succeeds");
    }
    let mut header = [0, 0, 1, 0].to_vec();
    header.extend_from_slice(&((pixels.len() / 256) as u32).to_be_bytes());
    header.extend_from_slice(&[8, 0, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.extend(chunk(b"IHDR", &header));
    png.extend(chunk(b"tEXt", b"Comment\0made by a test"));
    for data in zlib.finish().expect("writing to memory succeeds").chunks(idat_bytes) {
        png.extend(chunk(b"IDAT", data));
    }
    png.extend(chunk(b"IEND", b""));
    png
}

#[test]
fn a_png_ends_after_iend() {
    check_whole_file(&Png, "png", &picture(&[7; 256 * 20], 8192));
    check_whole_file(&Png, "png", &picture(&noise(1, 256 * 40), 1000));
}

#[test]
fn a_png_breaks_at_the_chunk_whose_checksum_is_wrong() {
    let whole = picture(&noise(1, 256 * 40), 1000);
    let second = memchr::memmem::find_iter(&whole, b"IDAT").nth(1).unwrap() - 4;
    let mut png = whole.clone();
    png[second + 500] ^= 1;
    match validated(&Png, &png, &[]) {
        Verdict::Broken { sure, at, reason, .. } => {
            assert_eq!((sure, at), (second as u64, second as u64 + 1008));
            assert_eq!(reason, "CRC of IDAT");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn chunks_that_are_right_and_pixels_that_are_not_are_no_picture() {
    let png = picture(&noise(1, 256 * 40), 1000);
    let second = memchr::memmem::find_iter(&png, b"IDAT").nth(1).unwrap() - 4;
    let mut without = png[..second].to_vec();
    without.extend_from_slice(&png[second + 1012..]);
    assert!(matches!(validated(&Png, &without, &[]), Verdict::Broken { .. }));
}

proptest! {
    #![proptest_config(fixed_cases(30))]
    #[test]
    fn a_png_in_two_fragments_is_put_together(
        seed in 0u32..1000,
        rows in 40usize..500,
        idat_bytes in prop::sample::select(vec![8192usize, 32_768, 1 << 20]),
        cut in 0.0f64..1.0,
        gap in 1usize..17,
        filling in 0usize..3,
    ) {
        let png = picture(&mixed(seed, rows * 256), idat_bytes);
        let blocks = png.len() / 4096;
        prop_assume!(blocks > 1);
        let cut = (1 + (cut * (blocks - 1) as f64) as usize) * 4096;
        let image = scattered(&[(4096, &png[..cut]), (gap * 4096, &png[cut..])], filling);
        let files = carved(&Carver::new().formats(vec![&Png]), &image);
        prop_assert!(valid(&files) == [&png[..]]);
        let bound = |bytes: usize| Carver::new().formats(vec![&Png]).file_bytes_max(bytes as u64);
        prop_assert!(valid(&carved(&bound(png.len()), &image)) == [&png[..]]);
        prop_assert!(valid(&carved(&bound(png.len() - 1), &image)).is_empty());
    }
}
