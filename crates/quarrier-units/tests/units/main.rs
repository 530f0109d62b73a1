//! Units against one plain search of the same bytes.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

#[path = "../../../quarrier-remote/tests/kit/bucket.rs"]
#[allow(dead_code, reason = "shared by the tests of several crates")]
mod bucket;
mod lab;

mod buckets;
mod hostile;
mod joined;
mod objects;
mod seams;
mod spread;
mod versions;
