//! Maps: the location of each range of a disk in the streams.
//!
//! ```text
//!  "URN/idx": the streams, one a line      "URN/map": offset, length, offset in the stream, number of the stream
//! ```
//!
//! Ranges without an entry belong to the stream that the image names for gaps. Contiguous entries are
//! merged, so that an image of a whole drive takes a few.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::{Source, read_full_at};
use quarrier_core::{Error, Result};

use super::container::Container;
use crate::bytes::{u32_le, u64_le};
use crate::disk::{Layout, Place, Run};
use crate::fault::damaged;

const ENTRY_BYTES: usize = 28;
/// Maximum number of pieces after merging, which take 128 MiB.
const PIECES_MAX: usize = 1 << 22;
/// Maximum size of a deflated map, which is inflated as a whole.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;
const NAMES_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a map read at once.
const STEP_BYTES: usize = ENTRY_BYTES << 15;

/// The stream behind a number in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Zeros.
    Zeros,
    /// Never acquired: reads as zeros, and is counted.
    Unknown,
    /// One of the disk's files, whose content is the same at every offset.
    Anywhere(usize),
    /// One of the disk's files.
    File(usize),
}

/// A range of the disk that is contiguous in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    start: u64,
    bytes: u64,
    /// Offset in the stream.
    at: u64,
    target: Target,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Whether `next` continues it.
    fn goes_on_in(&self, next: &Piece) -> bool {
        let is_next = match self.target {
            Target::File(_) => self.at + self.bytes == next.at,
            _ => true,
        };
        self.target == next.target && self.end() == next.start && is_next
    }
}

/// The map of a disk.
pub(super) struct Map {
    /// Sorted by start, disjoint.
    pieces: Vec<Piece>,
    gaps: Target,
}

/// The names of a map's streams.
pub(super) fn names(file: &dyn Source, container: &Container, urn: &str) -> Result<Vec<String>> {
    let text = container.small(file, &format!("{urn}/idx"), "list of streams", NAMES_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&text);
    let names = text.split('\n').map(|name| name.trim_end_matches(['\r', '\0']).to_string());
    let mut names: Vec<String> = names.collect();
    // The text ends with a newline.
    while names.last().is_some_and(|name| name.is_empty()) {
        names.pop();
    }
    Ok(names)
}

impl Map {
    /// A map that consists of a single stream.
    pub(super) fn whole(target: Target, bytes: u64) -> Map {
        Map { pieces: vec![Piece { start: 0, bytes, at: 0, target }], gaps: Target::Zeros }
    }

    /// Reads the map `urn`; its stream numbers index `targets`.
    pub(super) fn read(
        file: &dyn Source,
        container: &Container,
        urn: &str,
        (targets, gaps): (&[Target], Target),
        stop: &AtomicBool,
    ) -> Result<Map> {
        let member = container.needed(file, &format!("{urn}/map"), "map of the disk")?;
        let wrong = |reason: &str| damaged(file, member.header_at, format!("its map {reason}"));
        let mut pieces = Pieces { pieces: Vec::new(), targets, gaps, is_sorted: true };
        if !member.is_stored() {
            let unpacked = member.whole(file, UNPACKED_BYTES_MAX);
            let unpacked =
                unpacked.map_err(|error| wrong(&format!("cannot be decompressed: {error}")))?;
            pieces.add(&unpacked).map_err(wrong)?;
        } else {
            let at =
                member.data_at(file).map_err(|error| wrong(&format!("is missing: {error}")))?;
            if at.checked_add(member.bytes).is_none_or(|end| end > file.length()) {
                return Err(wrong("lies beyond the end of the file"));
            }
            let mut buffer = vec![0; STEP_BYTES.min(member.bytes as usize)];
            let mut done = 0;
            while done < member.bytes {
                if stop.load(Ordering::Relaxed) {
                    let given_up = io::ErrorKind::ConnectionAborted.into();
                    return Err(Error::io(file.name(), "read the map", given_up));
                }
                let step = (member.bytes - done).min(buffer.len() as u64) as usize;
                let read = read_full_at(file, at + done, &mut buffer[..step]);
                let read = read.map_err(|error| Error::io(file.name(), "read the map", error))?;
                if read < step {
                    return Err(wrong("lies beyond the end of the file"));
                }
                pieces.add(&buffer[..step]).map_err(wrong)?;
                done += step as u64;
            }
        }
        let pieces = pieces.finish().map_err(wrong)?;
        Ok(Map { pieces, gaps })
    }

    /// The end of the last entry.
    pub(super) fn end(&self) -> u64 {
        self.pieces.last().map_or(0, Piece::end)
    }

    /// The number of bytes that were never acquired, on a disk of `length` bytes.
    pub(super) fn unknown_bytes(&self, length: u64) -> u64 {
        let of = |target: Target| {
            let pieces = self.pieces.iter().filter(move |piece| piece.target == target);
            pieces.map(|piece| piece.end().min(length).saturating_sub(piece.start)).sum::<u64>()
        };
        let gaps = match self.gaps {
            Target::Unknown => {
                let all = self.pieces.iter();
                let mapped = all.map(|p| p.end().min(length).saturating_sub(p.start)).sum::<u64>();
                length - mapped
            }
            _ => 0,
        };
        of(Target::Unknown) + gaps
    }

    /// The largest power of two, up to `bytes_max`, that divides the borders of all pieces of a disk of
    /// `length`, on the disk and in their streams. Readers use this unit to retry around damage.
    pub(super) fn alignment(&self, length: u64, bytes_max: usize) -> usize {
        let of = |piece: &Piece| {
            let end = if piece.end() < length { piece.end() } else { 0 };
            piece.start | piece.at | end
        };
        let all = self.pieces.iter().fold(0, |bits, piece| bits | of(piece));
        1 << all.trailing_zeros().min(bytes_max.max(1).ilog2())
    }
}

impl Layout for Map {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let next = self.pieces.partition_point(|piece| piece.start <= offset);
        let piece = next.checked_sub(1).map(|index| self.pieces[index]);
        let (bytes, target, at) = match piece.filter(|piece| offset < piece.end()) {
            Some(piece) => (piece.end() - offset, piece.target, piece.at + (offset - piece.start)),
            None => {
                let end = self.pieces.get(next).map_or(u64::MAX, |piece| piece.start);
                (end - offset, self.gaps, offset)
            }
        };
        let place = match target {
            Target::Zeros | Target::Unknown => Place::Zeros,
            Target::Anywhere(file) => Place::Stored { file, at: 0 },
            Target::File(file) => Place::Stored { file, at },
        };
        Ok(Run { bytes, place })
    }
}

/// Pieces while the map is read.
struct Pieces<'t> {
    pieces: Vec<Piece>,
    targets: &'t [Target],
    gaps: Target,
    is_sorted: bool,
}

impl Pieces<'_> {
    /// Adds complete entries.
    fn add(&mut self, entries: &[u8]) -> std::result::Result<(), &'static str> {
        for entry in entries.chunks(ENTRY_BYTES) {
            if entry.len() < ENTRY_BYTES {
                return Err("ends inside an entry");
            }
            let number = u32_le(entry, 24) as usize;
            let target = *self.targets.get(number).ok_or("names a stream that is not listed")?;
            let (start, bytes) = (u64_le(entry, 0), u64_le(entry, 8));
            let at = if matches!(target, Target::File(_)) { u64_le(entry, 16) } else { 0 };
            let is_right = [start, at]
                .into_iter()
                .all(|from| from.checked_add(bytes).is_some_and(|end| end <= i64::MAX as u64));
            if !is_right {
                return Err("has an entry beyond the end of any disk");
            }
            if bytes > 0 {
                self.push(Piece { start, bytes, at, target })?;
            }
        }
        Ok(())
    }

    fn push(&mut self, piece: Piece) -> std::result::Result<(), &'static str> {
        match self.pieces.last_mut() {
            Some(last) if last.goes_on_in(&piece) => {
                last.bytes += piece.bytes;
                return Ok(());
            }
            Some(last) => self.is_sorted &= last.start <= piece.start,
            None => {}
        }
        if self.pieces.len() == PIECES_MAX {
            return Err("has too many pieces; export the image as raw or E01");
        }
        self.pieces.push(piece);
        Ok(())
    }

    /// The sorted pieces, without those that read the same as gaps.
    fn finish(mut self) -> std::result::Result<Vec<Piece>, &'static str> {
        if !self.is_sorted {
            self.pieces.sort_unstable_by_key(|piece| piece.start);
            let mut pieces = std::mem::take(&mut self.pieces);
            pieces.dedup_by(|next, last| {
                let goes_on = last.goes_on_in(next);
                if goes_on {
                    last.bytes += next.bytes;
                }
                goes_on
            });
            self.pieces = pieces;
        }
        if self.pieces.windows(2).any(|two| two[0].end() > two[1].start) {
            return Err("has entries that overlap");
        }
        let gaps = self.gaps;
        let last = self.pieces.last().copied();
        // The last piece determines the length of the disk.
        self.pieces.retain(|piece| piece.target != gaps || Some(*piece) == last);
        self.pieces.shrink_to_fit();
        Ok(self.pieces)
    }
}
