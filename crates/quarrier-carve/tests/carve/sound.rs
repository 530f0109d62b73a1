//! Ogg, FLAC, WAV, AVI and MP3.

use quarrier_carve::format::{avi::Avi, flac::Flac, mp3::Mp3, ogg::Ogg, wav::Wav};
use quarrier_carve::{Carver, Format, Verdict};

use crate::sample::{carved, check_whole_file, valid, validated};

/// Returns noise that depends only on `seed`.
pub(crate) fn noise(bytes: usize, mut seed: u64) -> Vec<u8> {
    std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 32) as u8
    })
    .take(bytes)
    .collect()
}

/// Returns where a validator finds `bytes` broken: `sure` and `at`.
pub(crate) fn broken_at(format: &dyn Format, bytes: &[u8]) -> (u64, u64) {
    match validated(format, bytes, &[0; 200_000]) {
        Verdict::Broken { sure, at, .. } => (sure, at),
        other => panic!("{other:?}"),
    }
}

fn crc(bits: u32, polynomial: u64, bytes: &[u8]) -> u64 {
    let top = 1u64 << (bits - 1);
    let mask = top | (top - 1);
    bytes.iter().fold(0u64, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte) << (bits - 8), |crc, _| {
            (if crc & top != 0 { crc << 1 ^ polynomial } else { crc << 1 }) & mask
        })
    })
}

/// Makes an Ogg page with `body` as its only packet.
fn page(flags: u8, serial: u32, number: u32, body: &[u8]) -> Vec<u8> {
    let mut page = b"OggS\0".to_vec();
    page.push(flags);
    page.extend_from_slice(&[0; 8]);
    page.extend_from_slice(&serial.to_le_bytes());
    page.extend_from_slice(&number.to_le_bytes());
    page.extend_from_slice(&[0; 4]);
    let mut table = vec![255u8; body.len() / 255];
    table.push((body.len() % 255) as u8);
    page.push(table.len() as u8);
    page.extend_from_slice(&table);
    page.extend_from_slice(body);
    let sum = crc(32, 0x04C1_1DB7, &page) as u32;
    page[22..26].copy_from_slice(&sum.to_le_bytes());
    page
}

/// Makes the pages of one stream that begins with `begin`.
pub(crate) fn ogg(begin: &[u8], serial: u32, pages: u32) -> Vec<u8> {
    let mut file = page(2, serial, 0, begin);
    for number in 1..pages {
        let flags = if number + 1 == pages { 4 } else { 0 };
        file.extend(page(flags, serial, number, &noise(3000, u64::from(number) + 7)));
    }
    file
}

#[test]
fn ogg_ends_with_its_streams_and_detects_their_codec() {
    check_whole_file(&Ogg, "ogg", &ogg(b"\x01vorbis and more", 5, 4));
    check_whole_file(&Ogg, "opus", &ogg(b"OpusHead", 5, 2));
    let mut two = page(2, 1, 0, b"\x80theora");
    two.extend(page(2, 2, 0, b"\x01vorbis"));
    two.extend(page(4, 2, 1, b"sound"));
    two.extend(page(4, 1, 1, b"pictures"));
    check_whole_file(&Ogg, "ogv", &two);
    // A chain of two is one file.
    let chain = [ogg(b"\x01vorbis", 1, 3), ogg(b"\x01vorbis", 2, 3)].concat();
    match validated(&Ogg, &chain, &[0; 100]) {
        Verdict::Whole { length, .. } => assert_eq!(length, chain.len() as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn ogg_breaks_at_the_page_whose_checksum_is_wrong() {
    let mut file = ogg(b"\x01vorbis", 5, 4);
    let at = file.len() - 1;
    file[at] ^= 1;
    let last_page = 2 * (27 + 12 + 3000) + 27 + 1 + 7;
    assert_eq!(broken_at(&Ogg, &file), (last_page, file.len() as u64));
    // A page is missing.
    let first = page(2, 1, 0, b"\x01vorbis");
    let file = [first.clone(), page(4, 1, 2, b"x")].concat();
    assert_eq!(broken_at(&Ogg, &file).0, first.len() as u64);
}

/// Makes an image with `file` cut at `cuts`, with noise between the parts.
fn in_fragments(file: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut image = noise(4096, 99);
    let mut from = 0;
    for cut in cuts.iter().chain([&file.len()]) {
        image.extend_from_slice(&file[from..*cut]);
        if *cut < file.len() {
            image.extend(noise(8192, *cut as u64));
        }
        from = *cut;
    }
    image.resize(image.len().next_multiple_of(4096), 0);
    image.extend(noise(16384, 5));
    image
}

#[test]
fn ogg_flac_and_mp3_are_mended() {
    let id3 = b"ID3\x03\x00\x00\x00\x00\x02\x00".to_vec();
    // The part after the tag is a file on its own, too, and needs the same bytes.
    let tagged = [id3, vec![0; 256], mp3(120)].concat();
    for file in [ogg(b"\x01vorbis", 5, 14), flac(200), mp3(120), tagged] {
        for cuts in [&[4096][..], &[8192], &[4096, 16384]] {
            let files = carved(&Carver::new(), &in_fragments(&file, cuts));
            assert_eq!(valid(&files), [&file[..]], "cut at {cuts:?}");
        }
    }
}

/// Makes a FLAC file of frames of 192 verbatim samples, and a last one of 16 coded samples.
pub(crate) fn flac(frames: u64) -> Vec<u8> {
    let samples = frames * 192 + 16;
    let mut file = b"fLaC\x00\x00\x00\x22".to_vec();
    file.extend_from_slice(&[0, 16, 16, 0, 0, 0, 0, 0, 0, 0]);
    file.extend_from_slice(&((44_100 << 44) | (7 << 36) | samples).to_be_bytes());
    file.extend_from_slice(&[0; 16]);
    file.extend_from_slice(b"\x81\x00\x00\x03pad");
    for number in 0..frames {
        let mut frame = vec![0xFF, 0xF8, 0x19, 0x02];
        frame.extend(coded(number));
        frame.push(crc(8, 7, &frame) as u8);
        frame.push(2);
        frame.extend(noise(192, number + 1));
        frame.extend((crc(16, 0x8005, &frame) as u16).to_be_bytes());
        file.extend(frame);
    }
    let mut frame = vec![0xFF, 0xF8, 0x69, 0x02];
    frame.extend(coded(frames));
    frame.push(15);
    frame.push(crc(8, 7, &frame) as u8);
    // Fixed, order 0; one partition; parameter 3; then sixteen codes of four ones and zeros.
    frame.extend([16, 0b0000_0000, 0b1110_0000 | 0b1_1010]);
    frame.extend(vec![0b1010_1101; 7]);
    frame.push(0b1010_1000);
    frame.extend((crc(16, 0x8005, &frame) as u16).to_be_bytes());
    file.extend(frame);
    file
}

fn coded(number: u64) -> Vec<u8> {
    char::from_u32(number as u32).expect("a small number").to_string().into_bytes()
}

#[test]
fn flac_ends_with_the_last_of_its_samples() {
    check_whole_file(&Flac, "flac", &flac(9));
    check_whole_file(&Flac, "flac", &flac(140));
    let mut file = flac(9);
    let second = 8 + 34 + 4 + 3 + (6 + 1 + 192 + 2);
    file[second + 30] ^= 4;
    let (sure, at) = broken_at(&Flac, &file);
    assert_eq!(sure, second as u64);
    assert!((sure + 199..sure + 2000).contains(&at), "{at}");
}

/// Makes a WAV file of a tone, with samples of 16 bits.
pub(crate) fn wav(samples: usize) -> Vec<u8> {
    let mut file =
        b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xAC\0\0\x88\x58\x01\0\x02\0\x10\0data"
            .to_vec();
    file.extend((samples as u32 * 2).to_le_bytes());
    for at in 0..samples {
        file.extend((((at as f64 * 0.05).sin() * 9000.0) as i16).to_le_bytes());
    }
    let bytes = file.len() as u32 - 8;
    file[4..8].copy_from_slice(&bytes.to_le_bytes());
    file
}

#[test]
fn wav_with_a_gap_that_shows_is_put_together_without_it() {
    let file = wav(30_000);
    let noise = noise(12_288, 4);
    let text = b"some text that is no sound, ".repeat(500);
    for foreign in [&noise[..], &text[..12_288]] {
        let image =
            [&[0; 4096][..], &file[..20_480], foreign, &file[20_480..], &[0; 9000]].concat();
        let files = carved(&Carver::new().formats(vec![&Wav]), &image);
        assert_eq!(valid(&files), [&file[..]]);
        // The continuation has other sound.
        let other: Vec<u8> = file[20_480..].iter().map(|byte| byte ^ 0x55).collect();
        let image = [&[0; 4096][..], &file[..20_480], foreign, &other, &[0; 9000]].concat();
        assert!(valid(&carved(&Carver::new().formats(vec![&Wav]), &image)).is_empty());
    }
}

#[test]
fn wav_of_which_the_end_is_noise_is_broken_there() {
    let file = wav(9000);
    for (cut, bits) in [(512, 16), (17_408, 16), (17_408, 8)] {
        let mut file = file.clone();
        if bits == 8 {
            file[34] = 8;
            file[44..].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(3) / 8 + 100);
        }
        let is_whole = |bytes: &[u8]| matches!(validated(&Wav, bytes, &[]), Verdict::Whole { .. });
        assert!(is_whole(&file));
        let end = file.len();
        file[cut..].copy_from_slice(&noise(end - cut, 5));
        assert!(!is_whole(&file), "noise from {cut} on, {bits} bits");
    }
    // A file of noise only is valid.
    let mut all = file;
    let end = all.len();
    all[44..].copy_from_slice(&noise(end - 44, 5));
    assert!(matches!(validated(&Wav, &all, &[]), Verdict::Whole { .. }));
}

#[test]
fn wav_that_falls_silent_at_a_block_is_cut_there() {
    let mut file = wav(30_000);
    file[20_480..].fill(0);
    assert_eq!(broken_at(&Wav, &file), (44, 20_480));
    let mut fades = wav(30_000);
    fades[20_000..].fill(0);
    check_whole_file(&Wav, "wav", &fades[..]);
}

#[test]
fn wav_ends_at_its_stated_length_and_holds_only_sound() {
    let file = wav(30_000);
    check_whole_file(&Wav, "wav", &file);
    let noise = noise(8192, 4);
    let text = b"some text that is no sound, ".repeat(300);
    for foreign in [&noise[..], &text[..8192], &[0; 8192]] {
        let all = [&file[..12_288], foreign, &file[12_288..]].concat();
        assert_eq!(broken_at(&Wav, &all), (44, 12_288));
    }
    // A file of noise only is valid, and so is one of silence.
    let mut all = wav(30_000);
    all[44..].copy_from_slice(&self::noise(60_000, 3));
    check_whole_file(&Wav, "wav", &all);
    all[44..].fill(0);
    check_whole_file(&Wav, "wav", &all);
}

fn chunk(name: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut chunk = name.to_vec();
    chunk.extend((bytes.len() as u32).to_le_bytes());
    chunk.extend_from_slice(bytes);
    chunk.resize(chunk.len().next_multiple_of(2), 0);
    chunk
}

#[test]
fn avi_is_a_chain_of_frames_and_may_be_continued() {
    let frames: Vec<u8> =
        (0..9).flat_map(|n| chunk(b"00dc", &noise(777 + n, 1 + n as u64))).collect();
    let lists = [
        chunk(b"LIST", &[b"hdrl".to_vec(), chunk(b"avih", &[0; 56])].concat()),
        chunk(b"LIST", &[b"movi".to_vec(), frames].concat()),
        chunk(b"idx1", &[0; 144]),
    ];
    let file = chunk(b"RIFF", &[&b"AVI "[..], &lists.concat()].concat());
    check_whole_file(&Avi, "avi", &file);
    let more = chunk(b"RIFF", &[&b"AVIX"[..], &lists[1]].concat());
    match validated(&Avi, &[&file[..], &more].concat(), &[1; 100]) {
        Verdict::Whole { length, .. } => assert_eq!(length, (file.len() + more.len()) as u64),
        other => panic!("{other:?}"),
    }
    let mut broken = file.clone();
    let third = 12 + 8 + 4 + 64 + 12 + 2 * (8 + 778);
    broken[third] = b'?';
    assert_eq!(broken_at(&Avi, &broken), (0, third as u64));
}

/// Makes frames of 128 kbit/s; with `has_note`, the first one notes the number of bytes.
fn frames(count: usize, has_note: bool) -> Vec<u8> {
    let mut file = Vec::new();
    for number in 0..count {
        let mut frame = noise(417, number as u64 + 1);
        frame[..6].copy_from_slice(&[0xFF, 0xFB, 0x90, 0x64, 0, 0]);
        file.extend(frame);
    }
    if has_note {
        file[36..44].copy_from_slice(b"Xing\0\0\0\x03");
        file[44..48].copy_from_slice(&(count as u32 - 1).to_be_bytes());
        file[48..52].copy_from_slice(&(count as u32 * 417).to_be_bytes());
    }
    file
}

pub(crate) fn mp3(count: usize) -> Vec<u8> {
    frames(count, true)
}

#[test]
fn mp3_ends_at_its_noted_length_and_includes_tags_after_it() {
    check_whole_file(&Mp3, "mp3", &mp3(20));
    let id3 = b"ID3\x03\x00\x00\x00\x00\x02\x00".to_vec();
    let tagged = [id3, vec![0; 256], mp3(20)].concat();
    check_whole_file(&Mp3, "mp3", &tagged);
    let mut ape = b"APETAGEX\xD0\x07\0\0\x20\0\0\0\0\0\0\0\0\0\0\xA0".to_vec();
    ape.resize(64, 0);
    let last: Vec<u8> = b"TAG".iter().copied().chain([0x20; 125]).collect();
    // Cut within a tag, the file would be whole without the tag, so that not all checks apply.
    let file = [mp3(20), ape, last].concat();
    match validated(&Mp3, &file, &noise(3000, 6)) {
        Verdict::Whole { length, .. } => assert_eq!(length, file.len() as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn mp3_without_a_note_is_whole_only_if_zeros_fill_its_last_sector() {
    let file = frames(20, false);
    assert!(matches!(validated(&Mp3, &file, &[0; 9000]), Verdict::Whole { length: 8340, .. }));
    let Verdict::Broken { sure: 8340, at: 8340, .. } = validated(&Mp3, &file, &[0x55; 9000]) else {
        panic!("nothing shows where it ends")
    };
    // No file begins within a stream.
    let files = carved(&Carver::new(), &[vec![9; 512], file[417..].to_vec()].concat());
    assert!(files.len() <= 1, "{files:?}");
    let last = validated(&Mp3, &frames(3, false), &[0; 9000]);
    assert_eq!(last, Verdict::Not);
}

#[test]
fn mp3_whose_last_frame_ends_in_zeros_is_whole_only_without_sound_there() {
    let mut file = frames(20, false);
    let last = 19 * 417;
    // Stereo, without borrowed bytes: 20 bits, then four parts that begin with their lengths.
    let needs = |file: &mut [u8], bits: u32| {
        file[last + 4..last + 36].fill(0);
        for part in 0..4 {
            for bit in (0..12).filter(|bit| bits >> (11 - bit) & 1 == 1) {
                let at = 20 + 59 * part + bit;
                file[last + 4 + at / 8] |= 128 >> (at % 8);
            }
        }
    };
    file[last + 200..].fill(0);
    for (bits, is_whole) in [(760, false), (700, false), (300, true), (0, true)] {
        needs(&mut file, bits);
        let found = validated(&Mp3, &file, &[0; 9000]);
        match found {
            Verdict::Whole { length, .. } => assert!(is_whole && length == file.len() as u64),
            Verdict::Broken { sure, at, .. } => {
                assert!(!is_whole && (sure, at) == (last as u64, file.len() as u64));
            }
            other => panic!("{bits}: {other:?}"),
        }
    }
}

#[test]
fn mp3_that_is_cut_off_ends_with_its_tag() {
    let mut tag = b"TAGA title\0".to_vec();
    tag.resize(128, 0);
    tag[93..97].copy_from_slice(b"1999");
    let id3 = b"ID3\x03\x00\x00\x00\x00\x00\x04abcd".to_vec();
    for cut in [417 * 3 + 1, 417 * 3 + 200, 417 * 20 - 1] {
        let file = [&id3[..], &frames(20, false)[..cut], &tag].concat();
        check_mp3_is(&file, &noise(3000, 6));
        check_mp3_is(&file, &[0; 3000]);
        // A word in the sound is not text.
        let mut other = file.clone();
        other[id3.len() + cut + 93] = b'x';
        let found = validated(&Mp3, &other, &noise(3000, 6));
        assert!(!matches!(found, Verdict::Whole { .. }), "{found:?}");
    }
}

fn check_mp3_is(file: &[u8], after: &[u8]) {
    match validated(&Mp3, file, after) {
        Verdict::Whole { length, .. } => assert_eq!(length, file.len() as u64),
        other => panic!("{other:?}"),
    }
}

/// Makes a FLAC block with a picture that states a length of `stated` bytes.
fn picture(stated: usize, picture_bytes: u32) -> Vec<u8> {
    let stated = (stated as u32).to_be_bytes();
    let mut block = vec![6, stated[1], stated[2], stated[3], 0, 0, 0, 3, 0, 0, 0, 9];
    block.extend(b"image/png\0\0\0\x05cover");
    block.extend([0; 16]);
    block.extend(picture_bytes.to_be_bytes());
    block.extend(noise(picture_bytes as usize, 8));
    block
}

#[test]
fn a_picture_in_flac_is_as_long_as_its_parts() {
    let plain = flac(9);
    let with = |block: &[u8]| [&plain[..42], block, &plain[42..]].concat();
    let body = picture(0, 5000).len() - 4;
    check_whole_file(&Flac, "flac", &with(&picture(body, 5000)));
    check_whole_file(&Flac, "flac", &with(&picture(0, 5000)));
    // A second STREAMINFO block is invalid.
    let twice = with(&plain[4..42]);
    assert_eq!(broken_at(&Flac, &twice), (42, 43));
}
