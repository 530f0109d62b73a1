//! Ranges of a file.

/// So many bytes from an offset on: a block that is held, or a range that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The offset of the first byte, from the file's start.
    pub offset: u64,
    /// In bytes.
    pub length: u64,
}

impl Span {
    /// So many bytes from `offset` on.
    pub const fn new(offset: u64, length: u64) -> Self {
        Span { offset, length }
    }

    /// The bytes from `start` to before `end`.
    pub(crate) const fn between(start: u64, end: u64) -> Self {
        Span { offset: start, length: end - start }
    }

    /// The offset after the last byte, at most 2^64 - 1.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
