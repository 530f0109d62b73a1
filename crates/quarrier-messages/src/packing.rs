//! Limits that decide when segments end, and when strings are stored without codes.

use crate::column::raw::SEGMENT_ROWS;

/// Limits on how a table is packed, which do not affect any answer. Tests change the defaults to
/// reach every state of a column with few rows.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// Maximum number of rows of a segment, 1 to [`SEGMENT_ROWS`].
    pub segment_rows: usize,
    /// A worker takes at least a quarter of this many bytes of a source at once.
    pub claim_bytes: u64,
    /// The size of distinct strings at which a worker's column gives up its dictionary.
    pub dictionary_bytes: usize,
    /// Plain strings may replace codes if they take at most this much more than twice the bytes of
    /// the dictionaries and plain strings now; 0: never.
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
