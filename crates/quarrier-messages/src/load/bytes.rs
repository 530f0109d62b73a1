//! Reads the bytes of a claim in small steps, so that they are still in the cache when they are
//! parsed.

use std::ops::Range;

use quarrier_core::Error;
use quarrier_core::region::{AlignedBuffer, PAGE_BYTES};
use quarrier_core::source::{Source, read_full_at};

/// Bytes per read: few enough that dictionaries keep most of the cache.
const STEP_BYTES: usize = 128 << 10;
/// Bytes of the first read past the claim, for its last message.
const AHEAD_BYTES: usize = 4 << 10;

/// Consecutive bytes of a source. Each is in the buffer at its offset modulo the page size, because
/// other reads are several times slower.
#[derive(Debug)]
pub(super) struct Bytes {
    buffer: AlignedBuffer,
    held: Range<usize>,
    /// The offset of the first byte in the buffer.
    offset: u64,
}

impl Bytes {
    /// Allocates little: a server loads each small batch of messages by itself, for which the pages of a whole
    /// step would cost more than parsing it.
    pub(super) fn new() -> Self {
        Bytes { buffer: AlignedBuffer::new(PAGE_BYTES), held: 0..0, offset: 0 }
    }

    /// Drops all bytes; the next read begins at `offset`.
    pub(super) fn seek(&mut self, offset: u64) {
        let place = (offset % PAGE_BYTES as u64) as usize;
        (self.held, self.offset) = (place..place, offset);
    }

    pub(super) fn held(&self) -> &[u8] {
        &self.buffer[self.held.clone()]
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn is_at_end(&self, source: &dyn Source) -> bool {
        self.end() >= source.length()
    }

    fn end(&self) -> u64 {
        self.offset + self.held.len() as u64
    }

    /// Drops the first `count` bytes and reads more: one step, ending not much after `end`, where
    /// the claim ends; after that, as many bytes as are in the buffer.
    pub(super) fn more(
        &mut self,
        source: &dyn Source,
        count: usize,
        end: u64,
    ) -> Result<(), Error> {
        self.drop_first(count);
        let wanted = match end.saturating_sub(self.end()) {
            0 => self.held.len().max(AHEAD_BYTES),
            left => STEP_BYTES.max(self.held.len()).min(left as usize + AHEAD_BYTES),
        };
        let left = source.length() - self.end();
        let wanted = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.make_room(wanted);
        let from = self.end();
        let room = self.held.end..self.held.end + wanted;
        let read = read_full_at(source, from, &mut self.buffer[room])
            .map_err(|error| Error::io(source.name(), format!("read at byte {from}"), error))?;
        self.held.end += read;
        if read < wanted {
            return Err(Error::Shrank {
                source_name: source.name().to_string(),
                opened_bytes: source.length(),
                ended_at: from + read as u64,
            });
        }
        Ok(())
    }

    fn drop_first(&mut self, count: usize) {
        self.held.start += count;
        self.offset += count as u64;
        let place = (self.offset % PAGE_BYTES as u64) as usize;
        self.buffer.copy_within(self.held.clone(), place);
        self.held = place..place + self.held.len();
    }

    fn make_room(&mut self, wanted: usize) {
        let needed = self.held.end + wanted;
        if needed > self.buffer.len() {
            let mut buffer = AlignedBuffer::new(needed.next_power_of_two());
            buffer[self.held.clone()].copy_from_slice(&self.buffer[self.held.clone()]);
            self.buffer = buffer;
        } else if self.buffer.len() > 16 * STEP_BYTES && needed < 2 * STEP_BYTES {
            // Release the memory of a long message.
            let mut buffer = AlignedBuffer::new(2 * STEP_BYTES);
            buffer[self.held.clone()].copy_from_slice(&self.buffer[self.held.clone()]);
            self.buffer = buffer;
        }
    }
}
