//! Elements: an identifier and a length, both of variable size, and the contents.

use std::ops::Range;

use crate::view::View;

/// An element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) id: u32,
    /// The start of its contents.
    pub(super) begin: u64,
    /// Its end, or `None` if it does not state its length.
    pub(super) end: Option<u64>,
}

impl Element {
    /// Reads the element that begins at `at`.
    pub(super) fn read(view: &mut View<'_>, at: u64) -> Option<Element> {
        let first = view.byte(at)?;
        let id_bytes = first.leading_zeros() as usize + 1;
        if id_bytes > 4 {
            return None;
        }
        let id = view.take(at, id_bytes)?.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        let at = at + id_bytes as u64;
        let first = view.byte(at)?;
        let length_bytes = first.leading_zeros() as usize + 1;
        if length_bytes > 8 {
            return None;
        }
        let raw =
            view.take(at, length_bytes)?.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let mask = (1u64 << (7 * length_bytes)) - 1;
        let begin = at + length_bytes as u64;
        let length = raw & mask;
        let end = if length == mask { None } else { Some(begin.checked_add(length)?) };
        Some(Element { id, begin, end })
    }

    /// The range of its contents, if their length is stated.
    pub(super) fn body(&self) -> Option<Range<u64>> {
        Some(self.begin..self.end?)
    }
}
