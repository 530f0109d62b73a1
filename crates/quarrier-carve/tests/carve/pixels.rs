//! Pictures without checksums: only their pattern reveals foreign bytes.

use quarrier_carve::format::bmp::Bmp;
use quarrier_carve::format::tif::Tif;
use quarrier_carve::{Format, Verdict};

use crate::sample::{check_whole_file, noise, validated};

fn le16(number: u16) -> [u8; 2] {
    number.to_le_bytes()
}

fn le32(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// Makes soft waves with a little grain, like photographs.
fn waves(width: usize, height: usize, samples: usize) -> Vec<u8> {
    let grain = noise(7, width * height * samples);
    let level = |index: usize| {
        let (x, y) = (index / samples % width, index / samples / width);
        let wave = (x as f32 / 19.0).sin() * 50.0 + (y as f32 / 23.0).cos() * 50.0;
        (128.0 + wave) as u8 + grain[index] % 5
    };
    (0..grain.len()).map(level).collect()
}

/// Makes a picture of 200 × 120 pixels of 24 bits, whose rows need no padding.
fn photograph() -> Vec<u8> {
    let pixels = waves(200, 120, 3);
    let mut file = b"BM".to_vec();
    file.extend(le32(54 + pixels.len() as u32));
    file.extend([le32(0), le32(54), le32(40), le32(200), le32(120)].concat());
    file.extend([le16(1), le16(24)].concat());
    file.extend([le32(0), le32(pixels.len() as u32), le32(0), le32(0), le32(0), le32(0)].concat());
    file.extend(pixels);
    file
}

/// Returns bytes that do not belong in pictures: text, noise, zeros, records of numbers.
fn foreign(bytes: usize) -> Vec<Vec<u8>> {
    let text = b"and here are words that nobody would see in a picture. ".iter().copied();
    let records = noise(3, bytes).into_iter().enumerate().map(|(index, byte)| match index % 8 {
        2 | 3 => 0,
        _ => byte,
    });
    vec![text.cycle().take(bytes).collect(), noise(5, bytes), vec![0; bytes], records.collect()]
}

#[track_caller]
fn check_broken_at(format: &dyn Format, file: &[u8], place: u64) {
    match validated(format, file, &[]) {
        Verdict::Broken { sure, at, .. } => assert!(sure <= at && at == place, "at {at}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_picture_is_whole_without_foreign_data() {
    let file = photograph();
    check_whole_file(&Bmp, "bmp", &file);
    for (from, to) in [(8192, 16384), (4096, file.len()), (40_960, 45_056)] {
        for other in foreign(to - from) {
            let mut file = file.clone();
            file[from..to].copy_from_slice(&other);
            check_broken_at(&Bmp, &file, from as u64);
        }
    }
}

#[test]
fn pictures_of_only_noise_or_black_are_whole() {
    for pixels in [noise(11, 200 * 120 * 3), vec![0; 200 * 120 * 3]] {
        let mut file = photograph();
        file[54..].copy_from_slice(&pixels);
        check_whole_file(&Bmp, "bmp", &file);
    }
}

#[test]
fn rows_padded_with_zeros_stay_padded() {
    let row: Vec<u8> = [noise(2, 3 * 63), vec![0; 3]].concat();
    let mut file = photograph();
    file[2..6].copy_from_slice(&le32(54 + 192 * 120));
    file[18..22].copy_from_slice(&le32(63));
    file.splice(54.., row.repeat(120));
    check_whole_file(&Bmp, "bmp", &file);
    let from = 8192;
    file[from..].iter_mut().step_by(3).for_each(|byte| *byte |= 1);
    check_broken_at(&Bmp, &file, from as u64);
}

/// Makes a picture of 64 × 64 grey pixels in one strip at the end, with some compression.
fn tif(compression: u32, strip: &[u8]) -> Vec<u8> {
    let entries: [(u16, u32); 7] = [
        (0x100, 64),
        (0x101, 64),
        (0x102, 8),
        (0x103, compression),
        (0x111, 8 + 2 + 7 * 12 + 4),
        (0x116, 64),
        (0x117, strip.len() as u32),
    ];
    let mut file = b"II\x2A\0\x08\0\0\0\x07\0".to_vec();
    for (tag, value) in entries {
        file.extend([&le16(tag)[..], &le16(4), &le32(1), &le32(value)].concat());
    }
    file.extend(le32(0));
    file.extend(strip);
    file
}

/// Compresses by LZW without repetitions: literals, and a clear code before codes grow.
fn lzw(pixels: &[u8]) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut code = |code: u16| bits.extend((0..9).rev().map(|bit| code >> bit & 1 == 1));
    for piece in pixels.chunks(200) {
        code(256);
        piece.iter().for_each(|byte| code(u16::from(*byte)));
    }
    code(257);
    let byte = |bits: &[bool]| {
        bits.iter().enumerate().fold(0, |byte, (place, bit)| byte | u8::from(*bit) << (7 - place))
    };
    bits.chunks(8).map(byte).collect()
}

#[test]
fn packed_strips_unpack_to_the_size_of_the_picture() {
    let pixels = waves(64, 64, 1);
    let runs: Vec<u8> = pixels.chunks(128).flat_map(|run| [&[127], run].concat()).collect();
    for (compression, strip) in [(1, pixels.clone()), (5, lzw(&pixels)), (32773, runs.clone())] {
        check_whole_file(&Tif, "tif", &tif(compression, &strip));
    }
    for (compression, short) in [(5, lzw(&pixels[1..])), (32773, runs[129..].to_vec())] {
        let verdict = validated(&Tif, &tif(compression, &short), &[]);
        assert!(matches!(verdict, Verdict::Broken { .. }), "{verdict:?}");
    }
    for compression in [5, 7, 8, 32773] {
        let verdict = validated(&Tif, &tif(compression, &noise(9, 3000)), &[]);
        assert!(matches!(verdict, Verdict::Broken { .. }), "{verdict:?}");
    }
}

#[test]
fn sides_without_bounds_end_at_once() {
    for compression in [1, 5, 32773] {
        let mut file = tif(compression, &[0x80; 4000]);
        for value in [18, 30] {
            file[value..value + 4].copy_from_slice(&le32(u32::MAX));
        }
        let verdict = validated(&Tif, &file, &[]);
        assert!(!matches!(verdict, Verdict::Broken { at, .. } if at > file.len() as u64));
    }
}
