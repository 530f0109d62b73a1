//! Cuts a source into pieces: the positions that each owns, and the bytes to read for them.

use std::ops::Range;

use super::Need;
use crate::error::{Error, Result};
use crate::region::PAGE_BYTES;
use crate::source::Source;

const PAGE: u64 = PAGE_BYTES as u64;

/// A piece of work whose bytes were not read yet.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) index: u64,
    /// Owned positions in the source.
    pub(super) own: Range<u64>,
    /// The bytes to read: the owned positions and their surroundings, from the start of a page.
    pub(super) read: Range<u64>,
    pub(super) at_start: bool,
    pub(super) at_end: bool,
    /// Whether the stream had no more bytes available.
    pub(super) at_pause: bool,
    /// Whether the piece lies in a hole: zeros, nothing to read.
    pub(super) is_hole: bool,
}

/// A range of the source that pieces may show, and the part of it that they own.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) seen: Range<u64>,
    pub(super) owned: Range<u64>,
}

/// Yields the pieces of parts of a source in order.
pub(super) struct Pieces<'a> {
    source: &'a dyn Source,
    /// The parts after the current one.
    later: std::vec::IntoIter<Part>,
    /// The bytes that pieces of the current part may show.
    range: Range<u64>,
    /// The end of the positions that pieces own.
    owned_end: u64,
    need: Need,
    piece_bytes: u64,
    next_index: u64,
    at: u64,
    /// The current stretch, which is being cut into pieces, and whether it is a hole.
    stretch: (Range<u64>, bool),
    skipped_bytes: u64,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(
        source: &'a dyn Source,
        parts: Vec<Part>,
        need: Need,
        piece_bytes: usize,
    ) -> Self {
        Pieces {
            source,
            at: 0,
            stretch: (0..0, false),
            owned_end: 0,
            range: 0..0,
            later: parts.into_iter(),
            need,
            piece_bytes: piece_bytes.max(1) as u64,
            next_index: 0,
            skipped_bytes: 0,
        }
    }

    /// Positions skipped because they lie in holes.
    pub(super) fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// Returns the index of the next piece.
    pub(super) fn next_index(&self) -> u64 {
        self.next_index
    }

    /// The next piece, or `None` at the end of the last part.
    pub(super) fn next(&mut self) -> Result<Option<Piece>> {
        while self.at >= self.stretch.0.end && !self.next_stretch()? {
            let Some(Part { seen, owned }) = self.later.next() else { return Ok(None) };
            self.at = owned.start;
            self.stretch = (owned.start..owned.start, false);
            self.owned_end = owned.end;
            self.range = seen;
        }
        let (stretch, is_hole) = (self.stretch.0.clone(), self.stretch.1);
        // Pieces end at multiples of their size, so that windows align with large pages.
        let boundary = (self.at / self.piece_bytes + 1).saturating_mul(self.piece_bytes);
        let own = self.at..boundary.min(stretch.end);
        self.at = own.end;
        let first = self.read_start(own.start);
        let last = own.end.saturating_add(self.need.after_bytes as u64).min(self.range.end);
        let piece = Piece {
            index: self.next_index,
            at_start: first == self.range.start,
            at_end: last == self.range.end,
            at_pause: false,
            read: first..last,
            own,
            is_hole,
        };
        self.next_index += 1;
        Ok(Some(piece))
    }

    /// Moves on to the next stretch: data and the positions whose context includes it, or a hole
    /// whose positions see no data. Returns false at the end.
    fn next_stretch(&mut self) -> Result<bool> {
        let (seen_end, end) = (self.range.end, self.owned_end);
        if self.at >= end {
            return Ok(false);
        }
        let (before, after) = (self.need.before_bytes as u64, self.need.after_bytes as u64);
        // Data before the position may be part of its context.
        let sight = if self.need.skip_zeros {
            self.at.saturating_sub(before).max(self.range.start)
        } else {
            self.read_start(self.at)
        };
        let data = self
            .source
            .next_data(sight)
            .map_err(|error| Error::io(self.source.name(), "read the extents", error))?
            .filter(|data| data.start < seen_end);
        let hole_end = data.as_ref().map_or(end, |data| data.start.saturating_sub(after).min(end));
        if hole_end > self.at {
            let hole = self.at..hole_end;
            if !self.need.skip_zeros {
                self.stretch = (hole, true);
                return Ok(true);
            }
            self.skipped_bytes += hole.end - hole.start;
            self.at = hole.end;
        }
        let Some(data) = data.filter(|_| self.at < end) else { return Ok(false) };
        // Reads begin at the start of a page, so a skipped hole begins after the page.
        let data_end =
            if self.need.skip_zeros { data.end } else { data.end.next_multiple_of(PAGE) };
        self.stretch = (self.at..data_end.saturating_add(before).clamp(self.at + 1, end), false);
        Ok(true)
    }

    /// Returns the offset from which to read for a piece whose first owned position is `own_start`.
    fn read_start(&self, own_start: u64) -> u64 {
        let first = own_start.saturating_sub(self.need.before_bytes as u64);
        (first - first % PAGE).max(self.range.start)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#[allow(clippy::single_range_in_vec_init, reason = "a source with one extent")]
mod tests {
    use super::*;
    use std::io;

    /// Data in the given extents, zeros elsewhere.
    struct Sparse(u64, Vec<Range<u64>>);

    impl Source for Sparse {
        fn name(&self) -> &str {
            "sparse"
        }
        fn length(&self) -> u64 {
            self.0
        }
        fn read_at(&self, _: u64, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(0);
            Ok(buffer.len())
        }
        fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
            Ok(self.1.iter().find(|r| r.end > offset).map(|r| r.start.max(offset)..r.end))
        }
    }

    fn pieces(source: &Sparse, need: Need, size: usize) -> Vec<Piece> {
        pieces_of(source, vec![0..source.0], need, size)
    }

    fn pieces_of(source: &Sparse, ranges: Vec<Range<u64>>, need: Need, size: usize) -> Vec<Piece> {
        let whole = |range: Range<u64>| Part { seen: range.clone(), owned: range };
        let parts = ranges.into_iter().map(whole).collect();
        let mut cutter = Pieces::new(source, parts, need, size);
        std::iter::from_fn(|| cutter.next().unwrap()).collect()
    }

    #[test]
    fn each_of_several_ranges_is_cut_as_if_it_were_alone() {
        let source = Sparse(100_000, vec![5_000..9_000, 60_000..70_001]);
        let ranges = vec![0..3, 5_100..5_101, 6_000..65_000, 69_000..69_000, 70_000..100_000];
        for skip_zeros in [false, true] {
            for size in [1_000, 4_096, 1 << 20] {
                let need = Need { before_bytes: 3, after_bytes: 10, skip_zeros };
                let summary = |piece: &Piece| {
                    let Piece { own, read, at_start, at_end, is_hole, .. } = piece.clone();
                    (own, read, at_start, at_end, is_hole)
                };
                let together = pieces_of(&source, ranges.clone(), need, size);
                let alone = ranges
                    .iter()
                    .flat_map(|range| pieces_of(&source, vec![range.clone()], need, size));
                let alone: Vec<_> = alone.map(|piece| summary(&piece)).collect();
                assert_eq!(together.iter().map(summary).collect::<Vec<_>>(), alone);
                assert!((0..).zip(&together).all(|(index, piece)| piece.index == index));
            }
        }
    }

    #[test]
    fn every_position_is_owned_once_and_in_order() {
        let source = Sparse(100_000, vec![5_000..9_000, 70_000..70_001]);
        for skip_zeros in [false, true] {
            for size in [1_000, 4_096, 1 << 20] {
                let need = Need { before_bytes: 3, after_bytes: 10, skip_zeros };
                let mut at = 0;
                for piece in pieces(&source, need, size) {
                    assert!(piece.own.start >= at && piece.own.end > piece.own.start);
                    assert!(skip_zeros || piece.own.start == at);
                    assert!(piece.read.start <= piece.own.start.saturating_sub(3));
                    assert!(piece.read.end >= (piece.own.end + 10).min(100_000));
                    if piece.is_hole {
                        assert!(
                            source
                                .1
                                .iter()
                                .all(|d| d.end <= piece.read.start || d.start >= piece.read.end)
                        );
                    }
                    at = piece.own.end;
                }
                assert!(skip_zeros || at == 100_000);
            }
        }
    }

    #[test]
    fn parts_together_own_and_see_as_much_as_the_whole() {
        let source = Sparse(100_000, vec![5_000..9_000, 70_000..70_001]);
        for skip_zeros in [false, true] {
            let need = Need { before_bytes: 3, after_bytes: 10, skip_zeros };
            for border in [0, 1, 4_990, 4_995, 5_000, 9_000, 9_003, 50_000, 69_995, 100_000] {
                let mut at = 0;
                for owned in [0..border, border..100_000] {
                    let part = Part { seen: 0..100_000, owned: owned.clone() };
                    let mut cutter = Pieces::new(&source, vec![part], need, 1_000);
                    let mut owned_bytes = 0;
                    while let Some(piece) = cutter.next().unwrap() {
                        assert!(piece.own.start >= at && piece.own.end > piece.own.start);
                        assert!(piece.own.start >= owned.start && piece.own.end <= owned.end);
                        assert!(piece.read.start <= piece.own.start.saturating_sub(3));
                        assert!(piece.read.end >= (piece.own.end + 10).min(100_000));
                        assert_eq!(piece.at_end, piece.read.end == 100_000);
                        owned_bytes += piece.own.end - piece.own.start;
                        at = piece.own.end;
                    }
                    assert_eq!(owned_bytes + cutter.skipped_bytes(), owned.end - owned.start);
                }
            }
        }
    }

    #[test]
    fn holes_are_skipped_except_their_edges() {
        let source = Sparse(1 << 40, vec![1 << 30..(1 << 30) + 10]);
        let need = Need { before_bytes: 2, after_bytes: 7, skip_zeros: true };
        let all = pieces(&source, need, 1 << 20);
        assert_eq!(all.first().unwrap().own.start, (1 << 30) - 7);
        assert_eq!(all.last().unwrap().own.end, (1 << 30) + 12);
    }
}
