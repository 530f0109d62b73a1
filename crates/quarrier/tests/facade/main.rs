//! Tests of the facade, from the view of a program that uses it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

mod doors;
mod keyed;
mod lines;
mod messages;
mod mount;
mod starts;
mod workers;
