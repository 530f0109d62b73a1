//! libquarrier from the view of C and C++ programs: the headers, the names, the behaviour.
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

mod examples;
mod header;
mod install;
mod lab;
mod model;
mod svfsc;
