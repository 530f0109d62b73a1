//! The read-only tree of files that a mount of a source shows: one file with the decoded bytes of the
//! source, and, if requested, the files of its file systems.
//!
//! ```text
//!  Named, Opened ──→ Tree ──lookup, attributes, children──→ names, sizes, times
//!                      ├────read───────────────────────────→ all bytes of a range, or a Fault
//!                      └────unread─────────────────────────→ the ranges that could not be read
//! ```
//!
//! The crate `quarrier-mount` connects a [`Tree`] to the kernel.

mod fault;
mod held;
mod name;
mod nodes;
mod tree;
mod unread;

pub use fault::Fault;
pub use name::file_name;
pub use tree::{Attributes, Child, FILE, Listed, NodeKind, ROOT, Tree};
pub use unread::UnreadRanges;
