//! The parts of entries that the interval map needs.

use std::io;
use std::ops::Range;

use super::{File, InPieces, Piece, Rank};
use crate::entry::{Entry, Extent, Kind, State};

/// Maximum number of extents, at 24 bytes each.
const PIECES_MAX: usize = 1 << 24;
/// Maximum total length of paths, in bytes.
const PATH_BYTES_MAX: usize = 2 << 30;
/// Maximum number of extents of fragmented files, at 16 bytes each.
const RUNS_MAX: usize = 1 << 22;
/// Maximum total size of fragmented files, as a multiple of the source: deleted entries may claim the
/// same clusters over and over.
const RUNS_SHARE: u64 = 2;

pub(super) struct Gathered {
    pub(super) pieces: Vec<Piece>,
    pub(super) files: Vec<File>,
    pub(super) in_pieces: Vec<InPieces>,
    path_bytes: usize,
    runs: usize,
    run_bytes_left: u64,
}

/// The file system that entries belong to.
pub(super) struct Origin<'o> {
    /// The prefix of its paths.
    pub(super) prefix: &'o str,
    /// Whether metadata records may hold the bytes of files.
    pub(super) has_records: bool,
    /// Its bytes in the source.
    pub(super) span: &'o Range<u64>,
}

impl Gathered {
    pub(super) fn new(source_bytes: u64) -> Self {
        Gathered {
            pieces: Vec::new(),
            files: Vec::new(),
            in_pieces: Vec::new(),
            path_bytes: 0,
            runs: 0,
            run_bytes_left: source_bytes.saturating_mul(RUNS_SHARE),
        }
    }

    pub(super) fn add(&mut self, origin: &Origin<'_>, entry: Entry) -> io::Result<()> {
        let file = u32::try_from(self.files.len()).map_err(io::Error::other)?;
        let is_inline = origin.has_records && entry.content.inline.is_some();
        let rank = match (entry.state, is_inline) {
            (State::Allocated, true) => Rank::Inline,
            (State::Deleted, true) => Rank::InlineDeleted,
            (State::Allocated, false) => Rank::Allocated,
            (State::Deleted, false) => Rank::Deleted,
        };
        let before = self.pieces.len();
        let mut push = |extent: &Extent, rank: Rank| {
            // A damaged entry must not claim bytes of other partitions.
            let start = extent.offset.max(origin.span.start);
            let end = extent.offset.saturating_add(extent.length).min(origin.span.end);
            if start < end {
                self.pieces.push(Piece { start, end, file, rank });
            }
        };
        let extents = entry.extents();
        extents.iter().for_each(|extent| push(extent, rank));
        if rank == Rank::Allocated {
            entry.slack().iter().for_each(|extent| push(extent, Rank::Slack));
        }
        if self.pieces.len() == before {
            return Ok(());
        }
        self.path_bytes += origin.prefix.len() + entry.path.len();
        if self.pieces.len() > PIECES_MAX || self.path_bytes > PATH_BYTES_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let path = format!("{}{}", origin.prefix, entry.path).into_boxed_str();
        self.files.push(File { path, inode: entry.inode, modified: entry.times.modified });
        if is_in_pieces(&entry, &extents) {
            self.add_in_pieces(file, &entry, extents);
        }
        Ok(())
    }

    /// Remembers the runs of a file while there is room: they are an optional hint.
    fn add_in_pieces(&mut self, file: u32, entry: &Entry, extents: Vec<Extent>) {
        let left = self.run_bytes_left.checked_sub(entry.size);
        if let Some(left) = left.filter(|_| self.runs + extents.len() <= RUNS_MAX) {
            self.run_bytes_left = left;
            self.runs += extents.len();
            let (state, extents) = (entry.state, extents.into_boxed_slice());
            self.in_pieces.push(InPieces { file, state, extents });
        }
    }
}

/// Whether `extents` are the complete content of a fragmented file.
fn is_in_pieces(entry: &Entry, extents: &[Extent]) -> bool {
    let content = &entry.content;
    let is_plain = content.lost.is_none() && !content.is_packed();
    let is_written = content.written.is_none_or(|written| written >= entry.size);
    let bytes = extents.iter().fold(0u64, |sum, extent| sum.saturating_add(extent.length));
    entry.kind == Kind::File
        && extents.len() > 1
        && is_plain
        && is_written
        && bytes == entry.size
        && !content.runs.iter().any(|run| run.place.is_none())
}
