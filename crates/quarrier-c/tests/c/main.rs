//! libquarrier from the view of C and C++ programs: the headers, the names, the behaviour.
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod examples;
mod header;
mod install;
mod lab;
mod model;
