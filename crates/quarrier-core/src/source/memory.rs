//! Sources over bytes in memory.

use std::io;
use std::ops::Range;

use super::{Source, window_anywhere};
use crate::region::Region;

/// A source over bytes in memory. Nothing is copied: chunks are slices of it.
#[derive(Debug, Clone)]
pub struct Memory<B> {
    name: String,
    bytes: B,
}

impl<B: AsRef<[u8]> + Send + Sync> Memory<B> {
    /// Makes a source named `name` of `bytes`.
    pub fn new(name: impl Into<String>, bytes: B) -> Self {
        Memory { name: name.into(), bytes }
    }
}

impl<B: AsRef<[u8]> + Send + Sync> Source for Memory<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes.as_ref();
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buffer.len().min(bytes.len() - from);
        buffer[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        let range = range.start as usize..range.end as usize;
        Some(match self.bytes.as_ref().get(range) {
            Some(slice) => Ok(Region::Borrowed(slice)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        })
    }

    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        window_anywhere(range, bytes_min)
    }

    fn is_resident(&self) -> bool {
        true
    }
}
