//! Conditions as strings, tested against the semantics of SQL-92.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]

mod asked;
mod expressions;
mod features;
mod gpu;
mod groups;
mod hostile;
mod lists;
mod matching;
mod outcomes;
mod probes;
mod refusals;
mod scan;
mod sieve;
mod statements;
mod tables;
