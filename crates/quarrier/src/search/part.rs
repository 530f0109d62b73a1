//! Parts of a source, which different runs or machines search.

use std::ops::Range;

/// A part of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The findings that start here are the part's.
    pub owned: Range<u64>,
    /// Where the last match of a regex before the part ended, by the index of its pattern. A regex that is
    /// not listed is searched for as if none of its matches extended into the part.
    pub ends: Vec<(u32, u64)>,
}

impl Part {
    /// The part with the findings that start in `owned`, as if no match extended into it.
    #[must_use]
    pub fn alone(owned: Range<u64>) -> Self {
        Part { owned, ends: Vec::new() }
    }
}
