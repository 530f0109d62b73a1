//! Findings: a pattern at an offset.

/// A pattern at an offset. Findings order by offset, then pattern, then length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finding {
    /// Offset of the first byte in the source.
    pub offset: u64,
    /// The pattern, as an index into the set.
    pub pattern: u32,
    /// Length in bytes.
    pub length: u32,
}
