//! Compressed files as sources with random access.
//!
//! ```text
//!  offset ──→ span ──→ held? ──→ its bytes
//!                       └ no ──→ unpacked by the first reader; the readers that wait for it unpack the next ones
//! ```
//!
//! A span is an independently decompressible unit: a block of xz or bzip2, a frame of Zstandard, or the
//! bytes between two points of an index that is built when gzip is opened. A file with a span that is too
//! long is `sequential`; `unpacked` reads it at any offset nevertheless.

mod bzip2;
mod gzip;
mod in_order;
mod kept;
mod sequential;
mod spans;
mod unpacked;
mod xz;
mod zstd;

use std::sync::Arc;

use quarrier_core::Result;
use quarrier_core::source::Source;

use crate::around::Around;
use crate::kind::Kind;

pub use sequential::Sequential;

/// An opened compressed file.
pub(crate) enum Packed {
    /// Random access to its bytes, and a notice to show.
    Anywhere(Arc<dyn Source>, Option<String>),
    /// Sequential access to its bytes.
    InOrder(Sequential),
}

/// Opens a file with the compression `kind`.
///
/// # Errors
/// If it is damaged before its first byte, cannot be read, or was cancelled.
pub(crate) fn open(kind: Kind, file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Packed> {
    match kind {
        Kind::Bzip2 => bzip2::open(file, around),
        Kind::Xz => xz::open(file, around),
        Kind::Zstd => zstd::open(file, around),
        _ => gzip::open(file, around),
    }
}
