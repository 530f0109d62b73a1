//! Images made by code, damaged in every way, and images with known answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod damage;
mod images;
mod known;
mod writer;
