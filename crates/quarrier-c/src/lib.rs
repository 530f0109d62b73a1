//! quarrier for C and C++: `libquarrier` with `quarrier.h` (C11), and `quarrier.hpp` (C++17) on top of
//! it.
//!
//! ```text
//!  quarrier.hpp ─→ quarrier.h ─→ functions quarrier_… ─→ guard: no panic leaves, an error is handed out
//!  classes, exceptions            input: pointers checked      └─→ facade, sparse files
//! ```
//!
//! The doc comments of public items become the header, which `cbindgen` generates, so they address C
//! programmers. The contract of all pointers is stated once, at the head of the header.
#![allow(
    clippy::missing_safety_doc,
    reason = "the start of the header states the contract of all pointers"
)]

mod carve;
mod error;
mod filter;
mod guard;
mod host;
mod input;
mod report;
mod search;
mod shared;
mod source;
mod span;
mod sparse;
mod stop;
mod table;
mod text;
mod version;

pub use carve::*;
pub use error::*;
pub use filter::*;
pub use report::*;
pub use search::*;
pub use shared::*;
pub use source::*;
pub use span::Span;
pub use sparse::*;
pub use stop::*;
pub use table::*;
pub use version::quarrier_version;
