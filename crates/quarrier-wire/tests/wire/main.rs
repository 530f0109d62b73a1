//! The protocols, in front of a toy engine.
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail where it stands")]

mod client;
mod hostile;
mod http;
mod protocol;
mod psql;
mod toy;
