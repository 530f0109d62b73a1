//! COPY: rows written for the client, and rows of the client made messages.

mod read;
mod write;

pub(crate) use read::Reader;
pub(crate) use write::{BINARY_END, begin, row};
