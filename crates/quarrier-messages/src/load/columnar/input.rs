//! A source as libraries read it.

use std::io::{self, Read, Seek, SeekFrom};

use quarrier_core::source::{Source, read_full_at};

/// A source with a place in it.
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

/// `length` bytes from `start` on, all of which have to be there.
pub(super) fn read(source: &dyn Source, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let is_there = start.checked_add(length).is_some_and(|end| end <= source.length());
    let length = usize::try_from(length).ok().filter(|_| is_there);
    let mut bytes = vec![0; length.ok_or(io::ErrorKind::UnexpectedEof)?];
    match read_full_at(source, start, &mut bytes)? == bytes.len() {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
