//! The output buffer, which takes literals and copies of its own content.

use std::io;

use super::invalid;

pub(super) struct Output<'b> {
    block: &'b mut [u8],
    filled: usize,
}

fn too_long() -> io::Error {
    invalid("it is too long")
}

impl<'b> Output<'b> {
    pub(super) fn new(block: &'b mut [u8]) -> Self {
        Output { block, filled: 0 }
    }

    /// The size of the whole buffer.
    pub(super) fn room(&self) -> usize {
        self.block.len()
    }

    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// The end of the next `bytes` bytes.
    ///
    /// # Errors
    /// If there is no room for them.
    pub(super) fn end_of(&self, bytes: usize) -> io::Result<usize> {
        let end = self.filled.checked_add(bytes).filter(|&end| end <= self.block.len());
        end.ok_or_else(too_long)
    }

    /// Appends literal bytes.
    ///
    /// # Errors
    /// If there is no room for them.
    pub(super) fn literals(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.end_of(bytes.len())?;
        self.block[self.filled..end].copy_from_slice(bytes);
        self.filled = end;
        Ok(())
    }

    /// Appends `length` bytes from `distance` bytes back; the copy may overlap its own output.
    ///
    /// # Errors
    /// If there is no room for them, or nothing that far before.
    pub(super) fn copy(&mut self, distance: usize, length: usize) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let end = self.end_of(length)?;
        let from = self.filled.checked_sub(distance).filter(|_| distance > 0);
        let from = from.ok_or_else(|| invalid("it copies from before its start"))?;
        if distance >= length {
            self.block.copy_within(from..from + length, self.filled);
        } else {
            for at in self.filled..end {
                self.block[at] = self.block[at - distance];
            }
        }
        self.filled = end;
        Ok(())
    }

    /// Checks that the output is complete.
    ///
    /// # Errors
    /// If it is not full.
    pub(super) fn finish(&self) -> io::Result<()> {
        match self.block.len() == self.filled {
            true => Ok(()),
            false => {
                let (filled, all) = (self.filled, self.block.len());
                Err(invalid(format!("it has {filled} bytes instead of {all}")))
            }
        }
    }
}
