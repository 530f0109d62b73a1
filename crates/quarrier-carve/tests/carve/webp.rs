//! WebP: chunks, and pictures that end with their chunks.

use quarrier_carve::format::webp::Webp;
use quarrier_carve::{Extent, Format, Verdict, View};
use quarrier_core::source::Memory;

use crate::sample::{check_starved, check_whole_file, noise, validated};

/// The chunk of a lossy picture of 20×70 pixels, in four partitions.
const LOSSY: &str = "\
    56503820360100005008009d012a140046003f81b8cf5d3fbfb4a4acdbf95bf030096c02e001bc92d8e412e05a2f\
    f0de6bff1deca76ee797ffa7ff9fffa7fe966f5ffbe7f05bc705d4645bc14d4fcbd2e5134000e412bff4a07eb8fd\
    d4fefb56f00b1e79fc4f69322e56a5455da8272242ed81adc1ff47ac54d91c0d9f727dd9aeec4348515599f8bfea\
    dff3b6f2f556ffb4545edbb15939ed94e56bb6c68f16514452bfff5847bd287e74b14acc0d78b7754ed5dcea5918\
    98fedcd39feb1bbab3eba438df10ecf79ccea062dd49c74dfe14a7fcd837ff6227d23535a952a09ecbfbb2428d87\
    3bfac2d3d834eb33bedc42e612e82209a774ff7130ecc4f4bbff63b866aae0fa56a238380619c832033f1bb512fa\
    b8386c875026023c5c67c52aab95d36c5cb7fb41824e9711e0d5b61986a3eaf2d7e99e7cb3051cf80000";

/// The chunks of a lossy picture of 24×20 pixels with lossless alpha.
const ALPHA: &str = "\
    565038580a00000010000000170000130000414c504861000000112fa0206d0316d6d26e4404b75c306a1b4952ef\
    f59f82b005611ac20e841efe5c56558d21a2ff6293c42dfa2406f09233732d930200c9cccf4dd11d41eaa9b6abed\
    2d320d49ed8de6ecc78ff0533bda137ffb09693dd1f6f0ae27f0f3861c6d00005650382072000000f004009d012a\
    180014003fcdd8e1663fb5ada730180c03f039896c009d32cc089a16eac1ce911818b6d9c67f4527806000fed90d\
    311af5956ef93755a8ae7fd6fff1c7ccc329a9dafc96c555189f408c6f55265c9f36e01c22396b5a40643b9fb850\
    f70df41750e1fc0d2e7dd26653200000";

/// The chunks of an animation of two lossy pictures.
const ANIMATION: &str = "\
    565038580a000000020000000f0000070000414e494d06000000000000000000414e4d463e000000000000000000\
    0f00000700000000000256503820260000005001009d012a100008000cc0ce25b00004740000fee21f1b728a172a\
    d7c7ffcf1bcd89000000414e4d46440000000000000000000f000007000000000000565038202c0000005401009d\
    012a100008000000ce25b00004740000feb4e9659bc0a622f44f73c466277feac9096a9d06d84000";

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn chunk(name: &[u8; 4], bytes: &[u8]) -> Vec<u8> {
    let mut chunk = [&name[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat();
    chunk.resize(chunk.len().next_multiple_of(2), 0);
    chunk
}

fn webp(chunks: &[&[u8]]) -> Vec<u8> {
    let body = [b"WEBP", &chunks.concat()[..]].concat();
    [b"RIFF", &(body.len() as u32).to_le_bytes(), &body[..]].concat()
}

fn is_whole(file: &[u8]) -> bool {
    matches!(validated(&Webp, file, &[]), Verdict::Whole { .. })
}

/// Writes bits, the lowest of each byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn put(&mut self, number: u32, count: usize) -> &mut Self {
        for bit in 0..count {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= ((number >> bit & 1) as u8) << (self.count % 8);
            self.count += 1;
        }
        self
    }

    /// Writes a prefix code with one symbol, which takes no bits.
    fn put_silent(&mut self, symbol: u32) -> &mut Self {
        self.put(0b101, 3).put(symbol, 8)
    }
}

/// Writes the header of a lossless picture without transforms, cache, or parts.
fn lossless_header(width: u32, height: u32) -> Bits {
    let mut bits = Bits::default();
    bits.put(0x2F, 8).put(width - 1, 14).put(height - 1, 14).put(0, 4).put(0, 3);
    bits
}

/// Makes the data of a lossless picture whose pixels take nine bits each: eight of green, and one
/// of red. `symbols` of 256 symbols of green have a code.
fn lossless(width: u32, height: u32, symbols: u32) -> Vec<u8> {
    let mut bits = lossless_header(width, height);
    // Code lengths are 0 or 8, which takes one bit.
    bits.put(0, 1).put(12 - 4, 4);
    for place in 0..12 {
        bits.put(u32::from(place == 2 || place == 11), 3);
    }
    bits.put(1, 1).put(3, 3).put(symbols - 2, 8);
    for _ in 0..symbols {
        bits.put(1, 1);
    }
    bits.put(0b111, 3).put(17, 8).put(99, 8);
    bits.put_silent(7).put_silent(255).put_silent(0);
    for byte in noise(3, (width * height) as usize) {
        bits.put(u32::from(byte.reverse_bits()), 8).put(u32::from(byte & 1), 1);
    }
    bits.bytes
}

/// Makes a picture of one colour, whose pixels take no bits.
fn silent(width: u32, height: u32) -> Vec<u8> {
    let mut bits = lossless_header(width, height);
    for _ in 0..5 {
        bits.put_silent(0);
    }
    bits.bytes
}

#[test]
fn a_lossless_picture_ends_where_its_chunk_does() {
    let picture = lossless(15, 9, 256);
    check_whole_file(&Webp, "webp", &webp(&[&chunk(b"VP8L", &picture)]));
    check_starved(&Webp, &webp(&[&chunk(b"VP8L", &picture)]));
    for wrong in [
        &picture[..picture.len() - 1],
        &[&picture[..], &[1]].concat(),
        &[&picture[..], &[0; 9]].concat(),
    ] {
        let file = webp(&[&chunk(b"VP8L", wrong)]);
        assert!(matches!(validated(&Webp, &file, &[0; 99]), Verdict::Broken { sure: 0, .. }));
    }
}

#[test]
fn a_prefix_code_must_be_complete() {
    let file = webp(&[&chunk(b"VP8L", &lossless(15, 9, 255))]);
    match validated(&Webp, &file, &[]) {
        Verdict::Broken { at, .. } => assert!((64..80).contains(&at), "at {at}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lossy_picture_uses_its_partitions_up() {
    let picture = bytes_of(LOSSY);
    let file = webp(&[&picture]);
    check_whole_file(&Webp, "webp", &file);
    check_starved(&Webp, &file);
    // The file is broken whatever replaces its bytes.
    for at in (40..file.len() - 48).step_by(16) {
        for filling in [noise(at as u32, 48), vec![0; 48], b"some words ".repeat(5)[..48].to_vec()]
        {
            let mut wrong = file.clone();
            wrong[at..at + 48].copy_from_slice(&filling);
            assert!(!is_whole(&wrong), "at {at}");
        }
    }
    // The same bytes, some of them at other places.
    let mut moved = file.clone();
    moved[100..250].rotate_left(50);
    assert!(!is_whole(&moved));
}

#[test]
fn a_webp_is_a_chain_of_chunks() {
    let (head, picture) = (chunk(b"VP8X", &[0; 10]), bytes_of(LOSSY));
    let profile = chunk(b"ICCP", &noise(1, 33));
    let camera = chunk(b"EXIF", &noise(2, 9));
    check_whole_file(&Webp, "webp", &webp(&[&head, &profile, &picture, &camera]));
    let foreign = webp(&[&head, &picture, &chunk(b"what", &noise(2, 9))]);
    let sure = (12 + head.len() + picture.len()) as u64;
    match validated(&Webp, &foreign, &[]) {
        Verdict::Broken { sure: found, .. } => assert_eq!(found, sure),
        other => panic!("{other:?}"),
    }
    assert!(!is_whole(&webp(&[&head, &profile])));
}

#[test]
fn alpha_is_read_too() {
    let chunks = bytes_of(ALPHA);
    check_whole_file(&Webp, "webp", &webp(&[&chunks]));
    for at in 40..chunks.len() - 150 {
        let mut wrong = chunks.clone();
        wrong[at..at + 16].copy_from_slice(&noise(7, 16));
        assert!(!is_whole(&webp(&[&wrong])), "at {at}");
    }
    let canvas = [0x10, 0, 0, 0, 19, 0, 0, 69, 0, 0];
    let with =
        |alpha: &[u8]| webp(&[&chunk(b"VP8X", &canvas), &chunk(b"ALPH", alpha), &bytes_of(LOSSY)]);
    assert!(is_whole(&with(&[0; 1 + 20 * 70])));
    assert!(!is_whole(&with(&[0; 20 * 70])));
    assert!(!is_whole(&with(&[2; 1 + 20 * 70])));
}

#[test]
fn each_frame_of_an_animation_is_read() {
    let chunks = bytes_of(ANIMATION);
    check_whole_file(&Webp, "webp", &webp(&[&chunks]));
    for at in [84, 90, 150, 160] {
        let mut wrong = chunks.clone();
        wrong[at..at + 6].copy_from_slice(b"words ");
        assert!(!is_whole(&webp(&[&wrong])), "at {at}");
    }
}

#[test]
fn a_large_picture_of_few_bytes_costs_fuel() {
    let large = webp(&[&chunk(b"VP8L", &silent(16384, 16384))]);
    assert!(is_whole(&large));
    let length = large.len() as u64;
    let source = Memory::new("large", large);
    let mut view = View::new(&source);
    view.look_at(&[Extent { offset: 0, length }], 1 << 20);
    assert!(matches!(Webp.validate(&mut view), Verdict::Broken { .. }));
    assert!(view.is_starved());

    let mut lossy = bytes_of(LOSSY);
    lossy[14..18].copy_from_slice(&[0xFF, 0x3F, 0xFF, 0x3F]);
    assert!(!is_whole(&webp(&[&lossy])));
}

#[test]
fn foreign_bytes_in_a_lossy_picture_are_detected_without_decoding() {
    let mut frame = bytes_of(LOSSY)[8..].to_vec();
    frame.extend(noise(3, 9000));
    let with = |what: &[u8]| {
        let mut file = webp(&[&chunk(b"VP8 ", &frame)]);
        file[2048..2048 + what.len()].copy_from_slice(what);
        validated(&Webp, &file, &[])
    };
    let text = b"what was here before, ".repeat(30);
    for (what, reason) in [(text, "text"), (vec![0; 2048], "zeros")] {
        match with(&what) {
            Verdict::Broken { at, reason: found, .. } => assert_eq!((at, &*found), (2048, reason)),
            other => panic!("{other:?}"),
        }
    }
    // A picture may contain this many zeros.
    let Verdict::Broken { reason, .. } = with(&[0; 1024]) else { panic!("it is too long") };
    assert_eq!(reason, "a partition that does not end with its data");
}
