//! One binary for all tests of the crate: a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod cpu;
mod disk;
mod engine;
mod memory;
mod network;
mod readings;
mod statistics;
