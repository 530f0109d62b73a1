//! A file read through one buffer, also where the disk does not let it be read.

use std::ops::Range;
use std::sync::Arc;

use quarrier_core::region::{AlignedBuffer, PAGE_BYTES};

use super::disk::DiskFile;

/// What is read at once, at most.
const WINDOW_BYTES: u64 = 4 << 20;
const PAGE: u64 = PAGE_BYTES as u64;
/// Ranges that are remembered apart; beyond that the last one grows.
const UNREADABLE_MAX: usize = 1000;

/// The file.
pub(super) struct Window {
    file: Arc<dyn DiskFile>,
    buffer: AlignedBuffer,
    start: u64,
    filled: usize,
    /// Nothing is read from here on.
    limit: u64,
    /// What could not be read, and shows as zeros.
    unreadable: Vec<Range<u64>>,
}

impl Window {
    /// Over a file of about `length` bytes, of which those before `limit` are read.
    pub(super) fn new(file: Arc<dyn DiskFile>, length: u64, limit: u64) -> Self {
        // A page more than is asked for at once, so that a look ahead needs no second read.
        let bytes = length.next_multiple_of(PAGE).clamp(2 * PAGE, WINDOW_BYTES);
        let buffer = AlignedBuffer::new(bytes as usize);
        Window { file, buffer, start: 0, filled: 0, limit, unreadable: Vec::new() }
    }

    pub(super) fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }

    /// Up to a page of bytes from `at` on: fewer only at the end of the file.
    pub(super) fn page(&mut self, at: u64) -> &[u8] {
        self.bytes(at, PAGE)
    }

    /// All that can be had at once from `at` on, at least a page but at the end of the file.
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

    /// Moves the limit, and forgets what was read, because more may have been written.
    pub(super) fn extend(&mut self, limit: u64) {
        (self.limit, self.filled) = (limit, 0);
    }

    /// How much of the buffer is to be filled: whole pages, as direct access needs it.
    fn room(&self) -> usize {
        let pages = self.limit.saturating_sub(self.start).div_ceil(PAGE);
        usize::try_from(pages.saturating_mul(PAGE)).unwrap_or(usize::MAX).min(self.buffer.len())
    }

    /// Whether some of the range could not be read.
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

    /// Goes on page by page after an error, over those that cannot be read.
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
