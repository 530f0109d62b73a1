//! COPY: writes rows for the client, and converts the client's rows to messages.

mod cell;
mod digits;
mod direct;
mod fields;
mod message;
mod read;
#[cfg(test)]
mod twin;
mod write;

pub use message::message;
pub(crate) use read::{Reader, Target};
pub(crate) use write::{BINARY_BEGIN, BINARY_END, begin, row};
