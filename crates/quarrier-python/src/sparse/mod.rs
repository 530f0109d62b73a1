//! Sparse files and stores of them.
//!
//! ```text
//!  file   ─→ held   a file of its own or of a store, and how its lock is taken
//!  bulk   ─→ arrays, of offsets and lengths in, of numpy out
//!  ahead            the fetches of a reader
//!  number, list     integers in, lists of tuples out, as fast as the interpreter allows
//! ```

mod ahead;
mod arrays;
mod bulk;
mod cost;
mod file;
mod held;
mod list;
mod memory;
mod number;
mod store;

pub(crate) use ahead::ReadAhead;
pub(crate) use cost::CostModel;
pub(crate) use file::SparseFile;
pub(crate) use number::Number;
pub(crate) use store::SparseStore;

/// From this size on, a copy is worth releasing the interpreter's lock for.
const COPY_BYTES_MIN: usize = 64 << 10;
