//! Cuts bytes that arrive in order into blocks of whole messages.

use memchr::memchr_iter;

use crate::frame::{Chunk, Reader};

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

/// Cuts bytes that arrive in order into blocks.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    /// The offset of the next block.
    offset: u64,
    number: usize,
    is_inside: bool,
}

impl Cutter {
    /// Makes a cutter for bytes from `offset` on, where a message starts.
    pub(super) fn beginning_at(offset: u64) -> Self {
        Cutter { offset, ..Cutter::default() }
    }

    /// Returns the offset where the next block begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Cuts a block from the bytes after the last block: all of them at the end, otherwise up to
    /// the end of a message, or all of them if they belong to one message that is too long. Moves
    /// the bytes after the block to `rest`. `None`, without a change, if more bytes are needed.
    pub(crate) fn cut(
        &mut self,
        (reader, message_bytes_max): (&impl Reader, usize),
        (bytes, is_over): (&mut Vec<u8>, bool),
        rest: &mut Vec<u8>,
    ) -> Option<Block> {
        if bytes.is_empty() {
            return None;
        }
        let start = match self.offset {
            0 => reader.open(bytes, is_over),
            _ => Some(0),
        };
        let end = match start {
            _ if is_over => bytes.len(),
            Some(start) => start + reader.end(&bytes[start..], self.is_inside),
            None => 0,
        };
        if end == 0 && bytes.len() <= message_bytes_max {
            return None;
        }
        let block = Block {
            offset: self.offset,
            number: self.number,
            at: start.unwrap_or(0).min(bytes.len()),
            is_inside: self.is_inside,
            // A block that ends after a message has no unfinished one.
            is_end: is_over || end > 0,
        };
        self.is_inside = end == 0;
        if end > 0 {
            rest.extend_from_slice(&bytes[end..]);
            bytes.truncate(end);
        }
        self.offset += bytes.len() as u64;
        self.number += 1;
        Some(block)
    }
}
