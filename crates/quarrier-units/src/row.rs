//! Rows of units.

use std::io;

/// A finding, as the rows of a source have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'r> {
    /// Where it starts in the source.
    pub offset: u64,
    /// Its bytes.
    pub length: u32,
    /// Which pattern, as an index into the set.
    pub pattern: u32,
    /// Its first bytes, at most [`MATCH_BYTES_MAX`](quarrier::search::MATCH_BYTES_MAX).
    pub found: &'r [u8],
}

/// Takes rows in order; an error ends the work.
pub type Take<'t> = dyn FnMut(&Row<'_>) -> io::Result<()> + Send + 't;

/// Rows that are held, so that it can be decided whether they are right.
#[derive(Debug, Default)]
pub(crate) struct HeldRows {
    rows: Vec<(u64, u32, u32, usize)>,
    bytes: Vec<u8>,
}

/// The most that is held: about this many bytes.
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
