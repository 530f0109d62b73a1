//! Finds the file of a byte: an interval map of the extents of all files of a source.
//!
//! ```text
//!  entries ──→ pieces with a rank ──→ sorted, overlaps decided by rank ──→ looked up by offset
//! ```
//!
//! If several files claim a byte, a file stored in a record takes precedence over the table of records,
//! allocated bytes over slack, and both over deleted files.

mod gathered;
mod overlaps;
mod unallocated_ranges;

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::{fmt, io};

use quarrier_core::source::Source;

use crate::entry::{Extent, State};
use crate::error::{Error, Result};
use crate::systems::{SkippedPartition, System, SystemKind, Systems, find};
use crate::unallocated::{self, Volume};
use crate::walk::Reach;
use gathered::{Gathered, Origin};
use overlaps::disjoint;

/// The allocation state of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceState {
    /// An allocated file owns it.
    Allocated,
    /// A deleted file owned it, and no file has reused it since.
    Deleted,
    /// After the end of a file, in its last cluster.
    Slack,
    /// Not allocated, and of no known deleted file.
    Free,
    /// Part of the file system's own structures.
    Metadata,
    /// Outside of all supported file systems.
    Outside,
}

impl PlaceState {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            PlaceState::Allocated => "allocated",
            PlaceState::Deleted => "deleted",
            PlaceState::Slack => "slack",
            PlaceState::Free => "free",
            PlaceState::Metadata => "metadata",
            PlaceState::Outside => "outside",
        }
    }
}

impl fmt::Display for PlaceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The file that a byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'m> {
    /// The path of the file; with several file systems, `#N` of the partition comes first.
    pub file: Option<&'m str>,
    /// The number of the file, as in [`Entry::inode`](crate::Entry::inode).
    pub inode: Option<u64>,
    /// The allocation state of the byte.
    pub state: PlaceState,
    /// The modification time of the file, in nanoseconds since 1970.
    pub modified: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    file: u32,
    rank: Rank,
}

/// Precedence among files that claim a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Stored inside the record of its file.
    Inline,
    /// Stored inside the record of its deleted file.
    InlineDeleted,
    Allocated,
    Slack,
    Deleted,
}

#[derive(Debug)]
struct File {
    path: Box<str>,
    inode: u64,
    modified: Option<i64>,
}

/// A fragmented file: its extents in file order.
#[derive(Debug)]
struct InPieces {
    file: u32,
    state: State,
    extents: Box<[Extent]>,
}

impl InPieces {
    fn start(&self) -> u64 {
        self.extents.first().map_or(0, |first| first.offset)
    }

    /// Whether it begins with `extents`, the last of which may be shorter.
    fn begins_with(&self, extents: &[Extent]) -> bool {
        let Some((last, before)) = extents.split_last() else { return false };
        let own = self.extents.get(before.len());
        self.extents.starts_with(before)
            && own.is_some_and(|own| own.offset == last.offset && own.length >= last.length)
    }
}

/// An interval map from byte offsets to files. Takes some hundred bytes per file.
#[derive(Debug, Default)]
pub struct Places {
    /// Sorted and disjoint.
    pieces: Vec<Piece>,
    files: Vec<File>,
    /// Sorted by their first bytes.
    in_pieces: Vec<InPieces>,
    /// Free ranges, sorted and disjoint.
    free: Vec<Range<u64>>,
    /// The file systems whose free space is known, sorted and disjoint.
    judged: Vec<Range<u64>>,
    systems: Vec<System>,
    skipped_partitions: Vec<SkippedPartition>,
    /// Notices that do not mean that files are missing, one per element.
    notices: Vec<String>,
    /// Damage, one message per element.
    damages: Vec<String>,
    source_bytes: u64,
}

impl Places {
    /// Reads the file systems of `source`, with the files within `reach`. Without a supported file system
    /// every byte is `Outside`, and a notice reports it; unreadable parts are listed as damage. Returns
    /// soon after `stop` becomes true.
    ///
    /// # Errors
    /// [`Error::Source`] if the source cannot be read at all; [`Error::TooMuch`] if there are more than
    /// 16 million extents; [`Error::Taken`] if it was stopped.
    pub fn read(source: &dyn Source, reach: Reach, stop: &AtomicBool) -> Result<Self> {
        let source_bytes = source.length();
        let found = match find(source) {
            Err(error @ Error::FileSystem { .. }) => {
                let notices = vec![error.to_string()];
                return Ok(Places { notices, source_bytes, ..Places::default() });
            }
            found => found?,
        };
        let are_several = found.are_several();
        let Systems { systems, skipped_partitions, notice } = found;
        let mut damages = Vec::new();
        let (free, judged) = match unallocated::find(source) {
            Ok(found) => (found.ranges, found.volumes.iter().map(Volume::span).collect()),
            // ISO 9660 has no free space. In other file systems this is damage, which their listing
            // reports.
            Err(Error::FileSystem { .. }) => Default::default(),
            Err(error) => {
                damages.push(error.to_string());
                Default::default()
            }
        };
        let mut gathered = Gathered::new(source_bytes);
        for system in &systems {
            let prefix = if are_several { format!("#{}", system.partition) } else { String::new() };
            let has_records = system.kind == SystemKind::Ntfs;
            let origin = Origin { prefix: &prefix, has_records, span: &system.span };
            match system.list(source, reach, stop, &mut |entry| gathered.add(&origin, entry)) {
                Ok(found) => damages.extend(found.describe()),
                Err(Error::Taken(error)) if error.kind() == io::ErrorKind::QuotaExceeded => {
                    return Err(Error::TooMuch {
                        source_name: source.name().to_string(),
                        offset: system.span.start,
                        found: "more files and extents than fit into memory".to_string(),
                    });
                }
                Err(error @ Error::Taken(_)) => return Err(error),
                Err(error) => damages.push(error.to_string()),
            }
        }
        let Gathered { pieces, files, mut in_pieces, .. } = gathered;
        in_pieces.sort_by_key(InPieces::start);
        let pieces = disjoint(pieces);
        Ok(Places {
            pieces,
            files,
            in_pieces,
            free,
            judged,
            systems,
            skipped_partitions,
            notices: notice.into_iter().collect(),
            damages,
            source_bytes,
        })
    }

    /// Notices about the partition table, and messages about skipped partitions.
    pub fn notices(&self) -> Vec<String> {
        let skipped_partitions = self.skipped_partitions.iter().map(SkippedPartition::describe);
        self.notices.iter().cloned().chain(skipped_partitions).collect()
    }

    /// Messages about damage: files are missing from the list, so their bytes seem to belong to no
    /// file.
    pub fn damages(&self) -> &[String] {
        &self.damages
    }

    /// The file systems, by offset.
    pub fn systems(&self) -> &[System] {
        &self.systems
    }

    /// The extents of fragmented files, including deleted ones, in file order. Limited to the files
    /// that fit in memory.
    pub fn in_pieces(&self) -> impl Iterator<Item = &[Extent]> {
        self.in_pieces.iter().map(|one| &*one.extents)
    }

    /// The fragmented file that begins with exactly these extents, the last of which may end early.
    /// Several deleted files may share the first byte, so the offset alone is ambiguous.
    pub fn with_extents(&self, extents: &[Extent]) -> Option<Place<'_>> {
        let start = extents.first().filter(|_| extents.len() > 1)?.offset;
        let from = self.in_pieces.partition_point(|one| one.start() < start);
        let here = self.in_pieces[from..].iter().take_while(|one| one.start() == start);
        let found = here.into_iter().find(|one| one.begins_with(extents))?;
        let file = &self.files[found.file as usize];
        let state = match found.state {
            State::Allocated => PlaceState::Allocated,
            State::Deleted => PlaceState::Deleted,
        };
        Some(Place {
            file: Some(&file.path),
            inode: Some(file.inode),
            state,
            modified: file.modified,
        })
    }

    /// The file of the byte at `offset`.
    pub fn at(&self, offset: u64) -> Place<'_> {
        let index = self.pieces.partition_point(|piece| piece.end <= offset);
        let piece = self.pieces.get(index).filter(|piece| piece.start <= offset);
        let is_free = || {
            let index = self.free.partition_point(|range| range.end <= offset);
            self.free.get(index).is_some_and(|range| range.start <= offset)
        };
        let state = match piece.map(|piece| piece.rank) {
            Some(Rank::Inline | Rank::Allocated) => Some(PlaceState::Allocated),
            Some(Rank::InlineDeleted) => Some(PlaceState::Deleted),
            Some(Rank::Slack) => Some(PlaceState::Slack),
            // Free according to the bitmap; otherwise the bytes were reused.
            Some(Rank::Deleted) => is_free().then_some(PlaceState::Deleted),
            None => None,
        };
        if let (Some(state), Some(piece)) = (state, piece) {
            let file = &self.files[piece.file as usize];
            return Place {
                file: Some(&file.path),
                inode: Some(file.inode),
                state,
                modified: file.modified,
            };
        }
        let is_inside = || self.systems.iter().any(|system| system.span.contains(&offset));
        let state = match () {
            () if !is_inside() => PlaceState::Outside,
            () if is_free() => PlaceState::Free,
            () => PlaceState::Metadata,
        };
        Place { file: None, inode: None, state, modified: None }
    }
}
