//! Partition tables: GPT with its backup, MBR with its chain of logical partitions, and Apple's.

mod apple;
mod gpt;

use std::borrow::Cow;
use std::ops::Range;

use quarrier_core::source::Source;

use crate::error::Result;
use crate::part::{Part, u16_at, u32_at};

/// An entry of a partition table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its number in order of offset, from 1: `image#2` is the second one.
    pub number: u32,
    /// Its bytes in the source.
    pub span: Range<u64>,
    /// A name for its type, to use if no supported file system is recognized: `"swap"`.
    pub name: Option<Cow<'static, str>>,
}

/// A partition table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Sorted and disjoint; empty if there is no table.
    pub partitions: Vec<Partition>,
    /// A message to show if the table is damaged: its backup was used, or entries were skipped.
    pub notice: Option<String>,
}

/// Finds the partitions of a source. Do not call it if a file system begins at byte 0: the result would
/// be meaningless.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if partitions overlap or lie beyond the end, or if
/// the checksums of a GPT and of its backup are wrong; [`Error::Source`](crate::Error::Source) if the
/// table cannot be read.
pub fn find(source: &dyn Source) -> Result<Table> {
    read(&Part::whole(source))
}

/// Maximum links of the chain; operating systems follow about 60.
const PARTITIONS_MAX: u32 = 1024;
const SIGNATURE: u16 = 0xAA55;
const PROTECTIVE: u8 = 0xEE;
const EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];

/// The partitions of a disk, sorted and disjoint; empty if it has no table.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if they overlap or lie beyond the end, or if the
/// checksums of a GPT are wrong.
pub(crate) fn read(disk: &Part<'_>) -> Result<Table> {
    let boot = disk.boot()?;
    let is_signed = u16_at(&boot, 510) == SIGNATURE;
    let entries = if is_signed { entries(&boot) } else { Vec::new() };
    let protective = entries.iter().find(|entry| entry.kind == PROTECTIVE);
    let mut table = Table { partitions: Vec::new(), notice: None };
    let apple = if is_signed { None } else { apple::read(disk, &boot)? };
    if let Some(found) = apple {
        table = found;
    } else if protective.is_some() || !is_signed {
        // With a wiped boot sector, the GPT after it may still be intact.
        let sectors = protective.map(|entry| entry.start + entry.sectors);
        if let Some(found) = gpt::read(disk, sectors)? {
            table = found;
        }
    } else {
        for entry in &entries {
            if EXTENDED.contains(&entry.kind) {
                logical(disk, entry.start, &mut table.partitions)?;
            } else if entry.kind != 0 {
                table.partitions.push(entry.partition(0));
            }
        }
    }
    if table.partitions.is_empty()
        && is_signed
        && let Some(found) = apple::read(disk, &boot)?
    {
        table = found;
    }
    table.partitions.retain(|one| !one.span.is_empty());
    table.partitions.sort_unstable_by_key(|one| one.span.start);
    let overlap = table.partitions.windows(2).find(|pair| pair[0].span.end > pair[1].span.start);
    if let Some(pair) = overlap {
        return Err(disk.refused(pair[1].span.start, "a partition that begins inside another"));
    }
    for (number, partition) in (1..).zip(&mut table.partitions) {
        partition.number = number;
    }
    match table.partitions.last() {
        Some(last) if last.span.end > disk.length() => {
            Err(disk.refused(last.span.start, "a partition that ends beyond the source"))
        }
        _ => Ok(table),
    }
}

/// An MBR entry, in sectors of 512 bytes.
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

    fn partition(&self, base: u64) -> Partition {
        let name = match self.kind {
            0x82 => Some("swap"),
            0x8E => Some("LVM"),
            0xE8 => Some("LUKS"),
            0xFD => Some("Linux RAID"),
            0x42 => Some("dynamic disk"),
            0xAF => Some("HFS+"),
            _ => None,
        };
        Partition { number: 0, span: self.span(base), name: name.map(Cow::Borrowed) }
    }
}

fn entries(sector: &[u8]) -> Vec<Entry> {
    (0..4)
        .map(|index| &sector[446 + index * 16..][..16])
        // In the boot sector of a file system these bytes are code or text, not a table.
        .filter(|entry| entry[0] & 0x7F == 0 && u32_at(entry, 12) > 0)
        .map(|entry| Entry {
            kind: entry[4],
            start: u32_at(entry, 8).into(),
            sectors: u32_at(entry, 12).into(),
        })
        .collect()
}

/// Follows the chain of logical partitions; links are relative to the first one.
fn logical(disk: &Part<'_>, first: u64, found: &mut Vec<Partition>) -> Result<()> {
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
        found.extend(partitions.iter().map(|entry| entry.partition(first + link)));
        match links.first() {
            // Links must increase, or a cycle would never end.
            Some(next) if next.start > link => link = next.start,
            _ => return Ok(()),
        }
    }
    Err(disk.refused(first * 512, "more logical partitions than any disk has"))
}
