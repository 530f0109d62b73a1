//! Small files, read whole.

use std::io::{self, Read};
use std::path::Path;

use quarrier_core::source::{Source, open_in_order};
use quarrier_images::Kind;

use super::is_part_of_image;

/// Reads small files, one at a time, into its own buffer.
pub(crate) struct SmallReader {
    bytes_max: usize,
    buffer: Vec<u8>,
}

impl SmallReader {
    pub(crate) fn new(bytes_max: usize) -> Self {
        SmallReader { bytes_max, buffer: Vec::new() }
    }

    /// Reads a regular file of at most the maximum size. `None` for all others, for files that cannot be
    /// read, and for those that wrap a disk, whose bytes are those of the disk.
    pub(crate) fn read(&mut self, path: &Path) -> Option<&[u8]> {
        let length = self.read_any(path)?;
        let bytes = &self.buffer[..length];
        Kind::of(&Whole(bytes), false).is_none().then_some(bytes)
    }

    /// Reads a small file into the buffer, and returns its length.
    fn read_any(&mut self, path: &Path) -> Option<usize> {
        if is_part_of_image(path) {
            return None;
        }
        // Even if the name refers to something else by now, opening it does not block.
        let mut file = open_in_order(path).ok()?;
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let length = usize::try_from(meta.len()).ok().filter(|length| *length <= self.bytes_max)?;
        // One more byte reveals that the file has grown, or that it is a kernel file without a length.
        if self.buffer.len() <= length {
            self.buffer.resize(length + 1, 0);
        }
        let mut filled = 0;
        loop {
            match file.read(&mut self.buffer[filled..=length]) {
                Ok(0) => return Some(filled),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            match filled {
                filled if filled > length => return None,
                // A regular file returns a short read only at its end.
                filled if filled == length => return Some(filled),
                _ => {}
            }
        }
    }
}

/// A file in memory.
pub(crate) struct Whole<'b>(pub(crate) &'b [u8]);

impl Source for Whole<'_> {
    fn name(&self) -> &str {
        ""
    }

    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}
