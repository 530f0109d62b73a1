//! Conditions as strings, tested against the semantics of SQL-92.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

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
mod standing;
mod statements;
mod tables;
mod together;
