//! Apple partition map: a block for each partition, after a first block that describes the drivers.
//!
//! *Inside Macintosh: Devices*, chapter 3. Macs used it until 2006; CDs, DVDs and `.dmg` images still have
//! one. All numbers are big-endian.

use std::borrow::Cow;

use super::{Partition, Table};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, be16, be32};

/// Maximum number of entries; tools write maps of 63.
const ENTRIES_MAX: u32 = 1024;
const DISK: &[u8] = b"ER";
const ENTRY: &[u8] = b"PM";
/// The used part of an entry.
const ENTRY_BYTES: usize = 512;
/// Types of entries without files: the map itself, free space, and unused entries.
const NOTHING: [&[u8]; 5] =
    [b"Apple_partition_map", b"Apple_Free", b"Apple_Scratch", b"Apple_Void", b"Apple_Extra"];

/// Reads the map of `disk`, which begins with `boot`; `None` if it has none.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if the map has impossible values, and
/// [`Error::Source`](crate::Error::Source) if it cannot be read.
pub(super) fn read(disk: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<Option<Table>> {
    let Some(block_bytes) = block_bytes(disk, boot)? else { return Ok(None) };
    let (mut table, mut number) = (Table { partitions: Vec::new(), notice: None }, 1);
    loop {
        let at = u64::from(number) * block_bytes;
        let Some(entry) = entry(disk, at)? else {
            table.notice = Some(format!(
                "the Apple partition map is damaged at byte {at}, and its later entries were skipped"
            ));
            return Ok(Some(table));
        };
        // Each entry has the number of all entries.
        let count = be32(&entry, 4);
        if count > ENTRIES_MAX {
            return Err(disk.refused(at, "an Apple partition map with impossible values"));
        }
        table.partitions.extend(partition(&entry, block_bytes));
        if number >= count {
            return Ok(Some(table));
        }
        number += 1;
    }
}

/// The size of the blocks in which the map counts; `None` without a map.
fn block_bytes(disk: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<Option<u64>> {
    let stated = u64::from(be16(boot, 2));
    let is_disk = boot.starts_with(DISK);
    // Discs may state the size of their sectors although the map counts in blocks of 512 bytes, whose second
    // or fourth entry must not be taken for the first one of a map in larger blocks, which has nothing at
    // byte 512. If the first block was wiped, only blocks of 512 bytes are tried.
    let sizes: &[u64] = match stated {
        1024 | 2048 | 4096 if is_disk => &[512, stated],
        _ if is_disk && stated != 512 => &[512, 2048],
        _ => &[512],
    };
    for &size in sizes {
        if entry(disk, size)?.is_some_and(|entry| be32(&entry, 4) > 0) {
            return Ok(Some(size));
        }
    }
    Ok(None)
}

/// The entry at a byte of the disk; `None` if there is none.
fn entry(disk: &Part<'_>, at: u64) -> Result<Option<[u8; ENTRY_BYTES]>> {
    let mut entry = [0; ENTRY_BYTES];
    if disk.length() < at + ENTRY_BYTES as u64 {
        return Ok(None);
    }
    disk.read(at, &mut entry, "the Apple partition map")?;
    Ok(entry.starts_with(ENTRY).then_some(entry))
}

fn partition(entry: &[u8], block_bytes: u64) -> Option<Partition> {
    let kind = &entry[48..80];
    let kind = kind.split(|byte| *byte == 0).next().unwrap_or_default();
    if kind.is_empty() || NOTHING.iter().any(|nothing| kind.eq_ignore_ascii_case(nothing)) {
        return None;
    }
    let (first, blocks) = (u64::from(be32(entry, 8)), u64::from(be32(entry, 12)));
    let span = first * block_bytes..(first + blocks) * block_bytes;
    Some(Partition { number: 0, span, name: name(kind) })
}

/// A name for a partition in which no supported file system is recognized.
fn name(kind: &[u8]) -> Option<Cow<'static, str>> {
    let known = match kind {
        b"Apple_HFS" | b"Apple_HFSX" => "HFS+",
        b"Apple_APFS" => "APFS",
        b"Apple_MFS" => "MFS",
        b"Apple_PRODOS" => "ProDOS",
        b"Apple_UFS" | b"Apple_UNIX_SVR2" => "UFS",
        b"Apple_Boot" | b"Apple_Bootstrap" => "a boot loader",
        kind if kind.starts_with(b"Apple_Driver") => "drivers",
        b"Apple_FWDriver" | b"Apple_Patches" => "drivers",
        // Types are printed, so other characters must not be in them.
        kind if kind.iter().all(u8::is_ascii_graphic) => {
            let kind = String::from_utf8_lossy(kind);
            return Some(Cow::Owned(format!("contents of the type {kind}")));
        }
        _ => return None,
    };
    Some(Cow::Borrowed(known))
}
