//! Pages and charts as a whole: well-formed and escaped, with any content.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should say where"
)]

mod charts;
mod escapes;
mod well_formed;
