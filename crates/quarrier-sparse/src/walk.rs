//! Reads many ranges, most of which lie in the run of the one before or in the next.

use crate::leaf::Leaf;
use crate::map::Place;

/// Where the last range was found, so that the next is looked for there first. It is kept in
/// registers; what a [`crate::map::Map`] remembers for a reader is kept in memory.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'m> {
    leaf: &'m Leaf,
    /// The offset from which the leaf counts.
    key: u64,
    run: usize,
    /// The offset of the first of `bytes`.
    start: u64,
    /// The bytes from there to the run's end.
    bytes: &'m [u8],
}

impl<'m> Walk<'m> {
    /// Begins where `offset` was found.
    pub(crate) fn at(offset: u64, place: Place<'m>) -> Self {
        let within = place.leaf.end(place.run) - place.bytes.len() as u64;
        let Place { leaf, run, bytes } = place;
        Walk { leaf, key: offset - within, run, start: offset, bytes }
    }

    /// The bytes of the run from `offset` on, if that is later in this run than the walk's place, or in
    /// the next run of the leaf.
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

    /// The run.
    pub(crate) fn place(&self) -> Place<'m> {
        Place { leaf: self.leaf, run: self.run, bytes: self.bytes }
    }
}
