//! Tables of an image, read a page at a time and kept within a bound, however large they claim to be.

use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;

use crate::fault::invalid;

/// How much of a table is read at once.
const PAGE_BYTES: u64 = 64 << 10;
const SHARDS: u64 = 8;
/// Pages of a shard: 16 MiB in all shards.
const PAGES_MAX: usize = 32;

/// Pages with their numbers, the one used last at the end.
type Pages = Vec<(u64, Arc<[u8]>)>;

/// The pages of a file that hold tables. Each shard has a lock of its own, held while a page is looked
/// up and not while it is read.
pub(crate) struct Tables {
    file: Arc<dyn Source>,
    shards: [Mutex<Pages>; SHARDS as usize],
}

/// The bytes of a page from some place on.
pub(crate) struct Entries {
    page: Arc<[u8]>,
    from: usize,
}

impl Deref for Entries {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.page[self.from..]
    }
}

impl Tables {
    pub(crate) fn new(file: Arc<dyn Source>) -> Self {
        Tables { file, shards: Default::default() }
    }

    /// The bytes from `at` to the end of their page, at least `entry_bytes`; `at` must be a multiple of
    /// that.
    ///
    /// # Errors
    /// Those of the file; `InvalidData` where it ends before.
    pub(crate) fn entries(&self, at: u64, entry_bytes: usize) -> io::Result<Entries> {
        let page = self.page(at / PAGE_BYTES)?;
        let from = (at % PAGE_BYTES) as usize;
        if page.len().saturating_sub(from) < entry_bytes {
            return Err(invalid(format!("a table lies beyond the end, at byte {at}")));
        }
        Ok(Entries { page, from })
    }

    /// Fills `buffer` from `at`, also across pages.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub(crate) fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            let entries = self.entries(at.saturating_add(filled as u64), 1)?;
            let count = entries.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&entries[..count]);
            filled += count;
        }
        Ok(())
    }

    fn page(&self, number: u64) -> io::Result<Arc<[u8]>> {
        let shard = &self.shards[(number % SHARDS) as usize];
        {
            let mut pages = lock(shard);
            if let Some(at) = pages.iter().position(|(held, _)| *held == number) {
                // The page used last stands at the end.
                let last = pages.len() - 1;
                pages[at..=last].rotate_left(1);
                return Ok(Arc::clone(&pages[last].1));
            }
        }
        let start = number.saturating_mul(PAGE_BYTES);
        let left = self.file.length().saturating_sub(start).min(PAGE_BYTES) as usize;
        let mut bytes = vec![0; left];
        let read = read_full_at(&*self.file, start, &mut bytes)?;
        bytes.truncate(read);
        let page: Arc<[u8]> = bytes.into();
        let mut pages = lock(shard);
        if pages.len() >= PAGES_MAX {
            pages.remove(0);
        }
        pages.push((number, Arc::clone(&page)));
        Ok(page)
    }
}
