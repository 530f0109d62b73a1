//! Clusters of processes on this machine against one process.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]
#![allow(clippy::print_stdout, reason = "long runs print what they measure")]

mod answers;
#[path = "../../../quarrier-remote/tests/kit/bucket.rs"]
#[allow(dead_code, reason = "shared by the tests of several crates")]
mod bucket;
mod carved;
mod drawn;
mod encrypted;
mod found;
mod killed;
mod lab;
mod messages;
mod orders;
mod queried;
mod refused;
mod resumed;
mod secrets;
mod segments;
mod tpch;
