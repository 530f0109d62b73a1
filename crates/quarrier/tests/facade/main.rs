//! The facade, as a program that uses it sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]

mod doors;
mod keyed;
mod lines;
mod messages;
mod starts;
mod workers;
