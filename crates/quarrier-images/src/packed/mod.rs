//! Files that are compressed as a whole, as sources that can be read anywhere.
//!
//! ```text
//!  offset ──→ span ──→ held? ──→ its bytes
//!                       └ no ──→ unpacked by the first reader; the readers that wait for it unpack the next ones
//! ```
//!
//! A span is what can be unpacked by itself: a block of xz or bzip2, a frame of Zstandard, the bytes
//! from one point to the next of an index that is built when gzip is opened.

mod bzip2;
mod gzip;
mod in_order;
mod kept;
mod spans;
mod xz;
mod zstd;

use std::io::Read;
use std::sync::Arc;

use quarrier_core::Result;
use quarrier_core::source::Source;

use crate::around::Around;
use crate::kind::Kind;

/// Spans longer than this are not held in memory; a file that has one is read in order only.
const SPAN_BYTES_MAX: u64 = 128 << 20;

/// A compressed file, opened.
pub(crate) enum Packed {
    /// Its bytes, at any offset, and what people should know.
    Anywhere(Arc<dyn Source>, Option<String>),
    /// Its bytes from the start to the end.
    InOrder(Box<dyn Read + Send>),
}

/// Opens a file that is compressed as `kind` says.
///
/// # Errors
/// If it is damaged before its first byte, or cannot be read; where it was given up.
pub(crate) fn open(kind: Kind, file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Packed> {
    match kind {
        Kind::Bzip2 => bzip2::open(file, around),
        Kind::Xz => xz::open(file),
        Kind::Zstd => zstd::open(file, around),
        _ => gzip::open(file, around),
    }
}
