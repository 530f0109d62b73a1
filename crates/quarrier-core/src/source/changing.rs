//! Bytes in memory that others may change.

use std::io;
use std::ops::Range;

use super::{Source, window_anywhere};
use crate::region::{ChangingBytes, Region};

/// A source over memory that others may write to during a run, such as an array of another thread.
/// Runs that treat bytes as data only see them in place; others see copies.
#[derive(Debug, Clone)]
pub struct ChangingMemory<'a> {
    name: String,
    bytes: ChangingBytes<'a>,
}

impl<'a> ChangingMemory<'a> {
    /// Makes a source named `name` of `bytes`.
    pub fn new(name: impl Into<String>, bytes: ChangingBytes<'a>) -> Self {
        ChangingMemory { name: name.into(), bytes }
    }
}

impl Source for ChangingMemory<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.bytes.copy_to(usize::try_from(offset).unwrap_or(usize::MAX), buffer))
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        let part = self.bytes.get(range.start as usize..range.end as usize);
        Some(part.map(Region::Changing).ok_or(io::ErrorKind::UnexpectedEof.into()))
    }

    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        window_anywhere(range, bytes_min)
    }

    fn is_resident(&self) -> bool {
        true
    }
}
