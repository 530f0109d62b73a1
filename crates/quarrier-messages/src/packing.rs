//! When messages are cut into segments, and when text is kept without codes.

use crate::column::raw::SEGMENT_ROWS;

/// Bounds of how a table is packed, which no answer depends on. Those that are not the default are
/// for tests: few rows reach every state of a column by them.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// The most rows of a segment, 1 to [`SEGMENT_ROWS`].
    pub segment_rows: usize,
    /// A worker takes at least a quarter of this many bytes of a source at once.
    pub claim_bytes: u64,
    /// The size of distinct strings from which on a worker's column gives up its dictionary.
    pub dictionary_bytes: usize,
    /// So many bytes of strings may always take the place of codes; of none, they never do.
    pub spelled_bytes: usize,
}

impl Default for Packing {
    fn default() -> Self {
        Packing {
            segment_rows: SEGMENT_ROWS,
            claim_bytes: 1 << 20,
            dictionary_bytes: 64 << 20,
            spelled_bytes: 64 << 20,
        }
    }
}
