//! Partition tables: GPT, and MBR with its chain of logical partitions.

use std::ops::Range;

use super::part::{Part, u16_at, u32_at, u64_at};
use crate::error::Result;

/// Of either kind; tools make 128.
const PARTITIONS_MAX: u32 = 1024;
const SIGNATURE: u16 = 0xAA55;
const PROTECTIVE: u8 = 0xEE;
const EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];

/// The partitions of a disk, sorted and disjoint; none where there is no table.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) where they overlap or lie beyond the end.
pub(super) fn read(disk: &Part<'_>) -> Result<Vec<Range<u64>>> {
    let boot = disk.boot()?;
    if u16_at(&boot, 510) != SIGNATURE {
        return Ok(Vec::new());
    }
    let entries = entries(&boot);
    let mut found = Vec::new();
    if entries.iter().any(|entry| entry.kind == PROTECTIVE) {
        for sector_bytes in [512, 4096] {
            if gpt(disk, sector_bytes, &mut found)? {
                break;
            }
        }
    } else {
        for entry in &entries {
            if EXTENDED.contains(&entry.kind) {
                logical(disk, entry.start, &mut found)?;
            } else if entry.kind != 0 {
                found.push(entry.span(0));
            }
        }
    }
    found.retain(|span| !span.is_empty());
    found.sort_unstable_by_key(|span| span.start);
    let overlap = found.windows(2).find(|pair| pair[0].end > pair[1].start);
    if let Some(pair) = overlap {
        return Err(disk.refused(pair[1].start, "a partition that begins inside another"));
    }
    match found.last() {
        Some(last) if last.end > disk.length() => {
            Err(disk.refused(last.start, "a partition that ends beyond the source"))
        }
        _ => Ok(found),
    }
}

/// An entry of an MBR, in sectors of 512 bytes.
struct Entry {
    kind: u8,
    start: u64,
    sectors: u64,
}

impl Entry {
    fn span(&self, base: u64) -> Range<u64> {
        let start = base + self.start;
        start * 512..(start + self.sectors) * 512
    }
}

fn entries(sector: &[u8]) -> Vec<Entry> {
    (0..4)
        .map(|index| &sector[446 + index * 16..][..16])
        // What stands there in the boot sector of a file system is no table.
        .filter(|entry| entry[0] & 0x7F == 0 && u32_at(entry, 12) > 0)
        .map(|entry| Entry {
            kind: entry[4],
            start: u32_at(entry, 8).into(),
            sectors: u32_at(entry, 12).into(),
        })
        .collect()
}

/// Follows the chain of logical partitions; each link is counted from the first.
fn logical(disk: &Part<'_>, first: u64, found: &mut Vec<Range<u64>>) -> Result<()> {
    let mut link = 0;
    for _ in 0..PARTITIONS_MAX {
        let mut sector = [0; 512];
        disk.read((first + link) * 512, &mut sector, "a link of logical partitions")?;
        if u16_at(&sector, 510) != SIGNATURE {
            return Ok(());
        }
        let entries = entries(&sector);
        let (links, partitions): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| EXTENDED.contains(&entry.kind));
        found.extend(partitions.iter().map(|entry| entry.span(first + link)));
        match links.first() {
            // A chain leads on, or it would never end.
            Some(next) if next.start > link => link = next.start,
            _ => return Ok(()),
        }
    }
    Err(disk.refused(first * 512, "more logical partitions than any disk has"))
}

/// Adds the partitions of a GPT; `false` where there is none for sectors of this size.
fn gpt(disk: &Part<'_>, sector_bytes: u64, found: &mut Vec<Range<u64>>) -> Result<bool> {
    let mut header = [0; 92];
    if disk.length() < sector_bytes + 92 {
        return Ok(false);
    }
    disk.read(sector_bytes, &mut header, "the header of the GPT")?;
    if &header[..8] != b"EFI PART" {
        return Ok(false);
    }
    let at = u64_at(&header, 72).saturating_mul(sector_bytes);
    let (count, entry_bytes) = (u32_at(&header, 80), u32_at(&header, 84));
    if count > PARTITIONS_MAX || !(128..=4096).contains(&entry_bytes) {
        return Err(disk.refused(sector_bytes, "a GPT that says what cannot be"));
    }
    for index in 0..u64::from(count) {
        let mut entry = [0; 48];
        let place = at.saturating_add(index * u64::from(entry_bytes));
        disk.read(place, &mut entry, "an entry of the GPT")?;
        if entry[..16] == [0; 16] {
            continue;
        }
        let (first, last) = (u64_at(&entry, 32), u64_at(&entry, 40));
        let byte = |sector: u64| sector.saturating_mul(sector_bytes);
        found.push(byte(first)..byte(last.saturating_add(1)));
    }
    Ok(true)
}
