//! Ranges.

/// A range of a file: length bytes from offset on.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte's offset from the file's start.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
}

impl From<quarrier_sparse::Span> for Span {
    fn from(span: quarrier_sparse::Span) -> Self {
        Span { offset: span.offset, length: span.length }
    }
}

impl From<Span> for quarrier_sparse::Span {
    fn from(span: Span) -> Self {
        quarrier_sparse::Span::new(span.offset, span.length)
    }
}
