//! COPY: rows written for the client, and rows of the client made messages.

mod message;
mod read;
mod write;

pub use message::message;
pub(crate) use read::{Reader, Target};
pub(crate) use write::{BINARY_BEGIN, BINARY_END, begin, row};
