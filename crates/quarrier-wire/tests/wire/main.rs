//! The protocols, in front of a toy engine.
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

mod client;
mod hostile;
mod http;
mod protocol;
mod psql;
mod toy;
