//! Pictures whose headers state their lengths: BMP, ICO, TIFF, HEIF; and SVG.

use quarrier_carve::format::bmp::Bmp;
use quarrier_carve::format::heif::Heif;
use quarrier_carve::format::ico::Ico;
use quarrier_carve::format::svg::Svg;
use quarrier_carve::format::tif::Tif;
use quarrier_carve::{Format, Verdict};

use crate::sample::{check_whole_file, validated};

fn le32(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// Makes a bitmap header of 40 bytes, without a file header.
fn bitmap_header(width: u32, height: u32, bits: u16, compression: u32, bytes: u32) -> Vec<u8> {
    let mut header = [le32(40), le32(width), le32(height)].concat();
    header.extend([1, 0]);
    header.extend(bits.to_le_bytes());
    header.extend(
        [le32(compression), le32(bytes), le32(2835), le32(2835), le32(0), le32(0)].concat(),
    );
    header
}

fn bmp(bits: u16, compression: u32, pixels: &[u8]) -> Vec<u8> {
    let palette = if bits <= 8 { vec![0x33; 4 << bits] } else { Vec::new() };
    let pixels_at = 14 + 40 + palette.len();
    let mut file = b"BM".to_vec();
    file.extend(le32((pixels_at + pixels.len()) as u32));
    file.extend([0; 4]);
    file.extend(le32(pixels_at as u32));
    file.extend(bitmap_header(10, 6, bits, compression, pixels.len() as u32));
    file.extend(palette);
    file.extend(pixels);
    file
}

#[test]
fn a_bmp_is_as_long_as_its_rows_or_its_runs() {
    for bits in [1u16, 4, 8, 16, 24, 32] {
        let row = (10 * usize::from(bits)).div_ceil(32) * 4;
        check_whole_file(&Bmp, "bmp", &bmp(bits, 0, &vec![0x5A; 6 * row]));
    }
    let runs = [[10, 7, 0, 0].repeat(5), vec![0, 3, 1, 2, 3, 0, 7, 1, 0, 1]].concat();
    check_whole_file(&Bmp, "bmp", &bmp(8, 1, &runs));
    // A row that is too long is accepted if the file ends as its header states.
    let mut wide = bmp(8, 1, &[11, 7, 1, 7, 0, 1]);
    check_whole_file(&Bmp, "bmp", &wide);
    wide[2] += 1;
    assert!(matches!(validated(&Bmp, &wide, &[]), Verdict::Broken { .. }));
    let tall = bmp(8, 1, &[[10, 7, 0, 0].repeat(9), vec![3, 7, 0, 1]].concat());
    check_whole_file(&Bmp, "bmp", &tall);
    let mut other = bmp(24, 0, &[0; 192]);
    other[26] = 2;
    assert_eq!(validated(&Bmp, &other, &[]), Verdict::Not);
}

#[test]
fn a_bmp_has_as_many_colours_as_its_pixels_can_name() {
    let mut picture = bmp(8, 0, &[0x5A; 72]);
    picture[46..50].copy_from_slice(&le32(0x1234_1234));
    check_whole_file(&Bmp, "bmp", &picture);
}

#[test]
fn the_short_header_of_os2_is_read() {
    let mut picture = bmp(8, 0, &[0x5A; 72]);
    // Width, height, planes and bits are at the same offsets as in the header of 40 bytes.
    picture.drain(30..54);
    let length = picture.len() as u32;
    picture[2..6].copy_from_slice(&le32(length));
    picture[10..14].copy_from_slice(&le32(length - 72));
    picture[14..18].copy_from_slice(&le32(16));
    check_whole_file(&Bmp, "bmp", &picture);
}

#[test]
fn an_icon_ends_after_its_last_picture() {
    let mut picture = bitmap_header(16, 32, 8, 0, 0);
    picture.extend([0x11; 1024 + 256 + 64]);
    let mut icon = vec![0, 0, 1, 0, 2, 0];
    for index in 0..2u32 {
        icon.extend([16, 16, 0, 0, 1, 0, 8, 0]);
        icon.extend(le32(picture.len() as u32));
        icon.extend(le32(38 + index * picture.len() as u32));
    }
    icon.extend(picture.repeat(2));
    check_whole_file(&Ico, "ico", &icon);
    let second = 38 + picture.len();
    icon[second] = 41;
    assert!(matches!(validated(&Ico, &icon, &[]), Verdict::Broken { .. }));
}

/// Makes a TIFF of one strip, with its directory first.
fn tif(maker: &str, big_endian: bool) -> Vec<u8> {
    let u16 = |n: u16| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
    let u32 = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut file = if big_endian { b"MM\0\x2A".to_vec() } else { b"II\x2A\0".to_vec() };
    file.extend(u32(8));
    let entries = [
        (0x100u16, 4u16, 1u32, 20u32),
        (0x101, 4, 1, 5),
        (0x10F, 2, maker.len() as u32, 80),
        (0x111, 4, 1, 100),
        (0x117, 4, 1, 100),
    ];
    file.extend(u16(entries.len() as u16));
    for (tag, kind, count, value) in entries {
        file.extend([&u16(tag)[..], &u16(kind), &u32(count), &u32(value)].concat());
    }
    file.extend(u32(0));
    file.resize(80, 0);
    file.extend(maker.as_bytes());
    file.resize(200, 0x44);
    file
}

#[test]
fn a_tif_ends_after_the_furthest_byte_it_refers_to() {
    for big_endian in [false, true] {
        check_whole_file(&Tif, "tif", &tif("Scanners Ltd", big_endian));
        check_whole_file(&Tif, "nef", &tif("NIKON CORPORATION", big_endian));
        check_whole_file(&Tif, "arw", &tif("SONY DSC", big_endian));
    }
}

#[test]
fn a_tif_strip_with_a_nonsensical_length_has_the_length_of_its_sides() {
    let mut file = tif("Scanners Ltd", false);
    // Five rows of 20 pixels of one bit each, from byte 100 on.
    file[66..70].copy_from_slice(&le32(35_711_440));
    file.truncate(115);
    check_whole_file(&Tif, "tif", &file);
}

#[test]
fn cyclic_directories_end() {
    let mut file = tif("Scanners Ltd", false);
    file[70..74].copy_from_slice(&le32(8));
    match validated(&Tif, &file, &[0; 100]) {
        Verdict::Whole { length, .. } => assert_eq!(length, 200),
        other => panic!("{other:?}"),
    }
}

fn noise(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| (n.wrapping_mul(2_654_435_761) >> 15) as u8).collect()
}

fn isobox(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes()[..], name, body].concat()
}

/// Makes a picture with one item of `bytes` bytes.
fn heif(brands: &[u8], bytes: u32) -> Vec<u8> {
    let file_type = isobox(b"ftyp", brands);
    let meta = |at: u32| {
        let mut iloc = vec![0, 0, 0, 0, 0x44, 0, 0, 1, 0, 1, 0, 0, 0, 1];
        iloc.extend(at.to_be_bytes());
        iloc.extend(bytes.to_be_bytes());
        let inner = [isobox(b"hdlr", &[0; 24]), isobox(b"iloc", &iloc)].concat();
        isobox(b"meta", &[&[0; 4][..], &inner].concat())
    };
    let at = file_type.len() + meta(0).len() + 8;
    [file_type, meta(at as u32), isobox(b"mdat", &noise(bytes))].concat()
}

#[test]
fn a_heif_is_a_chain_of_boxes() {
    check_whole_file(&Heif, "heic", &heif(b"heic\0\0\0\0mif1heic", 99));
    check_whole_file(&Heif, "avif", &heif(b"avif\0\0\0\0mif1avif", 1));
    check_whole_file(&Heif, "heif", &heif(b"mif1\0\0\0\0mif1jpeg", 5000));
    let mut file = heif(b"avif\0\0\0\0mif1avif", 100);
    file.truncate(file.len() - 108);
    assert!(matches!(validated(&Heif, &file, &[0; 500]), Verdict::Broken { .. }));
    assert_eq!(validated(&Heif, &heif(b"isom\0\0\0\0isommp42", 9)[..30], &[]), Verdict::Not);
}

#[test]
fn an_svg_ends_with_its_root_and_the_line() {
    let files = [
        "<svg/>\n",
        "<svg xmlns='http://www.w3.org/2000/svg'><g><path d=\"M0 > 1\"/></g></svg>\n",
        "<?xml version=\"1.0\"?>\n<!-- <a> -->\n<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" [\n\
         <!ENTITY a \"b\">]>\n<svg>\u{fc}<style><![CDATA[ a > b ]]></style></svg>\r\n",
    ];
    for file in files {
        match validated(&Svg, file.as_bytes(), b"\x01\xFFand so on") {
            Verdict::Whole { length, .. } => assert_eq!(length, file.len() as u64, "{file}"),
            other => panic!("{other:?}: {file}"),
        }
    }
    for file in ["<svg><g></svg\0>", "<svg>\x01</svg>", "<svg>\u{ff}</g></svg"] {
        assert!(!matches!(validated(&Svg, file.as_bytes(), &[]), Verdict::Whole { .. }), "{file}");
    }
    assert_eq!(validated(&Svg, b"<?xml version='1.0'?><html><svg/></html>", &[]), Verdict::Not);
    assert_eq!(validated(&Svg, &b"<svg>".repeat(50_000), &[]), {
        let at = 10_001 * 5;
        let kind = Svg.kinds()[0];
        Verdict::Broken { kind, sure: 0, at, reason: "too deep".to_string() }
    });
}
