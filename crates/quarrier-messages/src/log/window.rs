//! Reads a file through one buffer, and skips ranges that the disk cannot read.

use std::ops::Range;
use std::sync::Arc;

use quarrier_core::region::{AlignedBuffer, PAGE_BYTES};

use super::disk::DiskFile;

/// Maximum bytes of one read.
const WINDOW_BYTES: u64 = 4 << 20;
const PAGE: u64 = PAGE_BYTES as u64;
/// Maximum number of separate ranges to remember; beyond it, the last one grows.
const UNREADABLE_MAX: usize = 1000;

/// The file.
pub(super) struct Window {
    file: Arc<dyn DiskFile>,
    buffer: AlignedBuffer,
    start: u64,
    filled: usize,
    /// The window reads nothing from here on.
    limit: u64,
    /// Ranges that could not be read, which appear as zeros.
    unreadable: Vec<Range<u64>>,
}

impl Window {
    /// Opens a window over a file of about `length` bytes. It reads only bytes before `limit`.
    pub(super) fn new(file: Arc<dyn DiskFile>, length: u64, limit: u64) -> Self {
        // One page more than callers request at once, so that their lookahead needs no second read.
        let bytes = length.next_multiple_of(PAGE).clamp(2 * PAGE, WINDOW_BYTES);
        let buffer = AlignedBuffer::new(bytes as usize);
        Window { file, buffer, start: 0, filled: 0, limit, unreadable: Vec::new() }
    }

    pub(super) fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }

    /// Returns up to a page of bytes from `at` on; fewer only at the end of the file.
    pub(super) fn page(&mut self, at: u64) -> &[u8] {
        self.bytes(at, PAGE)
    }

    /// Returns all bytes in the buffer from `at` on: at least a page, except at the end of the file.
    pub(super) fn run(&mut self, at: u64) -> &[u8] {
        self.hold(at, PAGE);
        let from = self.from(at);
        &self.buffer[from..self.filled]
    }

    fn bytes(&mut self, at: u64, most: u64) -> &[u8] {
        self.hold(at, most);
        let from = self.from(at);
        let end = self.filled.min(from + most as usize);
        &self.buffer[from..end]
    }

    fn from(&self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.filled)
    }

    /// Moves the limit and discards the buffer, because more may have been written.
    pub(super) fn extend(&mut self, limit: u64) {
        (self.limit, self.filled) = (limit, 0);
    }

    /// Returns the number of buffer bytes to fill: whole pages, as direct I/O requires.
    fn room(&self) -> usize {
        let pages = self.limit.saturating_sub(self.start).div_ceil(PAGE);
        usize::try_from(pages.saturating_mul(PAGE)).unwrap_or(usize::MAX).min(self.buffer.len())
    }

    /// Returns whether any of the range could not be read.
    pub(super) fn is_unreadable(&self, range: Range<u64>) -> bool {
        self.unreadable.iter().any(|bad| bad.start < range.end && range.start < bad.end)
    }

    fn hold(&mut self, at: u64, most: u64) {
        let end = self.start + self.filled as u64;
        let is_full = self.filled == self.buffer.len();
        let is_held = self.filled > 0
            && at >= self.start
            && (at.saturating_add(most) <= end || (!is_full && at <= end));
        if !is_held {
            self.start = at - at % PAGE;
            self.fill();
        }
    }

    /// Reads from the start of the window until it is full or the file ends.
    fn fill(&mut self) {
        self.filled = 0;
        let room = self.room();
        while self.filled < room {
            let at = self.start + self.filled as u64;
            match self.file.read_at(at, &mut self.buffer[self.filled..room]) {
                Ok(0) => return,
                Ok(count) => self.filled += count.min(room - self.filled),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return self.fill_by_pages(),
            }
        }
    }

    /// Continues page by page after an error, and skips unreadable pages.
    fn fill_by_pages(&mut self) {
        let length = self.file.length().unwrap_or(u64::MAX);
        let room = self.room();
        while self.filled < room {
            let at = self.start + self.filled as u64;
            let stop = self.filled + PAGE_BYTES - self.filled % PAGE_BYTES;
            match self.file.read_at(at, &mut self.buffer[self.filled..stop]) {
                Ok(0) => return,
                Ok(count) => self.filled += count.min(stop - self.filled),
                Err(_) if at >= length => return,
                Err(_) => {
                    self.buffer[self.filled..stop].fill(0);
                    let end = (self.start + stop as u64).min(length.max(at));
                    self.note_unreadable(at..end);
                    self.filled += (end - at) as usize;
                    if self.filled < stop {
                        return;
                    }
                }
            }
        }
    }

    fn note_unreadable(&mut self, range: Range<u64>) {
        let is_many = self.unreadable.len() >= UNREADABLE_MAX;
        match self.unreadable.last_mut() {
            Some(last) if last.end == range.start || is_many => {
                *last = last.start.min(range.start)..last.end.max(range.end);
            }
            _ => self.unreadable.push(range),
        }
    }
}
