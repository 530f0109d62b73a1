//! A cache of recently read blocks, for sources without windows: validators and mending read the
//! same block many times, and a compressed image should be decompressed once. It also remembers
//! ranges that could not be read, because a disk retries a bad sector for seconds each time, and the error
//! after which no other range is worth trying.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use quarrier_core::region::Region;
use quarrier_core::source::{Source, is_gone, read_full_at};
use quarrier_core::sync::lock;

use super::bad::Bad;
use super::room;

/// The bytes that a view fetches at once.
const BLOCK_BYTES: u64 = 1 << 20;

/// A source with its recently read blocks and its unreadable ranges.
pub(super) struct CachedSource<'s> {
    source: &'s dyn Source,
    shows_windows: bool,
    blocks_max: usize,
    blocks: Mutex<Blocks>,
    bad: Mutex<Bad>,
    gone: OnceLock<io::Error>,
}

#[derive(Default)]
struct Blocks {
    /// Each block with the number of the read that used it last.
    held: HashMap<u64, (u64, Arc<[u8]>)>,
    reads: u64,
}

impl<'s> CachedSource<'s> {
    /// Caches an eighth of `memory_bytes`, at most 64 MiB, and nothing if the source shows windows.
    pub(super) fn new(source: &'s dyn Source, memory_bytes: u64) -> Self {
        let shows_windows = source.window(0..source.length().min(1)).is_some();
        let blocks_max = room::blocks_max(memory_bytes, BLOCK_BYTES);
        let (blocks, bad, gone) = Default::default();
        CachedSource { source, shows_windows, blocks_max, blocks, bad, gone }
    }

    /// The error of the source as a whole, if there was one: what was read before may lack bytes that others
    /// could read.
    pub(super) fn gone(&self) -> Option<io::Error> {
        self.gone.get().map(again)
    }

    /// Reads from the source itself, and remembers an error of the source as a whole.
    fn noting_gone<T>(&self, read: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &read
            && is_gone(error)
        {
            let _ = self.gone.set(again(error));
        }
        read
    }

    /// Returns a block, with zeros in unreadable ranges; `None` if the source ends within it, or if
    /// some of its unreadable ranges could not be remembered.
    ///
    /// # Errors
    /// That of the source as a whole.
    fn block(&self, number: u64) -> io::Result<Option<Arc<[u8]>>> {
        if let Some(block) = self.blocks().get(number) {
            return Ok(Some(block));
        }
        let range = self.range_of(number);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let is_bad = self.bad().within(range.clone()).is_some();
        let is_read = if is_bad {
            self.read_around(range.start, &mut bytes)?
        } else {
            match self.noting_gone(read_full_at(self.source, range.start, &mut bytes)) {
                Ok(read) => read == bytes.len(),
                Err(error) if is_gone(&error) => return Err(error),
                Err(_) => self.read_around(range.start, &mut bytes)?,
            }
        };
        if !is_read {
            return Ok(None);
        }
        let block: Arc<[u8]> = bytes.into();
        self.blocks().add(number, Arc::clone(&block), self.blocks_max);
        Ok(Some(block))
    }

    fn range_of(&self, number: u64) -> Range<u64> {
        let start = number * BLOCK_BYTES;
        start..self.length().min(start + BLOCK_BYTES)
    }

    /// Reads, sector by sector, the bytes not known to be bad, and remembers the sectors that fail;
    /// bad ones become zeros. Returns false if one of them could not be remembered.
    ///
    /// # Errors
    /// That of the source as a whole.
    fn read_around(&self, start: u64, bytes: &mut [u8]) -> io::Result<bool> {
        let mut at = start;
        for sector in bytes.chunks_mut(self.sector_bytes().max(1)) {
            let range = at..at + sector.len() as u64;
            at = range.end;
            if self.bad().within(range.clone()).is_some() {
                sector.fill(0);
                continue;
            }
            let is_recorded = match self.noting_gone(read_full_at(self.source, range.start, sector))
            {
                Ok(read) => read == sector.len(),
                Err(error) if is_gone(&error) => return Err(error),
                Err(_) => {
                    sector.fill(0);
                    self.bad().add(range)
                }
            };
            if !is_recorded {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the number of readable bytes from `offset` on, `bytes` at most. Fails if the first
    /// byte is unreadable.
    fn good(&self, offset: u64, bytes: usize) -> io::Result<usize> {
        match self.bad().within(offset..offset.saturating_add(bytes as u64)) {
            None => Ok(bytes),
            Some(bad) if bad.start > offset => Ok((bad.start - offset) as usize),
            Some(bad) => {
                let Range { start, end } = bad;
                let why = format!("bytes {start}..{end} could not be read before");
                Err(io::Error::new(io::ErrorKind::InvalidData, why))
            }
        }
    }

    /// Reads the readable start of `buffer` from the source itself. If that fails, it finds the
    /// unreadable ranges first.
    fn read_directly(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let good = self.good(offset, buffer.len())?;
        match self.noting_gone(self.source.read_at(offset, &mut buffer[..good])) {
            Err(error) if is_gone(&error) => Err(error),
            Err(error) if self.shows_windows && error.kind() != io::ErrorKind::Interrupted => {
                let range = self.range_of(offset / BLOCK_BYTES);
                let mut bytes = vec![0; (range.end - range.start) as usize];
                self.read_around(range.start, &mut bytes)?;
                let good = self.good(offset, buffer.len())?;
                self.source.read_at(offset, &mut buffer[..good])
            }
            done => done,
        }
    }

    fn bad(&self) -> MutexGuard<'_, Bad> {
        lock(&self.bad)
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        lock(&self.blocks)
    }
}

/// The same error once more.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
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

impl Source for CachedSource<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn length(&self) -> u64 {
        self.source.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset >= self.length() {
            return self.source.read_at(offset, buffer);
        }
        let into = (offset % BLOCK_BYTES) as usize;
        let block = match self.shows_windows {
            true => None,
            false => self.block(offset / BLOCK_BYTES)?,
        };
        let Some(held) = block.as_ref().and_then(|block| block.get(into..)) else {
            return self.read_directly(offset, buffer);
        };
        let count = self.good(offset, buffer.len().min(held.len()))?;
        buffer[..count].copy_from_slice(&held[..count]);
        Ok(count)
    }

    fn readable_end(&self) -> u64 {
        self.source.readable_end()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.source.next_data(offset)
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        self.source.window(range)
    }

    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        self.source.next_window(range, bytes_min)
    }

    fn is_resident(&self) -> bool {
        self.source.is_resident()
    }

    fn is_packed(&self) -> bool {
        self.source.is_packed()
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

    /// Counts reads, and reads of the unreadable byte.
    struct Counting<'b> {
        bytes: Memory<&'b [u8]>,
        read: AtomicU64,
        asked: AtomicU64,
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
                self.asked.fetch_add(1, Ordering::Relaxed);
                return Err(io::ErrorKind::InvalidData.into());
            }
            let read = self.bytes.read_at(offset, buffer)?;
            self.read.fetch_add(read as u64, Ordering::Relaxed);
            Ok(read)
        }
    }

    /// Fails as a whole from `end` on.
    struct Ending<'b>(Memory<&'b [u8]>, u64);

    impl Source for Ending<'_> {
        fn name(&self) -> &str {
            "ending"
        }

        fn length(&self) -> u64 {
            self.0.length()
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            if offset >= self.1 {
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "no space"));
            }
            let count = buffer.len().min((self.1 - offset) as usize);
            self.0.read_at(offset, &mut buffer[..count])
        }
    }

    #[test]
    fn an_error_of_the_whole_source_is_no_bad_sector() {
        let bytes = vec![7; 3 << 20];
        for shows_windows in [false, true] {
            let source = Ending(Memory::new("m", &bytes[..]), (2 << 20) + 777);
            let cached = CachedSource { shows_windows, ..CachedSource::new(&source, 32 << 20) };
            let mut buffer = vec![0; 1000];
            assert_eq!(cached.read_at(1 << 20, &mut buffer).unwrap(), 1000);
            assert!(cached.gone().is_none());
            for _ in 0..2 {
                let error = cached.read_at((2 << 20) + 900, &mut buffer).unwrap_err();
                assert_eq!(
                    (error.kind(), &*error.to_string()),
                    (io::ErrorKind::ConnectionAborted, "no space")
                );
            }
            assert_eq!(cached.gone().unwrap().to_string(), "no space");
            assert!(cached.bad().within(0..3 << 20).is_none());
        }
    }

    #[test]
    fn cached_blocks_are_not_read_again() {
        let bytes: Vec<u8> = (0..(5u32 << 20) + 77).map(|at| (at / 3) as u8).collect();
        let memory = Memory::new("m", &bytes[..]);
        let (read, asked) = Default::default();
        let source = Counting { bytes: memory, read, asked, bad: u64::MAX };
        let cached = CachedSource::new(&source, 32 << 20);
        let mut buffer = vec![0; 300_000];
        let mut look = |at: usize, length: usize| {
            let read = read_full_at(&cached, at as u64, &mut buffer[..length]).unwrap();
            assert!(buffer[..read] == bytes[at..bytes.len().min(at + length)], "{at}");
        };
        for _ in 0..10 {
            for at in [0, 1 << 20, (1 << 20) - 7, 5 << 20, 900_000] {
                look(at, 300_000.min(bytes.len() - at));
            }
        }
        let read = source.read.load(Ordering::Relaxed);
        assert!(read <= 3 * BLOCK_BYTES + 77, "{read}");
    }

    #[test]
    fn unreadable_sectors_are_skipped_and_not_read_again() {
        let bytes: Vec<u8> = (0..(3u32 << 20) + 77).map(|at| (at / 3) as u8).collect();
        let bad = (2 << 20) + 5000;
        let sector = bad / 512 * 512..bad / 512 * 512 + 512;
        for shows_windows in [false, true] {
            let memory = Memory::new("m", &bytes[..]);
            let (read, asked) = Default::default();
            let source = Counting { bytes: memory, read, asked, bad };
            let cached = CachedSource { shows_windows, ..CachedSource::new(&source, 8 << 20) };
            let look = |range: Range<u64>| {
                let mut buffer = vec![0; (range.end - range.start) as usize];
                let read = read_full_at(&cached, range.start, &mut buffer)?;
                assert!(buffer[..read] == bytes[range.start as usize..][..read], "{range:?}");
                Ok::<_, io::Error>(read)
            };
            for _ in 0..20 {
                assert_eq!(look(2 << 20..sector.start).unwrap() as u64, sector.start - (2 << 20));
                assert_eq!(look(sector.end..sector.end + 200_000).unwrap(), 200_000);
                for wrong in
                    [sector.clone(), bad..bad + 1, 0..bad + 1, sector.start - 1..sector.end + 1]
                {
                    assert!(look(wrong).is_err());
                }
                // Other blocks replace it in the cache.
                assert!(look(0..2 << 20).is_ok());
            }
            let asked = source.asked.load(Ordering::Relaxed);
            assert!(asked <= 3, "{asked}: once with its block, once with its sector");
        }
    }

    #[test]
    fn no_more_blocks_are_held_than_may_be() {
        let mut blocks = Blocks::default();
        for number in 0..100 {
            blocks.add(number, Arc::from([0]), 3);
            assert!(blocks.get(0).is_some(), "a used block stays");
        }
        assert_eq!(blocks.held.len(), 3);
        assert!(blocks.get(99).is_some() && blocks.get(50).is_none());
    }
}
