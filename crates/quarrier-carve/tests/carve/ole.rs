//! Compound files.

use proptest::prelude::*;
use quarrier_carve::Verdict;
use quarrier_carve::format::ole::Ole;

use crate::sample::{
    carved, check_starved, check_whole_file, fixed_cases, noise, valid, validated,
};

const FREE: u32 = u32::MAX;
const END: u32 = u32::MAX - 1;
const TABLE: u32 = u32::MAX - 2;

/// Makes an entry of the directory.
fn entry(name: &str, kind: u8, first: u32, bytes: u64) -> [u8; 128] {
    let mut entry = [0; 128];
    for (index, unit) in name.encode_utf16().enumerate() {
        entry[2 * index..2 * index + 2].copy_from_slice(&unit.to_le_bytes());
    }
    let name_bytes = if kind == 0 { 0 } else { 2 * name.encode_utf16().count() as u16 + 2 };
    entry[64..66].copy_from_slice(&name_bytes.to_le_bytes());
    entry[66] = kind;
    entry[67] = 1;
    entry[116..120].copy_from_slice(&first.to_le_bytes());
    entry[120..128].copy_from_slice(&bytes.to_le_bytes());
    entry
}

/// Makes a file with two streams of at least 512 bytes: the table, the directory, then the streams.
fn file_of_two(streams: [(&str, &[u8]); 2]) -> Vec<u8> {
    let joined = [streams[0].1, streams[1].1].concat();
    let sectors = streams.map(|(_, bytes)| {
        assert_eq!(bytes.len() % 512, 0, "whole sectors");
        (bytes.len() / 512) as u32
    });
    let mut file = file(streams[0].0, &joined, true);
    // The chain is cut in two, and the second entry gets the rest.
    let (table, directory) = (512, 1024);
    let last = 2 + sectors[0] - 1;
    let place = table + 4 * last as usize;
    file[place..place + 4].copy_from_slice(&END.to_le_bytes());
    let [first, second] = streams.map(|(name, bytes)| (name, bytes.len() as u64));
    file[directory + 128..directory + 256].copy_from_slice(&entry(first.0, 2, 2, first.1));
    file[directory + 256..directory + 384].copy_from_slice(&entry(second.0, 2, last + 1, second.1));
    file
}

#[test]
fn a_presentation_with_a_password_has_no_records() {
    let scrambled = noise(7, 8192);
    let mut user = vec![0; 4096];
    user[2..8].copy_from_slice(&[0xF6, 0x0F, 0x1C, 0, 0, 0]);
    for (token, is_whole) in [([0x5F, 0xC0, 0x91, 0xE3], false), ([0xDF, 0xC4, 0xD1, 0xF3], true)] {
        user[12..16].copy_from_slice(&token);
        let file = file_of_two([("PowerPoint Document", &scrambled), ("Current User", &user)]);
        match validated(&Ole, &file, &[0; 5000]) {
            Verdict::Whole { length, .. } => assert!(is_whole && length == file.len() as u64),
            other => assert!(!is_whole, "{other:?}"),
        }
    }
}

/// Makes a file with these entries after its root, whose child is the entry `child`: name, kind,
/// right sibling, child, bytes. The order is table, directory, streams; no stream is small.
fn file_of_many(child: u32, entries: &[(&str, u8, u32, u32, &[u8])]) -> Vec<u8> {
    let directory = (entries.len() as u32 + 1).div_ceil(4);
    let mut fat = vec![TABLE];
    let mut chain = |sectors: u32| {
        let first = fat.len() as u32;
        fat.extend((1..sectors).map(|next| first + next));
        fat.extend((sectors > 0).then_some(END));
        if sectors > 0 { first } else { END }
    };
    chain(directory);
    let mut root = entry("Root Entry", 5, END, 0);
    let link = |entry: &mut [u8; 128], right: u32, child: u32| {
        entry[68..72].copy_from_slice(&FREE.to_le_bytes());
        entry[72..76].copy_from_slice(&right.to_le_bytes());
        entry[76..80].copy_from_slice(&child.to_le_bytes());
    };
    link(&mut root, FREE, child);
    let (mut all, mut data) = (root.to_vec(), Vec::new());
    for (name, kind, right, child, bytes) in entries {
        let first = chain(bytes.len().div_ceil(512) as u32);
        let mut entry = entry(name, *kind, first, bytes.len() as u64);
        link(&mut entry, *right, *child);
        all.extend(entry);
        data.extend(*bytes);
        data.resize(data.len().next_multiple_of(512), 0);
    }
    all.resize(directory as usize * 512, 0);
    fat.resize(128, FREE);
    let mut header = file("", &[0; 512], true)[..512].to_vec();
    header[56..60].fill(0);
    let fat: Vec<u8> = fat.iter().flat_map(|next| next.to_le_bytes()).collect();
    [header, fat, all, data].concat()
}

/// Makes a document, a table that states the place of its page of formats, and a table that does
/// not.
fn document() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let first = 0x0600u32.to_le_bytes();
    let mut document = vec![0; 1024];
    for (at, value) in [(0, 0xA5ECu16), (2, 0xC1), (10, 0x0200), (0xFE, 12)] {
        document[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    document[512..516].copy_from_slice(&first);
    document[1023] = 1;
    let table = [first, 0x0700u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
    (document, table, vec![9; 12])
}

#[test]
fn a_document_uses_the_table_in_its_storage() {
    let (document, table, other) = document();
    let (doc, own, none) = ("WordDocument", "1Table", FREE);
    // The embedded document is the first in the directory, in its own storage.
    let file = |inner: &[u8], outer: &[u8]| {
        file_of_many(
            3,
            &[
                (own, 2, none, none, inner),
                ("_1234567890", 1, none, 1, &[]),
                (doc, 2, 4, none, &document),
                (own, 2, 2, none, outer),
            ],
        )
    };
    check_whole_file(&Ole, "doc", &file(&other, &table));
    check_whole_file(&Ole, "doc", &file(&table, &table));
    let broken = validated(&Ole, &file(&table, &other), &[]);
    assert!(matches!(broken, Verdict::Broken { .. }), "{broken:?}");
}

#[test]
fn embedded_streams_do_not_determine_the_type() {
    let (document, table, _) = document();
    let sheets = workbook(30);
    let file = file_of_many(
        4,
        &[
            ("WordDocument", 2, 2, FREE, &document),
            ("1Table", 2, FREE, FREE, &table),
            ("MBD00012345", 1, FREE, 1, &[]),
            ("Workbook", 2, 3, FREE, &sheets),
        ],
    );
    check_whole_file(&Ole, "xls", &file);
}

/// Makes a file with one stream: its sectors, then the table and the directory, or these two first.
pub(crate) fn file(name: &str, stream: &[u8], is_table_first: bool) -> Vec<u8> {
    let data = stream.len().div_ceil(512) as u32;
    let tables = (data + 1).div_ceil(127);
    let (table, directory, start) = match is_table_first {
        true => (0, tables, tables + 1),
        false => (data, data + tables, 0),
    };
    let mut fat = vec![FREE; tables as usize * 128];
    fat[table as usize..(table + tables) as usize].fill(TABLE);
    fat[directory as usize] = END;
    for sector in start..start + data {
        fat[sector as usize] = if sector + 1 == start + data { END } else { sector + 1 };
    }
    let mut header = vec![0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
    header.resize(512, 0);
    for (at, value) in [(24, 0x3Eu16), (26, 3), (28, 0xFFFE), (30, 9), (32, 6)] {
        header[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    let four = [(44, tables), (48, directory), (56, 4096), (60, END), (68, END)];
    let list = (0..109).map(|n| (76 + 4 * n as usize, if n < tables { table + n } else { FREE }));
    for (at, value) in four.into_iter().chain(list) {
        header[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let mut stream_sectors = stream.to_vec();
    stream_sectors.resize(data as usize * 512, 0);
    let mut entries = [entry("Root Entry", 5, END, 0), entry("", 0, 0, 0), [0; 128], [0; 128]];
    entries[1] = entry(name, 2, start, stream.len() as u64);
    let fat = fat.iter().flat_map(|next| next.to_le_bytes()).collect();
    let structure = [fat, entries.concat()].concat();
    match is_table_first {
        true => [header, structure, stream_sectors].concat(),
        false => [header, stream_sectors, structure].concat(),
    }
}

/// Makes a workbook of `count` records.
pub(crate) fn workbook(count: usize) -> Vec<u8> {
    let mut bytes = vec![9, 8, 4, 0, 0, 6, 5, 0];
    for index in 0..count {
        let length = 10 + index % 90;
        bytes.extend_from_slice(&[0x03, 0x02, length as u8, 0]);
        bytes.extend((0..length).map(|n| (n * index) as u8));
    }
    bytes.extend_from_slice(&[0x0A, 0, 0, 0]);
    bytes.resize(bytes.len().max(4096), 0);
    bytes
}

#[test]
fn a_compound_file_ends_after_its_last_sector_in_use() {
    check_whole_file(&Ole, "ole", &file("Anything", &[7; 5000], false));
    check_whole_file(&Ole, "xls", &file("Workbook", &workbook(300), true));
    check_starved(&Ole, &file("Workbook", &workbook(60), false));
}

#[test]
fn kinds_are_detected_by_the_names_of_streams() {
    let mut document = vec![0xEC, 0xA5];
    document.resize(5000, 0);
    check_whole_file(&Ole, "doc", &file("WordDocument", &document, false));
    let mut slides = vec![0, 0, 0xE8, 3, 0xF8, 0x1F, 0, 0];
    slides.resize(0x2000, 1);
    check_whole_file(&Ole, "ppt", &file("PowerPoint Document", &slides, false));
    check_whole_file(&Ole, "msg", &file("__properties_version1.0", &[0; 4096], false));
}

#[test]
fn records_that_do_not_follow_each_other_are_no_workbook() {
    let mut stream = workbook(300);
    stream[8..1000].fill(0xEE);
    let broken = validated(&Ole, &file("Workbook", &stream, false), &[]);
    assert!(matches!(broken, Verdict::Broken { at: 512..1600, .. }), "{broken:?}");
}

#[test]
fn sectors_in_circles_come_to_an_end() {
    let good = file("Workbook", &workbook(200), true);
    for sector in 2..20 {
        for next in [0u32, 1, 2, sector, 19, 500, 0x7FFF_FFFF, FREE, END, TABLE] {
            let mut file = good.clone();
            let place = 512 + 4 * sector as usize;
            file[place..place + 4].copy_from_slice(&next.to_le_bytes());
            validated(&Ole, &file, &[0; 4096]);
        }
    }
    // Impossible counts and places.
    for at in (24..80).step_by(4) {
        for value in [0u32, 1, 0x7FFF_FFFF, 0xFFFF_FFF0, u32::MAX] {
            let mut file = good.clone();
            file[at..at + 4].copy_from_slice(&value.to_le_bytes());
            validated(&Ole, &file, &[0; 4096]);
        }
    }
}

#[test]
fn the_table_shows_where_a_workbook_continues() {
    for is_table_first in [false, true] {
        let file = file("Workbook", &workbook(700), is_table_first);
        for split in [4096, 8192, 24576] {
            let image = [&file[..split], &[0xFF; 12288], &file[split..]].concat();
            let files = carved(&quarrier_carve::Carver::new().formats(vec![&Ole]), &image);
            assert_eq!(valid(&files), [&file[..]], "left at {split}");
        }
    }
}

proptest! {
    #![proptest_config(fixed_cases(40))]

    #[test]
    fn a_workbook_in_two_fragments_is_mended_or_not_believed(
        records in 400usize..1200,
        is_table_first in any::<bool>(),
        split in any::<prop::sample::Index>(),
        gap in 1usize..6,
        filling in 0u8..4,
    ) {
        let file = file("Workbook", &workbook(records), is_table_first);
        let split = (1 + split.index((file.len() - 1) / 4096)) * 4096;
        let gap: Vec<u8> = (0..gap as u32 * 4096)
            .map(|n| match filling {
                0 => 0,
                1 => b' ' + (n % 60) as u8,
                2 => (n.wrapping_mul(2_654_435_761) >> 17) as u8,
                _ => 0xFF,
            })
            .collect();
        let image = [&[0; 4096][..], &file[..split], &gap, &file[split..], &[0; 9000]].concat();
        let files = carved(&quarrier_carve::Carver::new().formats(vec![&Ole]), &image);
        for found in valid(&files) {
            prop_assert!(found == &file[..], "{} bytes instead of {}", found.len(), file.len());
        }
    }
}
