//! Finds the places of a byte string once for all files that need them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::view::View;
use quarrier_core::sync::lock;

/// Size of the piece for one search in bytes; pieces are aligned to it.
const PIECE_BYTES: u64 = 1 << 20;
/// Maximum number of places to cache of a piece, and of pieces; the others are searched again at
/// each request.
const PLACES_MAX: usize = 64;
const PIECES_MAX: usize = 1 << 16;

/// The places of a byte string in a source. Each broken archive needs the ends of archives around
/// it, and many have the same mebibytes around them.
pub(crate) struct Marks {
    needle: &'static [u8],
    /// The places by piece, in order.
    known: Mutex<BTreeMap<u64, Box<[u64]>>>,
}

impl Marks {
    /// Makes an empty cache for `needle`.
    pub(crate) fn new(needle: &'static [u8]) -> Self {
        Marks { needle, known: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the next occurrences of the bytes in `view`, from `at` on and before `end`; moves
    /// `at` past the piece. `view` shows the whole source. A call always costs the fuel of a
    /// search, even if an earlier one was cached: otherwise results would depend on the schedule.
    pub(crate) fn next(&self, view: &mut View<'_>, at: &mut u64, end: u64) -> Vec<u64> {
        let piece = *at / PIECE_BYTES;
        let to = end.min((piece + 1) * PIECE_BYTES);
        let range = *at..to;
        *at = to;
        let before = view.fuel_bytes();
        // Do not begin a search that the fuel cannot finish.
        if before < 2 * PIECE_BYTES {
            view.spend(u64::MAX);
            return Vec::new();
        }
        let mut places = self.of_piece(view, piece);
        view.refund(before - view.fuel_bytes());
        view.spend(range.end.saturating_sub(range.start));
        places.retain(|place| range.contains(place));
        places
    }

    fn of_piece(&self, view: &mut View<'_>, piece: u64) -> Vec<u64> {
        if let Some(places) = self.lock().get(&piece) {
            return places.to_vec();
        }
        let from = piece * PIECE_BYTES;
        let mut places = Vec::new();
        let mut at = from;
        let until = from + PIECE_BYTES + self.needle.len() as u64 - 1;
        while let Some(place) = view.find(at..until, self.needle) {
            places.push(place);
            at = place + 1;
        }
        let mut known = self.lock();
        if places.len() <= PLACES_MAX && known.len() < PIECES_MAX {
            known.insert(piece, places.clone().into());
        }
        places
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Box<[u64]>>> {
        lock(&self.known)
    }
}

#[cfg(test)]
mod tests {
    use quarrier_core::source::Memory;

    use super::*;
    use crate::view::Extent;

    /// Returns all places from `at` on and before `end`, and the cost of finding them.
    fn all(marks: &Marks, view: &mut View<'_>, mut at: u64, end: u64) -> (Vec<u64>, u64) {
        let before = view.fuel_bytes();
        let mut places = Vec::new();
        while at < end {
            places.extend(marks.next(view, &mut at, end));
        }
        (places, before - view.fuel_bytes())
    }

    #[test]
    fn every_place_is_found_once_and_costs_the_same_each_time() {
        let mut bytes = vec![0u8; 3 << 20];
        // Across the border of pieces, at the end, twice in a row, and many at once.
        let mut expected = vec![7, (1 << 20) - 2, (1 << 20) + 2, (3 << 20) - 4];
        expected.extend((0..100).map(|index| (2 << 20) + 4 * index));
        expected.sort_unstable();
        for at in &expected {
            bytes[*at as usize..][..4].copy_from_slice(b"MARK");
        }
        let length = bytes.len() as u64;
        let source = Memory::new("sample", bytes);
        let mut view = View::of(&source, &[]);
        view.look_at(&[Extent { offset: 0, length }], 1 << 30);
        let marks = Marks::new(b"MARK");
        for _ in 0..2 {
            assert_eq!(all(&marks, &mut view, 0, length), (expected.clone(), length));
        }
        let few: Vec<u64> = expected.iter().copied().filter(|at| (8..5000).contains(at)).collect();
        assert_eq!(all(&marks, &mut view, 8, 5000).0, few);
        view.look_at(&[Extent { offset: 0, length }], 1 << 20);
        assert!(all(&marks, &mut view, 0, 9).0.is_empty());
        assert!(view.is_starved());
    }
}
