//! Recovers files from raw bytes.
//!
//! ```text
//!  Source ──→ signatures ──→ candidates ──→ validators ──→ resolve ──→ mend ──→ Carved
//!             (one search)   (offset,       (in parallel,  (overlaps:  (find the rest
//!                             format)        in place)      which file  of broken
//!                                                           owns which  files)
//!                                                           bytes)
//! ```
//!
//! A [`Format`] parses a candidate through a [`View`], as programs for the format do, and returns
//! where the file ends, or the byte at which it breaks. The caller receives the files through
//! [`Keep`]; [`folder::Folder`] is one that writes files and a report.

mod carved;
mod carver;
mod claims;
mod crc32;
pub mod embedded;
mod error;
pub mod folder;
pub mod format;
mod inflate;
pub mod mend;
pub mod own;
mod unpack;
mod view;

pub use carved::{Carved, Status};
pub use carver::{
    Alignment, Allowance, BrokenFile, Carver, EarlierResults, JudgedRange, JudgedStrides, Keep,
    Midway, SkimmedRange, Skimming, Stride, Summary,
};
pub use claims::Claims;
pub use error::{Error, Result};
pub use format::{Format, Kind, Signature, Verdict};
pub use mend::Broken;
pub use view::{Extent, TAKE_BYTES_MAX, View};
