//! Stored tables: interrupted loads, growth, crashes and damage.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

mod kit;

mod columns;
mod copy;
mod crash;
mod damage;
mod formats;
mod grown;
mod index;
mod intake;
mod keyed;
mod resume;
mod retention;
mod shared;
mod tended;
