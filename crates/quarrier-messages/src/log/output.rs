//! Buffers bytes for a file, and writes them in whole blocks.

use std::io;

use quarrier_core::region::AlignedBuffer;

use super::disk::DiskFile;

/// Maximum number of consecutive writes that transfer less than a block.
const TRIES_MAX: u32 = 100;

/// Fills the buffer and writes it whenever it is full.
pub(crate) struct Output<'a> {
    file: &'a dyn DiskFile,
    buffer: &'a mut AlignedBuffer,
    filled: usize,
    /// The file offset of the buffer's first byte.
    offset: u64,
}

impl<'a> Output<'a> {
    /// Writes from `offset` on, a multiple of the block size. The buffer consists of whole blocks.
    pub(crate) fn new(file: &'a dyn DiskFile, buffer: &'a mut AlignedBuffer, offset: u64) -> Self {
        Output { file, buffer, filled: 0, offset }
    }

    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.filled == self.buffer.len() {
                self.flush()?;
            }
            let count = bytes.len().min(self.buffer.len() - self.filled);
            let (now, later) = bytes.split_at(count);
            self.buffer[self.filled..self.filled + count].copy_from_slice(now);
            self.filled += count;
            bytes = later;
        }
        Ok(())
    }

    /// Appends zeros up to a multiple of `unit`, at most 4,096.
    pub(crate) fn pad(&mut self, unit: u64) -> io::Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let at = self.offset + self.filled as u64;
        let count = (at.next_multiple_of(unit) - at) as usize;
        self.put(&ZEROS[..count.min(ZEROS.len())])
    }

    /// Writes the contents of the buffer: whole blocks, if the caller has padded it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let block = self.file.block_bytes() as usize;
        let (mut done, mut tries) = (0, 0);
        while done < self.filled {
            let at = self.offset + done as u64;
            let count = match self.file.write_at(at, &self.buffer[done..self.filled]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                written => written?.min(self.filled - done),
            };
            // Repeat a partially written block.
            let next = if done + count == self.filled {
                self.filled
            } else {
                done + count / block * block
            };
            tries = if next > done { 0 } else { tries + 1 };
            if tries > TRIES_MAX {
                return Err(io::ErrorKind::WriteZero.into());
            }
            done = next;
        }
        self.offset += done as u64;
        self.filled = 0;
        Ok(())
    }
}
