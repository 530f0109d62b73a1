//! A source under another name.

use std::io;
use std::ops::Range;

use super::Source;
use crate::region::Region;

/// A source with the name by which the user knows it, in a process that opened it by another one.
pub struct Renamed<'s> {
    inner: &'s dyn Source,
    name: String,
}

impl<'s> Renamed<'s> {
    /// Gives a source this name.
    #[must_use]
    pub fn new(inner: &'s dyn Source, name: String) -> Self {
        Renamed { inner, name }
    }
}

impl Source for Renamed<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.inner.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, buffer)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.inner.next_data(offset)
    }

    fn readable_end(&self) -> u64 {
        self.inner.readable_end()
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        self.inner.window(range)
    }

    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        self.inner.next_window(range, bytes_min)
    }

    fn is_resident(&self) -> bool {
        self.inner.is_resident()
    }

    fn is_packed(&self) -> bool {
        self.inner.is_packed()
    }

    fn sector_bytes(&self) -> usize {
        self.inner.sector_bytes()
    }

    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}
