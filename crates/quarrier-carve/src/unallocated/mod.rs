//! Which bytes of a source are free, as its file systems say: where deleted files lie.
//!
//! ```text
//!  source ──→ one volume, or partitions (MBR, GPT) ──→ bitmap or table of each ──→ ranges
//! ```
//!
//! Only what says which clusters are allocated is read, never a directory (but exFAT's root, where
//! its bitmap is listed). A journal that was not played back is not looked at: what it would
//! change is told as it stands.

mod exfat;
mod ext;
mod fat;
mod free;
mod ntfs;
mod part;
mod partitions;

use std::ops::Range;

use quarrier_core::source::Source;

use crate::error::Result;
use free::Free;
use part::Part;

/// The free bytes of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unallocated {
    /// Sorted, disjoint, none touching the next.
    pub ranges: Vec<Range<u64>>,
    /// The file systems that said so, by offset.
    pub volumes: Vec<Volume>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its kind: `FAT12`, `FAT16`, `FAT32`, `exFAT`, `NTFS` or `ext`.
    pub kind: &'static str,
    /// Where it begins in the source, in bytes.
    pub offset: u64,
    /// The bytes of its partition.
    pub length: u64,
    /// The bytes of its partition that are free.
    pub free_bytes: u64,
}

impl Unallocated {
    /// All free bytes together.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }
}

/// Finds the free bytes of `source`: those that its file system, or those of its partitions, say
/// are not allocated, and those outside of partitions.
///
/// Reads the bitmaps and tables, a bit to 32 bits a cluster. Takes 16 bytes a range, of which
/// there are four million at most.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) for a volume that is of no kind known here, is encrypted, or says what
/// cannot be; [`Error::Source`](crate::Error::Source) when it cannot be read.
pub fn find(source: &dyn Source) -> Result<Unallocated> {
    let whole = Part::whole(source);
    let mut free = Free::default();
    let mut volumes = Vec::new();
    let mut partitions = Vec::new();
    if let Some(kind) = volume(&whole, &mut free)? {
        volumes.push((kind, whole.span()));
    } else {
        partitions = partitions::read(&whole)?;
        if partitions.is_empty() {
            return Err(whole.refused(
                0,
                "no file system that quarrier can read (ext2 to ext4, FAT, exFAT, NTFS)",
            ));
        }
    }
    let mut outside = 0;
    for span in partitions {
        free.add(outside..span.start, &whole)?;
        outside = span.end;
        let part = whole.within(span.clone());
        match volume(&part, &mut free)? {
            Some(kind) => volumes.push((kind, span)),
            None => {
                return Err(part.refused(
                    0,
                    "a partition without a file system that quarrier can read (ext2 to ext4, FAT, \
                     exFAT, NTFS)",
                ));
            }
        }
    }
    if outside > 0 {
        free.add(outside..source.length(), &whole)?;
    }
    let ranges = free.into_ranges();
    let told = |(kind, span): (&'static str, Range<u64>)| Volume {
        kind,
        offset: span.start,
        length: span.end - span.start,
        free_bytes: shared(&ranges, &span),
    };
    let volumes = volumes.into_iter().map(told).collect();
    Ok(Unallocated { ranges, volumes })
}

/// Adds the free bytes of the file system in `part` and says what it is; `None` where it is none.
fn volume(part: &Part<'_>, free: &mut Free) -> Result<Option<&'static str>> {
    let boot = part.boot()?;
    if &boot[3..11] == b"-FVE-FS-" {
        return Err(part.refused(0, "a volume that BitLocker has encrypted"));
    }
    for read in [ntfs::read, exfat::read, fat::read, ext::read] {
        if let Some(kind) = read(part, &boot, free)? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// How many bytes of `span` lie in `ranges`.
fn shared(ranges: &[Range<u64>], span: &Range<u64>) -> u64 {
    let from = ranges.partition_point(|range| range.end <= span.start);
    let inside = ranges[from..].iter().take_while(|range| range.start < span.end);
    inside.map(|range| range.end.min(span.end) - range.start.max(span.start)).sum()
}
