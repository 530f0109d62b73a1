//! Rows of units.

use std::io;

/// A finding, as in the rows of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'r> {
    /// The offset in the source.
    pub offset: u64,
    /// The length in bytes.
    pub length: u32,
    /// The index of the pattern in the set.
    pub pattern: u32,
    /// The first bytes of the match, at most [`MATCH_BYTES_MAX`](quarrier::search::MATCH_BYTES_MAX).
    pub found: &'r [u8],
}

/// Takes rows in order; an error ends the work.
pub type Take<'t> = dyn FnMut(&Row<'_>) -> io::Result<()> + Send + 't;

/// Rows that are held until it is known whether they are right.
#[derive(Debug, Default)]
pub(crate) struct HeldRows {
    rows: Vec<(u64, u32, u32, usize)>,
    bytes: Vec<u8>,
}

/// Approximate maximum size of the held rows, in bytes.
const HELD_BYTES_MAX: usize = 256 << 20;

impl HeldRows {
    /// Adds a row; false if there is no room for it.
    pub(crate) fn push(&mut self, row: &Row<'_>) -> bool {
        let held = size_of::<(u64, u32, u32, usize)>() * self.rows.len() + self.bytes.len();
        if held > HELD_BYTES_MAX {
            return false;
        }
        self.bytes.extend_from_slice(row.found);
        self.rows.push((row.offset, row.length, row.pattern, self.bytes.len()));
        true
    }

    /// Passes all rows on.
    pub(crate) fn hand_over(&self, take: &mut Take<'_>) -> io::Result<()> {
        let mut start = 0;
        for &(offset, length, pattern, end) in &self.rows {
            take(&Row { offset, length, pattern, found: &self.bytes[start..end] })?;
            start = end;
        }
        Ok(())
    }
}
