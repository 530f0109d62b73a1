//! Tests of the facade, from the view of a program that uses it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

#[path = "../../../quarrier-remote/tests/kit/bucket.rs"]
#[allow(dead_code, reason = "shared by the tests of several crates")]
mod bucket;
mod buckets;
mod doors;
mod keyed;
mod lines;
mod live;
mod many;
mod matching;
mod messages;
mod mount;
mod rules;
mod segments;
mod starts;
mod workers;
