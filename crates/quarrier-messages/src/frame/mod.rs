//! Framing: finds where messages start and end in the bytes of a source.
//!
//! A source may be cut anywhere. A message belongs to the chunk in which it starts, and the reader
//! of that chunk gets as many later bytes as the message needs.

mod lines;
pub use lines::{LineFormat, Lines};

mod records;
pub(crate) use records::pass_line_ends;
pub use records::{RecordFormat, Records};

use crate::Fault;
use crate::build::Row;

/// A range of bytes, and the messages that start in it.
#[derive(Debug, Clone)]
pub struct Chunk<'b> {
    /// The bytes of the chunk, and some after it.
    pub bytes: &'b [u8],
    /// The start of the next message, or of the blanks before it.
    pub at: usize,
    /// Messages that start here or later belong to the next chunk.
    pub until: usize,
    /// Whether the source ends with `bytes`.
    pub is_end: bool,
    /// Whether `at` is inside a message that is too long and was rejected. The reader that found
    /// the message sets this if it does not see its end.
    pub is_inside: bool,
    /// The number of lines that started so far, with or without messages.
    pub lines: u64,
}

/// Returns the length of the byte order mark at the start of a source.
pub(crate) fn byte_order_mark(bytes: &[u8]) -> usize {
    let mark = "\u{feff}".as_bytes();
    if bytes.starts_with(mark) { mark.len() } else { 0 }
}

/// The result of a reader at the end of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All messages of the chunk were taken.
    Done,
    /// The message at `at` does not end in the bytes: the reader needs more of them.
    More,
}

/// Receives messages one at a time.
pub trait Taker {
    /// The receiver of the fields.
    type Row: Row;

    /// Takes the fields of the next message.
    fn row(&mut self) -> &mut Self::Row;

    /// Accepts the message, which is complete and has these bytes. It starts at `at` in the chunk's
    /// bytes, after `line` earlier lines of the chunk.
    fn commit(&mut self, message: &[u8], at: usize, line: u64);

    /// Rejects the message, and removes the fields set so far.
    fn reject(&mut self, reject: Rejected<'_>);
}

/// A rejected message.
#[derive(Debug, Clone, Copy)]
pub struct Rejected<'b> {
    /// Its bytes, or the first of them.
    pub bytes: &'b [u8],
    /// The offset of its start in the chunk's bytes.
    pub at: usize,
    /// The number of lines of the chunk that started before its own.
    pub line: u64,
    /// The reason.
    pub fault: Fault,
}

/// Rejects the message at `at` of a chunk, and lets its format forget fields that are gone.
#[cold]
fn reject<T: Taker>(
    (bytes, fault): (&[u8], Fault),
    chunk: &Chunk<'_>,
    taker: &mut T,
    forget: impl FnOnce(),
) {
    taker.reject(Rejected { bytes, at: chunk.at, line: chunk.lines, fault });
    if taker.row().has_lost_fields() {
        forget();
    }
}

/// Finds and parses the messages of a chunk. Each worker has its own.
pub trait Reader: Send {
    /// Whether [`start`](Self::start) finds messages from any offset. If not, the bytes of a source
    /// are divided in order, by [`end`](Self::end).
    fn is_found_anywhere(&self) -> bool {
        true
    }

    /// Whether [`Chunk::lines`] counts line feeds instead of lines that start, because a message
    /// may have several lines, or a part of one.
    fn counts_line_feeds(&self) -> bool {
        false
    }

    /// Examines the first bytes of a source, all of it if `is_end`, before any other call, and
    /// stores what the readers of all workers need, such as a header. Returns the start of the
    /// first message, or of the bytes before it; `None` if it needs more bytes.
    fn open(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let _ = is_end;
        Some(byte_order_mark(bytes))
    }

    /// Returns the start of the first message after `from`, which may be any offset; `None` if none
    /// is found in `bytes`.
    fn start(&self, bytes: &[u8], from: usize) -> Option<usize>;

    /// Returns a probable start of a message, in a format whose messages cannot be found from any
    /// offset. Messages read from there count only if a message before turns out to end there.
    /// `None` if there is none, or if the format does not guess.
    fn guess(&self, bytes: &[u8]) -> Option<usize> {
        let _ = bytes;
        None
    }

    /// Returns the end of the last whole message of `bytes`, which start with a message, or inside
    /// one that is too long; 0 if none ends there.
    fn end(&self, bytes: &[u8], is_inside: bool) -> usize;

    /// Parses all messages that start before `until`, and moves `at` past them.
    fn read<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> Step;
}
