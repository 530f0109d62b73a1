//! COPY: writes rows for the client, and converts the client's rows to messages.

mod message;
mod read;
mod write;

pub use message::message;
pub(crate) use read::{Reader, Target};
pub(crate) use write::{BINARY_BEGIN, BINARY_END, begin, row};
