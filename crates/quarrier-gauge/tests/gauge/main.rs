//! One binary for all tests of the crate: a module for each subject.

#![allow(clippy::unwrap_used, reason = "a test")]

mod statistics;
mod trial;
