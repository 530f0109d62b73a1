//! Stored tables: interrupted loads, growth, crashes and damage.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]

mod kit;

mod columns;
mod crash;
mod damage;
mod formats;
mod grown;
mod index;
mod intake;
mod keyed;
mod resume;
