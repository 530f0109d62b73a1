//! Volumes and partition tables made by code, hostile ones too.

use proptest::prelude::*;
use quarrier_carve::Error;
use quarrier_carve::unallocated::{Unallocated, find};
use quarrier_core::source::Memory;

use super::{check_order, is_free, is_taken};

fn found(bytes: &[u8]) -> quarrier_carve::Result<Unallocated> {
    let found = find(&Memory::new("image", bytes))?;
    check_order(&found, bytes.len() as u64);
    Ok(found)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// FAT12 of 100 sectors: the table in sector 1, the root in 2, clusters of a sector from 3.
fn fat(taken: &[usize]) -> Vec<u8> {
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

/// exFAT of 64 sectors: the FAT in sector 24, clusters of a sector from 32: the root directory,
/// then the bitmap.
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
fn clusters_of_fat_are_free_where_the_table_says_so() {
    let found = found(&fat(&[2, 3, 7, 98])).unwrap();
    assert_eq!(found.ranges, [5 * 512..8 * 512, 9 * 512..99 * 512]);
    assert_eq!((found.volumes[0].kind, found.volumes[0].free_bytes), ("FAT12", 93 * 512));
}

#[test]
fn clusters_of_exfat_are_free_where_the_bitmap_says_so() {
    let found = found(&exfat(&[4, 5, 31])).unwrap();
    assert_eq!(found.ranges, [34 * 512..36 * 512, 38 * 512..63 * 512]);
    assert_eq!(found.volumes[0].kind, "exFAT");
}

#[test]
fn what_is_beyond_the_volume_is_free() {
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

#[test]
fn partitions_of_a_gpt_are_read() {
    let mut disk = vec![0; 400 * 512];
    mbr_entry(&mut disk, 0, 0, 0xEE, 1, 399);
    put(&mut disk, 512, b"EFI PART");
    put(&mut disk, 512 + 72, &2u64.to_le_bytes());
    put(&mut disk, 512 + 80, &[4, 0, 0, 0, 128, 0, 0, 0]);
    for (index, first, last) in [(0, 100u64, 199u64), (2, 200, 299)] {
        let at = 1024 + index * 128;
        put(&mut disk, at, &[7; 32]);
        put(&mut disk, at + 32, &first.to_le_bytes());
        put(&mut disk, at + 40, &last.to_le_bytes());
        put(&mut disk, first as usize * 512, &fat(&[2, 3]));
    }
    let found = found(&disk).unwrap();
    assert_eq!(found.volumes.len(), 2);
    assert!(is_free(&found, 0, 100 * 512) && is_free(&found, 300 * 512, 100 * 512));
    assert!(is_taken(&found, 103 * 512, 1024) && is_taken(&found, 203 * 512, 1024));
}

#[test]
fn what_is_not_understood_is_an_error_that_says_where() {
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
    mbr_entry(&mut disk, 0, 0, 0x83, 50, 40);
    refused(&disk, "a partition without a file system", 50 * 512);
    mbr_entry(&mut disk, 0, 0, 0x83, 50, 51);
    refused(&disk, "ends beyond", 50 * 512);
    mbr_entry(&mut disk, 0, 1, 0x83, 10, 60);
    mbr_entry(&mut disk, 0, 0, 0x83, 50, 40);
    refused(&disk, "inside another", 50 * 512);
    let text = found(&disk).unwrap_err().to_string();
    assert!(text.contains("image: ") && text.contains("without --unallocated"), "{text}");
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
    /// Any bytes in the first sectors of each kind: an answer within the source, or an error.
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
                let mut bytes = vec![0; 40_000];
                mbr_entry(&mut bytes, 0, 0, 0xEE, 1, 70);
                put(&mut bytes, 512, b"EFI PART");
                bytes
            }
        };
        for (at, value) in changes {
            put(&mut bytes, at, &value);
        }
        let _ = found(&bytes);
    }
}
