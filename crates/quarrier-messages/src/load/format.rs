//! The formats that are read message by message.

use crate::Limits;
use crate::format::json::JsonParser;
use crate::frame::{Chunk, Lines, Reader, Step, Taker};

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// JSON, a message a line.
    Json,
}

/// A worker's reader of any format.
#[derive(Debug)]
pub enum FormatReader {
    /// JSON.
    Json(Lines<JsonParser>),
}

impl FormatReader {
    /// A reader that knows nothing yet.
    pub fn new(format: Format, limits: &Limits) -> Self {
        match format {
            Format::Json => {
                FormatReader::Json(Lines::new(JsonParser::new(limits), limits.message_bytes_max))
            }
        }
    }
}

impl Reader for FormatReader {
    fn start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        match self {
            FormatReader::Json(reader) => reader.start(bytes, from),
        }
    }

    fn end(&self, bytes: &[u8]) -> usize {
        match self {
            FormatReader::Json(reader) => reader.end(bytes),
        }
    }

    fn read<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> Step {
        match self {
            FormatReader::Json(reader) => reader.read(chunk, taker),
        }
    }
}
