//! Cuts a source into pieces: the positions that each owns, and the bytes to read for them.

use std::ops::Range;

use super::Need;
use crate::error::{Error, Result};
use crate::region::PAGE_BYTES;
use crate::source::Source;

const PAGE: u64 = PAGE_BYTES as u64;

/// Shorter runs of a fragmented image are copied into a buffer, because a mapping of 64 KiB costs as
/// much as a copy, and a mapping of 1 MiB a quarter of it.
const WINDOW_BYTES_MIN: u64 = 256 << 10;
/// Positions of a piece that must be copied: few enough that the copy stays in a worker's cache.
const COPY_BYTES: u64 = 1 << 20;

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
    /// Present if pieces end where windows of the source end.
    windows: Option<Windows>,
}

/// What is known of the windows that a source can show.
struct Windows {
    bytes_min: u64,
    /// No window of `bytes_min` bytes begins before this offset.
    none_before: u64,
    /// Whether one begins there.
    one_follows: bool,
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
            windows: None,
        }
    }

    /// Ends pieces where windows of the source end, if that leaves little to copy; pieces that cross
    /// such a border are short.
    pub(super) fn along_windows(self) -> Self {
        let context_bytes = (self.need.before_bytes as u64).saturating_add(self.after_bytes());
        // The context of a window's first and last positions is copied.
        let least = WINDOW_BYTES_MIN.min(self.piece_bytes / 4).max(1);
        let bytes_min = least.max(context_bytes.saturating_mul(4));
        let windows = Windows { bytes_min, none_before: 0, one_follows: false };
        Pieces { windows: Some(windows), ..self }
    }

    /// Returns the maximum number of positions of a piece that crosses the end of a window.
    pub(super) fn copied_bytes_max(piece_bytes: usize, need: Need) -> usize {
        // Pieces that are smaller than their context would read most bytes twice.
        (COPY_BYTES as usize).max(need.before_bytes + need.after_bytes).min(piece_bytes)
    }

    fn after_bytes(&self) -> u64 {
        self.need.after_bytes as u64
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
        let mut own = self.at..boundary.min(stretch.end);
        if !is_hole {
            own.end = self.end_along_windows(&own, stretch.end);
        }
        self.at = own.end;
        let first = self.read_start(own.start);
        let last = self.read_end(own.end);
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

    /// Returns the end of a piece that owns `own`, or less or more of a stretch, so that one window shows
    /// it, or that it ends soon after the next window begins.
    fn end_along_windows(&mut self, own: &Range<u64>, stretch_end: u64) -> u64 {
        let Some(bytes_min) = self.windows.as_ref().map(|windows| windows.bytes_min) else {
            return own.end;
        };
        let (first, last) = (self.read_start(own.start), self.read_end(own.end));
        if self.windows.as_ref().is_some_and(|windows| first >= windows.none_before) {
            // A window that begins near the end of a piece ends after it.
            let ahead = first.saturating_add(bytes_min.saturating_mul(2)).max(last);
            let ahead = ahead.min(self.range.end);
            let window = self.find_window(first..ahead, bytes_min.min(ahead - first));
            if let Some(window) = window.filter(|window| window.start <= first) {
                if window.end >= last {
                    return own.end;
                }
                // The last positions of the window see bytes after it.
                let end = window.end.saturating_sub(self.after_bytes());
                if end > own.start {
                    return end;
                }
                let ahead = window.end.saturating_add(self.piece_bytes.max(bytes_min));
                self.find_window(window.end..ahead.min(self.range.end), bytes_min);
            }
        }
        self.copied_end(own.start, stretch_end)
    }

    /// Returns the end of a piece whose bytes no window shows: soon after the next window begins.
    fn copied_end(&self, own_start: u64, stretch_end: u64) -> u64 {
        let copied_bytes = Self::copied_bytes_max(self.piece_bytes as usize, self.need) as u64;
        let longest = own_start.saturating_add(copied_bytes).min(stretch_end);
        match &self.windows {
            // The next piece reads from the start of a page, and sees bytes before its positions.
            Some(Windows { none_before, one_follows: true, .. }) => none_before
                .next_multiple_of(PAGE)
                .saturating_add(self.need.before_bytes as u64)
                .clamp(own_start + 1, longest),
            _ => longest,
        }
    }

    /// Finds the first window in `range`, and records how much of the range has none.
    fn find_window(&mut self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        let window = self.source.next_window(range.clone(), bytes_min);
        if let Some(windows) = &mut self.windows {
            windows.one_follows = window.is_some();
            windows.none_before = match &window {
                Some(window) => window.start,
                // One may begin in the last bytes, and end after them.
                None => range.end.saturating_sub(bytes_min),
            };
        }
        window
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

    /// Returns the end of the bytes to read for a piece that owns positions until `own_end`.
    fn read_end(&self, own_end: u64) -> u64 {
        own_end.saturating_add(self.after_bytes()).min(self.range.end)
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

    /// A fragmented image: one window shows bytes of one fragment only, and fragments end at these offsets.
    struct Fragments(Vec<u64>);

    impl Source for Fragments {
        fn name(&self) -> &str {
            "fragments"
        }
        fn length(&self) -> u64 {
            self.0.last().copied().unwrap_or(0)
        }
        fn read_at(&self, _: u64, buffer: &mut [u8]) -> io::Result<usize> {
            Ok(buffer.len())
        }
        fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
            assert!(range.start < range.end && range.end <= self.length(), "{range:?}");
            let starts = std::iter::once(0).chain(self.0.iter().copied());
            let within = |(from, to): (u64, &u64)| from.max(range.start)..range.end.min(*to);
            starts.zip(&self.0).map(within).find(|window| window.end >= window.start + bytes_min)
        }
    }

    /// Cuts the whole source; returns the pieces, and how many bytes no window shows.
    fn along_windows(source: &Fragments, need: Need, size: usize) -> (Vec<Piece>, u64) {
        let part = Part { seen: 0..source.length(), owned: 0..source.length() };
        let mut cutter = Pieces::new(source, vec![part], need, size).along_windows();
        let (mut at, mut copied_bytes, mut all) = (0, 0, Vec::new());
        while let Some(piece) = cutter.next().unwrap() {
            let Piece { own, read, .. } = piece.clone();
            assert!(own.start == at && own.end > at, "{own:?} after {at}");
            assert!(own.end - own.start <= size as u64, "{own:?} is longer than {size}");
            let first = own.start.saturating_sub(need.before_bytes as u64);
            let last = (own.end + need.after_bytes as u64).min(source.length());
            assert!(read.start <= first && read.end >= last, "{read:?} for {own:?}");
            if source.next_window(read.clone(), read.end - read.start).is_none() {
                let owned_bytes = own.end - own.start;
                assert!(owned_bytes <= Pieces::copied_bytes_max(size, need) as u64);
                copied_bytes += read.end - read.start;
            }
            at = own.end;
            all.push(piece);
        }
        assert_eq!(at, source.length());
        (all, copied_bytes)
    }

    #[test]
    fn of_long_fragments_only_the_borders_are_copied() {
        for (before_bytes, after_bytes) in [(0, 0), (1, 15), (4_096, 30_000)] {
            let need = Need { before_bytes, after_bytes, skip_zeros: true };
            for size in [300 << 10, 2 << 20, 16 << 20] {
                let source = Fragments((1..=20).map(|number| number * (2 << 20)).collect());
                let (all, copied_bytes) = along_windows(&source, need, size);
                let context = 2 * (before_bytes + after_bytes) as u64 + 2 * PAGE;
                // Short ends of a window are copied, if pieces do not end where fragments do.
                let is_even = (2 << 20) % size == 0 || size % (2 << 20) == 0;
                let short = if is_even { 0 } else { size as u64 / 4 };
                assert!(
                    copied_bytes <= 20 * (2 * context + short),
                    "{need:?}, {size}: {copied_bytes}"
                );
                assert!(all.len() <= 20 * ((2 << 20) / size + 4), "{} pieces", all.len());
            }
        }
    }

    #[test]
    fn short_fragments_are_copied_in_pieces_of_a_mebibyte() {
        let need = Need { before_bytes: 1, after_bytes: 15, skip_zeros: true };
        let source = Fragments((1..=640).map(|number| number * (64 << 10)).collect());
        let (all, copied_bytes) = along_windows(&source, need, 16 << 20);
        assert!(copied_bytes >= 40 << 20);
        assert_eq!(all.len(), 40);
    }

    #[test]
    fn a_source_in_one_fragment_is_cut_as_without_windows() {
        let source = Fragments(vec![50_000_001]);
        for size in [1_000_000, 16 << 20] {
            let need = Need { before_bytes: 10, after_bytes: 700, skip_zeros: false };
            let (all, copied_bytes) = along_windows(&source, need, size);
            let part = Part { seen: 0..source.length(), owned: 0..source.length() };
            let mut cutter = Pieces::new(&source, vec![part], need, size);
            for piece in &all {
                let expected = cutter.next().unwrap().unwrap();
                assert_eq!((&piece.own, &piece.read), (&expected.own, &expected.read));
            }
            assert!(cutter.next().unwrap().is_none());
            assert_eq!(copied_bytes, 0);
        }
    }

    #[test]
    fn fragments_of_any_length_own_every_position_once() {
        let mut state = 35_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let longest = [900, 70_000, 3_000_000][draw(3) as usize];
            let mut at = 0;
            let mut ends = Vec::new();
            let count = draw(40);
            for _ in 0..=count {
                at += 1 + draw(longest);
                ends.push(at);
            }
            let around = [1, 40, 9_000, 200_000][draw(4) as usize];
            let need = Need {
                before_bytes: draw(around) as usize,
                after_bytes: draw(around) as usize,
                skip_zeros: draw(2) == 0,
            };
            let largest = [5_000, 100_000, 20_000_000][draw(3) as usize];
            let size = 1 + draw(largest) as usize;
            if at / size as u64 <= 20_000 {
                along_windows(&Fragments(ends), need, size);
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
