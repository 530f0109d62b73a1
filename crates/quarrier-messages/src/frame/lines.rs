//! Formats with a message per line.

use memchr::{memchr, memrchr};

use super::{Chunk, Reader, Step, Taker, reject};
use crate::Fault;
use crate::build::Row;

/// A format in which a line is a message.
pub trait LineFormat: Send {
    /// Parses the line at the start of `text`, which ends at `end`, before a line feed or the end
    /// of the text.
    ///
    /// # Errors
    /// Why the message is rejected; some fields of the row may have been set.
    fn line(&mut self, text: &[u8], end: usize, row: &mut impl Row) -> Result<(), Fault>;

    /// Parses lines on the fast path as long as it can; returns whether the chunk is done. Stops
    /// before a line that [`line`](Self::line) has to parse; some fields of the row may have been
    /// set.
    fn lines<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        let _ = taker;
        chunk.at >= chunk.until
    }

    /// Forgets fields that were looked up, but those of accepted messages; see [`Row::has_lost_fields`].
    fn forget(&mut self);
}

/// Reads lines of a format. Blank lines are not messages.
#[derive(Debug)]
pub struct Lines<F> {
    format: F,
    message_bytes_max: usize,
}

impl<F: LineFormat> Lines<F> {
    /// Makes a reader of lines of `format`, of at most `message_bytes_max` bytes.
    pub fn new(format: F, message_bytes_max: usize) -> Self {
        Lines { format, message_bytes_max }
    }

    /// Parses the line at `at` on the slow path. Returns false if it does not end within the bytes.
    #[inline(never)]
    fn line<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        let text = &chunk.bytes[chunk.at..];
        let seen = &text[..text.len().min(self.message_bytes_max + 1)];
        let end = match memchr(b'\n', seen) {
            Some(end) => end,
            None if seen.len() > self.message_bytes_max => return self.too_long(chunk, taker),
            None if chunk.is_end => text.len(),
            None => return false,
        };
        let line = &text[..end];
        if !line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            match self.format.line(text, end, taker.row()) {
                Ok(()) => taker.commit(line, chunk.at, chunk.lines),
                Err(fault) => reject((line, fault), chunk, taker, || self.format.forget()),
            }
        }
        chunk.lines += 1;
        chunk.at += (end + 1).min(text.len());
        true
    }

    /// Rejects the line at `at`, which is longer than a message may be.
    #[cold]
    fn too_long<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        let fault =
            Fault { at: self.message_bytes_max, what: "longer than the maximum message length" };
        let bytes = &chunk.bytes[chunk.at..chunk.at + self.message_bytes_max];
        reject((bytes, fault), chunk, taker, || self.format.forget());
        chunk.lines += 1;
        pass(chunk);
        true
    }
}

/// Skips the rest of a line. If it ends beyond the chunk, the next line starts beyond it, too.
fn pass(chunk: &mut Chunk<'_>) {
    let until = chunk.until.min(chunk.bytes.len());
    let end = memchr(b'\n', &chunk.bytes[chunk.at..until]);
    chunk.is_inside = end.is_none();
    chunk.at = end.map_or(until, |end| chunk.at + end + 1);
}

impl<F: LineFormat> Reader for Lines<F> {
    fn start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        memchr(b'\n', bytes.get(from..)?).map(|end| from + end + 1)
    }

    fn end(&self, bytes: &[u8], _is_inside: bool) -> usize {
        memrchr(b'\n', bytes).map_or(0, |end| end + 1)
    }

    fn read<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> Step {
        if chunk.is_inside {
            pass(chunk);
        }
        while chunk.at < chunk.until.min(chunk.bytes.len()) {
            if self.format.lines(chunk, taker) {
                break;
            }
            if !self.line(chunk, taker) {
                return Step::More;
            }
        }
        Step::Done
    }
}
