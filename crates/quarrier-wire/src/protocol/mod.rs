//! PostgreSQL's protocol, version 3.0, byte by byte: nothing here waits, or believes a length.
//!
//! A decoder of our own in place of `pgwire`'s: that one panics on messages that are too short, and
//! what stands in front of it to prevent that has to read every message to its end, as this does.

mod read;
mod startup;
mod write;

pub use read::{Bound, Frontend, Named, Target, framed};
pub use startup::{Opening, opening};
pub use write::{Column, Out};
