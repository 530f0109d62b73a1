//! The free bytes of a source according to its file systems, where the content of deleted files
//! remains.
//!
//! ```text
//!  source ──→ one volume, or partitions (MBR, GPT, APM) ──→ bitmap or table of each ──→ ranges
//! ```
//!
//! Partitions with an unknown file system, or without one, are skipped and listed.
//!
//! Only allocation structures are read, never directories (except exFAT's root, which locates its
//! bitmap). An unreplayed journal is ignored, so its changes are missing from the result.

mod apfs;
mod btrfs;
mod exfat;
mod ext;
mod fat;
mod free;
mod hfs;
mod ntfs;
mod xfs;

use std::ops::Range;

use quarrier_core::source::Source;

use crate::error::{Error, Result};
use crate::iso;
use crate::other;
use crate::part::Part;
use crate::partitions::{self, Partition, Table};
use crate::systems::SkippedPartition;
use free::Free;

/// The free bytes of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unallocated {
    /// Sorted and disjoint, with adjacent ranges merged.
    pub ranges: Vec<Range<u64>>,
    /// The file systems whose bitmaps were read, by offset.
    pub volumes: Vec<Volume>,
    /// The partitions whose free bytes are unknown, by offset. None of their bytes count as free.
    pub skipped_partitions: Vec<SkippedPartition>,
    /// A message to show if the partition table is damaged.
    pub notice: Option<String>,
}

/// A file system with known free space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its type: `FAT12`, `FAT16`, `FAT32`, `exFAT`, `NTFS`, `ext`, `XFS`, `HFS+`, `Btrfs` or `APFS`.
    pub kind: &'static str,
    /// Start in the source, in bytes.
    pub offset: u64,
    /// Size of its partition in bytes.
    pub length: u64,
    /// Free bytes of its partition.
    pub free_bytes: u64,
}

impl Volume {
    /// Its range in the source.
    pub fn span(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length)
    }
}

impl Unallocated {
    /// Messages about skipped partitions and damage.
    pub fn notices(&self) -> Vec<String> {
        let skipped_partitions = self.skipped_partitions.iter().map(SkippedPartition::describe);
        self.notice.iter().cloned().chain(skipped_partitions).collect()
    }

    /// The total number of free bytes.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }
}

/// The partitions of `source`, by offset; empty if it has no partition table. For an MBR, primary and
/// logical partitions.
///
/// # Errors
/// [`Error::FileSystem`] if the table has impossible values, [`Error::Source`] if it cannot be read.
pub fn partitions(source: &dyn Source) -> Result<Vec<Range<u64>>> {
    let table = partitions::read(&Part::whole(source))?;
    Ok(table.partitions.into_iter().map(|partition| partition.span).collect())
}

/// Finds the free bytes of `source`: those marked as free by its file systems, and those outside of
/// partitions.
///
/// Reads bitmaps and tables, with 1 to 32 bits per cluster. Takes 16 bytes per range, for at most four
/// million ranges.
///
/// # Errors
/// [`Error::FileSystem`] if there is no partition table and no supported file system, or if they are
/// invalid; [`Error::Source`] if the source cannot be read.
pub fn find(source: &dyn Source) -> Result<Unallocated> {
    let whole = Part::whole(source);
    let mut free = Free::default();
    if let Some(kind) = volume(&whole, &mut free)? {
        return Ok(summed(free, vec![(kind, whole.span())], Vec::new(), None));
    }
    let Table { partitions, notice } = partitions::read(&whole)?;
    if partitions.is_empty() {
        return Err(whole.refused(
            0,
            "no file system that quarrier can read (ext2 to ext4, XFS, Btrfs, FAT, exFAT, NTFS, HFS+, \
             APFS)",
        ));
    }
    let (mut volumes, mut skipped_partitions) = (Vec::new(), Vec::new());
    let mut outside = 0;
    for partition in partitions {
        let Partition { span, .. } = &partition;
        free.add(outside..span.start, &whole)?;
        outside = span.end;
        let part = whole.within(span.clone());
        match inside(&part, &partition, &mut free)? {
            Ok(kind) => volumes.push((kind, span.clone())),
            Err(what) => skipped_partitions.push(SkippedPartition { range: span.clone(), what }),
        }
    }
    free.add(outside..source.length(), &whole)?;
    Ok(summed(free, volumes, skipped_partitions, notice))
}

/// Combines the results.
fn summed(
    free: Free,
    volumes: Vec<(&'static str, Range<u64>)>,
    skipped_partitions: Vec<SkippedPartition>,
    notice: Option<String>,
) -> Unallocated {
    let ranges = free.into_ranges();
    let with_free_bytes = |(kind, span): (&'static str, Range<u64>)| Volume {
        kind,
        offset: span.start,
        length: span.end - span.start,
        free_bytes: shared(&ranges, &span),
    };
    let volumes = volumes.into_iter().map(with_free_bytes).collect();
    Unallocated { ranges, volumes, skipped_partitions, notice }
}

/// Adds the free bytes of the file system in a partition and returns its name; otherwise `Err` with the
/// name of the contents, whose free bytes are unknown.
fn inside(
    part: &Part<'_>,
    partition: &Partition,
    free: &mut Free,
) -> Result<std::result::Result<&'static str, String>> {
    let boot = part.boot()?;
    if let Some(name) = other::first(&boot) {
        return Ok(Err(name.to_string()));
    }
    // Collected separately, so that a file system that turns out to be invalid adds nothing.
    let mut own = Free::default();
    match volume(part, &mut own) {
        Ok(Some(kind)) => {
            free.append(own, part)?;
            return Ok(Ok(kind));
        }
        Ok(None) => {}
        Err(Error::FileSystem { found, .. }) => return Ok(Err(found)),
        Err(error) => return Err(error),
    }
    let name = other::last(part)?.or(partition.name.as_deref());
    Ok(Err(name.unwrap_or("an unknown file system").to_string()))
}

/// Adds the free bytes of the file system in `part` and returns its name; `None` if there is none.
fn volume(part: &Part<'_>, free: &mut Free) -> Result<Option<&'static str>> {
    let boot = part.boot()?;
    if other::first(&boot) == Some("BitLocker") {
        return Err(part.refused(0, "a volume encrypted by BitLocker"));
    }
    for read in [apfs::read, xfs::read, ntfs::read, exfat::read, fat::read, ext::read] {
        if let Some(kind) = read(part, &boot, free)? {
            return Ok(Some(kind));
        }
    }
    // A hybrid disc with HFS+ counts as ISO 9660, which has no free bytes.
    if iso::is_iso(part)? {
        return Ok(None);
    }
    match hfs::read(part, &boot, free)? {
        Some(kind) => Ok(Some(kind)),
        None => btrfs::read(part, &boot, free),
    }
}

/// The number of bytes of `span` within `ranges`.
fn shared(ranges: &[Range<u64>], span: &Range<u64>) -> u64 {
    let from = ranges.partition_point(|range| range.end <= span.start);
    let inside = ranges[from..].iter().take_while(|range| range.start < span.end);
    inside.map(|range| range.end.min(span.end) - range.start.max(span.start)).sum()
}
