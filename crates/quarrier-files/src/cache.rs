//! A page cache for small scattered reads.

use std::collections::HashMap;

use crate::error::Result;
use crate::part::Part;

const PAGE_BYTES: u64 = 64 << 10;
const PAGES_MAX: usize = 256;
/// The number of a page that could not be read.
const NO_PAGE: u64 = u64::MAX;

/// Recently read pages of a part.
pub(crate) struct Cache<'p, 's> {
    part: &'p Part<'s>,
    /// Pages with their numbers. When there are enough, each new one replaces the oldest.
    pages: Vec<(u64, Vec<u8>)>,
    oldest: usize,
    /// The index of each page, by its number.
    held: HashMap<u64, usize>,
    /// The index of the page that was read last: most reads are of the same one.
    last: usize,
}

impl<'p, 's> Cache<'p, 's> {
    pub(crate) fn new(part: &'p Part<'s>) -> Self {
        Cache { part, pages: Vec::new(), oldest: 0, held: HashMap::new(), last: 0 }
    }

    /// Fills `buffer` from `at`.
    ///
    /// # Errors
    /// As [`Part::read`].
    pub(crate) fn read(&mut self, at: u64, buffer: &mut [u8], what: &str) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            let from = at.saturating_add(filled as u64);
            if from >= self.part.length() {
                return Err(self.part.refused(at, &format!("{what} beyond the end")));
            }
            let page = self.page(from / PAGE_BYTES, what)?;
            let inside = page.get((from % PAGE_BYTES) as usize..).unwrap_or_default();
            let bytes = inside.len().min(buffer.len() - filled);
            buffer[filled..filled + bytes].copy_from_slice(&inside[..bytes]);
            filled += bytes;
        }
        Ok(())
    }

    /// Passes `length` bytes from `at` to `see`, in the cache if they lie in one page.
    ///
    /// # Errors
    /// As [`Part::read`].
    pub(crate) fn with<R>(
        &mut self,
        at: u64,
        length: usize,
        what: &str,
        see: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let inside = (at % PAGE_BYTES) as usize;
        if at < self.part.length() {
            let page = self.page(at / PAGE_BYTES, what)?;
            if let Some(bytes) = page.get(inside..inside + length) {
                return Ok(see(bytes));
            }
        }
        let mut bytes = vec![0; length];
        self.read(at, &mut bytes, what).map(|()| see(&bytes))
    }

    /// Reads an array of `N` bytes.
    ///
    /// # Errors
    /// As [`Part::read`].
    pub(crate) fn array<const N: usize>(&mut self, at: u64, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(at, &mut bytes, what).map(|()| bytes)
    }

    fn page(&mut self, number: u64, what: &str) -> Result<&[u8]> {
        if self.pages.get(self.last).is_none_or(|(held, _)| *held != number) {
            self.last = match self.held.get(&number) {
                Some(index) => *index,
                None => self.load(number, what)?,
            };
        }
        Ok(self.pages.get(self.last).map_or(&[], |(_, page)| page))
    }

    /// Reads a page, and returns its index.
    fn load(&mut self, number: u64, what: &str) -> Result<usize> {
        let start = number * PAGE_BYTES;
        let length = PAGE_BYTES.min(self.part.length() - start) as usize;
        if self.pages.len() < PAGES_MAX {
            let mut page = vec![0; length];
            self.part.read(start, &mut page, what)?;
            self.pages.push((number, page));
            self.held.insert(number, self.pages.len() - 1);
            return Ok(self.pages.len() - 1);
        }
        let index = self.oldest;
        let (replaced, page) = &mut self.pages[index];
        // Its memory is reused. If it cannot be read, no number finds it.
        self.held.remove(replaced);
        *replaced = NO_PAGE;
        page.resize(length, 0);
        self.part.read(start, page, what)?;
        *replaced = number;
        self.oldest = (index + 1) % PAGES_MAX;
        self.held.insert(number, index);
        Ok(index)
    }
}
