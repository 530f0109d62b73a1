//! GPT: a header and a partition array, with a backup of both at the end of the disk.
//!
//! *UEFI Specification*, 5.3. A copy counts only if its checksums match. No library is used, because
//! damage must result in a notice rather than an error.

use std::borrow::Cow;

use super::{Partition, Table};
use crate::error::Result;
use crate::part::{Part, u32_at, u64_at};

/// Maximum number of partitions; tools create arrays of 128.
const PARTITIONS_MAX: u32 = 1024;
const HEADER_BYTES: usize = 92;
const SECTOR_BYTES: [u64; 2] = [512, 4096];

/// Reads the table of `disk`; `None` if it has none. `sectors` is the number of sectors of the disk
/// according to the MBR.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if both copies are damaged, and
/// [`Error::Source`](crate::Error::Source) if neither can be read.
pub(super) fn read(disk: &Part<'_>, sectors: Option<u64>) -> Result<Option<Table>> {
    let mut wrong = None;
    for sector_bytes in SECTOR_BYTES {
        match copy(disk, sector_bytes, 1) {
            Ok(Some(partitions)) => return Ok(Some(Table { partitions, notice: None })),
            Ok(None) => {}
            Err(error) => wrong = wrong.or(Some(error)),
        }
    }
    for sector_bytes in SECTOR_BYTES {
        let ends = [Some(disk.length() / sector_bytes), sectors];
        for last in ends.into_iter().flatten().filter_map(|end| end.checked_sub(1)) {
            if last > 1
                && let Ok(Some(partitions)) = copy(disk, sector_bytes, last)
            {
                let (first, at) = (sector_bytes, last * sector_bytes);
                let notice =
                    format!("the GPT at byte {first} is damaged; its backup at byte {at} was used");
                return Ok(Some(Table { partitions, notice: Some(notice) }));
            }
        }
    }
    wrong.map_or(Ok(None), Err)
}

/// Reads the partitions of the copy whose header is in `sector`; `None` without a header.
fn copy(disk: &Part<'_>, sector_bytes: u64, sector: u64) -> Result<Option<Vec<Partition>>> {
    let at = sector.saturating_mul(sector_bytes);
    let room = disk.length().saturating_sub(at).min(sector_bytes) as usize;
    if room < HEADER_BYTES {
        return Ok(None);
    }
    let mut header = vec![0; room];
    disk.read(at, &mut header, "the GPT header")?;
    if !header.starts_with(b"EFI PART") {
        return Ok(None);
    }
    let bytes = u32_at(&header, 12) as usize;
    let checksum = u32_at(&header, 16);
    if !(HEADER_BYTES..=room).contains(&bytes) {
        return Err(disk.refused(at, "a GPT with impossible values"));
    }
    header[16..20].fill(0);
    if crc32(&header[..bytes]) != checksum || u64_at(&header, 24) != sector {
        return Err(disk.refused(at, "a GPT with a wrong checksum and no valid backup"));
    }
    let (count, entry_bytes) = (u32_at(&header, 80), u32_at(&header, 84));
    if count > PARTITIONS_MAX || !(128..=4096).contains(&entry_bytes) {
        return Err(disk.refused(at, "a GPT with impossible values"));
    }
    let list_at = u64_at(&header, 72).saturating_mul(sector_bytes);
    let mut list = vec![0; count as usize * entry_bytes as usize];
    disk.read(list_at, &mut list, "the GPT partition array")?;
    if crc32(&list) != u32_at(&header, 88) {
        return Err(disk.refused(list_at, "a GPT with a wrong checksum and no valid backup"));
    }
    let entries = list.chunks_exact(entry_bytes as usize);
    Ok(Some(entries.filter_map(|entry| partition(entry, sector_bytes)).collect()))
}

fn partition(entry: &[u8], sector_bytes: u64) -> Option<Partition> {
    if entry[..16] == [0; 16] {
        return None;
    }
    let byte = |sector: u64| sector.saturating_mul(sector_bytes);
    let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
    let name = NAMES.iter().find(|(id, _)| entry.starts_with(&id.to_bytes()));
    let span = byte(first)..byte(last.saturating_add(1));
    Some(Partition { number: 0, span, name: name.map(|(_, name)| Cow::Borrowed(*name)) })
}

fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// A GUID as usually written: `E3C9E316-0B5C-4DB8-817D-F92DF00215AE`.
struct Id(u32, u16, u16, u16, u64);

impl Id {
    /// The on-disk byte order: the first three fields are little-endian, the rest big-endian.
    fn to_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.0.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.1.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.2.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.3.to_be_bytes());
        bytes[10..].copy_from_slice(&self.4.to_be_bytes()[2..]);
        bytes
    }
}

/// Names for partitions in which no supported file system is recognized.
const NAMES: [(Id, &str); 12] = [
    (Id(0xE3C9E316, 0x0B5C, 0x4DB8, 0x817D, 0xF92D_F002_15AE), "Microsoft Reserved"),
    (Id(0x21686148, 0x6449, 0x6E6F, 0x744E, 0x6565_6445_4649), "BIOS boot"),
    (Id(0x0657FD6D, 0xA4AB, 0x43C4, 0x84E5, 0x0933_C84B_4F4F), "swap"),
    (Id(0xE6D6D379, 0xF507, 0x44C2, 0xA23C, 0x238F_2A3D_F928), "LVM"),
    (Id(0xCA7D7CCB, 0x63ED, 0x4C53, 0x861C, 0x1742_5360_59CC), "LUKS"),
    (Id(0xA19D880F, 0x05FC, 0x4D3B, 0xA006, 0x743F_0F84_911E), "Linux RAID"),
    (Id(0x5808C8AA, 0x7E8F, 0x42E0, 0x85D2, 0xE1E9_0434_CFB3), "dynamic disk"),
    (Id(0xAF9B60A0, 0x1431, 0x4F62, 0xBC68, 0x3311_714A_69AD), "dynamic disk"),
    (Id(0xE75CAF8F, 0xF680, 0x4CEE, 0xAFA3, 0xB001_E56E_FC2D), "storage space"),
    (Id(0x7C3457EF, 0x0000, 0x11AA, 0xAA11, 0x0030_6543_ECAC), "APFS"),
    (Id(0x48465300, 0x0000, 0x11AA, 0xAA11, 0x0030_6543_ECAC), "HFS+"),
    (Id(0x6A898CC3, 0x1DD2, 0x11B2, 0x99A6, 0x0800_2073_6631), "ZFS"),
];
