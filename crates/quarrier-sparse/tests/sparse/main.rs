//! Sparse files against a map from offset to byte, and by their rules one by one.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]

mod evict;
mod file;
mod model;
mod store;
mod stored;

// The model's test is one of the crate's own, too, where it runs with tiny leaves.
use quarrier_sparse::{Error, Merge, OnConflict, Span, SparseFile};

fn check_inside(_file: &SparseFile) {}
