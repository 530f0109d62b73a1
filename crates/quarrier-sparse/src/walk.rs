//! Reads many ranges, most of which are in the run of the previous one or in the next.

use crate::leaf::Leaf;
use crate::map::Place;

/// Where the last range was found; the search for the next one starts there. Kept in registers,
/// whereas the hints of a [`crate::map::Map`] are in memory.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'m> {
    leaf: &'m Leaf,
    /// The key of the leaf: the offset from which it counts.
    key: u64,
    run: usize,
    /// The offset of the first of `bytes`.
    start: u64,
    /// The bytes from there to the end of the run.
    bytes: &'m [u8],
}

impl<'m> Walk<'m> {
    /// Starts where `offset` was found.
    pub(crate) fn at(offset: u64, place: Place<'m>) -> Self {
        let within = place.leaf.end(place.run) - place.bytes.len() as u64;
        let Place { leaf, run, bytes } = place;
        Walk { leaf, key: offset - within, run, start: offset, bytes }
    }

    /// The bytes of the run from `offset` on, if that is later in the same run, or in the next run
    /// of the leaf.
    #[inline]
    pub(crate) fn seek(&mut self, offset: u64) -> Option<&'m [u8]> {
        let skip = offset.wrapping_sub(self.start);
        if skip < self.bytes.len() as u64 {
            return Some(&self.bytes[skip as usize..]);
        }
        let next = self.run + 1;
        if next >= self.leaf.runs() {
            return None;
        }
        let start = self.key + self.leaf.start(next);
        let bytes = self.leaf.run_bytes(next);
        let skip = offset.wrapping_sub(start);
        if skip >= bytes.len() as u64 {
            return None;
        }
        (self.run, self.start, self.bytes) = (next, start, bytes);
        Some(&bytes[skip as usize..])
    }

    /// The current place.
    pub(crate) fn place(&self) -> Place<'m> {
        Place { leaf: self.leaf, run: self.run, bytes: self.bytes }
    }
}
