//! A thread that reads an array in blocks, whose sums are known.

use super::arch::{self, Arrays, STEP_BYTES};
use super::pages::{PageKind, Pages};
use super::{Operation, Stores};
use crate::error::{Error, Result};
use crate::processor::Isa;

/// Size of a block in bytes: a core reads it in about half a microsecond.
pub(super) const BLOCK_BYTES: usize = 16 << 10;
const _: () = assert!(BLOCK_BYTES.is_multiple_of(STEP_BYTES));

/// An array of equal blocks, and the next one to read.
pub(super) struct Reader {
    pages: Pages,
    isa: Isa,
    block_sum: u64,
    blocks: usize,
    next: usize,
}

impl Reader {
    /// Fills pages, which have the size of one block or more. The calling thread touches them.
    pub(super) fn over(mut pages: Pages) -> Reader {
        let words = pages.words();
        let blocks = words.len() * 8 / BLOCK_BYTES;
        for (index, word) in words.iter_mut().enumerate() {
            *word = (index % (BLOCK_BYTES / 8)) as u64 + 1;
        }
        let block_sum = words.iter().take(BLOCK_BYTES / 8).sum();
        Reader { pages, isa: Isa::best(), block_sum, blocks, next: 0 }
    }

    /// An array of `bytes` bytes, at least one block.
    pub(super) fn new(bytes: usize, kind: PageKind) -> Result<Reader> {
        Ok(Reader::over(Pages::new(bytes.max(BLOCK_BYTES), kind)?))
    }

    /// The pages of the array.
    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Reads the next block and checks its sum. Returns the number of bytes read.
    pub(super) fn read_block(&mut self) -> Result<u64> {
        let start = self.pages.as_mut_ptr().wrapping_add(self.next * BLOCK_BYTES);
        let left = start.cast_const().cast::<f64>();
        let arrays = Arrays { target: start.cast(), left, right: left, bytes: BLOCK_BYTES };
        // SAFETY: `next` is less than `blocks`, so that the block lies in `pages`, which are mapped,
        // initialised by `over`, and aligned to a page. `Read` uses only `left`, and `&mut self`
        // excludes writes. A block has a multiple of `STEP_BYTES`. `Isa::best` is available.
        let sum = unsafe { arch::run(self.isa, Operation::Read, Stores::Ordinary, arrays) };
        self.next = (self.next + 1) % self.blocks;
        if sum != self.block_sum {
            let reason = format!("a sum of {sum} instead of {}", self.block_sum);
            return Err(Error::wrong("read", reason));
        }
        Ok(BLOCK_BYTES as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, Reader};
    use crate::memory::PageKind;

    #[test]
    fn every_block_is_read_in_turn_and_a_wrong_one_is_noticed() {
        let mut reader = Reader::new(3 * BLOCK_BYTES, PageKind::Small).unwrap();
        reader.pages.words()[2 * BLOCK_BYTES / 8] = 0;
        for _ in 0..2 {
            assert_eq!(reader.read_block().unwrap(), BLOCK_BYTES as u64);
            assert_eq!(reader.read_block().unwrap(), BLOCK_BYTES as u64);
            assert!(reader.read_block().is_err());
        }
    }
}
