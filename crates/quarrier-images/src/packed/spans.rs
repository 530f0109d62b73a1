//! A source of spans that are decompressed on demand and cached within a memory limit.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Condvar, Mutex};

use quarrier_core::meminfo::usable_bytes;
use quarrier_core::source::Source;
use quarrier_core::sync::{lock, wait};

use crate::fault::{invalid, room};

/// The number of longest spans to cache, within these memory limits.
const SPANS_HELD: u64 = 8;
const HELD_BYTES: (u64, u64) = (64 << 20, 512 << 20);
/// Maximum spans being decompressed at a time.
const UNDER_WAY_MAX: usize = 64;

/// Maximum size of the spans to hold before they were read, in bytes.
pub(super) fn first_bytes_max() -> usize {
    // Several images may be open, and some of them are never read completely.
    let bytes = (HELD_BYTES.1 - HELD_BYTES.0).min(usable_bytes().unwrap_or(u64::MAX) / 8);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn held_bytes_max() -> u64 {
    HELD_BYTES.1.min(usable_bytes().unwrap_or(u64::MAX) / 4)
}

/// Decompresses spans.
pub(super) trait Unpack: Send + Sync {
    /// Decompresses span `index` into `out`, which has its length.
    ///
    /// # Errors
    /// If it cannot be read, or its bytes are invalid.
    fn unpack(&self, index: usize, out: &mut [u8]) -> io::Result<()>;
}

/// The contents of a compressed file.
pub(super) struct Spans<U> {
    name: String,
    /// The start of each span; the first is 0.
    starts: Vec<u64>,
    /// The end of the last span, and the length of the source, which is greater if the rest is damaged.
    end: u64,
    length: u64,
    /// The reason why nothing after `end` can be read, if the file is damaged.
    damage: Option<String>,
    sector_bytes: usize,
    room_bytes: u64,
    unpack: U,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By index, with the number of the read that last used it.
    held: BTreeMap<usize, (u64, Arc<Vec<u8>>)>,
    held_bytes: u64,
    /// Spans that were decompressed while the file was opened, until they are read.
    first: BTreeMap<usize, Arc<Vec<u8>>>,
    under_way: BTreeSet<usize>,
    reads: u64,
}

impl<U: Unpack> Spans<U> {
    /// A source of spans that begin at `starts` and end at `end`. If `damage` cuts it off there, it has
    /// one more byte, which cannot be read.
    pub(super) fn new(
        name: &str,
        starts: Vec<u64>,
        end: u64,
        damage: Option<String>,
        unpack: U,
    ) -> Self {
        let ends = starts.iter().skip(1).copied().chain([end]);
        let longest = starts.iter().zip(ends).map(|(start, end)| end - start).max().unwrap_or(0);
        Spans {
            name: name.to_string(),
            starts,
            end,
            length: end + u64::from(damage.is_some()),
            damage,
            sector_bytes: usize::try_from(longest).unwrap_or(usize::MAX).max(512),
            room_bytes: (longest * SPANS_HELD)
                .clamp(HELD_BYTES.0, HELD_BYTES.1)
                .min(held_bytes_max()),
            unpack,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Adds the first spans, as many as fit in memory, so that they need not be decompressed again.
    pub(super) fn holding_first(self, spans: Vec<Vec<u8>>) -> Self {
        let mut room = match spans.len() {
            0 | 1 => u64::MAX,
            _ => held_bytes_max().saturating_sub(self.room_bytes),
        };
        let starts = self.starts.len();
        let mut first = BTreeMap::new();
        for (index, span) in spans.into_iter().enumerate().take(starts) {
            let bytes = span.len() as u64;
            if bytes != self.bytes_of(index) || bytes > room {
                break;
            }
            room -= bytes;
            first.insert(index, Arc::new(span));
        }
        lock(&self.state).first = first;
        self
    }

    fn bytes_of(&self, index: usize) -> u64 {
        self.starts.get(index + 1).copied().unwrap_or(self.end) - self.starts[index]
    }

    /// Returns a span, decompressing it if necessary.
    fn span(&self, index: usize) -> io::Result<Arc<Vec<u8>>> {
        let mut state = lock(&self.state);
        loop {
            state.reads += 1;
            let reads = state.reads;
            if let Some((used, span)) = state.held.get_mut(&index) {
                *used = reads;
                return Ok(Arc::clone(span));
            }
            if let Some(span) = state.first.remove(&index) {
                state.hold(index, &span, self.room_bytes);
                return Ok(span);
            }
            if !state.under_way.contains(&index) {
                state.under_way.insert(index);
                drop(state);
                return self.unpacked(index);
            }
            // Another reader decompresses this span, as in a sequential read: the next spans will be
            // needed soon.
            match self.next_free(&state, index) {
                Some(next) => {
                    state.under_way.insert(next);
                    drop(state);
                    // An error recurs for the reader that needs the span.
                    let _ = self.unpacked(next);
                    state = lock(&self.state);
                }
                None => state = wait(&self.changed, state),
            }
        }
    }

    /// The next span after `index` that nobody is decompressing, if there is memory for it.
    fn next_free(&self, state: &State, index: usize) -> Option<usize> {
        let under_way: u64 = state.under_way.iter().map(|&index| self.bytes_of(index)).sum();
        let is_free = |next: &usize| {
            !state.held.contains_key(next)
                && !state.first.contains_key(next)
                && !state.under_way.contains(next)
        };
        let last = (index + 1 + UNDER_WAY_MAX).min(self.starts.len());
        let next = (index + 1..last).find(is_free)?;
        let wanted = under_way + self.bytes_of(next);
        (state.under_way.len() < UNDER_WAY_MAX && wanted <= self.room_bytes / 2).then_some(next)
    }

    /// Decompresses a span that this thread marked as under way, and caches it.
    fn unpacked(&self, index: usize) -> io::Result<Arc<Vec<u8>>> {
        let under_way = UnderWay { spans: self, index };
        let mut bytes = room(self.bytes_of(index) as usize)?;
        let unpacked = self.unpack.unpack(index, &mut bytes);
        let span = unpacked.map(|()| Arc::new(bytes));
        if let Ok(span) = &span {
            lock(&self.state).hold(index, span, self.room_bytes);
        }
        drop(under_way);
        span
    }
}

impl State {
    fn hold(&mut self, index: usize, span: &Arc<Vec<u8>>, room_bytes: u64) {
        self.held_bytes += span.len() as u64;
        self.held.insert(index, (self.reads, Arc::clone(span)));
        while self.held_bytes > room_bytes && self.held.len() > 1 {
            let oldest = self.held.iter().min_by_key(|(_, (used, _))| *used).map(|(at, _)| *at);
            let Some((_, gone)) = oldest.and_then(|oldest| self.held.remove(&oldest)) else {
                break;
            };
            self.held_bytes -= gone.len() as u64;
        }
    }
}

/// Marks a span as under way until dropped, also if decompression panics.
struct UnderWay<'s, U> {
    spans: &'s Spans<U>,
    index: usize,
}

impl<U> Drop for UnderWay<'_, U> {
    fn drop(&mut self) {
        lock(&self.spans.state).under_way.remove(&self.index);
        self.spans.changed.notify_all();
    }
}

impl<U: Unpack> Source for Spans<U> {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn readable_end(&self) -> u64 {
        self.end
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            if at >= self.length {
                break;
            }
            let span = match at < self.end {
                true => {
                    let index = self.starts.partition_point(|&start| start <= at) - 1;
                    self.span(index).map(|span| (span, (at - self.starts[index]) as usize))
                }
                false => Err(invalid(self.damage.clone().unwrap_or_default())),
            };
            match span {
                Ok((span, from)) => {
                    let count = (span.len() - from).min(buffer.len() - filled);
                    buffer[filled..filled + count].copy_from_slice(&span[from..from + count]);
                    filled += count;
                }
                // Return the bytes read; the next read reports the error.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn is_packed(&self) -> bool {
        true
    }

    /// A span can only be read as a whole.
    fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }
}
