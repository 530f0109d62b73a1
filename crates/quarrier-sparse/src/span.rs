//! Ranges of a file.

/// A range of bytes: a block that is held, or a range that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The offset of the first byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

impl Span {
    /// The range of `length` bytes from `offset` on.
    pub const fn new(offset: u64, length: u64) -> Self {
        Span { offset, length }
    }

    /// The range `start..end`.
    pub(crate) const fn between(start: u64, end: u64) -> Self {
        Span { offset: start, length: end - start }
    }

    /// The offset after the last byte, at most 2^64 - 1.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
