//! Sparse files: hold the fetched parts of a large remote file, and know which parts are missing.
//!
//! ```text
//!   need(0, 100) ─→ (0, 40), (60, 40)      ranges to fetch; or merged into fewer requests
//!                        │ fetched by you, or by quarrier-remote
//!                        ▼
//!   write(0, …)  ─→ ┌──────────────────────────────────────────┐
//!   has, read   ←── │ blocks, packed in leaves, in order       │ ─→ evict: the least
//!                   └──────────────────────────────────────────┘    recently used
//! ```
//!
//! No I/O, no dependencies. A [`SparseFile`] is one file; a [`SparseStore`] is many of them, under
//! one memory budget and for many threads.
//!
//! ```
//! use quarrier_sparse::{SparseFile, Span};
//!
//! let mut file = SparseFile::new("https://example.org/big.tif");
//! file.write(0, b"II*\0")?;
//! file.write(8, b"\x0c\0")?;
//! assert_eq!(file.need(0, 10)?, [Span::new(4, 4)]);
//! file.write(4, b"\x08\0\0\0")?;
//! assert_eq!(file.read(2, 8)?, b"*\0\x08\0\0\0\x0c\0");
//! assert_eq!(file.blocks(), [Span::new(0, 10)]);
//! # Ok::<(), quarrier_sparse::Error>(())
//! ```

mod ahead;
mod bytes;
mod checksum;
mod counters;
mod error;
mod evict;
mod file;
mod leaf;
mod map;
mod merge;
#[cfg(test)]
#[path = "../tests/sparse/model.rs"]
#[allow(clippy::unwrap_used, reason = "a test")]
mod model;
mod need_into;
mod span;
mod store;
mod stored;
mod walk;

pub use ahead::ReadAhead;
pub use counters::Counters;
pub use error::{Error, Result};
pub use file::{Builder, OnConflict, SparseFile};
pub use merge::{CostModel, Merge};
pub use span::Span;
pub use store::{Pin, SharedFile, SparseStore};

/// Checks invariants that the model test cannot see from outside.
#[cfg(test)]
fn check_inside(file: &SparseFile) {
    file.map.check();
}
