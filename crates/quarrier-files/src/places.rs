//! Finds the file of a byte: an interval map of the extents of all files of a source.
//!
//! ```text
//!  entries ──→ pieces with a rank ──→ sorted, overlaps decided by rank ──→ looked up by offset
//! ```
//!
//! If several files claim a byte, a file stored in a record comes before the table of records,
//! allocated bytes before slack, and both before deleted files.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::{fmt, io};

use quarrier_core::source::Source;

use crate::entry::{Entry, Extent, State};
use crate::error::{Error, Result};
use crate::systems::{SystemKind, Systems, find};
use crate::unallocated;

/// Extents that are remembered; in 24 bytes each.
const PIECES_MAX: usize = 1 << 24;
/// Bytes of all paths that are remembered.
const PATH_BYTES_MAX: usize = 2 << 30;

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
    /// The number of the file, as [`Entry::inode`] has it.
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

/// All files of a source, by the places of their bytes. Takes some hundred bytes per file.
#[derive(Debug, Default)]
pub struct Places {
    /// Sorted and disjoint.
    pieces: Vec<Piece>,
    files: Vec<File>,
    /// Free ranges, sorted and disjoint.
    free: Vec<Range<u64>>,
    systems: Vec<Range<u64>>,
    notices: Vec<String>,
}

impl Places {
    /// Reads the file systems of `source`, deleted files too. Without one that is known here, all of it
    /// is outside. Ends soon after `stop` becomes true.
    ///
    /// # Errors
    /// As [`System::list`](crate::System::list); [`Error::TooMuch`] where there are more
    /// than 16 million extents.
    pub fn read(source: &dyn Source, stop: &AtomicBool) -> Result<Self> {
        let systems = match find(source) {
            Err(error @ Error::FileSystem { .. }) => {
                return Ok(Places { notices: vec![error.to_string()], ..Places::default() });
            }
            systems => systems?,
        };
        let free = match unallocated::find(source) {
            Ok(found) => found.ranges,
            // ISO 9660 has nothing free.
            Err(Error::FileSystem { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut gathered = Gathered::default();
        let mut notices = systems.notices();
        for system in &systems.systems {
            let prefix = prefix(&systems, system.partition);
            // The records of NTFS hold small files; the bytes themselves are nowhere else.
            let has_records = system.kind == SystemKind::Ntfs;
            let mut take = |entry| gathered.add(&prefix, entry, has_records);
            match system.list(source, true, stop, &mut take) {
                Ok(damages) => notices.extend(damages.in_words()),
                Err(Error::Taken(error)) if error.kind() == io::ErrorKind::QuotaExceeded => {
                    return Err(Error::TooMuch {
                        source_name: source.name().to_string(),
                        offset: system.span.start,
                        found: "more files and extents than fit into memory".to_string(),
                    });
                }
                Err(error @ Error::Taken(_)) => return Err(error),
                Err(error) if systems.are_several() => notices.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(Places {
            pieces: disjoint(gathered.pieces),
            files: gathered.files,
            free,
            systems: systems.systems.iter().map(|system| system.span.clone()).collect(),
            notices,
        })
    }

    /// Skipped partitions and damage, a line each.
    pub fn notices(&self) -> &[String] {
        &self.notices
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
        let is_inside = || self.systems.iter().any(|span| span.contains(&offset));
        let state = match () {
            () if !is_inside() => PlaceState::Outside,
            () if is_free() => PlaceState::Free,
            () => PlaceState::Metadata,
        };
        Place { file: None, inode: None, state, modified: None }
    }
}

/// The prefix of a file system's paths, if there are several.
fn prefix(systems: &Systems, partition: u32) -> String {
    if systems.are_several() { format!("#{partition}") } else { String::new() }
}

#[derive(Default)]
struct Gathered {
    pieces: Vec<Piece>,
    files: Vec<File>,
    path_bytes: usize,
}

impl Gathered {
    fn add(&mut self, prefix: &str, entry: Entry, has_records: bool) -> io::Result<()> {
        let file = u32::try_from(self.files.len()).map_err(io::Error::other)?;
        let is_inline = has_records && entry.content.inline.is_some();
        let rank = match (entry.state, is_inline) {
            (State::Allocated, true) => Rank::Inline,
            (State::Deleted, true) => Rank::InlineDeleted,
            (State::Allocated, false) => Rank::Allocated,
            (State::Deleted, false) => Rank::Deleted,
        };
        let before = self.pieces.len();
        let mut push = |extent: &Extent, rank: Rank| {
            let end = extent.offset.saturating_add(extent.length);
            self.pieces.push(Piece { start: extent.offset, end, file, rank });
        };
        entry.extents().iter().for_each(|extent| push(extent, rank));
        if rank == Rank::Allocated {
            entry.slack().iter().for_each(|extent| push(extent, Rank::Slack));
        }
        if self.pieces.len() == before {
            return Ok(());
        }
        self.path_bytes += prefix.len() + entry.path.len();
        if self.pieces.len() > PIECES_MAX || self.path_bytes > PATH_BYTES_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let path = format!("{prefix}{}", entry.path).into_boxed_str();
        self.files.push(File { path, inode: entry.inode, modified: entry.times.modified });
        Ok(())
    }
}

/// Sorts pieces, and decides by rank where they overlap.
fn disjoint(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.retain(|piece| piece.start < piece.end);
    pieces.sort_unstable_by_key(|piece| (piece.start, piece.rank, piece.file));
    let mut done = Vec::with_capacity(pieces.len());
    let mut rest = &pieces[..];
    while let Some(first) = rest.first() {
        let mut end = first.end;
        let together = rest[1..].iter().take_while(|piece| {
            let is_in = piece.start < end;
            end = end.max(piece.end);
            is_in
        });
        let count = 1 + together.count();
        match count {
            1 => done.push(*first),
            _ => decided(&rest[..count], &mut done),
        }
        rest = &rest[count..];
    }
    done
}

/// Goes over pieces that overlap, from border to border.
fn decided(pieces: &[Piece], done: &mut Vec<Piece>) {
    let mut ends: Vec<(u64, usize)> =
        pieces.iter().enumerate().map(|(index, piece)| (piece.end, index)).collect();
    ends.sort_unstable();
    let (mut starts, mut ends) =
        (pieces.iter().enumerate().peekable(), ends.into_iter().peekable());
    let mut open: BTreeSet<(Rank, u32, usize)> = BTreeSet::new();
    let key = |index: usize| (pieces[index].rank, pieces[index].file, index);
    while let Some(&(end, _)) = ends.peek() {
        let at = starts.peek().map_or(end, |(_, piece)| piece.start.min(end));
        while let Some((index, _)) = starts.next_if(|(_, piece)| piece.start == at) {
            open.insert(key(index));
        }
        while let Some((_, index)) = ends.next_if(|(end, _)| *end == at) {
            open.remove(&key(index));
        }
        let Some(&(end, _)) = ends.peek() else { break };
        let next = starts.peek().map_or(end, |(_, piece)| piece.start.min(end));
        let Some(&(rank, file, _)) = open.first() else { continue };
        match done.last_mut() {
            Some(last) if last.end == at && last.file == file && last.rank == rank => {
                last.end = next;
            }
            _ => done.push(Piece { start: at, end: next, file, rank }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
mod tests {
    use proptest::prelude::*;

    use super::{Piece, Rank, disjoint};

    const RANKS: [Rank; 5] =
        [Rank::Inline, Rank::InlineDeleted, Rank::Allocated, Rank::Slack, Rank::Deleted];

    proptest! {
        #[test]
        fn every_byte_goes_to_the_first_of_those_that_claim_it(
            claims in prop::collection::vec((0..60u64, 0..20u64, 0..5usize), 0..30),
        ) {
            let pieces: Vec<Piece> = (0..)
                .zip(&claims)
                .map(|(file, &(start, length, rank))| {
                    Piece { start, end: start + length, file, rank: RANKS[rank] }
                })
                .collect();
            let decided = disjoint(pieces.clone());
            prop_assert!(decided.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for at in 0..100 {
                let has = |piece: &&Piece| piece.start <= at && at < piece.end;
                let expected = pieces.iter().filter(has).map(|piece| (piece.rank, piece.file)).min();
                let found = decided.iter().find(has).map(|piece| (piece.rank, piece.file));
                prop_assert_eq!(found, expected, "byte {}", at);
            }
        }
    }
}
