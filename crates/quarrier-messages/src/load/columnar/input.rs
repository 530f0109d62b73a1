//! A source as a [`Read`] and [`Seek`], for libraries.

use std::io::{self, Read, Seek, SeekFrom};

use quarrier_core::source::Source;

/// A source with a position.
pub(super) struct Input<'s> {
    source: &'s dyn Source,
    at: u64,
}

impl<'s> Input<'s> {
    pub(super) fn new(source: &'s dyn Source) -> Self {
        Input { source, at: 0 }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Input<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.source.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
