//! Pages and charts as a whole: well-formed and escaped, with any content.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap in a test reports its line"
)]

mod charts;
mod escapes;
mod well_formed;
