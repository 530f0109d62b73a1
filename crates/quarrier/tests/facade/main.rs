//! The facade, as a program that uses it sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod doors;
mod messages;
mod workers;
