//! Turns a block of a source into the messages of a batch.

use super::definition::{Checker, Judge};
use super::encoding::is_apart;
use super::observe::{Both, FieldPairs, Nobody, ObserverWorker, Watched};
use crate::Fault;
use crate::frame::{Reader, Rejected, Taker};
use crate::load::Block;
use crate::log::Encoding;
use crate::{Format, FormatReader, Limits, Opening};

/// The contents of a block.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// The messages as they go into the log; empty if the block has none.
    pub(super) payload: Vec<u8>,
    pub(super) messages: u32,
    /// Number of lines that start in the block.
    pub(super) lines: u64,
    /// Rejected messages, up to [`Limits::rejects_max`](crate::Limits::rejects_max).
    pub(super) rejects: Vec<BlockReject>,
    pub(super) rejected: u64,
}

/// A rejected message.
#[derive(Debug)]
pub(super) struct BlockReject {
    /// Its offset in the block.
    pub(super) at: u64,
    /// The number of lines of the block that start before its own.
    pub(super) line: u64,
    pub(super) fault: Fault,
    pub(super) bytes: Box<[u8]>,
}

/// Parses the messages of a block and rejects those to which a checker objects. If the whole block consists
/// of messages, its bytes are the payload; otherwise the messages are extracted, one per line. `header`
/// precedes them.
pub(super) fn checked_by(
    checker: Option<&mut Checker<'_>>,
    reader: &mut FormatReader,
    block: (&Block, Vec<u8>),
    how: (Encoding, &[u8]),
    limits: &Limits,
) -> Checked {
    match checker {
        Some(checker) => judged(checker, reader, block, how, limits),
        None => judged(&mut Nobody, reader, block, how, limits),
    }
}

/// Like `checked_by`, and passes the messages to an observer.
pub(super) fn observed<W: ObserverWorker>(
    (checker, fields): (Option<&mut Checker<'_>>, &mut FieldPairs),
    worker: &mut W,
    reader: &mut FormatReader,
    block: (&Block, Vec<u8>),
    how: (Encoding, &[u8]),
    limits: &Limits,
) -> Checked {
    match checker {
        Some(judge) => judged(&mut Both { judge, worker, fields }, reader, block, how, limits),
        None => judged(&mut Watched(worker), reader, block, how, limits),
    }
}

/// Like `checked_by`, but accepts every message that parses.
pub(super) fn checked(
    reader: &mut FormatReader,
    block: (&Block, Vec<u8>),
    how: (Encoding, &[u8]),
    limits: &Limits,
) -> Checked {
    judged(&mut Nobody, reader, block, how, limits)
}

/// Extracts the messages of a batch that are selected by their numbers in it, one per line after the header.
pub(super) fn picked(
    (format, header): (&Format, &[u8]),
    bytes: &[u8],
    is_wanted: impl Fn(usize) -> bool,
) -> Vec<u8> {
    let (limits, opening) = (Limits::default(), Opening::default());
    let mut reader = FormatReader::new(format, &limits, &opening);
    let first = reader.open(bytes, true).unwrap_or(0).min(bytes.len());
    let mut picker = Picker { nothing: Nobody, is_wanted, number: 0, payload: header.to_vec() };
    reader.read(&mut Block::whole(0, first).chunk(bytes), &mut picker);
    picker.payload
}

fn judged<J: Judge>(
    judge: &mut J,
    reader: &mut FormatReader,
    (block, mut bytes): (&Block, Vec<u8>),
    (encoding, header): (Encoding, &[u8]),
    limits: &Limits,
) -> Checked {
    let mut counted = Counter::new(&mut *judge, &bytes, limits);
    let mut chunk = block.chunk(&bytes);
    reader.read(&mut chunk, &mut counted);
    let lines = chunk.lines;
    let Counter { messages, rejects, rejected, .. } = counted;
    let mut payload = if messages == 0 {
        Vec::new()
    } else if rejected > 0 || is_apart(encoding) {
        let mut joined = Joiner { judge, payload: header.to_vec() };
        reader.read(&mut block.chunk(&bytes), &mut joined);
        joined.payload
    } else {
        drop(bytes.splice(..block.at(), header.iter().copied()));
        bytes
    };
    if payload.last().is_some_and(|last| *last != b'\n') {
        // Ensure that the next batch in the log begins a line.
        payload.push(b'\n');
    }
    Checked { payload, messages, lines, rejects, rejected }
}

/// Counts messages.
struct Counter<'b, J> {
    judge: &'b mut J,
    bytes: &'b [u8],
    messages: u32,
    rejects: Vec<BlockReject>,
    rejected: u64,
    kept_max: usize,
    bytes_max: usize,
}

impl<'b, J: Judge> Counter<'b, J> {
    fn new(judge: &'b mut J, bytes: &'b [u8], limits: &Limits) -> Self {
        Counter {
            judge,
            bytes,
            messages: 0,
            rejects: Vec::new(),
            rejected: 0,
            kept_max: limits.rejects_max,
            bytes_max: limits.reject_bytes_max,
        }
    }

    #[cold]
    fn leave_out(&mut self, reject: Rejected<'_>) {
        self.rejected += 1;
        if self.rejects.len() < self.kept_max {
            let bytes = &reject.bytes[..reject.bytes.len().min(self.bytes_max)];
            let (at, line, fault) = (reject.at as u64, reject.line, reject.fault);
            self.rejects.push(BlockReject { at, line, fault, bytes: bytes.into() });
        }
    }

    /// Rejects a message that parses.
    #[cold]
    fn refuse(&mut self, message: &[u8], what: &'static str) {
        // The message is a slice of the block, so the difference of the addresses is its offset there.
        let at = (message.as_ptr() as usize).saturating_sub(self.bytes.as_ptr() as usize);
        let before = self.bytes.get(..at).unwrap_or_default();
        let line = match self.rejects.len() < self.kept_max {
            true => memchr::memchr_iter(b'\n', before).count() as u64,
            false => 0,
        };
        self.leave_out(Rejected { bytes: message, at, line, fault: Fault::new(0, what) });
    }
}

impl<J: Judge> Taker for Counter<'_, J> {
    type Row = J;

    #[inline(always)]
    fn row(&mut self) -> &mut J {
        self.judge
    }

    #[inline(always)]
    fn commit(&mut self, message: &[u8], _at: usize, _line: u64) {
        match self.judge.verdict() {
            None => {
                self.messages += 1;
                self.judge.accepted(message);
            }
            Some(what) => {
                self.judge.discarded();
                self.refuse(message, what);
            }
        }
    }

    #[cold]
    fn reject(&mut self, reject: Rejected<'_>) {
        self.judge.verdict();
        self.judge.discarded();
        self.leave_out(reject);
    }
}

/// Concatenates messages, one per line.
struct Joiner<'j, J> {
    judge: &'j mut J,
    payload: Vec<u8>,
}

impl<J: Judge> Taker for Joiner<'_, J> {
    type Row = J;

    fn row(&mut self) -> &mut J {
        self.judge
    }

    fn commit(&mut self, message: &[u8], _at: usize, _line: u64) {
        if self.judge.verdict().is_none() {
            self.payload.extend_from_slice(message);
            self.payload.push(b'\n');
        }
        self.judge.discarded();
    }

    fn reject(&mut self, _reject: Rejected<'_>) {
        self.judge.verdict();
        self.judge.discarded();
    }
}

/// Concatenates the messages whose numbers are selected.
struct Picker<W> {
    nothing: Nobody,
    is_wanted: W,
    number: usize,
    payload: Vec<u8>,
}

impl<W: Fn(usize) -> bool> Taker for Picker<W> {
    type Row = Nobody;

    fn row(&mut self) -> &mut Nobody {
        &mut self.nothing
    }

    fn commit(&mut self, message: &[u8], _at: usize, _line: u64) {
        if (self.is_wanted)(self.number) {
            self.payload.extend_from_slice(message);
            // The last message of a batch may lack a newline.
            if !message.ends_with(b"\n") {
                self.payload.push(b'\n');
            }
        }
        self.number += 1;
    }

    fn reject(&mut self, _reject: Rejected<'_>) {}
}
