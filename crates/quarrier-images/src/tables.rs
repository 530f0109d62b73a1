//! A page cache for an image's tables, bounded regardless of the size that they claim.

use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;

use crate::fault::invalid;

/// Bytes of a table read at once.
const PAGE_BYTES: u64 = 64 << 10;
const SHARDS: u64 = 8;
/// Pages per shard: 16 MiB in all shards together.
const PAGES_MAX: usize = 32;

/// Pages with their numbers, the most recently used last.
type Pages = Vec<(u64, Arc<[u8]>)>;

/// Cached pages of a file's tables. Each shard has its own lock, which is not held during reads.
pub(crate) struct Tables {
    file: Arc<dyn Source>,
    shards: [Mutex<Pages>; SHARDS as usize],
}

/// The rest of a page from an offset on.
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
    /// `entry_bytes`.
    ///
    /// # Errors
    /// Those of the file; `InvalidData` if the file ends early.
    pub(crate) fn entries(&self, at: u64, entry_bytes: usize) -> io::Result<Entries> {
        let page = self.page(at / PAGE_BYTES)?;
        let from = (at % PAGE_BYTES) as usize;
        if page.len().saturating_sub(from) < entry_bytes {
            return Err(invalid(format!("a table lies beyond the end, at byte {at}")));
        }
        Ok(Entries { page, from })
    }

    /// Fills `buffer` from `at`, across pages if necessary.
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
                // Keep the most recently used page last.
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
