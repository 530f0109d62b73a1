//! The places and lengths of samples, from the movie box.

use std::ops::Range;

use super::boxes::{Atom, named};
use super::sample::Check;
use crate::view::View;

/// Why a movie is not whole: all bytes before `sure` are accepted, and the one at `at` is wrong.
pub(super) struct Fault {
    pub(super) sure: u64,
    pub(super) at: u64,
    pub(super) why: &'static str,
}

impl Fault {
    fn at(at: u64, why: &'static str) -> Fault {
        Fault { sure: 0, at, why }
    }
}

/// Checks all tracks of the movie in `body`: their samples are in `data`, in the order of the file,
/// and are valid for their codec.
pub(super) fn check(
    view: &mut View<'_>,
    body: Range<u64>,
    data: &[Range<u64>],
) -> Result<(), Fault> {
    let begin = body.start;
    let wrong = |at| Fault::at(at, "boxes of the movie");
    let atoms = Atom::all(view, body).map_err(wrong)?;
    named(&atoms, b"mvhd").ok_or(wrong(begin))?;
    let mut first: Option<Fault> = None;
    for atom in atoms.iter().filter(|atom| atom.name == *b"trak") {
        let Some(track) = Track::read(view, atom.body.clone()).map_err(wrong)? else { continue };
        if let Err(fault) = track.check(view, data)
            && first.as_ref().is_none_or(|first| fault.at < first.at)
        {
            first = Some(fault);
        }
    }
    first.map_or(Ok(()), Err)
}

/// Consecutive big-endian numbers.
struct Table {
    at: u64,
    count: u64,
    /// The size of an entry, in bytes.
    bytes: u64,
}

impl Table {
    /// Reads the table after the first `skip` bytes of a box, which end with its count.
    fn read(view: &mut View<'_>, body: Range<u64>, skip: u64, bytes: u64) -> Result<Table, u64> {
        let begin = body.start + skip;
        let count = view.u32_be(begin.saturating_sub(4)).map(u64::from).ok_or(begin)?;
        let fits = begin + count * bytes <= body.end;
        if fits { Ok(Table { at: begin, count, bytes }) } else { Err(body.start) }
    }

    fn get(&self, view: &mut View<'_>, index: u64) -> Option<u64> {
        let at = self.at + index * self.bytes;
        if self.bytes == 8 { view.u64_be(at) } else { view.u32_be(at).map(u64::from) }
    }
}

struct Track {
    check: Check,
    chunks: Table,
    /// For runs of chunks: the first chunk, samples per chunk, and the kind of sample.
    runs: Table,
    sizes: Table,
    /// The size of every sample, or 0 if each has its own.
    size: u64,
}

impl Track {
    /// Returns `None` if it has no table of samples.
    fn read(view: &mut View<'_>, body: Range<u64>) -> Result<Option<Track>, u64> {
        let mut range = body;
        for name in [b"mdia", b"minf", b"stbl"] {
            match named(&Atom::all(view, range)?, name) {
                Some(body) => range = body,
                None => return Ok(None),
            }
        }
        let begin = range.start;
        let atoms = Atom::all(view, range)?;
        let chunks = match (named(&atoms, b"stco"), named(&atoms, b"co64")) {
            (Some(body), _) => Table::read(view, body, 8, 4)?,
            (None, Some(body)) => Table::read(view, body, 8, 8)?,
            (None, None) => return Err(begin),
        };
        let runs = named(&atoms, b"stsc").ok_or(begin)?;
        let mut runs = Table::read(view, runs, 8, 12)?;
        runs.bytes = 4;
        let Some(sizes) = named(&atoms, b"stsz") else { return Ok(None) };
        let size = view.u32_be(sizes.start + 4).map(u64::from).ok_or(begin)?;
        let width = if size == 0 { 4 } else { 0 };
        let sizes = Table::read(view, sizes, 12, width)?;
        let kind = named(&atoms, b"stsd").ok_or(begin)?;
        let check = Check::of(view, kind);
        Ok(Some(Track { check, chunks, runs, sizes, size }))
    }

    fn check(&self, view: &mut View<'_>, data: &[Range<u64>]) -> Result<(), Fault> {
        let unreadable = Fault::at(self.chunks.at, "tables of samples");
        self.walk(view, data).unwrap_or(Err(unreadable))
    }

    /// Checks all chunks; `None` if a table cannot be read.
    fn walk(&self, view: &mut View<'_>, data: &[Range<u64>]) -> Option<Result<(), Fault>> {
        let mut run = 0;
        let mut sample = 0;
        let mut last = 0;
        for chunk in 0..self.chunks.count {
            let offset = self.chunks.get(view, chunk)?;
            while run + 1 < self.runs.count && self.runs.get(view, (run + 1) * 3)? <= chunk + 1 {
                run += 1;
            }
            let samples = match self.runs.count {
                0 => 0,
                _ => self.runs.get(view, run * 3 + 1)?,
            };
            let samples = samples.min(self.sizes.count - sample);
            let place = data.partition_point(|range| range.end <= offset);
            let Some(range) = data.get(place).filter(|range| range.start <= offset) else {
                if samples == 0 {
                    continue;
                }
                return Some(Err(Fault::at(offset, "samples outside of their box")));
            };
            let chunk = Chunk { offset, first: sample, samples, end: range.end };
            if let Err(fault) = self.chunk(view, &chunk, &mut last)? {
                return Some(Err(fault));
            }
            sample += samples;
        }
        Some(Ok(()))
    }

    fn chunk(
        &self,
        view: &mut View<'_>,
        chunk: &Chunk,
        last: &mut u64,
    ) -> Option<Result<(), Fault>> {
        // Uncompressed sound states a sample size of 1, whatever the actual size.
        if self.size == 1 || self.size > 1 && self.check == Check::Nothing {
            let bytes = if self.size == 1 { 0 } else { self.size.saturating_mul(chunk.samples) };
            let is_inside = chunk.offset.saturating_add(bytes) <= chunk.end;
            let fault = || Fault::at(chunk.end, "samples outside of their box");
            return Some(if is_inside { Ok(()) } else { Err(fault()) });
        }
        let mut at = chunk.offset;
        for sample in chunk.first..chunk.first + chunk.samples {
            let bytes = if self.size > 0 { self.size } else { self.sizes.get(view, sample)? };
            let end = at.saturating_add(bytes);
            if end > chunk.end {
                return Some(Err(Fault::at(chunk.end, "samples outside of their box")));
            }
            if !self.check.is_right(view, at..end) {
                return Some(Err(Fault { sure: *last, at: end, why: "sample of another codec" }));
            }
            *last = at;
            at = end;
        }
        Some(Ok(()))
    }
}

/// Contiguous samples.
struct Chunk {
    offset: u64,
    /// The number of the first sample.
    first: u64,
    samples: u64,
    /// The end of the box of data that contains it.
    end: u64,
}
