//! Bytes that arrive in order: standard input, and decompressed sources.

use std::io::{self, Read};
use std::sync::Mutex;

use quarrier_core::sync::lock;

use super::claims::Claims;
use super::cut::{Block, Cutter};
use crate::frame::Reader;
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
    cutter: Cutter,
    is_over: bool,
}

impl<'r> Stream<'r> {
    pub(crate) fn new(
        name: &'r str,
        reader: &'r mut (dyn Read + Send),
        message_bytes_max: usize,
        (packing, block_bytes_max): (Packing, u64),
    ) -> Self {
        let state = State { reader, rest: Vec::new(), cutter: Cutter::default(), is_over: false };
        let claims = Claims::new(0..u64::MAX, 1, packing, block_bytes_max);
        Stream { name, state: Mutex::new(state), message_bytes_max, claims }
    }

    /// Returns the stream for a reader that begins at `offset`, where a message starts. The format
    /// was opened before.
    pub(crate) fn beginning_at(self, offset: u64) -> Self {
        lock(&self.state).cutter = Cutter::beginning_at(offset);
        self
    }

    /// Returns the number of bytes handed out.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.state).cutter.offset()
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
            let State { cutter, rest, is_over, .. } = &mut *state;
            let how = (reader, self.message_bytes_max);
            if let Some(block) = cutter.cut(how, (bytes, *is_over), rest) {
                return Ok(Some(block));
            }
            wanted = 2 * bytes.len() as u64;
        }
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
                    state.cutter.offset()
                ),
            },
            _ => quarrier_core::Error::io(self.name, "read", error).into(),
        }
    }
}
