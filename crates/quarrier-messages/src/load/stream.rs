//! Bytes that arrive in order: standard input, and decompressed sources.

use std::io::{self, Read};
use std::sync::Mutex;

use memchr::memchr_iter;
use quarrier_core::sync::lock;

use super::claims::Claims;
use crate::frame::{Chunk, Reader};
use crate::{Error, Packing, Result};

/// A stream from which workers take blocks of whole messages. A worker reads the block that it
/// takes: while it decompresses, the others parse.
pub(crate) struct Stream<'r> {
    name: &'r str,
    state: Mutex<State<'r>>,
    message_bytes_max: usize,
    /// Determines the length of blocks.
    claims: Claims,
}

struct State<'r> {
    reader: &'r mut (dyn Read + Send),
    /// Bytes of the next block that were already read.
    rest: Vec<u8>,
    offset: u64,
    number: usize,
    /// The offset of the next block's first message.
    start: usize,
    is_inside: bool,
    is_over: bool,
}

/// The position of a block in the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) offset: u64,
    pub(crate) number: usize,
    /// The offset of its first message.
    at: usize,
    is_inside: bool,
    is_end: bool,
}

impl Block {
    /// Makes the first block of a stream, whose first message is at `at`, or a block that consists
    /// of whole messages.
    pub(crate) fn whole(offset: u64, at: usize) -> Self {
        Block { offset, number: 0, at, is_inside: false, is_end: true }
    }

    /// Returns the offset of its first message.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the block in the form that readers process.
    pub(crate) fn chunk<'b>(&self, bytes: &'b [u8]) -> Chunk<'b> {
        let Block { at, is_inside, is_end, .. } = *self;
        let lines = memchr_iter(b'\n', &bytes[..at]).count() as u64;
        Chunk { bytes, at, until: bytes.len(), is_end, is_inside, lines }
    }
}

impl<'r> Stream<'r> {
    pub(crate) fn new(
        name: &'r str,
        reader: &'r mut (dyn Read + Send),
        message_bytes_max: usize,
        (packing, block_bytes_max): (Packing, u64),
    ) -> Self {
        let state = State {
            reader,
            rest: Vec::new(),
            offset: 0,
            number: 0,
            start: 0,
            is_inside: false,
            is_over: false,
        };
        let claims = Claims::new(u64::MAX, 1, packing, block_bytes_max);
        Stream { name, state: Mutex::new(state), message_bytes_max, claims }
    }

    /// Returns the stream for a reader that begins at `offset`, where a message starts. The format
    /// was opened before.
    pub(crate) fn beginning_at(self, offset: u64) -> Self {
        lock(&self.state).offset = offset;
        self
    }

    /// Returns the number of bytes handed out.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.state).offset
    }

    /// Records the number of messages in `bytes` bytes.
    pub(crate) fn learn(&self, bytes: u64, messages: u64) {
        self.claims.learn(bytes, messages);
    }

    /// Reads the next block into `bytes`; `None` at the end.
    pub(crate) fn next(&self, reader: &impl Reader, bytes: &mut Vec<u8>) -> Result<Option<Block>> {
        let mut state = lock(&self.state);
        bytes.clear();
        bytes.append(&mut state.rest);
        let mut wanted = self.claims.wanted_bytes();
        loop {
            let missing = wanted.saturating_sub(bytes.len() as u64);
            if !state.is_over {
                let read = (&mut *state.reader).take(missing).read_to_end(bytes);
                let read = read.inspect_err(|_| state.is_over = true);
                let read = read.map_err(|error| self.error(&state, error))?;
                state.is_over = (read as u64) < missing;
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            let start = match state.offset {
                0 => reader.open(bytes, state.is_over),
                _ => Some(0),
            };
            let end = match start {
                _ if state.is_over => bytes.len(),
                Some(start) => start + reader.end(&bytes[start..], state.is_inside),
                None => 0,
            };
            state.start = start.unwrap_or(0);
            if end > 0 || bytes.len() > self.message_bytes_max {
                return Ok(Some(self.cut(&mut state, bytes, end)));
            }
            wanted = 2 * bytes.len() as u64;
        }
    }

    /// Hands out the bytes up to `end`, or all of them if they belong to one message that is too
    /// long.
    fn cut(&self, state: &mut State<'_>, bytes: &mut Vec<u8>, end: usize) -> Block {
        let block = Block {
            offset: state.offset,
            number: state.number,
            at: state.start.min(bytes.len()),
            is_inside: state.is_inside,
            // A block that ends after a message has no unfinished one.
            is_end: state.is_over || end > 0,
        };
        state.is_inside = end == 0;
        if end > 0 {
            state.rest.extend_from_slice(&bytes[end..]);
            bytes.truncate(end);
        }
        state.offset += bytes.len() as u64;
        state.number += 1;
        block
    }

    fn error(&self, state: &State<'_>, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::Other => Error::Compressed {
                source_name: self.name.to_string(),
                reason: format!(
                    "compressed bytes are damaged or cut off after {} decompressed bytes: {error}",
                    state.offset
                ),
            },
            _ => quarrier_core::Error::io(self.name, "read", error).into(),
        }
    }
}
