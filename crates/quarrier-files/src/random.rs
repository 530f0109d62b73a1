//! Reads the content of a file at any offset. [`read`](crate::read) reads it in order, and is the reference
//! in tests.

use std::io;
use std::ops::Range;

use quarrier_core::source::{Source, read_full_at};

use crate::bytes::{PIECE_BYTES_MAX, refuse, refused};
use crate::entry::{Content, Entry, PackedPiece, Packing, Run};
use crate::error::Result;
use crate::lznt1;
use crate::unpack::Unpacker;

const DAMAGED: &str = "its compressed bytes are damaged";

/// A file of a file system, read at offsets by any number of threads.
#[derive(Debug, Clone)]
pub struct FileContent {
    size: u64,
    content: Content,
    /// The offset of each run in the concatenated runs.
    starts: Box<[u64]>,
}

impl FileContent {
    /// Prepares a file of `source` for reading.
    ///
    /// # Errors
    /// [`Error::FileSystem`](crate::Error::FileSystem) if the location of the bytes is unknown, if its
    /// compressed pieces overlap, or if the file is implausibly large for its source.
    pub fn new(source: &dyn Source, entry: Entry) -> Result<Self> {
        refuse(source, &entry)?;
        let mut pieces = entry.content.pieces.windows(2);
        if pieces.any(|pair| pair[0].start.saturating_add(pair[0].length) > pair[1].start) {
            return Err(refused(source, &entry, DAMAGED));
        }
        let Entry { size, content, .. } = entry;
        let mut end = 0u64;
        let starts = content.runs.iter().map(|run| {
            let start = end;
            end = end.saturating_add(run.length);
            start
        });
        let starts = starts.collect();
        Ok(FileContent { size, content, starts })
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// An error if the range is not in the file, if a byte of the source cannot be read, or if compressed
    /// bytes are damaged.
    pub fn read_at(&self, source: &dyn Source, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|&end| end <= self.size);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let written = self.content.written.unwrap_or(u64::MAX).clamp(offset, end);
        // At most the length of the buffer.
        let (buffer, unwritten) = buffer.split_at_mut((written - offset) as usize);
        unwritten.fill(0);
        if let Some(inline) = &self.content.inline {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            fill_front(buffer, inline.get(start..).unwrap_or_default());
            return Ok(());
        }
        match self.content.packed_unit {
            Some(unit) => self.read_units(source, unit.into(), offset, buffer),
            None if !self.content.pieces.is_empty() => self.read_pieces(source, offset, buffer),
            None => self.read_runs(source, offset, buffer),
        }
    }

    /// The runs from an offset in the concatenated runs on. The first one may start before that offset.
    fn runs_from(&self, offset: u64) -> impl Iterator<Item = (u64, Run)> + '_ {
        let first = self.starts.partition_point(|&start| start <= offset).saturating_sub(1);
        let starts = self.starts[first..].iter().copied();
        starts.zip(self.content.runs[first..].iter().copied())
    }

    /// Reads the concatenated runs; holes, and bytes past the last run, are zeros.
    fn read_runs(&self, source: &dyn Source, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        for (start, run) in self.runs_from(offset) {
            let Some(inside) = offset.saturating_add(filled as u64).checked_sub(start) else {
                break;
            };
            let left = usize::try_from(run.length.saturating_sub(inside)).unwrap_or(usize::MAX);
            let count = left.min(buffer.len() - filled);
            let part = &mut buffer[filled..filled + count];
            match run.place {
                Some(place) => fill(source, place.saturating_add(inside), part)?,
                None => part.fill(0),
            }
            filled += count;
            if filled == buffer.len() {
                break;
            }
        }
        buffer[filled..].fill(0);
        Ok(())
    }

    /// Reads a file whose units are compressed by LZNT1.
    fn read_units(
        &self,
        source: &dyn Source,
        unit_bytes: u64,
        offset: u64,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let unit_bytes = unit_bytes.max(1);
        let mut plain = Vec::new();
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            let start = at - at % unit_bytes;
            self.unpack_unit(source, start..start.saturating_add(unit_bytes), &mut plain)?;
            // Less than a unit, so it fits.
            let inside = (at - start) as usize;
            let count = (unit_bytes as usize - inside).min(buffer.len() - filled);
            let unpacked = plain.get(inside..).unwrap_or_default();
            fill_front(&mut buffer[filled..filled + count], unpacked);
            filled += count;
        }
        Ok(())
    }

    /// Decompresses the unit at `range` of the runs into `plain`, which stays empty if all of it is a hole.
    fn unpack_unit(
        &self,
        source: &dyn Source,
        range: Range<u64>,
        plain: &mut Vec<u8>,
    ) -> io::Result<()> {
        plain.clear();
        let (mut packed, mut bytes) = (Vec::new(), 0);
        for (start, run) in self.runs_from(range.start) {
            let from = start.max(range.start);
            let to = start.saturating_add(run.length).min(range.end);
            if start >= range.end {
                break;
            }
            let length = to.saturating_sub(from);
            bytes += length;
            if let Some(place) = run.place {
                let stored = packed.len();
                packed.resize(stored + length as usize, 0);
                fill(source, place.saturating_add(from - start), &mut packed[stored..])?;
            }
        }
        match packed.len() as u64 {
            0 => {}
            stored if stored == bytes => *plain = packed,
            _ => {
                plain.resize((range.end - range.start) as usize, 0);
                if !lznt1::unpack(&packed, plain) {
                    return Err(damaged());
                }
                plain.truncate(bytes as usize);
            }
        }
        Ok(())
    }

    /// Reads a file that is compressed in pieces; gaps between them are zeros.
    fn read_pieces(&self, source: &dyn Source, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset + buffer.len() as u64;
        let pieces = &self.content.pieces;
        let first =
            pieces.partition_point(|piece| piece.start.saturating_add(piece.length) <= offset);
        let mut unpacker = Unpacker::default();
        let mut filled_to = offset;
        for piece in &pieces[first..] {
            if piece.start >= end {
                break;
            }
            let piece_end = piece.start.saturating_add(piece.length);
            let (from, to) = (piece.start.max(offset), piece_end.min(end));
            // Pieces that overlap, or are out of order, are damage.
            let gap = from.checked_sub(filled_to).filter(|_| from <= to).ok_or_else(damaged)?;
            let start = (filled_to - offset) as usize;
            buffer[start..start + gap as usize].fill(0);
            let part = &mut buffer[(from - offset) as usize..(to - offset) as usize];
            self.read_piece(source, piece, from - piece.start, part, &mut unpacker)?;
            filled_to = to;
        }
        buffer[(filled_to - offset) as usize..].fill(0);
        Ok(())
    }

    /// Reads a part of a piece, from `inside` on.
    fn read_piece(
        &self,
        source: &dyn Source,
        piece: &PackedPiece,
        inside: u64,
        part: &mut [u8],
        unpacker: &mut Unpacker,
    ) -> io::Result<()> {
        let skipped = u64::from(piece.skipped);
        if piece.packing == Packing::Plain {
            let at = piece.packed_at.saturating_add(skipped).saturating_add(inside);
            return self.read_stored(source, at, part);
        }
        let needed = skipped.saturating_add(piece.length);
        let unpacked_bytes = u64::from(piece.unpacked_bytes);
        if piece.packed_bytes.max(unpacked_bytes) > PIECE_BYTES_MAX || needed > unpacked_bytes {
            return Err(damaged());
        }
        let mut packed = vec![0; piece.packed_bytes as usize];
        let mut plain = vec![0; piece.unpacked_bytes as usize];
        self.read_stored(source, piece.packed_at, &mut packed)?;
        if !unpacker.unpack(piece.packing, &packed, &mut plain) {
            return Err(damaged());
        }
        let start = (skipped + inside) as usize;
        part.copy_from_slice(&plain[start..start + part.len()]);
        Ok(())
    }

    /// Reads bytes of the concatenated runs, which must all be stored.
    fn read_stored(&self, source: &dyn Source, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        for (start, run) in self.runs_from(at) {
            if filled == buffer.len() {
                break;
            }
            let inside = at.saturating_add(filled as u64).checked_sub(start).ok_or_else(damaged)?;
            let left = usize::try_from(run.length.saturating_sub(inside)).unwrap_or(usize::MAX);
            let count = left.min(buffer.len() - filled);
            if count > 0 {
                let place = run.place.ok_or_else(damaged)?.saturating_add(inside);
                fill(source, place, &mut buffer[filled..filled + count])?;
            }
            filled += count;
        }
        if filled == buffer.len() { Ok(()) } else { Err(damaged()) }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, DAMAGED)
}

/// Copies as many bytes as there are; the rest of `buffer` becomes zeros.
fn fill_front(buffer: &mut [u8], bytes: &[u8]) {
    let count = bytes.len().min(buffer.len());
    let (front, rest) = buffer.split_at_mut(count);
    front.copy_from_slice(&bytes[..count]);
    rest.fill(0);
}

/// Fills `buffer` from the source.
fn fill(source: &dyn Source, at: u64, buffer: &mut [u8]) -> io::Result<()> {
    match read_full_at(source, at, buffer)? {
        count if count == buffer.len() => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("its bytes at {at} of the source are past the end"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compress, Compression, FlushCompress};
    use quarrier_core::source::Memory;

    use super::*;
    use crate::entry::{Kind, State, Times};
    use crate::{Piece, read};

    const UNIT: u64 = 8192;

    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move |limit| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) % limit.max(1)
        }
    }

    fn entry(size: u64, content: Content) -> Entry {
        let (kind, state, times) = (Kind::File, State::Allocated, Times::default());
        Entry {
            path: "/f".to_string(),
            inode: 1,
            kind,
            state,
            size,
            times,
            access: Default::default(),
            content,
        }
    }

    /// Appends bytes to the source, and a run of them.
    fn store(disk: &mut Vec<u8>, content: &mut Content, bytes: &[u8]) {
        // A gap, so that runs are not contiguous.
        disk.extend([0xAA; 7]);
        let run = Run { place: Some(disk.len() as u64), length: bytes.len() as u64 };
        content.runs.push(run);
        disk.extend(bytes);
    }

    fn hole(content: &mut Content, length: u64) {
        content.runs.push(Run { place: None, length });
    }

    fn some_bytes(next: &mut impl FnMut(u64) -> u64, count: u64) -> Vec<u8> {
        (0..count).map(|_| next(256) as u8).collect()
    }

    fn plain(disk: &mut Vec<u8>, next: &mut impl FnMut(u64) -> u64) -> Content {
        let mut content = Content::default();
        for _ in 0..next(8) {
            let count = next(3000);
            match next(3) {
                0 => hole(&mut content, count),
                _ => store(disk, &mut content, &some_bytes(next, count)),
            }
        }
        content
    }

    fn units(disk: &mut Vec<u8>, next: &mut impl FnMut(u64) -> u64) -> Content {
        let mut content = Content { packed_unit: Some(UNIT as u32), ..Content::default() };
        for _ in 0..next(6) {
            match next(4) {
                0 => hole(&mut content, UNIT * (1 + next(3))),
                1 => store(disk, &mut content, &some_bytes(next, UNIT)),
                _ => {
                    // A chunk that is stored without compression: its length minus one, and its bytes.
                    let count = 1 + next(4000);
                    let mut packed = ((count - 1) as u16).to_le_bytes().to_vec();
                    packed.extend(some_bytes(next, count));
                    packed.resize(4096, 0);
                    let (one, two) = packed.split_at(512 * next(8) as usize);
                    store(disk, &mut content, one);
                    store(disk, &mut content, two);
                    hole(&mut content, UNIT - 4096);
                }
            }
        }
        if next(2) == 0 {
            let count = next(UNIT);
            store(disk, &mut content, &some_bytes(next, count));
        }
        content
    }

    fn pieces(disk: &mut Vec<u8>, next: &mut impl FnMut(u64) -> u64) -> Content {
        let (mut content, mut start, mut packed_at) = (Content::default(), 0, 0);
        for _ in 0..1 + next(5) {
            start += next(2) * next(2000);
            let (length, skipped) = (next(3000), next(100));
            let bytes = some_bytes(next, length + skipped);
            let is_plain = next(3) == 0;
            let mut packed = bytes.clone();
            if !is_plain {
                packed = Vec::with_capacity(8000);
                let mut encoder = Compress::new(Compression::fast(), true);
                encoder.compress_vec(&bytes, &mut packed, FlushCompress::Finish).unwrap();
            }
            let (one, two) = packed.split_at(next(packed.len() as u64 + 1) as usize);
            store(disk, &mut content, one);
            store(disk, &mut content, two);
            content.pieces.push(PackedPiece {
                start,
                length,
                packed_at,
                packed_bytes: packed.len() as u64,
                skipped: skipped as u32,
                unpacked_bytes: bytes.len() as u32 + next(2) as u32 * 50,
                packing: if is_plain { Packing::Plain } else { Packing::Zlib },
            });
            start += length;
            packed_at += packed.len() as u64;
        }
        content
    }

    #[test]
    fn parts_of_a_file_are_those_of_all_its_bytes() {
        for seed in 0..600 {
            let mut next = numbers(seed);
            let mut disk = Vec::new();
            let mut content = match seed % 4 {
                0 => plain(&mut disk, &mut next),
                1 => units(&mut disk, &mut next),
                2 => pieces(&mut disk, &mut next),
                _ => {
                    let count = next(700);
                    let inline = some_bytes(&mut next, count).into_boxed_slice();
                    Content { inline: Some(inline), ..Content::default() }
                }
            };
            let size = next(40_000);
            content.written = (next(3) == 0).then(|| next(30_000));
            let (source, entry) = (Memory::new("disk", disk), entry(size, content));
            let mut whole = Vec::new();
            let unreadable = read(&source, &entry, &mut |piece| {
                match piece {
                    Piece::Bytes(bytes) => whole.extend_from_slice(bytes),
                    Piece::Zeros(count) => whole.resize(whole.len() + count as usize, 0),
                }
                Ok(())
            });
            assert!(unreadable.unwrap().is_empty());
            let file = FileContent::new(&source, entry).unwrap();
            assert_eq!(file.size(), whole.len() as u64);
            for _ in 0..40 {
                let offset = next(size + 1);
                let count = next(10_000).min(size - offset);
                let mut part = vec![0x77; count as usize];
                file.read_at(&source, offset, &mut part).unwrap();
                let expected = &whole[offset as usize..(offset + count) as usize];
                assert!(part == expected, "{seed}: {offset} {count} {file:?}");
            }
            assert!(file.read_at(&source, size, &mut [0]).is_err());
        }
    }

    #[test]
    fn damage_and_missing_bytes_are_errors_and_never_zeros() {
        let source = Memory::new("disk", vec![0xFF; 10_000]);
        let check = |content: Content| {
            let file = FileContent::new(&source, entry(8192, content)).unwrap();
            assert!(file.read_at(&source, 0, &mut [0; 100]).is_err(), "{file:?}");
        };
        let runs = |place| {
            vec![Run { place: Some(place), length: 4096 }, Run { place: None, length: 4096 }]
        };
        check(Content { runs: runs(9_950), ..Content::default() });
        check(Content { runs: runs(u64::MAX), ..Content::default() });
        check(Content { runs: runs(0), packed_unit: Some(8192), ..Content::default() });
        let piece = PackedPiece {
            start: 0,
            length: 4096,
            packed_at: 0,
            packed_bytes: 100,
            skipped: 0,
            unpacked_bytes: 4096,
            packing: Packing::Zlib,
        };
        check(Content { runs: runs(0), pieces: vec![piece], ..Content::default() });
        let far = PackedPiece { packed_at: 9_000, ..piece };
        check(Content { runs: runs(0), pieces: vec![far], ..Content::default() });
        let huge = PackedPiece { unpacked_bytes: u32::MAX, ..piece };
        check(Content { runs: runs(0), pieces: vec![huge], ..Content::default() });
        let lost = entry(1, Content::lost("gone"));
        assert!(FileContent::new(&source, lost).is_err());
    }

    #[test]
    fn hostile_numbers_do_not_panic() {
        let source = Memory::new("disk", vec![0xFF; 10_000]);
        for seed in 0..3000 {
            let mut next = numbers(seed);
            let mut number = || match next(4) {
                0 => u64::MAX - next(5000),
                1 => next(u64::MAX >> 31) << 20,
                _ => next(12_000),
            };
            let runs = (0..5).map(|_| (number(), number()));
            let runs = runs
                .map(|(place, length)| Run { place: Some(place).filter(|at| at % 3 > 0), length });
            let runs = runs.collect();
            let packing =
                [Packing::Plain, Packing::Zlib, Packing::Lzo, Packing::Zstd][seed as usize % 4];
            let mut piece = || PackedPiece {
                start: number(),
                length: number(),
                packed_at: number(),
                packed_bytes: number(),
                skipped: number() as u32,
                unpacked_bytes: number() as u32,
                packing,
            };
            let pieces = if seed % 3 == 0 { vec![piece(), piece(), piece()] } else { Vec::new() };
            let packed_unit = (seed % 3 == 1).then_some((number() as u32 % (1 << 16)).max(1));
            let written = (seed % 5 == 0).then(&mut number);
            let content = Content { runs, pieces, packed_unit, written, ..Content::default() };
            let Ok(file) = FileContent::new(&source, entry(number() >> 28, content)) else {
                continue;
            };
            for _ in 0..20 {
                let offset = number().min(file.size());
                let count = number().min(5000).min(file.size() - offset);
                let _ = file.read_at(&source, offset, &mut vec![0; count as usize]);
            }
        }
    }
}
