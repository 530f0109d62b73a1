//! Parts of a source, for different runs or machines to search.

use std::ops::Range;

/// A part of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The part has the findings that start in this range.
    pub owned: Range<u64>,
    /// The end of the last match of each regex before the part, by the index of its pattern. A missing
    /// regex is searched for as if none of its matches extended into the part.
    pub ends: Vec<(u32, u64)>,
}

impl Part {
    /// The part with the findings that start in `owned`, as if no match extended into it.
    #[must_use]
    pub fn alone(owned: Range<u64>) -> Self {
        Part { owned, ends: Vec::new() }
    }
}
