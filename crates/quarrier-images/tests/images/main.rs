//! Images of every format, written by tools and by code, compared with their contents.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod aff4;
mod ewf;
mod kept;
mod lab;
mod packed;
mod qemu;
mod written;
