//! Tests of the facade, from the view of a program that uses it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]

mod doors;
mod keyed;
mod messages;
mod starts;
mod workers;
