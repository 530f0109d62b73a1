//! PostgreSQL's protocol, version 3.0. Functions here never wait, and never trust a length.
//!
//! `pgwire`'s decoder panics on messages that are too short. A guard in front of it would have to
//! parse every message completely, which is everything that this decoder does.

mod read;
mod startup;
mod write;

pub use read::{Bound, Frontend, Named, Target, framed};
pub use startup::{Opening, opening};
pub use write::{Column, MessageBuffer};
