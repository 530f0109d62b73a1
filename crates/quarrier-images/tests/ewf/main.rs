//! Images made by code, damaged in every way, and images with known answers.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]
#![allow(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]

mod damage;
mod images;
mod known;
mod writer;
