//! Sparse files compared with a map from offset to byte, and tests of their rules.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

mod evict;
mod file;
mod model;
mod store;
mod stored;

// The model test also runs as a unit test, with tiny leaves.
use quarrier_sparse::{Error, Merge, OnConflict, Span, SparseFile};

fn check_inside(_file: &SparseFile) {}
