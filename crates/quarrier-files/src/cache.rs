//! A page cache for small scattered reads.

use std::collections::{HashMap, VecDeque};

use crate::error::Result;
use crate::part::Part;

const PAGE_BYTES: u64 = 64 << 10;
const PAGES_MAX: usize = 256;

/// Recently read pages of a part.
pub(crate) struct Cache<'p, 's> {
    part: &'p Part<'s>,
    pages: HashMap<u64, Box<[u8]>>,
    order: VecDeque<u64>,
}

impl<'p, 's> Cache<'p, 's> {
    pub(crate) fn new(part: &'p Part<'s>) -> Self {
        Cache { part, pages: HashMap::new(), order: VecDeque::new() }
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

    /// Reads an array of `N` bytes.
    ///
    /// # Errors
    /// As [`Part::read`].
    pub(crate) fn array<const N: usize>(&mut self, at: u64, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(at, &mut bytes, what).map(|()| bytes)
    }

    fn page(&mut self, number: u64, what: &str) -> Result<&[u8]> {
        if !self.pages.contains_key(&number) {
            let start = number * PAGE_BYTES;
            let length = PAGE_BYTES.min(self.part.length() - start);
            let mut page = vec![0; length as usize].into_boxed_slice();
            self.part.read(start, &mut page, what)?;
            if self.order.len() == PAGES_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.pages.remove(&oldest);
            }
            self.order.push_back(number);
            self.pages.insert(number, page);
        }
        Ok(self.pages.get(&number).map_or(&[], |page| page))
    }
}
