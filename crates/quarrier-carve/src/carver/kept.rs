//! What was read lately of a source that shows no windows: an image whose chunks are compressed is
//! decompressed once, though validators and menders come back to it many times.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarrier_core::region::Region;
use quarrier_core::source::{Source, read_full_at};

use super::room;

/// What views fetch at once.
const BLOCK_BYTES: u64 = 1 << 20;

/// A source, and the blocks of it that were read last.
pub(super) struct Kept<'s> {
    source: &'s dyn Source,
    shows_windows: bool,
    maps_pages: bool,
    blocks_max: usize,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    /// Each with the number of the read that used it last.
    held: HashMap<u64, (u64, Arc<[u8]>)>,
    reads: u64,
}

impl<'s> Kept<'s> {
    /// Keeps an eighth of `memory_bytes` and 64 MiB at most; nothing of a source with windows.
    pub(super) fn new(source: &'s dyn Source, memory_bytes: u64) -> Self {
        let window = source.window(0..source.length().min(1));
        let shows_windows = window.is_some();
        let maps_pages = matches!(window, Some(Ok(Region::Window(_))));
        let blocks_max = room::blocks_max(memory_bytes, BLOCK_BYTES);
        Kept { source, shows_windows, maps_pages, blocks_max, blocks: Mutex::default() }
    }

    /// Whether windows are pages of a file, not bytes that are in memory anyhow.
    pub(super) fn maps_pages(&self) -> bool {
        self.maps_pages
    }

    fn block(&self, number: u64) -> io::Result<Arc<[u8]>> {
        if let Some(block) = self.blocks().get(number) {
            return Ok(block);
        }
        let start = number * BLOCK_BYTES;
        let length = BLOCK_BYTES.min(self.length() - start) as usize;
        let mut bytes = vec![0; length];
        let read = read_full_at(self.source, start, &mut bytes)?;
        bytes.truncate(read);
        let block: Arc<[u8]> = bytes.into();
        // What is not whole is asked for again, as it would be without this.
        if read == length {
            self.blocks().add(number, Arc::clone(&block), self.blocks_max);
        }
        Ok(block)
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blocks {
    fn get(&mut self, number: u64) -> Option<Arc<[u8]>> {
        self.reads += 1;
        let (used, block) = self.held.get_mut(&number)?;
        *used = self.reads;
        Some(Arc::clone(block))
    }

    fn add(&mut self, number: u64, block: Arc<[u8]>, blocks_max: usize) {
        while self.held.len() >= blocks_max {
            let oldest = self.held.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(number, _)| *number) else { break };
            self.held.remove(&oldest);
        }
        self.held.insert(number, (self.reads, block));
    }
}

impl Source for Kept<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn length(&self) -> u64 {
        self.source.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.shows_windows || offset >= self.length() {
            return self.source.read_at(offset, buffer);
        }
        let into = (offset % BLOCK_BYTES) as usize;
        let block = match self.block(offset / BLOCK_BYTES) {
            Ok(block) if block.len() > into => block,
            // Who reads sector by sector learns which ones are bad.
            _ => return self.source.read_at(offset, buffer),
        };
        let count = buffer.len().min(block.len() - into);
        buffer[..count].copy_from_slice(&block[into..into + count]);
        Ok(count)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.source.next_data(offset)
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        self.source.window(range)
    }

    fn is_resident(&self) -> bool {
        self.source.is_resident()
    }

    fn sector_bytes(&self) -> usize {
        self.source.sector_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quarrier_core::source::Memory;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts what is read of it, and cannot be read at one byte.
    struct Counting<'b> {
        bytes: Memory<&'b [u8]>,
        read: AtomicU64,
        bad: u64,
    }

    impl Source for Counting<'_> {
        fn name(&self) -> &str {
            "counting"
        }

        fn length(&self) -> u64 {
            self.bytes.length()
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            if (offset..offset + buffer.len() as u64).contains(&self.bad) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let read = self.bytes.read_at(offset, buffer)?;
            self.read.fetch_add(read as u64, Ordering::Relaxed);
            Ok(read)
        }
    }

    #[test]
    fn what_is_read_again_is_not_asked_for_again_and_a_bad_block_can_be_read_around() {
        let bytes: Vec<u8> = (0..(5u32 << 20) + 77).map(|at| (at / 3) as u8).collect();
        let bad = (2 << 20) + 5000;
        let memory = Memory::new("m", &bytes[..]);
        let source = Counting { bytes: memory, read: AtomicU64::new(0), bad };
        let kept = Kept::new(&source, 32 << 20);
        let mut buffer = vec![0; 300_000];
        let mut look = |at: usize, length: usize| {
            let read = read_full_at(&kept, at as u64, &mut buffer[..length]).unwrap();
            assert!(buffer[..read] == bytes[at..bytes.len().min(at + length)], "{at}");
        };
        for _ in 0..10 {
            for at in [0, 1 << 20, (1 << 20) - 7, 5 << 20, 900_000] {
                look(at, 300_000.min(bytes.len() - at));
            }
        }
        let read = source.read.load(Ordering::Relaxed);
        assert!(read <= 3 * BLOCK_BYTES + 77, "{read}");
        look(2 << 20, 5000);
        look((2 << 20) + 5001, 200_000);
        assert!(read_full_at(&kept, bad, &mut [0; 1]).is_err());
    }

    #[test]
    fn no_more_blocks_are_held_than_may_be() {
        let mut blocks = Blocks::default();
        for number in 0..100 {
            blocks.add(number, Arc::from([0]), 3);
            assert!(blocks.get(0).is_some(), "what is used stays");
        }
        assert_eq!(blocks.held.len(), 3);
        assert!(blocks.get(99).is_some() && blocks.get(50).is_none());
    }
}
