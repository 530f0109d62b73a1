//! Finds the file of a byte: an interval map of the extents of all files of a source.
//!
//! ```text
//!  entries ──→ pieces with a rank ──→ sorted, overlaps decided by rank ──→ looked up by offset
//! ```
//!
//! If several files claim a byte, a file stored in a record comes before the table of records,
//! allocated bytes before slack, and both before deleted files.

mod gathered;
mod overlaps;
mod unallocated_ranges;

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::{fmt, io};

use quarrier_core::source::Source;

use crate::entry::{Extent, State};
use crate::error::{Error, Result};
use crate::systems::{PassedOver, System, SystemKind, Systems, find};
use crate::unallocated::{self, Volume};
use gathered::{Gathered, Origin};
use overlaps::disjoint;

/// The state of a byte in the file systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceState {
    /// A file has it.
    Allocated,
    /// A file had it, which is deleted; nothing else has it since.
    Deleted,
    /// Behind the end of a file, in its last cluster.
    Slack,
    /// Nothing has it.
    Free,
    /// It belongs to the file system itself.
    Metadata,
    /// In no known file system.
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

/// The file of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'m> {
    /// The path of the file; of several file systems with `#N` of the partition before it.
    pub file: Option<&'m str>,
    /// The number of the file, as [`Entry::inode`](crate::Entry::inode) has it.
    pub inode: Option<u64>,
    /// Its role in the file.
    pub state: PlaceState,
    /// When the file was modified, in nanoseconds since 1970.
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
    /// In the record of its file.
    Inline,
    /// In the record of its file, which is deleted.
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

/// A file that consists of several extents, in the order of the file.
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

    /// Whether it begins with `extents`, of which the last may be shorter.
    fn begins_with(&self, extents: &[Extent]) -> bool {
        let Some((last, before)) = extents.split_last() else { return false };
        let own = self.extents.get(before.len());
        self.extents.starts_with(before)
            && own.is_some_and(|own| own.offset == last.offset && own.length >= last.length)
    }
}

/// All files of a source, by the places of their bytes. Takes some hundred bytes per file.
#[derive(Debug, Default)]
pub struct Places {
    /// Sorted and disjoint.
    pieces: Vec<Piece>,
    files: Vec<File>,
    /// By their first bytes.
    in_pieces: Vec<InPieces>,
    /// Free ranges, sorted and disjoint.
    free: Vec<Range<u64>>,
    /// The file systems that decide which bytes are free, sorted and disjoint.
    judged: Vec<Range<u64>>,
    systems: Vec<System>,
    passed_over: Vec<PassedOver>,
    /// Remarks that leave no file out.
    notices: Vec<String>,
    /// Damage, a line each.
    damages: Vec<String>,
    source_bytes: u64,
}

impl Places {
    /// Reads the file systems of `source`, deleted files too. Without one that is known here, all of it
    /// is outside, and a notice says so; the unreadable parts of one are listed as damage. Ends soon
    /// after `stop` becomes true.
    ///
    /// # Errors
    /// [`Error::Source`] if the source cannot be read at all; [`Error::TooMuch`] where there are more
    /// than 16 million extents; [`Error::Taken`] if it was stopped.
    pub fn read(source: &dyn Source, stop: &AtomicBool) -> Result<Self> {
        let source_bytes = source.length();
        let found = match find(source) {
            Err(error @ Error::FileSystem { .. }) => {
                let notices = vec![error.to_string()];
                return Ok(Places { notices, source_bytes, ..Places::default() });
            }
            found => found?,
        };
        let are_several = found.are_several();
        let Systems { systems, passed_over, notice } = found;
        let mut damages = Vec::new();
        let (free, judged) = match unallocated::find(source) {
            Ok(found) => (found.ranges, found.volumes.iter().map(Volume::span).collect()),
            // ISO 9660 has nothing free; others are damaged, which their listing says.
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
            match system.list(source, true, stop, &mut |entry| gathered.add(&origin, entry)) {
                Ok(found) => damages.extend(found.in_words()),
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
            passed_over,
            notices: notice.into_iter().collect(),
            damages,
            source_bytes,
        })
    }

    /// Notices about the partition table, and skipped partitions, a line each.
    pub fn notices(&self) -> Vec<String> {
        let passed_over = self.passed_over.iter().map(PassedOver::in_words);
        self.notices.iter().cloned().chain(passed_over).collect()
    }

    /// Damage, a line each: the bytes of files that could not be listed seem to be of none.
    pub fn damages(&self) -> &[String] {
        &self.damages
    }

    /// The file systems, by offset.
    pub fn systems(&self) -> &[System] {
        &self.systems
    }

    /// The extents of all files that consist of more than one, deleted ones too, in the order of the
    /// file; as many as there is room for.
    pub fn in_pieces(&self) -> impl Iterator<Item = &[Extent]> {
        self.in_pieces.iter().map(|one| &*one.extents)
    }

    /// The file in pieces that begins with exactly these extents, of which the last may end earlier:
    /// several deleted files may have had the first byte.
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
            // The bytes were reused.
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
