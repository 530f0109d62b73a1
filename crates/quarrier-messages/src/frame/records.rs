//! Messages that say themselves where they end.

use memchr::{memchr, memchr_iter};

use super::{Chunk, Reader, Rejected, Step, Taker, byte_order_mark};
use crate::Fault;
use crate::build::Row;

/// A format whose messages may span lines, or share one.
pub trait RecordFormat: Send {
    /// Whether messages can be found from any place, by [`start`](Self::start).
    fn is_found_anywhere(&self) -> bool;

    /// Sees the first bytes of a source, before anything else is asked about it; see
    /// [`Reader::open`].
    fn open(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let _ = is_end;
        Some(byte_order_mark(bytes))
    }

    /// A chunk begins; `row` is going to take its messages.
    fn begin(&mut self, row: &mut impl Row) {
        let _ = row;
    }

    /// See [`Reader::guess`].
    fn guess(&self, bytes: &[u8]) -> Option<usize> {
        let _ = bytes;
        None
    }

    /// See [`Reader::start`].
    fn start(&self, bytes: &[u8], from: usize) -> Option<usize>;

    /// The end of the item at the start of `bytes`, a message or not; more than 0. `None` if more bytes
    /// are needed; with `is_last` there are none.
    fn extent(&self, bytes: &[u8], is_last: bool) -> Option<usize>;

    /// Whether the bytes between messages are ignorable, neither a message nor a reject.
    fn is_nothing(&self, record: &[u8]) -> bool {
        let _ = record;
        false
    }

    /// Parses messages from `at` on the fast way, while it can. Stops before one that has to be
    /// looked at by [`message`](Self::message); the row may have been set in part.
    fn messages<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) {
        let _ = (chunk, taker);
    }

    /// Parses a message.
    ///
    /// # Errors
    /// Why it is rejected; the row may have been set in part.
    fn message(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault>;
}

/// Reads messages of a format. Ends of lines between them are not part of them.
#[derive(Debug)]
pub struct Records<F> {
    format: F,
    message_bytes_max: usize,
}

impl<F: RecordFormat> Records<F> {
    /// Messages of `format`, of at most `message_bytes_max` bytes.
    pub fn new(format: F, message_bytes_max: usize) -> Self {
        Records { format, message_bytes_max }
    }

    /// The message at `at`, False where it does not end in the bytes.
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
                Ok(()) => taker.commit(message),
                Err(fault) => taker.reject(Rejected {
                    bytes: message,
                    at: chunk.at,
                    line: chunk.lines,
                    fault,
                }),
            }
        }
        chunk.lines += memchr_iter(b'\n', &rest[..end]).count() as u64;
        chunk.at += end;
        true
    }

    /// The message at `at` is longer than a message may be: the rest of its line is passed over.
    #[cold]
    fn too_long<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        let fault = Fault::new(self.message_bytes_max, "longer than a message may be");
        let bytes = &chunk.bytes[chunk.at..chunk.at + self.message_bytes_max];
        taker.reject(Rejected { bytes, at: chunk.at, line: chunk.lines, fault });
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

/// Passes over the rest of a line.
fn pass(chunk: &mut Chunk<'_>) {
    let until = chunk.until.min(chunk.bytes.len());
    let end = memchr(b'\n', &chunk.bytes[chunk.at.min(until)..until]);
    chunk.is_inside = end.is_none();
    chunk.lines += u64::from(end.is_some());
    chunk.at = end.map_or(until.max(chunk.at), |end| chunk.at + end + 1);
}

/// Passes over the ends of lines; over that of a message's line with the message, whoever's it is.
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
        self.format.begin(taker.row());
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
