//! Lines of a source: byte runs that end with a newline, in text or binary data.

use memchr::memchr_iter;
use quarrier_core::pipeline::Chunk;
use quarrier_search::Finding;

use crate::args::{Search, Shown};
use crate::output::rows::Excerpt;

/// The maximum size of the lines shown on either side of a finding.
const LINES_BYTES_MAX: usize = 16 << 10;

/// Bytes that a chunk must see on either side of a finding.
pub(super) fn context_bytes(search: &Search) -> usize {
    if search.shown.lines { LINES_BYTES_MAX } else { search.context_bytes }
}

/// The lines of a finding, and the lines around it.
pub(super) fn around<'c>(chunk: &Chunk<'c>, finding: &Finding, shown: &Shown) -> Excerpt<'c> {
    let start = (finding.offset - chunk.offset) as usize;
    let end = start + finding.length as usize;
    let before = &chunk.data[start.saturating_sub(LINES_BYTES_MAX)..start];
    let after = &chunk.data[end..(end + LINES_BYTES_MAX).min(chunk.data.len())];
    let nth = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    // The newline before the first line shown, and the newline that ends the last line shown.
    let from = memchr::memrchr_iter(b'\n', before).nth(nth(shown.lines_before));
    let to = memchr_iter(b'\n', after).nth(nth(shown.lines_after));
    Excerpt {
        before: &before[from.map_or(0, |newline| newline + 1)..],
        found: &chunk.data[start..end],
        after: &after[..to.map_or(after.len(), |newline| newline + 1)],
        is_lines: true,
    }
}

/// Counts the newlines before findings, from the start of the searched range.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The offset up to which newlines are counted.
    position: u64,
    newlines: u64,
}

impl Lines {
    pub(super) fn from(start: u64) -> Self {
        Lines { position: start, newlines: 0 }
    }

    /// The number, from 1, of the line at `offset` of the chunk.
    pub(super) fn number(&mut self, chunk: &Chunk<'_>, offset: u64) -> u64 {
        let at = |place: u64| (place.saturating_sub(chunk.offset) as usize).min(chunk.data.len());
        let (here, there) = (at(self.position), at(offset));
        // A chunk with very many findings is passed several times.
        match here <= there {
            true => self.newlines += count(&chunk.data[here..there]),
            false => {
                // If another program writes to the data meanwhile, the chunk may now hold fewer
                // newlines.
                let newlines = count(&chunk.data[there..here]);
                self.newlines = self.newlines.saturating_sub(newlines);
            }
        }
        self.position = offset;
        self.newlines + 1
    }

    /// Counts on to the end of the owned range.
    pub(super) fn pass(&mut self, chunk: &Chunk<'_>) {
        self.number(chunk, chunk.offset + chunk.own.end as u64);
    }
}

fn count(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}
