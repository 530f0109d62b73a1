//! Reads a source again after a value did not fit the types inferred from the sample: the meaning of a
//! condition depends on the type of its column over all messages.
//!
//! ```text
//!  sample ─→ conditions bound ─→ run ─→ answer
//!               │ wrong for         │ a value of another type
//!               │ these types       │
//!               └──────────┬────────┘
//!                 types of all fields ─→ conditions bound ─→ run from the start ─→ answer
//! ```
//!
//! The second run does not repeat rows that the first one wrote, but has to find them again.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::{Memory, Source};

use super::drain::Ended;
use super::pass::Bytes;
use super::sample::{Sample, Subject};
use crate::Error;

/// Why a source must be read again.
#[derive(Debug)]
pub(super) struct RereadReason {
    pub(super) said: String,
    /// The rows written before the reread.
    pub(super) printed: Printed,
}

/// A digest of the positions of written messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Printed {
    pub(super) rows: u64,
    digest: u64,
}

impl Printed {
    /// Adds messages at these places after `offset`. Returns how many of them were written `earlier`; `None` if the
    /// messages differ from those written then.
    pub(super) fn add(
        &mut self,
        earlier: &Printed,
        offset: u64,
        spans: &[(u32, u32)],
    ) -> Option<usize> {
        let mut known = 0;
        for &(from, to) in spans {
            let (from, to) = (offset + u64::from(from), offset + u64::from(to));
            let place = from.rotate_left(32) ^ to;
            self.digest = (self.digest.rotate_left(5) ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.rows += 1;
            known += usize::from(self.rows <= earlier.rows);
            if self.rows == earlier.rows && self.digest != earlier.digest {
                return None;
            }
        }
        Some(known)
    }
}

/// Written rows are missing from the answer of the second run.
pub(super) fn differs(name: &str) -> Error {
    let reason = format!(
        "{name}: a column has values of several types, and rows were written before that was \
         known, so the answer is incomplete; `quarrier query`, or -c, reads all messages first"
    );
    Error::Kinds { name: name.to_string(), reason }
}

/// Maximum number of bytes of a stream that are kept for a second read.
const TAPE_BYTES_MAX: usize = 32 << 20;

/// A stream, and the bytes read of it so far.
pub(super) struct Tape<'t> {
    stream: Box<dyn Read + Send + 't>,
    bytes: Vec<u8>,
    /// Whether `bytes` holds everything read so far.
    is_whole: bool,
    /// The error that ended the stream, if it failed.
    failure: Option<std::io::Error>,
}

impl<'t> Tape<'t> {
    pub(super) fn new(stream: Box<dyn Read + Send + 't>) -> Self {
        Tape { stream, bytes: Vec::new(), is_whole: true, failure: None }
    }

    /// Reads the stream to its end, and returns all bytes.
    fn into_bytes(mut self, name: &str, said: &str, stop: &AtomicBool) -> Result<Vec<u8>, Error> {
        let mut buffer = vec![0; 64 << 10];
        while self.is_whole && self.failure.is_none() && !stop.load(Ordering::Relaxed) {
            if let Ok(0) = self.read(&mut buffer) {
                return Ok(self.bytes);
            }
        }
        if let Some(failure) = self.failure {
            return Err(quarrier_core::Error::io(name, "read", failure).into());
        }
        let reason = format!(
            "{said}; a stream of more than {} MiB is not read again: save it in a file, and filter \
             that",
            TAPE_BYTES_MAX >> 20
        );
        Err(Error::Kinds { name: name.to_string(), reason })
    }
}

impl Read for Tape<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.stream.read(buffer).inspect_err(|error| {
            if !matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) {
                self.failure = Some(std::io::Error::new(error.kind(), error.to_string()));
            }
        })?;
        if self.is_whole && self.bytes.len() + count <= TAPE_BYTES_MAX {
            self.bytes.extend_from_slice(&buffer[..count]);
        } else if self.is_whole {
            (self.is_whole, self.bytes) = (false, Vec::new());
        }
        Ok(count)
    }
}

/// The bytes from which messages are read.
pub(super) enum Origin<'o> {
    Source(&'o dyn Source),
    /// A source with compressed bytes.
    Compressed(&'o dyn Source),
    Stream(Tape<'o>),
    /// A stream that was read to its end.
    Buffered(Memory<Vec<u8>>),
}

impl Origin<'_> {
    pub(super) fn sample(&mut self, subject: Subject<'_>, stop: &AtomicBool) -> Sample {
        match self {
            Origin::Source(source) => Sample::of_source(*source, subject),
            Origin::Buffered(memory) => Sample::of_source(memory, subject),
            Origin::Stream(tape) => Sample::of_stream(tape, subject, stop),
            // Errors surface again in the reader that decompresses all of it.
            Origin::Compressed(source) => match quarrier_messages::decompressed(*source) {
                Ok(Some(mut plain)) => Sample::of_stream(&mut *plain, subject, stop),
                Ok(None) | Err(_) => Sample::default(),
            },
        }
    }

    /// Passes all bytes, from the start, to `run`; `sample` holds those already read of a stream.
    pub(super) fn lend<R>(
        &mut self,
        sample: &mut Sample,
        run: impl FnOnce(Bytes<'_>) -> Result<R, Ended>,
    ) -> Result<R, Ended> {
        match self {
            Origin::Source(source) => run(Bytes::Source(*source)),
            Origin::Buffered(memory) => run(Bytes::Source(memory)),
            Origin::Stream(tape) => run(Bytes::Stream(&mut sample.with(tape))),
            Origin::Compressed(source) => match quarrier_messages::decompressed(*source) {
                Ok(Some(mut plain)) => run(Bytes::Stream(&mut *plain)),
                Ok(None) => run(Bytes::Source(*source)),
                Err(error) => Err(Ended::Failed(error.into())),
            },
        }
    }

    /// Rewinds to the start of the same bytes.
    pub(super) fn rewound(self, name: &str, said: &str, stop: &AtomicBool) -> Result<Self, Error> {
        match self {
            Origin::Stream(tape) => {
                Ok(Origin::Buffered(Memory::new(name, tape.into_bytes(name, said, stop)?)))
            }
            other => Ok(other),
        }
    }
}
