//! PostgreSQL's protocol, version 3.0, byte by byte: nothing here waits, or believes a length.
//!
//! A decoder of our own in place of `pgwire`'s, which panics on messages that are too short; a guard in
//! front of it would have to parse every message to its end, which is all that this decoder does.

mod read;
mod startup;
mod write;

pub use read::{Bound, Frontend, Named, Target, framed};
pub use startup::{Opening, opening};
pub use write::{Column, Out};
