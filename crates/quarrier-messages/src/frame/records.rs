//! Formats whose messages determine their own ends.

use memchr::{memchr, memchr_iter};

use super::{Chunk, Reader, Step, Taker, byte_order_mark, reject};
use crate::Fault;
use crate::build::Row;

/// A format whose messages may span lines or share one.
pub trait RecordFormat: Send {
    /// Whether [`start`](Self::start) finds messages from any offset.
    fn is_found_anywhere(&self) -> bool;

    /// Examines the first bytes of a source before any other call for it; see [`Reader::open`].
    fn open(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let _ = is_end;
        Some(byte_order_mark(bytes))
    }

    /// Begins a chunk.
    fn begin(&mut self) {}

    /// See [`Reader::guess`].
    fn guess(&self, bytes: &[u8]) -> Option<usize> {
        let _ = bytes;
        None
    }

    /// See [`Reader::start`].
    fn start(&self, bytes: &[u8], from: usize) -> Option<usize>;

    /// Returns the end of the item at the start of `bytes`, a message or not; more than 0. `None`
    /// if more bytes are needed; with `is_last` there are none.
    fn extent(&self, bytes: &[u8], is_last: bool) -> Option<usize>;

    /// Whether bytes between messages are ignorable: neither a message nor a reject.
    fn is_nothing(&self, record: &[u8]) -> bool {
        let _ = record;
        false
    }

    /// Parses messages from `at` on the fast path as long as it can. Stops before one that
    /// [`message`](Self::message) has to parse; some fields of the row may have been set.
    fn messages<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) {
        let _ = (chunk, taker);
    }

    /// Parses a message.
    ///
    /// # Errors
    /// Why the message is rejected; some fields of the row may have been set.
    fn message(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault>;

    /// Forgets fields that were looked up, but those of accepted messages; see [`Row::has_lost_fields`].
    fn forget(&mut self);
}

/// Reads messages of a format. Skips line ends between them.
#[derive(Debug)]
pub struct Records<F> {
    format: F,
    message_bytes_max: usize,
}

impl<F: RecordFormat> Records<F> {
    /// Makes a reader of messages of `format`, of at most `message_bytes_max` bytes.
    pub fn new(format: F, message_bytes_max: usize) -> Self {
        Records { format, message_bytes_max }
    }

    /// Parses the message at `at`. Returns false if it does not end within the bytes.
    #[inline]
    fn message<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        let rest = &chunk.bytes[chunk.at..];
        let end = match self.format.extent(rest, chunk.is_end) {
            Some(end) if end <= self.message_bytes_max => end,
            Some(_) => return self.too_long(chunk, taker),
            None if rest.len() > self.message_bytes_max => return self.too_long(chunk, taker),
            None => return false,
        };
        let message = without_line_end(&rest[..end]);
        if !self.format.is_nothing(message) {
            match self.format.message(message, taker.row()) {
                Ok(()) => taker.commit(message, chunk.at, chunk.lines),
                Err(fault) => reject((message, fault), chunk, taker, || self.format.forget()),
            }
        }
        chunk.lines += memchr_iter(b'\n', &rest[..end]).count() as u64;
        chunk.at += end;
        true
    }

    /// Rejects the message at `at`, which is too long, and skips the rest of its line.
    #[cold]
    fn too_long<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        let fault = Fault::new(self.message_bytes_max, "longer than the maximum message length");
        let bytes = &chunk.bytes[chunk.at..chunk.at + self.message_bytes_max];
        reject((bytes, fault), chunk, taker, || self.format.forget());
        pass(chunk);
        true
    }
}

fn without_line_end(record: &[u8]) -> &[u8] {
    let mut record = record;
    while let [rest @ .., b'\n' | b'\r'] = record {
        record = rest;
    }
    record
}

/// Skips the rest of a line.
fn pass(chunk: &mut Chunk<'_>) {
    let until = chunk.until.min(chunk.bytes.len());
    let end = memchr(b'\n', &chunk.bytes[chunk.at.min(until)..until]);
    chunk.is_inside = end.is_none();
    chunk.lines += u64::from(end.is_some());
    chunk.at = end.map_or(until.max(chunk.at), |end| chunk.at + end + 1);
}

/// Skips line ends. The one after a message is skipped with the message, whichever chunk it is in.
#[inline]
pub(crate) fn pass_line_ends(chunk: &mut Chunk<'_>) {
    while let Some(byte) = chunk.bytes.get(chunk.at)
        && matches!(byte, b'\r' | b'\n')
        && (chunk.at < chunk.until || chunk.at > 0 && chunk.bytes[chunk.at - 1] != b'\n')
    {
        chunk.lines += u64::from(*byte == b'\n');
        chunk.at += 1;
    }
}

impl<F: RecordFormat> Reader for Records<F> {
    fn is_found_anywhere(&self) -> bool {
        self.format.is_found_anywhere()
    }

    fn counts_line_feeds(&self) -> bool {
        true
    }

    fn open(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        self.format.open(bytes, is_end)
    }

    fn start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        self.format.start(bytes, from)
    }

    fn guess(&self, bytes: &[u8]) -> Option<usize> {
        self.format.guess(bytes)
    }

    fn end(&self, bytes: &[u8], is_inside: bool) -> usize {
        let mut end = 0;
        if is_inside {
            match memchr(b'\n', bytes) {
                Some(line) => end = line + 1,
                None => return 0,
            }
        }
        loop {
            let blanks =
                bytes[end..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let Some(extent) = self.format.extent(&bytes[end + blanks..], false) else {
                return end;
            };
            end += blanks + extent;
        }
    }

    fn read<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> Step {
        self.format.begin();
        if chunk.is_inside {
            pass(chunk);
        }
        loop {
            self.format.messages(chunk, taker);
            pass_line_ends(chunk);
            if chunk.at >= chunk.until.min(chunk.bytes.len()) {
                return Step::Done;
            }
            if !self.message(chunk, taker) {
                return Step::More;
            }
        }
    }
}
