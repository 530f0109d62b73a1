//! MP4 and Matroska.

use quarrier_carve::Verdict;
use quarrier_carve::format::{matroska::Matroska, mp4::Mp4};

use crate::sample::{check_whole_file, validated};
use crate::sound::{broken_at, noise};

/// Makes a box called `name`.
fn boxed(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes()[..], name, body].concat()
}

/// Makes a box that consists of version, flags and numbers.
fn table(name: &[u8; 4], numbers: &[u32]) -> Vec<u8> {
    let body: Vec<u8> = [0].iter().chain(numbers).flat_map(|number| number.to_be_bytes()).collect();
    boxed(name, &body)
}

/// Makes samples of H.264, each of two units with their lengths.
fn samples(count: u32) -> (Vec<u8>, Vec<u32>) {
    let mut data = Vec::new();
    let mut sizes = Vec::new();
    for number in 0..count {
        let unit = noise(500 + number as usize, u64::from(number) + 1);
        for part in [&unit[..100], &unit[100..]] {
            data.extend((part.len() as u32 + 1).to_be_bytes());
            data.push(0x65);
            data.extend_from_slice(part);
        }
        sizes.push(500 + number + 10);
    }
    (data, sizes)
}

/// Makes the movie box of two chunks at `offset`, each with half of the samples.
fn movie(offset: u32, sizes: &[u32]) -> Vec<u8> {
    let half = sizes.len() as u32 / 2;
    let second = offset + sizes[..half as usize].iter().sum::<u32>();
    let entry = [vec![0; 78], boxed(b"avcC", &[1, 66, 0, 10, 0xFF, 0xE0, 0])].concat();
    let kind = [vec![0, 0, 0, 0, 0, 0, 0, 1], boxed(b"avc1", &entry)].concat();
    let mut of_samples = vec![0, sizes.len() as u32];
    of_samples.extend(sizes);
    let tables = [
        boxed(b"stsd", &kind),
        table(b"stsc", &[1, 1, half, 1]),
        table(b"stsz", &of_samples),
        table(b"stco", &[2, offset, second]),
    ]
    .concat();
    let track = boxed(b"mdia", &boxed(b"minf", &boxed(b"stbl", &tables)));
    boxed(b"moov", &[boxed(b"mvhd", &[0; 100]), boxed(b"trak", &track)].concat())
}

/// Makes a film with its tables before or after the data.
pub(crate) fn mp4(is_movie_first: bool) -> Vec<u8> {
    let brand = boxed(b"ftyp", b"isom\0\0\0\x01isomavc1");
    let (data, sizes) = samples(20);
    let bytes = movie(0, &sizes).len();
    let offset = brand.len() + 8 + if is_movie_first { bytes } else { 0 };
    let movie = movie(offset as u32, &sizes);
    match is_movie_first {
        true => [brand, movie, boxed(b"mdat", &data)].concat(),
        false => [brand, boxed(b"mdat", &data), movie].concat(),
    }
}

#[test]
fn mp4_ends_with_its_last_box_and_brands_determine_kinds() {
    check_whole_file(&Mp4, "mp4", &mp4(true));
    check_whole_file(&Mp4, "mp4", &mp4(false));
    for (brand, kind) in [(b"M4A ", "m4a"), (b"qt  ", "mov"), (b"3gp4", "3gp"), (b"crx ", "cr3")] {
        let mut file = mp4(true);
        file[8..12].copy_from_slice(brand);
        check_whole_file(&Mp4, kind, &file);
    }
    let mut picture = mp4(true);
    picture[8..12].copy_from_slice(b"heic");
    assert_eq!(validated(&Mp4, &picture, &[]), Verdict::Not);
}

#[test]
fn mp4_breaks_where_a_sample_is_not_made_of_units_or_lies_elsewhere() {
    let mut file = mp4(true);
    let data = file.len() - samples(20).0.len();
    let third = data + 510 + 511;
    file[third] = 0x40;
    let (sure, at) = broken_at(&Mp4, &file);
    assert_eq!((sure, at), ((third - 511) as u64, (third + 512) as u64));
    // A table with samples beyond the data.
    let mut file = mp4(false);
    let place = file.windows(4).rposition(|bytes| bytes == b"stco").unwrap();
    file[place + 12..place + 16].copy_from_slice(&0x7FFF_FFFFu32.to_be_bytes());
    assert!(matches!(validated(&Mp4, &file, &[]), Verdict::Broken { .. }));
}

#[test]
fn mp4_with_lengths_of_another_world_is_broken_at_once() {
    for (name, bytes) in [(b"stsz", 12), (b"stco", 8), (b"stsc", 8), (b"moov", 0), (b"trak", 0)] {
        let mut file = mp4(true);
        let place = file.windows(4).position(|window| window == name).unwrap();
        let count = if bytes == 0 { place - 4 } else { place + bytes };
        file[count..count + 4].copy_from_slice(&[0xFF; 4]);
        assert!(!matches!(validated(&Mp4, &file, &[0; 1000]), Verdict::Whole { .. }), "{name:?}");
    }
    let huge = [
        boxed(b"ftyp", b"isom\0\0\0\x01"),
        b"\0\0\0\x01mdat\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF".to_vec(),
    ];
    assert!(!matches!(validated(&Mp4, &huge.concat(), &[0; 99]), Verdict::Whole { .. }));
}

/// Makes an element with a length of eight bytes.
fn element(id: &[u8], body: &[u8]) -> Vec<u8> {
    let mut length = (body.len() as u64).to_be_bytes();
    length[0] = 1;
    [id, &length, body].concat()
}

pub(crate) fn matroska(kind: &[u8], is_open: bool) -> Vec<u8> {
    let head = element(&[0x1A, 0x45, 0xDF, 0xA3], &element(&[0x42, 0x82], kind));
    let tracks = element(&[0x16, 0x54, 0xAE, 0x6B], &noise(90, 3));
    let blocks: Vec<u8> = (1..6).flat_map(|n| element(&[0xA3], &noise(900, n))).collect();
    let cluster = element(&[0x1F, 0x43, 0xB6, 0x75], &[element(&[0xE7], &[0]), blocks].concat());
    let cues = element(&[0x1C, 0x53, 0xBB, 0x6B], &noise(50, 9));
    let mut segment =
        element(&[0x18, 0x53, 0x80, 0x67], &[tracks, cluster.clone(), cluster, cues].concat());
    if is_open {
        segment[4..12].fill(0xFF);
        segment[4] = 1;
    }
    [head, segment].concat()
}

#[test]
fn matroska_ends_with_its_segment() {
    check_whole_file(&Matroska, "mkv", &matroska(b"matroska", false));
    check_whole_file(&Matroska, "webm", &matroska(b"webm", false));
    assert_eq!(validated(&Matroska, &matroska(b"another", false), &[]), Verdict::Not);
}

#[test]
fn matroska_without_a_length_is_read_to_its_last_element_and_is_not_called_whole() {
    let file = matroska(b"webm", true);
    match validated(&Matroska, &file, &[0; 3000]) {
        Verdict::Broken { at, .. } => assert_eq!(at, file.len() as u64),
        other => panic!("{other:?}"),
    }
}
