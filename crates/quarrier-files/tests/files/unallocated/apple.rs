//! Apple partition maps, built by code and by xorriso.

use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use quarrier_core::source::Memory;
use quarrier_files::{Error, partitions, unallocated};

use super::by_code::{fat, put};
use super::skip;

/// Writes a map: type, first block and number of blocks of each entry.
fn put_map(disk: &mut [u8], block_bytes: usize, entries: &[(&str, u32, u32)]) {
    let blocks = (disk.len() / block_bytes) as u32;
    put(disk, 0, b"ER");
    put(disk, 2, &(block_bytes as u16).to_be_bytes());
    put(disk, 4, &blocks.to_be_bytes());
    for (index, (kind, first, length)) in entries.iter().enumerate() {
        let at = (index + 1) * block_bytes;
        put(disk, at, b"PM\0\0");
        put(disk, at + 4, &(entries.len() as u32).to_be_bytes());
        put(disk, at + 8, &first.to_be_bytes());
        put(disk, at + 12, &length.to_be_bytes());
        put(disk, at + 16, b"a name");
        put(disk, at + 48, kind.as_bytes());
    }
}

/// A disk of 400 blocks with two FAT volumes, a driver and others.
fn disk(block_bytes: usize) -> Vec<u8> {
    let mut disk = vec![0; 400 * block_bytes];
    let entries = [
        ("Apple_partition_map", 1, 63),
        ("Apple_Driver43", 64, 16),
        ("DOS_FAT_12", 100, 100),
        ("Apple_HFS", 200, 100),
        ("Be_BFS", 300, 20),
        ("\x1b[31m", 320, 20),
        ("Apple_Free", 340, 60),
    ];
    put_map(&mut disk, block_bytes, &entries);
    [100, 200].iter().for_each(|block| put(&mut disk, block * block_bytes, &fat(&[2, 3])));
    disk
}

fn spans(bytes: &[u8], block_bytes: usize) -> Vec<(u32, u64, u64)> {
    let found = partitions::find(&Memory::new("image", bytes)).unwrap();
    let block = |byte: u64| byte / block_bytes as u64;
    let spans = found.partitions.iter();
    spans.map(|one| (one.number, block(one.span.start), block(one.span.end))).collect()
}

#[test]
fn partitions_of_an_apple_map_are_found_in_blocks_of_each_size() {
    for block_bytes in [512, 2048] {
        let disk = disk(block_bytes);
        let expected = [(1, 64, 80), (2, 100, 200), (3, 200, 300), (4, 300, 320), (5, 320, 340)];
        assert_eq!(spans(&disk, block_bytes), expected);
        let source = Memory::new("image", &disk[..]);
        let found = quarrier_files::find(&source).unwrap();
        let systems: Vec<_> =
            found.systems.iter().map(|one| (one.partition, one.kind.to_string())).collect();
        assert_eq!(systems, [(2, "FAT12".to_string()), (3, "FAT12".to_string())]);
        let skipped: Vec<_> = found.skipped_partitions.iter().map(|one| &*one.what).collect();
        assert_eq!(skipped, ["drivers", "contents of the type Be_BFS", "an unknown file system"]);
        let free = unallocated::find(&source).unwrap();
        let block = |number: u64| number * block_bytes as u64;
        assert!(
            super::is_free(&free, 0, block(64)) && super::is_free(&free, block(340), block(60))
        );
        assert!(super::is_taken(&free, block(64), block(16)));
        assert_eq!(free.volumes.len(), 2);
    }
}

#[test]
fn the_map_itself_decides_the_size_of_its_blocks() {
    let mut disk = disk(512);
    // Discs may state the size of their sectors, not of the blocks of the map.
    let expected = spans(&disk, 512);
    for stated in [512u16, 1024, 2048, 4096, 0, 7, 65535] {
        put(&mut disk, 2, &stated.to_be_bytes());
        assert_eq!(spans(&disk, 512), expected, "{stated}");
    }
    disk[..512].fill(0);
    assert_eq!(spans(&disk, 512), expected);
}

#[test]
fn a_damaged_map_gives_its_first_entries_or_an_error() {
    let whole = disk(512);
    let mut image = whole.clone();
    image[4 * 512] = 0;
    let found = partitions::find(&Memory::new("image", &image[..])).unwrap();
    assert_eq!(found.partitions.len(), 2);
    let notice = found.notice.unwrap();
    assert!(notice.contains("Apple partition map is damaged at byte 2048"), "{notice}");
    for count in [1025u32, u32::MAX] {
        let mut image = whole.clone();
        put(&mut image, 512 + 4, &count.to_be_bytes());
        let error = partitions::find(&Memory::new("image", &image[..])).unwrap_err();
        assert!(matches!(&error, Error::FileSystem { offset: 512, .. }), "{error}");
    }
    // Without an entry there is no map.
    let mut image = whole.clone();
    put(&mut image, 512, &[0; 8]);
    assert!(partitions::find(&Memory::new("image", &image[..])).unwrap().partitions.is_empty());
    // Entries that overlap, and one beyond the end.
    for (first, blocks, word) in
        [(150u32, 100u32, "inside another"), (u32::MAX, u32::MAX, "beyond")]
    {
        let mut image = whole.clone();
        put(&mut image, 4 * 512 + 8, &[first.to_be_bytes(), blocks.to_be_bytes()].concat());
        let error = partitions::find(&Memory::new("image", &image[..])).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_gpt_or_mbr_counts_before_an_apple_map() {
    let mut image = disk(512);
    put(&mut image, 446 + 4, &[1, 0, 0, 0, 100, 0, 0, 0, 100]);
    put(&mut image, 510, &[0x55, 0xAA]);
    assert_eq!(spans(&image, 512), [(1, 100, 200)]);
    // A signature without entries is none.
    put(&mut image, 446, &[0; 64]);
    assert_eq!(spans(&image, 512).len(), 5);
}

#[test]
fn the_map_of_xorriso_is_read_as_sleuthkit_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("files")).unwrap();
    std::fs::write(folder.path().join("files/a.txt"), b"a text").unwrap();
    let args = ["-as", "mkisofs", "-quiet", "-hfsplus", "-o", "disc", "files"];
    if run(folder.path(), "xorriso", &args).is_none() {
        return skip("xorriso does not run");
    }
    let mut disc = std::fs::read(folder.path().join("disc")).unwrap();
    // While it is a disc of ISO 9660, its partitions are not examined.
    let source = Memory::new("disc", &disc[..]);
    assert_eq!(quarrier_files::find(&source).unwrap().systems[0].kind.to_string(), "ISO 9660");
    let block_bytes = usize::from(u16::from_be_bytes([disc[2], disc[3]]));
    let expected = run(folder.path(), "mmls", &["-t", "mac", "disc"]);
    disc[32 << 10..36 << 10].fill(0);
    let found = quarrier_files::find(&Memory::new("disc", &disc[..])).unwrap();
    assert_eq!(found.systems.len(), 1);
    assert_eq!(found.systems[0].kind.to_string(), "HFS+");
    let Some(text) = expected else { return skip("mmls does not run") };
    let text = String::from_utf8(text).unwrap();
    let number = |field: &str| field.parse::<u64>().unwrap();
    let expected: Vec<(u64, u64)> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.len() > 5 && fields[1].parse::<u32>().is_ok())
        .filter(|fields| !["Apple_partition_map", "Apple_Free"].contains(&fields[5]))
        .map(|fields| (number(fields[2]), number(fields[3]) + 1))
        .collect();
    let ours = spans(&disc, block_bytes);
    let mut ours: Vec<_> = ours.into_iter().map(|(_, start, end)| (start, end)).collect();
    ours.sort_unstable();
    assert_eq!(ours, expected, "{text}");
}

/// The output of a program, or `None` if it is missing or fails.
fn run(folder: &Path, program: &str, args: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new(program).args(args).current_dir(folder).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// The partitions of a map in blocks of 512 bytes, by the book: type, first byte and end.
fn naive(disk: &[u8]) -> Vec<(u64, u64)> {
    let number = |at: usize| u64::from(u32::from_be_bytes(disk[at..at + 4].try_into().unwrap()));
    let count = number(512 + 4);
    let mut spans: Vec<_> = (1..=count as usize)
        .map(|block| block * 512)
        .filter(|at| !disk[at + 48..].starts_with(b"Apple_Free"))
        .map(|at| (number(at + 8) * 512, (number(at + 8) + number(at + 12)) * 512))
        .filter(|(start, end)| start < end)
        .collect();
    spans.sort_unstable();
    spans
}

proptest! {
    #[test]
    fn partitions_are_those_of_the_entries(lengths in prop::collection::vec((0u32..5, any::<bool>()), 1..20)) {
        let mut disk = vec![0; 200 * 512];
        let mut first = 30;
        let mut entries = Vec::new();
        for (length, is_free) in lengths {
            entries.push((if is_free { "Apple_Free" } else { "Apple_HFS" }, first, length));
            first += length;
        }
        put_map(&mut disk, 512, &entries);
        let found = partitions::find(&Memory::new("image", &disk[..])).unwrap();
        let ours: Vec<_> = found.partitions.iter().map(|one| (one.span.start, one.span.end)).collect();
        prop_assert_eq!(ours, naive(&disk));
    }

    #[test]
    fn a_changed_map_gives_an_answer_or_an_error(
        changes in prop::collection::vec((0usize..5000, any::<[u8; 4]>()), 0..12),
    ) {
        let mut bytes = disk(512);
        for (at, value) in changes {
            put(&mut bytes, at, &value);
        }
        let source = Memory::new("image", &bytes[..]);
        if let Ok(found) = partitions::find(&source) {
            prop_assert!(found.partitions.iter().all(|one| one.span.end <= bytes.len() as u64));
        }
        let _ = (unallocated::find(&source), quarrier_files::find(&source));
    }
}
