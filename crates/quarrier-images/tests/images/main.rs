//! Images of every format, written by tools and by code, compared with their contents.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]
#![allow(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]

mod aff4;
mod ewf;
mod kept;
mod lab;
mod packed;
mod qemu;
mod reads;
mod unpacked;
mod written;
