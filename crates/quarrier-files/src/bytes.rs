//! Reads the content of a file from its runs.

use std::io;
use std::ops::Range;

use quarrier_core::ranges::push_merged;
use quarrier_core::source::{Source, read_full_at};

use crate::entry::{Content, Entry, PackedPiece, Packing, Run};
use crate::error::{Error, Result};
use crate::lznt1;
use crate::unpack::Unpacker;

/// Bytes read at once.
const STEP_BYTES: usize = 256 << 10;
/// Maximum size of a compressed piece, before and after decompression.
pub(crate) const PIECE_BYTES_MAX: u64 = 1 << 20;
/// Maximum file size, as a multiple of the source's size or of 1 GiB, whichever is larger: holes take
/// no space.
const TIMES_MAX: u64 = 64;

/// The size of the largest plausible file in a source of `length` bytes.
pub(crate) fn plausible_bytes_max(length: u64) -> u64 {
    length.max(1 << 30).saturating_mul(TIMES_MAX)
}

/// A piece of a file's content, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'b> {
    /// Bytes of the file.
    Bytes(&'b [u8]),
    /// A run of zeros of this length that is stored nowhere.
    Zeros(u64),
}

/// Passes the content of a file to `take`, in order. Unreadable bytes become zeros; their ranges in the
/// source are returned.
///
/// # Errors
/// [`Error::Taken`] with the error of `take`; [`Error::FileSystem`] if the location of the bytes is
/// unknown, or if the file is implausibly large for its source.
pub fn read(
    source: &dyn Source,
    entry: &Entry,
    take: &mut dyn FnMut(Piece<'_>) -> io::Result<()>,
) -> Result<Vec<Range<u64>>> {
    refuse(source, entry)?;
    let refused = |found: String| refused(source, entry, &found);
    let mut reader = Reader { source, unreadable: Vec::new() };
    let mut left = entry.size;
    let mut written = entry.content.written.unwrap_or(u64::MAX);
    // Truncates at the end of the file, and zeroes bytes past the written part.
    let mut cut = |piece: Piece<'_>| -> io::Result<()> {
        let bytes = match piece {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Zeros(zeros) => zeros,
        };
        let bytes = bytes.min(left);
        left -= bytes;
        let real = bytes.min(written);
        written -= real;
        match piece {
            _ if bytes == 0 => return Ok(()),
            Piece::Bytes(all) if real > 0 => take(Piece::Bytes(&all[..real as usize]))?,
            Piece::Bytes(_) => {}
            Piece::Zeros(_) => return take(Piece::Zeros(bytes)),
        }
        if bytes > real { take(Piece::Zeros(bytes - real)) } else { Ok(()) }
    };
    let taken = match (&entry.content.inline, entry.content.packed_unit) {
        (Some(inline), _) => cut(Piece::Bytes(inline)),
        (None, Some(unit)) => match reader.unpack(&entry.content, unit, entry.size, &mut cut)? {
            Some(taken) => taken,
            None => return Err(refused("its compressed bytes are damaged".to_string())),
        },
        (None, None) if !entry.content.pieces.is_empty() => {
            match reader.pieces(&entry.content, &mut cut)? {
                Some(taken) => taken,
                None => return Err(refused("its compressed bytes are damaged".to_string())),
            }
        }
        (None, None) => reader.runs(&entry.content.runs, entry.size, &mut cut)?,
    };
    taken.map_err(Error::Taken)?;
    if left > 0 {
        take(Piece::Zeros(left)).map_err(Error::Taken)?;
    }
    Ok(reader.unreadable)
}

/// Refuses a file whose bytes cannot be located, or whose size is implausible.
///
/// # Errors
/// [`Error::FileSystem`] if the location of the bytes is unknown, or if the file is implausibly large for
/// its source.
pub(crate) fn refuse(source: &dyn Source, entry: &Entry) -> Result<()> {
    if let Some(why) = entry.content.lost {
        return Err(refused(source, entry, why));
    }
    if entry.size > plausible_bytes_max(source.length()) {
        let found = format!("a file of {} bytes is implausibly large", entry.size);
        return Err(refused(source, entry, &found));
    }
    Ok(())
}

pub(crate) fn refused(source: &dyn Source, entry: &Entry, found: &str) -> Error {
    Error::FileSystem {
        source_name: source.name().to_string(),
        offset: entry.content.runs.iter().find_map(|run| run.place).unwrap_or(0),
        found: format!("{}: {found}", entry.path),
    }
}

type Take<'t> = dyn FnMut(Piece<'_>) -> io::Result<()> + 't;

struct Reader<'s> {
    source: &'s dyn Source,
    unreadable: Vec<Range<u64>>,
}

impl Reader<'_> {
    fn runs(&mut self, runs: &[Run], size: u64, take: &mut Take<'_>) -> Result<io::Result<()>> {
        let mut buffer = vec![0; STEP_BYTES.min(usize::try_from(size).unwrap_or(STEP_BYTES))];
        let mut left = size;
        for run in runs {
            let length = run.length.min(left);
            left -= length;
            let Some(place) = run.place else {
                if let Err(error) = take(Piece::Zeros(length)) {
                    return Ok(Err(error));
                }
                continue;
            };
            let mut done = 0;
            while done < length {
                let step = buffer.len().min(usize::try_from(length - done).unwrap_or(usize::MAX));
                self.fill(place + done, &mut buffer[..step])?;
                if let Err(error) = take(Piece::Bytes(&buffer[..step])) {
                    return Ok(Err(error));
                }
                done += step as u64;
            }
        }
        Ok(Ok(()))
    }

    /// Decompresses LZNT1 units in order; `None` if one is damaged.
    fn unpack(
        &mut self,
        content: &Content,
        unit: u32,
        size: u64,
        take: &mut Take<'_>,
    ) -> Result<Option<io::Result<()>>> {
        let mut packed = vec![0; unit as usize];
        let mut plain = vec![0; unit as usize];
        let mut runs = content.runs.iter().copied();
        let mut run = runs.next();
        let mut done = 0;
        while done < size {
            // The runs of one unit: the allocated ones hold it, compressed if any of the runs is a
            // hole.
            let (mut bytes, mut stored) = (0u64, 0usize);
            while bytes < u64::from(unit) {
                let Some(now) = run.as_mut().filter(|run| run.length > 0) else {
                    run = runs.next();
                    if run.is_none() {
                        break;
                    }
                    continue;
                };
                let length = now.length.min(u64::from(unit) - bytes);
                if let Some(place) = now.place {
                    self.fill(place, &mut packed[stored..stored + length as usize])?;
                    stored += length as usize;
                    now.place = place.checked_add(length);
                } else if bytes == 0 && now.length > u64::from(unit) {
                    // Units that are entirely holes are emitted at once.
                    let zeros = now.length - now.length % u64::from(unit);
                    now.length -= zeros;
                    done += zeros;
                    if let Err(error) = take(Piece::Zeros(zeros)) {
                        return Ok(Some(Err(error)));
                    }
                    continue;
                }
                now.length -= length;
                bytes += length;
            }
            let taken = match stored {
                0 if bytes == 0 => break,
                0 => take(Piece::Zeros(bytes)),
                _ if stored as u64 == bytes => take(Piece::Bytes(&packed[..stored])),
                _ if lznt1::unpack(&packed[..stored], &mut plain) => {
                    take(Piece::Bytes(&plain[..bytes as usize]))
                }
                _ => return Ok(None),
            };
            if let Err(error) = taken {
                return Ok(Some(Err(error)));
            }
            done += bytes;
        }
        Ok(Some(Ok(())))
    }

    /// Decompresses pieces in order; `None` if one is damaged.
    fn pieces(&mut self, content: &Content, take: &mut Take<'_>) -> Result<Option<io::Result<()>>> {
        let mut stored = Stored::new(&content.runs);
        let mut unpacker = Unpacker::default();
        let (mut packed, mut plain) = (Vec::new(), Vec::new());
        let mut done = 0;
        for piece in &content.pieces {
            let Some(hole) = piece.start.checked_sub(done) else { return Ok(None) };
            let mut taken = if hole > 0 { take(Piece::Zeros(hole)) } else { Ok(()) };
            if taken.is_ok() && piece.packing == Packing::Plain {
                taken = match self.plain_piece(&mut stored, piece, &mut packed, take)? {
                    Some(taken) => taken,
                    None => return Ok(None),
                };
            } else if taken.is_ok() {
                let needed = u64::from(piece.skipped).saturating_add(piece.length);
                let unpacked_bytes = u64::from(piece.unpacked_bytes);
                let most = piece.packed_bytes.max(unpacked_bytes);
                if most > PIECE_BYTES_MAX || needed > unpacked_bytes {
                    return Ok(None);
                }
                packed.resize(piece.packed_bytes as usize, 0);
                plain.clear();
                plain.resize(piece.unpacked_bytes as usize, 0);
                let is_there = self.stored(&mut stored, piece.packed_at, &mut packed)?;
                if !is_there || !unpacker.unpack(piece.packing, &packed, &mut plain) {
                    return Ok(None);
                }
                taken = take(Piece::Bytes(&plain[piece.skipped as usize..needed as usize]));
            }
            if let Err(error) = taken {
                return Ok(Some(Err(error)));
            }
            done = piece.start.saturating_add(piece.length);
        }
        Ok(Some(Ok(())))
    }

    /// Emits an uncompressed piece; `None` if its bytes are nowhere.
    fn plain_piece(
        &mut self,
        stored: &mut Stored<'_>,
        piece: &PackedPiece,
        buffer: &mut Vec<u8>,
        take: &mut Take<'_>,
    ) -> Result<Option<io::Result<()>>> {
        let mut done = 0;
        while done < piece.length {
            let step = (piece.length - done).min(STEP_BYTES as u64);
            buffer.resize(step as usize, 0);
            let at = piece.packed_at.saturating_add(u64::from(piece.skipped)).saturating_add(done);
            if !self.stored(stored, at, buffer)? {
                return Ok(None);
            }
            if let Err(error) = take(Piece::Bytes(buffer)) {
                return Ok(Some(Err(error)));
            }
            done += step;
        }
        Ok(Some(Ok(())))
    }

    /// Reads stored bytes by their offset in the concatenated runs; false past the last run.
    fn stored(&mut self, stored: &mut Stored<'_>, at: u64, buffer: &mut [u8]) -> Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            let Some((place, room)) = stored.at(at.saturating_add(filled as u64)) else {
                return Ok(false);
            };
            let bytes = room.min((buffer.len() - filled) as u64) as usize;
            self.fill(place, &mut buffer[filled..filled + bytes])?;
            filled += bytes;
        }
        Ok(true)
    }

    /// Reads bytes of the source. Unreadable ones become zeros, and their range is noted.
    fn fill(&mut self, at: u64, buffer: &mut [u8]) -> Result<()> {
        match read_full_at(self.source, at, buffer) {
            Ok(bytes) if bytes == buffer.len() => return Ok(()),
            Ok(bytes) => {
                buffer[bytes..].fill(0);
                self.note(at + bytes as u64..at + buffer.len() as u64);
                return Ok(());
            }
            Err(_) => {}
        }
        let sector_bytes = self.source.sector_bytes().max(512);
        for (index, sector) in buffer.chunks_mut(sector_bytes).enumerate() {
            let at = at + (index * sector_bytes) as u64;
            let read = read_full_at(self.source, at, sector);
            if !read.is_ok_and(|bytes| bytes == sector.len()) {
                sector.fill(0);
                self.note(at..at + sector.len() as u64);
            }
        }
        Ok(())
    }

    fn note(&mut self, range: Range<u64>) {
        push_merged(&mut self.unreadable, range);
    }
}

/// Maps offsets in the concatenated runs to the source. Optimized for access in order.
struct Stored<'r> {
    runs: &'r [Run],
    /// The last run used, and the number of bytes before it.
    index: usize,
    before: u64,
}

impl<'r> Stored<'r> {
    fn new(runs: &'r [Run]) -> Self {
        Stored { runs, index: 0, before: 0 }
    }

    /// The source offset of a stored byte, and the number of bytes from it to the end of its run.
    fn at(&mut self, at: u64) -> Option<(u64, u64)> {
        if at < self.before {
            (self.index, self.before) = (0, 0);
        }
        loop {
            let run = self.runs.get(self.index)?;
            let inside = at - self.before;
            if inside < run.length {
                return Some((run.place?.checked_add(inside)?, run.length - inside));
            }
            self.before = self.before.checked_add(run.length)?;
            self.index += 1;
        }
    }
}
