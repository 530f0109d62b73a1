//! Boxes: a length, four letters, bytes.

use std::ops::Range;

use crate::view::View;

/// Maximum number of boxes within one box.
const CHILDREN_MAX: usize = 4096;

/// A box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Atom {
    pub(super) name: [u8; 4],
    /// Its contents, without the header.
    pub(super) body: Range<u64>,
}

impl Atom {
    /// Reads the box that begins at `at`; if it extends to the end of the file, it ends at `end`.
    pub(super) fn read(view: &mut View<'_>, at: u64, end: u64) -> Option<Atom> {
        let header = view.array::<8>(at)?;
        let [l0, l1, l2, l3, a, b, c, d] = header;
        let name = [a, b, c, d];
        let (begin, end) = match u32::from_be_bytes([l0, l1, l2, l3]) {
            0 => (at + 8, end),
            1 => (at + 16, at.checked_add(view.u64_be(at + 8)?)?),
            bytes => (at + 8, at.checked_add(u64::from(bytes))?),
        };
        (begin <= end).then_some(Atom { name, body: begin..end })
    }

    /// Reads the boxes in `range`. `Err` with the place of an invalid one.
    pub(super) fn all(view: &mut View<'_>, range: Range<u64>) -> Result<Vec<Atom>, u64> {
        let mut all = Vec::new();
        let mut at = range.start;
        // Lists may end with four zero bytes.
        while at + 8 <= range.end {
            let atom = Atom::read(view, at, range.end).ok_or(at)?;
            if atom.body.end > range.end || all.len() == CHILDREN_MAX {
                return Err(at);
            }
            at = atom.body.end;
            all.push(atom);
        }
        Ok(all)
    }
}

/// Returns the first of `atoms` with this name.
pub(super) fn named(atoms: &[Atom], name: &[u8; 4]) -> Option<Range<u64>> {
    atoms.iter().find(|atom| atom.name == *name).map(|atom| atom.body.clone())
}
