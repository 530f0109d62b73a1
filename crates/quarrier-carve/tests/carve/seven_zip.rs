//! 7z with all supported methods.

use std::io::Cursor;

use proptest::prelude::*;
use quarrier_carve::format::seven_zip::SevenZip;
use quarrier_carve::{Extent, Format, Verdict, View};
use quarrier_core::source::Memory;
use sevenz_rust2::encoder_options::{DeltaOptions, Lzma2Options, LzmaOptions, PpmdOptions};
use sevenz_rust2::{
    ArchiveEntry, ArchiveWriter, EncoderConfiguration, EncoderMethod, SourceReader,
};

use crate::packed::crc32;
use crate::sample::{check_whole_file, fixed_cases, mixed, noise, validated};

/// Returns the contents of files: of text, of noise, and empty.
fn contents() -> Vec<Vec<u8>> {
    vec![mixed(1, 1500), Vec::new(), noise(2, 300), mixed(3, 900)]
}

/// Makes an archive of these files, compressed separately or all together.
pub(crate) fn archive(
    methods: &[EncoderConfiguration],
    contents: &[Vec<u8>],
    is_solid: bool,
) -> Vec<u8> {
    let mut writer =
        ArchiveWriter::new(Cursor::new(Vec::new())).expect("writing to memory succeeds");
    writer.set_content_methods(methods.to_vec());
    let entry = |index: usize| ArchiveEntry::new_file(&format!("folder/{index}.txt"));
    if is_solid {
        let entries = (0..contents.len()).map(entry).collect();
        let readers = contents.iter().map(|content| SourceReader::from(&content[..])).collect();
        writer.push_archive_entries(entries, readers).expect("writing to memory succeeds");
    } else {
        for (index, content) in contents.iter().enumerate() {
            let pushed = writer.push_archive_entry(entry(index), Some(&content[..]));
            pushed.expect("writing to memory succeeds");
        }
    }
    writer.finish().expect("writing to memory succeeds").into_inner()
}

/// Returns methods of compression by name.
pub(crate) fn ways() -> Vec<(&'static str, Vec<EncoderConfiguration>)> {
    let plain = EncoderConfiguration::new;
    let lzma2 = || Lzma2Options::from_level(1).into();
    vec![
        ("Copy", vec![plain(EncoderMethod::COPY)]),
        ("LZMA", vec![LzmaOptions::from_level(1).into()]),
        ("LZMA2", vec![lzma2()]),
        ("PPMd", vec![PpmdOptions::from_order_memory_size(6, 1 << 20).into()]),
        ("BZip2", vec![plain(EncoderMethod::BZIP2)]),
        ("Deflate", vec![plain(EncoderMethod::DEFLATE)]),
        ("BCJ", vec![lzma2(), plain(EncoderMethod::BCJ_X86_FILTER)]),
        ("ARM", vec![lzma2(), plain(EncoderMethod::BCJ_ARM_FILTER)]),
        ("Delta", vec![lzma2(), DeltaOptions::from_distance(4).into()]),
    ]
}

fn is_whole(file: &[u8]) -> bool {
    let end = file.len() as u64;
    matches!(validated(&SevenZip, file, &[]), Verdict::Whole { length, .. } if length == end)
}

#[test]
fn a_7z_packed_in_any_way_is_read_to_its_end() {
    for (way, methods) in ways() {
        for is_solid in [false, true] {
            let file = archive(&methods, &contents(), is_solid);
            assert!(is_whole(&file), "{way}: {:?}", validated(&SevenZip, &file, &[]));
            check_whole_file(&SevenZip, "7z", &file);
        }
    }
    check_whole_file(&SevenZip, "7z", &archive(&ways()[2].1, &[noise(7, 100_000)], false));
    check_whole_file(&SevenZip, "7z", &archive(&ways()[2].1, &[Vec::new()], false));
}

#[test]
fn a_7z_with_any_byte_flipped_is_not_valid() {
    for (way, methods) in ways() {
        for is_solid in [false, true] {
            let mut file = archive(&methods, &contents(), is_solid);
            for at in 0..file.len() {
                file[at] ^= 0xFF;
                assert!(!is_whole(&file), "{way}, byte {at} of {}", file.len());
                file[at] ^= 0xFF;
            }
        }
    }
}

#[test]
fn a_7z_with_a_sector_of_zeros_is_not_valid() {
    for (way, methods) in ways() {
        let file = archive(&methods, &[mixed(4, 9000), noise(6, 3000)], true);
        for sector in (0..file.len()).step_by(512) {
            let mut broken = file.clone();
            broken[sector..file.len().min(sector + 512)].fill(0);
            assert!(!is_whole(&broken), "{way}, sector at {sector}");
        }
    }
}

/// Makes an archive with this second header, and the checksums that it needs.
pub(crate) fn with_header(packed: &[u8], header: &[u8]) -> Vec<u8> {
    let mut start = (packed.len() as u64).to_le_bytes().to_vec();
    start.extend((header.len() as u64).to_le_bytes());
    start.extend(crc32(header));
    [&b"7z\xBC\xAF\x27\x1C\0\x04"[..], &crc32(&start), &start, packed, header].concat()
}

/// Makes the header of one file, compressed by a method with these properties.
pub(crate) fn header(
    method: &[u8],
    properties: &[u8],
    packed: u8,
    unpacked: u8,
    crc: [u8; 4],
) -> Vec<u8> {
    let mut header = vec![1, 4, 6, 0, 1, 9, packed, 0, 7, 0x0B, 1, 0, 1];
    header.push(method.len() as u8 | if properties.is_empty() { 0 } else { 0x20 });
    header.extend(method);
    if !properties.is_empty() {
        header.push(properties.len() as u8);
        header.extend(properties);
    }
    header.extend([0x0C, unpacked, 0x0A, 1]);
    header.extend(crc);
    header.extend([0, 8, 0, 0, 5, 1, 0, 0]);
    header
}

#[test]
fn a_7z_that_cannot_be_read_here_says_so() {
    let content = mixed(1, 100);
    let crc = crc32(&content);
    let file = |method: &[u8], properties: &[u8]| {
        with_header(&content, &header(method, properties, 100, 100, crc))
    };
    check_whole_file(&SevenZip, "7z", &file(&[0], &[]));
    let encrypted = (&[0x06, 0xF1, 0x07, 0x01][..], &[0x13, 0][..], "encrypted");
    let deflate64 = (&[0x04, 0x01, 0x09][..], &[][..], "method");
    for (method, properties, word) in [encrypted, deflate64] {
        let file = file(method, properties);
        match validated(&SevenZip, &file, &[0; 99]) {
            Verdict::Unread { length, reason, .. } => {
                assert_eq!(length, file.len() as u64);
                assert!(reason.contains(word), "{reason}");
            }
            other => panic!("{word}: {other:?}"),
        }
    }
}

#[test]
fn a_7z_that_takes_much_memory_is_not_read() {
    let content = noise(1, 100);
    // LZMA states a dictionary and an output of more than 64 MiB.
    let mut header = header(&[3, 1, 1], &[0x5D, 0, 0, 0, 8], 100, 0, [0; 4]);
    let size = header.iter().position(|byte| *byte == 0x0C).unwrap() + 1;
    header.splice(size..size + 1, [0xF0, 0, 0, 0, 8]);
    match validated(&SevenZip, &with_header(&content, &header), &[]) {
        Verdict::Unread { reason, .. } => assert!(reason.contains("64 MiB"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_7z_with_an_impossible_start_is_not_whole() {
    for place in [12, 20] {
        let mut broken = archive(&ways()[2].1, &contents(), true);
        broken[place..place + 8].fill(0xFF);
        let crc = crc32(&broken[12..32]);
        broken[8..12].copy_from_slice(&crc);
        assert!(!is_whole(&broken));
    }
}

proptest! {
    #![proptest_config(fixed_cases(600))]

    /// Uses any bytes as a header with correct checksums.
    #[test]
    fn hostile_headers_of_7z_end_in_a_verdict(
        way in 0usize..6,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        more in prop::collection::vec(any::<u8>(), 0..40),
        at in any::<prop::sample::Index>(),
        is_packed in any::<bool>(),
        fuel in prop_oneof![Just(1u64 << 22), 0u64..100_000],
    ) {
        let methods: [(&[u8], &[u8]); 6] = [
            (&[0], &[]),
            (&[3, 1, 1], &[0x5D, 0, 0, 1, 0]),
            (&[0x21], &[12]),
            (&[3, 4, 1], &[6, 0, 0, 16, 0]),
            (&[4, 2, 2], &[]),
            (&[3, 3, 1, 3], &[]),
        ];
        let content = mixed(1, 100);
        let (method, properties) = methods[way];
        let mut header = header(method, properties, 100, 120, crc32(&content));
        if is_packed {
            header[0] = 0x17;
            header.remove(1);
        }
        for (place, value) in changes {
            let place = place.index(header.len());
            header[place] = value;
        }
        let at = at.index(header.len());
        header.splice(at..at, more);
        let file = with_header(&content, &header);
        let length = file.len() as u64;
        let source = Memory::new("hostile", file);
        let mut view = View::new(&source);
        view.look_at(&[Extent { offset: 0, length }], fuel);
        match SevenZip.validate(&mut view) {
            Verdict::Whole { length: end, .. } | Verdict::Unread { length: end, .. } => {
                prop_assert!(end <= length || view.is_starved());
            }
            Verdict::Broken { sure, at, .. } => prop_assert!(sure <= at && at <= length),
            Verdict::Not => {}
        }
    }

    #[test]
    fn a_7z_is_valid_only_as_it_was_written(
        way in 0usize..9,
        is_solid in any::<bool>(),
        sizes in prop::collection::vec((any::<u32>(), 0usize..4000), 1..5),
        place in any::<prop::sample::Index>(),
    ) {
        let contents: Vec<_> = sizes.iter().map(|(seed, bytes)| mixed(*seed, *bytes)).collect();
        let mut file = archive(&ways()[way].1, &contents, is_solid);
        prop_assert!(is_whole(&file));
        let at = place.index(file.len());
        file[at] ^= 0xFF;
        prop_assert!(!is_whole(&file), "byte {at}");
    }
}
