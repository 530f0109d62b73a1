//! Volumes and partition tables built by code, including hostile ones.

use proptest::prelude::*;
use quarrier_core::source::Memory;
use quarrier_files::Error;
use quarrier_files::unallocated::{Unallocated, find};

use super::{check_order, is_free, is_taken};

fn found(bytes: &[u8]) -> quarrier_files::Result<Unallocated> {
    let found = find(&Memory::new("image", bytes))?;
    check_order(&found, bytes.len() as u64);
    Ok(found)
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// FAT12 of 100 sectors: the table in sector 1, the root in 2, one-sector clusters from 3 on.
pub(super) fn fat(taken: &[usize]) -> Vec<u8> {
    let mut bytes = vec![0; 100 * 512];
    put(&mut bytes, 0, &[0xEB, 0x3C, 0x90]);
    put(&mut bytes, 11, &512u16.to_le_bytes());
    put(&mut bytes, 13, &[1, 1, 0, 1, 16, 0, 100, 0, 0xF8, 1, 0]);
    put(&mut bytes, 510, &[0x55, 0xAA]);
    for &cluster in taken {
        let at = 512 + cluster * 3 / 2;
        let shift = cluster % 2 * 4;
        let entry = 0xFFFu32 << shift;
        bytes[at] |= entry as u8;
        bytes[at + 1] |= (entry >> 8) as u8;
    }
    bytes
}

/// exFAT of 64 sectors: the FAT in sector 24, one-sector clusters from 32 on: the root directory, then
/// the bitmap.
fn exfat(taken: &[usize]) -> Vec<u8> {
    let mut bytes = vec![0; 64 * 512];
    put(&mut bytes, 3, b"EXFAT   ");
    for (at, value) in [(80, 24u32), (84, 1), (88, 32), (92, 32), (96, 2)] {
        put(&mut bytes, at, &value.to_le_bytes());
    }
    put(&mut bytes, 108, &[9, 0]);
    put(&mut bytes, 32 * 512, &[0x83]);
    put(&mut bytes, 32 * 512 + 32, &[0x81]);
    put(&mut bytes, 32 * 512 + 52, &3u32.to_le_bytes());
    put(&mut bytes, 32 * 512 + 56, &4u64.to_le_bytes());
    for &cluster in taken.iter().chain(&[0, 1]) {
        bytes[33 * 512 + cluster / 8] |= 1 << (cluster % 8);
    }
    bytes
}

fn mbr_entry(disk: &mut [u8], sector: usize, index: usize, kind: u8, start: u32, sectors: u32) {
    let at = sector * 512 + 446 + index * 16;
    put(disk, at + 4, &[kind]);
    put(disk, at + 8, &start.to_le_bytes());
    put(disk, at + 12, &sectors.to_le_bytes());
    put(disk, sector * 512 + 510, &[0x55, 0xAA]);
}

#[test]
fn free_clusters_of_fat_follow_the_table() {
    let found = found(&fat(&[2, 3, 7, 98])).unwrap();
    assert_eq!(found.ranges, [5 * 512..8 * 512, 9 * 512..99 * 512]);
    assert_eq!((found.volumes[0].kind, found.volumes[0].free_bytes), ("FAT12", 93 * 512));
}

#[test]
fn free_clusters_of_exfat_follow_the_bitmap() {
    let found = found(&exfat(&[4, 5, 31])).unwrap();
    assert_eq!(found.ranges, [34 * 512..36 * 512, 38 * 512..63 * 512]);
    assert_eq!(found.volumes[0].kind, "exFAT");
}

#[test]
fn bytes_beyond_the_volume_are_free() {
    let mut bytes = fat(&(2..99).collect::<Vec<_>>());
    assert_eq!(found(&bytes).unwrap().bytes(), 0);
    bytes.resize(200 * 512, 1);
    assert_eq!(found(&bytes).unwrap().ranges, [100 * 512..200 * 512]);
}

#[test]
fn space_outside_of_partitions_is_free() {
    let mut disk = vec![0; 700 * 512];
    mbr_entry(&mut disk, 0, 0, 1, 50, 100);
    mbr_entry(&mut disk, 0, 1, 5, 200, 400);
    // The chain: a partition, a link, a partition.
    mbr_entry(&mut disk, 200, 0, 1, 10, 100);
    mbr_entry(&mut disk, 200, 1, 5, 200, 200);
    mbr_entry(&mut disk, 400, 0, 7, 20, 64);
    put(&mut disk, 50 * 512, &fat(&(2..99).collect::<Vec<_>>()));
    put(&mut disk, 210 * 512, &fat(&(2..98).collect::<Vec<_>>()));
    put(&mut disk, 420 * 512, &exfat(&(2..32).collect::<Vec<_>>()));
    let found = found(&disk).unwrap();
    let kinds: Vec<_> = found.volumes.iter().map(|volume| (volume.kind, volume.offset)).collect();
    assert_eq!(kinds, [("FAT12", 50 * 512), ("FAT12", 210 * 512), ("exFAT", 420 * 512)]);
    let sectors: Vec<_> = found.ranges.iter().map(|r| (r.start / 512, r.end / 512)).collect();
    assert_eq!(sectors, [(0, 50), (150, 210), (309, 420), (484, 700)]);
}

/// Partition types in on-disk byte order.
const DATA: [u8; 16] = [7; 16];
const RESERVED: [u8; 16] = *b"\x16\xE3\xC9\xE3\x5C\x0B\xB8\x4D\x81\x7D\xF9\x2D\xF0\x02\x15\xAE";
const BIOS_BOOT: [u8; 16] = *b"Hah!IdontNeedEFI";
const LVM: [u8; 16] = *b"\x79\xD3\xD6\xE6\x07\xF5\xC2\x44\xA2\x3C\x23\x8F\x2A\x3D\xF9\x28";

/// Writes a GPT with 16 entries and its backup: type, first and last sector of each.
fn put_gpt(disk: &mut [u8], sector_bytes: usize, partitions: &[([u8; 16], u64, u64)]) {
    let last = disk.len() / sector_bytes - 1;
    mbr_entry(disk, 0, 0, 0xEE, 1, last as u32);
    let mut list = vec![0; 16 * 128];
    for (index, (id, first, last)) in partitions.iter().enumerate() {
        put(&mut list, index * 128, id);
        put(&mut list, index * 128 + 32, &first.to_le_bytes());
        put(&mut list, index * 128 + 40, &last.to_le_bytes());
    }
    let list_sectors = list.len().div_ceil(sector_bytes);
    for (at, list_at) in [(1, 2), (last, last - list_sectors)] {
        let mut header = vec![0; 92];
        put(&mut header, 0, b"EFI PART\0\0\x01\0\x5C");
        for (place, sector) in [(24, at), (32, last + 1 - at), (72, list_at)] {
            put(&mut header, place, &(sector as u64).to_le_bytes());
        }
        put(&mut header, 80, &[16, 0, 0, 0, 128, 0, 0, 0]);
        put(&mut header, 88, &crate::crc32(&list));
        let crc = crate::crc32(&header);
        put(&mut header, 16, &crc);
        put(disk, at * sector_bytes, &header);
        put(disk, list_at * sector_bytes, &list);
    }
}

/// A disk of 400 sectors with two FAT volumes, at sectors 100 and 200.
fn gpt_disk() -> Vec<u8> {
    let mut disk = vec![0; 400 * 512];
    put_gpt(&mut disk, 512, &[(DATA, 100, 199), (DATA, 200, 299)]);
    [100, 200].iter().for_each(|sector| put(&mut disk, sector * 512, &fat(&[2, 3])));
    disk
}

fn check_gpt_disk(disk: &[u8]) -> Option<String> {
    let found = found(disk).unwrap();
    assert_eq!(found.volumes.len(), 2);
    assert!(found.skipped_partitions.is_empty());
    assert!(is_free(&found, 0, 100 * 512) && is_free(&found, 300 * 512, 100 * 512));
    assert!(is_taken(&found, 103 * 512, 1024) && is_taken(&found, 203 * 512, 1024));
    found.notice
}

#[test]
fn partitions_of_a_gpt_are_read() {
    assert_eq!(check_gpt_disk(&gpt_disk()), None);
    let mut disk = vec![0; 100 * 4096];
    put_gpt(&mut disk, 4096, &[(DATA, 10, 29)]);
    put(&mut disk, 10 * 4096, &fat(&[2, 3]));
    let found = found(&disk).unwrap();
    assert_eq!((found.volumes[0].offset, found.notice), (10 * 4096, None));
}

#[test]
fn the_backup_of_a_gpt_is_used_where_the_first_is_damaged() {
    // Damage a byte of the header, of the array, of the signature; then both sectors at the start.
    for range in [512 + 40..512 + 41, 1024 + 32..1024 + 33, 512..513, 0..1024] {
        let mut disk = gpt_disk();
        disk[range.clone()].iter_mut().for_each(|byte| *byte ^= 0xA5);
        let notice = check_gpt_disk(&disk).expect("a notice");
        assert!(notice.contains("backup at byte 204288"), "{range:?}: {notice}");
        // With the backup damaged, too, the table is rejected.
        disk[399 * 512 + 50] ^= 1;
        assert!(matches!(found(&disk), Err(Error::FileSystem { .. })), "{range:?}");
    }
    // The image is longer than the disk was.
    let mut disk = gpt_disk();
    disk.resize(500 * 512, 0);
    disk[1024] ^= 1;
    assert_eq!(found(&disk).unwrap().volumes.len(), 2);
}

#[test]
fn partitions_without_a_known_file_system_are_skipped() {
    let mut disk = vec![0; 1000 * 512];
    let partitions = [
        (BIOS_BOOT, 10, 19),
        (RESERVED, 20, 99),
        (DATA, 100, 199),
        (DATA, 200, 299),
        (DATA, 300, 399),
        (LVM, 400, 449),
        (DATA, 450, 499),
        (DATA, 500, 599),
        (DATA, 600, 699),
        (DATA, 700, 799),
    ];
    put_gpt(&mut disk, 512, &partitions);
    put(&mut disk, 100 * 512, &fat(&[2, 3]));
    put(&mut disk, 200 * 512 + 3, b"ReFS\0\0\0\0");
    put(&mut disk, 300 * 512, b"LUKS\xBA\xBE");
    put(&mut disk, 500 * 512 + 4086, b"SWAPSPACE2");
    put(&mut disk, 600 * 512 + 3, b"-FVE-FS-");
    // A FAT too short for its clusters is not trusted.
    put(&mut disk, 700 * 512, &fat(&[]));
    put(&mut disk, 700 * 512 + 19, &[0xFF, 0xFF]);
    let found = found(&disk).unwrap();
    let passed: Vec<_> =
        found.skipped_partitions.iter().map(|one| (&*one.what, one.range.start / 512)).collect();
    let expected = [
        ("BIOS boot", 10),
        ("Microsoft Reserved", 20),
        ("ReFS", 200),
        ("LUKS", 300),
        ("LVM", 400),
        ("an unknown file system", 450),
        ("swap", 500),
        ("BitLocker", 600),
        ("a FAT too short for its clusters", 700),
    ];
    assert_eq!(passed, expected);
    assert_eq!(found.volumes.len(), 1);
    assert!(is_free(&found, 0, 10 * 512) && is_free(&found, 105 * 512, 90 * 512));
    assert!(is_taken(&found, 10 * 512, 90 * 512) && is_taken(&found, 200 * 512, 600 * 512));
    assert!(is_free(&found, 800 * 512, 200 * 512));
    let line = found.notices().remove(2);
    assert_eq!(line, "bytes 102400..153600 were skipped: a partition with ReFS");
}

#[test]
fn partitions_of_an_mbr_are_skipped_by_type() {
    let mut disk = vec![0; 100 * 512];
    mbr_entry(&mut disk, 0, 0, 0x82, 10, 20);
    mbr_entry(&mut disk, 0, 1, 0x83, 50, 40);
    let found = found(&disk).unwrap();
    let passed: Vec<_> = found.skipped_partitions.iter().map(|one| &*one.what).collect();
    assert_eq!(passed, ["swap", "an unknown file system"]);
    assert_eq!(found.ranges, [0..10 * 512, 30 * 512..50 * 512, 90 * 512..100 * 512]);
}

#[test]
fn invalid_structures_are_errors_with_their_offset() {
    let refused = |bytes: &[u8], word: &str, place: u64| match found(bytes).unwrap_err() {
        Error::FileSystem { offset, ref found, .. } if found.contains(word) => {
            assert_eq!(offset, place, "{found}");
        }
        error => panic!("{error}"),
    };
    refused(&[], "no file system", 0);
    refused(&[7; 5000], "no file system", 0);
    let mut bitlocker = vec![0; 4096];
    put(&mut bitlocker, 3, b"-FVE-FS-");
    refused(&bitlocker, "BitLocker", 0);
    let mut disk = vec![0; 100 * 512];
    mbr_entry(&mut disk, 0, 0, 0x83, 50, 51);
    refused(&disk, "ends beyond", 50 * 512);
    mbr_entry(&mut disk, 0, 1, 0x83, 10, 60);
    mbr_entry(&mut disk, 0, 0, 0x83, 50, 40);
    refused(&disk, "inside another", 50 * 512);
    let text = found(&disk).unwrap_err().to_string();
    assert!(text.contains("image: "), "{text}");
}

#[test]
fn a_chain_of_logical_partitions_that_leads_back_ends() {
    let mut disk = vec![0; 300 * 512];
    mbr_entry(&mut disk, 0, 0, 5, 100, 200);
    mbr_entry(&mut disk, 100, 0, 1, 20, 100);
    mbr_entry(&mut disk, 100, 1, 5, 0, 200);
    put(&mut disk, 120 * 512, &fat(&[]));
    assert_eq!(found(&disk).unwrap().volumes.len(), 1);
}

proptest! {
    /// For arbitrary first sectors of each file system: ranges within the source, or an error.
    #[test]
    fn hostile_volumes_end_in_an_answer_or_an_error(
        kind in 0usize..5,
        changes in prop::collection::vec((0usize..3000, any::<[u8; 4]>()), 0..12),
    ) {
        let mut bytes = match kind {
            0 => fat(&[2, 9]),
            1 => exfat(&[4]),
            2 => {
                let mut bytes = vec![0; 40_000];
                put(&mut bytes, 1024 + 4, &39u32.to_le_bytes());
                put(&mut bytes, 1024 + 32, &8192u32.to_le_bytes());
                put(&mut bytes, 1024 + 56, &[0x53, 0xEF]);
                bytes
            }
            3 => {
                let mut bytes = vec![0; 40_000];
                put(&mut bytes, 3, b"NTFS    ");
                put(&mut bytes, 11, &[0, 2, 1]);
                put(&mut bytes, 40, &70u64.to_le_bytes());
                bytes[48] = 1;
                bytes[64] = 0xF6;
                put(&mut bytes, 512 + 6 * 1024, b"FILE");
                bytes
            }
            _ => {
                let mut bytes = vec![0; 80 * 512];
                put_gpt(&mut bytes, 512, &[(DATA, 10, 19)]);
                bytes
            }
        };
        for (at, value) in changes {
            put(&mut bytes, at, &value);
        }
        let _ = found(&bytes);
    }
}
