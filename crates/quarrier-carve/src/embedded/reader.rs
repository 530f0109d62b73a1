//! Reads a view from front to back, and the output of decoders.

use std::io::{BufRead, Error, ErrorKind, Read, Result};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::view::View;

/// Bytes per read of the view, and of a decoder.
const RUN_BYTES: usize = 64 << 10;

/// Reads a range of a view. Fails soon after `stop` becomes true, so that a decoder ends then.
pub(super) struct Reader<'r, 's> {
    view: &'r mut View<'s>,
    at: u64,
    end: u64,
    stop: &'r AtomicBool,
}

impl<'r, 's> Reader<'r, 's> {
    /// Reads all bytes of `view`.
    pub(super) fn all(view: &'r mut View<'s>, stop: &'r AtomicBool) -> Self {
        let end = view.length();
        Reader { view, at: 0, end, stop }
    }

    /// Reads the bytes from `at` to `end` of `view`.
    pub(super) fn range(view: &'r mut View<'s>, at: u64, end: u64, stop: &'r AtomicBool) -> Self {
        Reader { view, at, end, stop }
    }
}

impl Read for Reader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Reader<'_, '_> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        let most = self.end.saturating_sub(self.at).min(RUN_BYTES as u64);
        Ok(self.view.run(self.at, most as usize))
    }

    fn consume(&mut self, count: usize) {
        self.at += count as u64;
    }
}

/// Reads the output of a decoder in pieces. Fails soon after `stop` becomes true, also while a
/// decoder yields much from a few bytes. It fails for good: decoders may panic if they are read after an
/// error.
pub(super) struct Pieces<'r, R> {
    decoder: R,
    stop: &'r AtomicBool,
    is_failed: bool,
}

impl<'r, R: Read> Pieces<'r, R> {
    pub(super) fn new(decoder: R, stop: &'r AtomicBool) -> Self {
        Pieces { decoder, stop, is_failed: false }
    }

    pub(super) fn into_inner(self) -> R {
        self.decoder
    }
}

impl<R: Read> Read for Pieces<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.is_failed || self.stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        let most = buffer.len().min(RUN_BYTES);
        let result = self.decoder.read(&mut buffer[..most]);
        self.is_failed |=
            result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Interrupted);
        result
    }
}

/// Makes an error that is not `Interrupted`, after which readers try again.
fn interrupted() -> Error {
    Error::other("interrupted")
}
