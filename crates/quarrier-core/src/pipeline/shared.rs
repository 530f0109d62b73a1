//! A feed for workers in other processes: readers fill slots of shared memory.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::retry;
use crate::error::{Error, Result};
use crate::region::{PAGE_BYTES, SharedRegion};
use crate::source::Source;
use crate::sync::{lock, wait};
use crate::threads;

/// The maximum number of visible bytes of a slot.
const SLOT_BYTES_MAX: usize = 1 << 30;

/// Cuts a source into chunks and reads them into the slots of a [`SharedRegion`], for workers in other
/// processes. The owner of the feed assigns the slots.
///
/// No thread runs before [`start`](Self::start), so workers may be forked until then.
///
/// ```
/// use std::time::Duration;
/// use quarrier_core::pipeline::{Delivery, SharedFeed};
/// use quarrier_core::source::Memory;
///
/// let source = Memory::new("example", vec![1; 100_000]);
/// let feed = SharedFeed::new(Box::new(source), 4096, 0, 4)?;
/// feed.start(1)?;
/// let mut bytes = 0;
/// loop {
///     match feed.next(Duration::from_secs(1))? {
///         Delivery::Chunk(slot) => {
///             bytes += slot.owned_bytes; // pass the slot to a worker here
///             feed.release(slot.slot)?;
///         }
///         Delivery::NotYet => {}
///         Delivery::Ended => break,
///     }
/// }
/// assert_eq!(bytes, 100_000);
/// # Ok::<(), quarrier_core::Error>(())
/// ```
pub struct SharedFeed {
    shared: Arc<Shared>,
    readers: Mutex<Readers>,
}

/// A chunk in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The number of the slot; its first byte lies at `slot * stride_bytes` in the region.
    pub slot: usize,
    /// The chunk's offset in the source.
    pub offset: u64,
    /// Positions that the chunk owns, from its first byte on.
    pub owned_bytes: usize,
    /// Bytes in the slot: the owned ones and the overlap after them.
    pub visible_bytes: usize,
}

/// The result of [`SharedFeed::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// A chunk. Its slot is the caller's until it is released.
    Chunk(Slot),
    /// No chunk arrived in time.
    NotYet,
    /// All chunks were delivered, or the feed was closed.
    Ended,
}

/// A range that could not be read; slots with a part of it have zeros there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The range in the source.
    pub range: Range<u64>,
    /// The system's error message.
    pub reason: String,
}

#[derive(Default)]
struct Readers {
    threads: Vec<JoinHandle<()>>,
    /// The process that owns the threads; a forked child owns none of them.
    process: u32,
}

struct Shared {
    source: Box<dyn Source>,
    region: Arc<SharedRegion>,
    chunk_bytes: u64,
    overlap_bytes: u64,
    stride_bytes: usize,
    chunks: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: Vec<usize>,
    lent: Vec<bool>,
    next_chunk: u64,
    delivered: u64,
    ready: BTreeMap<u64, Slot>,
    problems: Vec<Unreadable>,
    failed: Option<Error>,
    is_closed: bool,
}

impl SharedFeed {
    /// Makes a feed of chunks that own `chunk_bytes` each and show `overlap_bytes` more, in
    /// `buffers` slots. Chunk sizes that are multiples of [`PAGE_BYTES`] are read fastest.
    ///
    /// # Errors
    /// [`Error::BadPlan`] for invalid sizes or counts, and the errors of [`SharedRegion::new`].
    pub fn new(
        source: Box<dyn Source>,
        chunk_bytes: usize,
        overlap_bytes: usize,
        buffers: usize,
    ) -> Result<Self> {
        let slot_bytes = chunk_bytes.saturating_add(overlap_bytes);
        if chunk_bytes == 0 || slot_bytes > SLOT_BYTES_MAX || buffers == 0 || buffers > 4096 {
            return Err(Error::BadPlan(format!(
                "{buffers} buffers for chunks of {chunk_bytes} bytes and {overlap_bytes} more cannot \
                 be had; 1 to 4096 buffers, and 1 to {SLOT_BYTES_MAX} bytes together"
            )));
        }
        let chunks = source.length().div_ceil(chunk_bytes as u64);
        let buffers = buffers.min(usize::try_from(chunks.max(1)).unwrap_or(buffers));
        let stride_bytes = slot_bytes.next_multiple_of(PAGE_BYTES);
        let region = Arc::new(SharedRegion::new(stride_bytes * buffers)?);
        let state = State {
            free: (0..buffers).rev().collect(),
            lent: vec![false; buffers],
            next_chunk: 0,
            delivered: 0,
            ready: BTreeMap::new(),
            problems: Vec::new(),
            failed: None,
            is_closed: false,
        };
        let shared = Shared {
            source,
            region,
            chunk_bytes: chunk_bytes as u64,
            overlap_bytes: overlap_bytes as u64,
            stride_bytes,
            chunks,
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        Ok(SharedFeed { shared: Arc::new(shared), readers: Mutex::default() })
    }

    /// Returns the memory that holds the slots. Readers write to all slots except those delivered
    /// and not yet released.
    pub fn region(&self) -> &Arc<SharedRegion> {
        &self.shared.region
    }

    /// Returns the distance between slots in bytes; a multiple of [`PAGE_BYTES`].
    pub fn stride_bytes(&self) -> usize {
        self.shared.stride_bytes
    }

    /// Returns the length of the source in bytes.
    pub fn length(&self) -> u64 {
        self.shared.source.length()
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> u64 {
        self.shared.chunks
    }

    /// Starts `readers` threads (at least one) that fill free slots.
    ///
    /// # Errors
    /// [`Error::BadPlan`] if the feed was started before or is closed, or for too many readers,
    /// [`Error::Io`] if the system refuses a thread.
    pub fn start(&self, readers: usize) -> Result<()> {
        let mut started = lock(&self.readers);
        if !started.threads.is_empty() || self.shared.state().is_closed {
            return Err(Error::BadPlan("a feed is started once, before it is closed".to_string()));
        }
        if readers > 4096 {
            return Err(Error::BadPlan(format!("{readers} readers are too many; 4096 at most")));
        }
        started.process = std::process::id();
        for _ in 0..readers.max(1) {
            let shared = Arc::clone(&self.shared);
            match threads::alone("quarrier reader", move || shared.read()) {
                Ok(thread) => started.threads.push(thread),
                // Fewer readers can read everything, too.
                Err(_) if !started.threads.is_empty() => break,
                Err(error) => {
                    let name = self.shared.source.name();
                    return Err(Error::io(name, "start a thread that reads it", error));
                }
            }
        }
        Ok(())
    }

    /// Returns a finished chunk, not necessarily the next one in the source; waits for at most
    /// `patience`.
    ///
    /// # Errors
    /// [`Error::Shrank`] or [`Error::Io`] if the source cannot be read further, once.
    pub fn next(&self, patience: Duration) -> Result<Delivery> {
        let until = Instant::now() + patience;
        let mut state = self.shared.state();
        loop {
            if let Some(error) = state.failed.take() {
                state.is_closed = true;
                self.shared.changed.notify_all();
                return Err(error);
            }
            if state.is_closed || state.delivered == self.shared.chunks {
                return Ok(Delivery::Ended);
            }
            if let Some((_, slot)) = state.ready.pop_first() {
                state.delivered += 1;
                state.lent[slot.slot] = true;
                return Ok(Delivery::Chunk(slot));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Delivery::NotYet);
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    /// Releases a slot, so that it can be filled again.
    ///
    /// # Errors
    /// [`Error::BadPlan`] if the slot is not the caller's.
    pub fn release(&self, slot: usize) -> Result<()> {
        let mut state = self.shared.state();
        match state.lent.get_mut(slot) {
            Some(lent) if *lent => *lent = false,
            _ => return Err(Error::BadPlan(format!("slot {slot} was not delivered"))),
        }
        state.free.push(slot);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Returns the unreadable ranges so far, sorted, and merged if they touch.
    pub fn problems(&self) -> Vec<Unreadable> {
        let mut problems = self.shared.state().problems.clone();
        problems.sort_by_key(|problem| problem.range.start);
        problems.dedup_by(|next, last| {
            // Two chunks that show the same bad sector both report it.
            let touches = next.range.start <= last.range.end && next.reason == last.reason;
            if touches {
                last.range.end = last.range.end.max(next.range.end);
            }
            touches
        });
        problems
    }

    /// Ends the feed and waits for its threads, which finish their current read. A thread that waits in
    /// [`next`](Self::next) gets [`Delivery::Ended`].
    pub fn close(&self) {
        // In a forked child, the locks may be held by threads that do not exist there.
        if let Ok(readers) = self.readers.try_lock()
            && !readers.threads.is_empty()
            && readers.process != std::process::id()
        {
            return;
        }
        let mut readers = lock(&self.readers);
        self.shared.state().is_closed = true;
        self.shared.changed.notify_all();
        for thread in readers.threads.drain(..) {
            // The reader caught and reported its panic.
            let _ = thread.join();
        }
    }
}

impl Drop for SharedFeed {
    fn drop(&mut self) {
        self.close();
        let readers = self.readers.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Reached only in a forked child: the threads belong to another process.
        readers.threads.drain(..).for_each(std::mem::forget);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Runs a reader until no chunk is left.
    fn read(&self) {
        while let Some((slot, chunk)) = self.claim() {
            let filled = catch_unwind(AssertUnwindSafe(|| self.fill(slot, chunk)));
            let filled = filled.unwrap_or_else(|panic| {
                let reason = format!("its reader panicked: {}", crate::parallel::text_of(&*panic));
                Err(Error::NotReadable { source_name: self.source.name().to_string(), reason })
            });
            let mut state = self.state();
            match filled {
                Ok((filled, problems)) => {
                    state.problems.extend(problems);
                    state.ready.insert(chunk, filled);
                }
                Err(error) => {
                    state.next_chunk = self.chunks;
                    // Another reader's error may be with the caller already, who gets one only.
                    if !state.is_closed {
                        state.failed.get_or_insert(error);
                    }
                }
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Waits for a free slot and takes it for the next chunk. The slot comes first, so that the
    /// lowest chunk not yet delivered always has one.
    fn claim(&self) -> Option<(usize, u64)> {
        let mut state = self.state();
        loop {
            if state.is_closed || state.next_chunk >= self.chunks {
                return None;
            }
            if let Some(slot) = state.free.pop() {
                let chunk = state.next_chunk;
                state.next_chunk += 1;
                return Some((slot, chunk));
            }
            state = wait(&self.changed, state);
        }
    }

    fn fill(&self, slot: usize, chunk: u64) -> Result<(Slot, Vec<Unreadable>)> {
        let offset = chunk * self.chunk_bytes;
        let left = self.source.length() - offset;
        let filled = Slot {
            slot,
            offset,
            owned_bytes: self.chunk_bytes.min(left) as usize,
            visible_bytes: (self.chunk_bytes + self.overlap_bytes).min(left) as usize,
        };
        // SAFETY: `slot` is below the number of slots and `visible_bytes` is at most the stride, so
        // the slice lies within the mapping, which `self.region` keeps alive; its bytes are
        // initialised, and a `u8` is aligned anywhere. `claim` gives a slot to one reader, and it
        // is free again only after the holder of the delivered slot has released it. Others that have
        // the region may copy its bytes meanwhile, as bytes that change; a caller that makes a slice of
        // them promises that no reader writes to them (`SharedRegion::as_slice`).
        let bytes = unsafe {
            let start = self.region.as_ptr().add(slot * self.stride_bytes);
            std::slice::from_raw_parts_mut(start.as_ptr(), filled.visible_bytes)
        };
        let noting = Noting { source: &*self.source, last: Mutex::default() };
        let mut unreadable = Vec::new();
        retry::fill(&noting, offset, bytes, &mut unreadable)?;
        let reason = lock(&noting.last).take().unwrap_or_default();
        let problems = unreadable.into_iter();
        let problems = problems.map(|range| Unreadable { range, reason: reason.clone() });
        Ok((filled, problems.collect()))
    }
}

/// A source that remembers the system's last error.
struct Noting<'a> {
    source: &'a dyn Source,
    last: Mutex<Option<String>>,
}

impl Source for Noting<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn length(&self) -> u64 {
        self.source.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(offset, buffer);
        if let Err(error) = &read {
            *lock(&self.last) = Some(crate::error::plain(error));
        }
        read
    }

    fn sector_bytes(&self) -> usize {
        self.source.sector_bytes()
    }
}
