//! Many small files: workers read and search them whole, ahead of the consumer, which takes the
//! findings in order.
//!
//! ```text
//!  names ─→ groups ─→ workers: open, read, search ─→ results, held until it is their turn ─→ consumer
//! ```
//!
//! A pipeline for each file would start threads and map memory for a few kilobytes. Sources that are not
//! small files are passed on by name, in their turn.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use quarrier_core::parallel::planned_workers;
use quarrier_core::source::{Source, open_in_order};
use quarrier_core::sync::{lock, wait};
use quarrier_core::threads::in_scope;
use quarrier_images::Kind;
use quarrier_search::{Finding, Searcher};

use crate::Named;
use crate::source::is_part_of_image;

/// Maximum size of files that are read whole.
const SMALL_BYTES_MAX: usize = 256 << 10;
/// Number of names that a worker claims at a time.
const GROUP: usize = 32;
/// Number of groups per worker that may wait for their turn.
const GROUPS_AHEAD: usize = 4;

/// The result for a name.
#[derive(Debug)]
pub enum Ahead<'n> {
    /// A small file was read and searched.
    Small {
        /// The file.
        path: &'n Path,
        /// All bytes of the file; empty if there are no findings.
        data: Vec<u8>,
        /// The findings of all patterns, in order.
        findings: Vec<Finding>,
        /// The length of the file in bytes.
        length_bytes: u64,
    },
    /// Not a small file, or unreadable: open and search it like any source.
    Other(&'n Named),
}

/// The cost of the threads' work.
#[derive(Debug, Clone, Copy, Default)]
pub struct AheadLoad {
    /// Time spent opening and reading.
    pub read: Duration,
    /// Time spent searching.
    pub work: Duration,
    /// The number of workers.
    pub workers: usize,
}

/// Searches small files ahead; see [`Running::ahead`](super::Running::ahead).
pub struct SmallFiles {
    searcher: Arc<Searcher>,
    workers: usize,
}

struct Queue<'n> {
    named: &'n [Named],
    /// The next group for a worker to claim.
    claimed: AtomicUsize,
    state: Mutex<State<'n>>,
    changed: Condvar,
    ended: AtomicBool,
    ahead_max: usize,
}

#[derive(Default)]
struct State<'n> {
    done: BTreeMap<usize, Vec<Ahead<'n>>>,
    /// The next group in order.
    turn: usize,
    load: AheadLoad,
}

impl SmallFiles {
    pub(super) fn new(searcher: Arc<Searcher>, workers: usize) -> Self {
        SmallFiles { searcher, workers: planned_workers(workers) }
    }

    /// Searches `named` on threads, and calls `consume` with each result, in order, on the caller's
    /// thread. The results end early after `stop` becomes true.
    pub fn run<'n, R>(
        &self,
        named: &'n [Named],
        stop: &AtomicBool,
        consume: impl FnOnce(&mut dyn Iterator<Item = Ahead<'n>>) -> R,
    ) -> (R, AheadLoad) {
        let queue = Queue {
            named,
            claimed: AtomicUsize::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
            ended: AtomicBool::new(false),
            ahead_max: self.workers * GROUPS_AHEAD,
        };
        let reader = || Reader::new(&self.searcher);
        let result = std::thread::scope(|scope| {
            // Ends the workers even if the consumer panics.
            let _end = End { queue: &queue, is_consumer: true };
            for _ in 0..self.workers.min(queue.groups()) {
                let work = || {
                    let _end = End { queue: &queue, is_consumer: false };
                    queue.work(&mut reader(), stop);
                };
                // If the system refuses a thread, the consumer does the remaining work.
                if in_scope(scope, "", work).is_err() {
                    break;
                }
            }
            let group = Vec::new().into_iter();
            consume(&mut Results { queue: &queue, reader: reader(), stop, group })
        });
        let load = AheadLoad { workers: self.workers, ..lock(&queue.state).load };
        (result, load)
    }
}

/// Signals the others that this end has stopped consuming or producing.
struct End<'q, 'n> {
    queue: &'q Queue<'n>,
    is_consumer: bool,
}

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        if self.is_consumer || std::thread::panicking() {
            self.queue.ended.store(true, Ordering::Release);
            // Synchronises with a thread that is about to wait.
            drop(lock(&self.queue.state));
            self.queue.changed.notify_all();
        }
    }
}

impl<'n> Queue<'n> {
    fn groups(&self) -> usize {
        self.named.len().div_ceil(GROUP)
    }

    /// Processes one group after another, at most the allowed number ahead.
    fn work(&self, reader: &mut Reader<'_>, stop: &AtomicBool) {
        loop {
            let group = self.claimed.fetch_add(1, Ordering::Relaxed);
            if group >= self.groups() {
                return;
            }
            let mut state = lock(&self.state);
            while group >= state.turn + self.ahead_max && !self.is_over(stop) {
                state = wait(&self.changed, state);
            }
            drop(state);
            if self.is_over(stop) {
                // Synchronises with the consumer, which may wait for this group.
                drop(lock(&self.state));
                self.changed.notify_all();
                return;
            }
            self.do_group(group, reader, stop);
        }
    }

    fn is_over(&self, stop: &AtomicBool) -> bool {
        self.ended.load(Ordering::Acquire) || stop.load(Ordering::Relaxed)
    }

    fn do_group(&self, group: usize, reader: &mut Reader<'_>, stop: &AtomicBool) {
        let start = group * GROUP;
        let names = &self.named[start..(start + GROUP).min(self.named.len())];
        let wanted = names.iter().take_while(|_| !self.is_over(stop));
        let results: Vec<Ahead<'n>> = wanted.map(|named| reader.read(named)).collect();
        let mut state = lock(&self.state);
        state.done.insert(group, results);
        state.load.read += std::mem::take(&mut reader.read_time);
        state.load.work += std::mem::take(&mut reader.work_time);
        drop(state);
        self.changed.notify_all();
    }
}

/// An iterator over the results in order.
struct Results<'q, 'n> {
    queue: &'q Queue<'n>,
    reader: Reader<'q>,
    stop: &'q AtomicBool,
    group: std::vec::IntoIter<Ahead<'n>>,
}

impl<'n> Iterator for Results<'_, 'n> {
    type Item = Ahead<'n>;

    fn next(&mut self) -> Option<Ahead<'n>> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(result) = self.group.next() {
                return Some(result);
            }
            self.group = self.next_group()?.into_iter();
        }
    }
}

impl<'n> Results<'_, 'n> {
    fn next_group(&mut self) -> Option<Vec<Ahead<'n>>> {
        let queue = self.queue;
        let mut state = lock(&queue.state);
        let turn = state.turn;
        if turn >= queue.groups() {
            return None;
        }
        loop {
            if let Some(group) = state.done.remove(&turn) {
                state.turn += 1;
                drop(state);
                queue.changed.notify_all();
                return Some(group);
            }
            let claim = |claimed: usize| (claimed == turn).then_some(turn + 1);
            let order = Ordering::Relaxed;
            if queue.claimed.fetch_update(order, order, claim).is_ok() {
                drop(state);
                queue.do_group(turn, &mut self.reader, self.stop);
                state = lock(&queue.state);
                continue;
            }
            if queue.is_over(self.stop) {
                return None;
            }
            state = wait(&queue.changed, state);
        }
    }
}

/// A file in memory.
struct Whole<'b>(&'b [u8]);

impl Source for Whole<'_> {
    fn name(&self) -> &str {
        ""
    }

    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Reads and searches files, one at a time, in its own buffer.
struct Reader<'s> {
    searcher: &'s Searcher,
    buffer: Vec<u8>,
    read_time: Duration,
    work_time: Duration,
}

impl<'s> Reader<'s> {
    fn new(searcher: &'s Searcher) -> Self {
        let (read_time, work_time) = (Duration::ZERO, Duration::ZERO);
        Reader { searcher, buffer: Vec::new(), read_time, work_time }
    }

    fn read<'n>(&mut self, named: &'n Named) -> Ahead<'n> {
        let other = Ahead::Other(named);
        let Named::Path(path) = named else { return other };
        let start = Instant::now();
        let read = self.read_small(path);
        let middle = Instant::now();
        self.read_time += middle - start;
        let Some(length) = read else { return other };
        let bytes = &self.buffer[..length];
        // A file that wraps a disk is searched as the disk inside.
        if Kind::of(&Whole(bytes), false).is_some() {
            return other;
        }
        // The regular path searches again and reports a match that is too long.
        let Ok(findings) = self.searcher.find_all(bytes) else { return other };
        self.work_time += middle.elapsed();
        let data = if findings.is_empty() { Vec::new() } else { bytes.to_vec() };
        Ahead::Small { path, data, findings, length_bytes: length as u64 }
    }

    /// Reads a small file into the buffer, and returns its length.
    fn read_small(&mut self, path: &Path) -> Option<usize> {
        if is_part_of_image(path) {
            return None;
        }
        // Even if the name refers to something else by now, opening it does not block.
        let mut file = open_in_order(path).ok()?;
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let length =
            usize::try_from(meta.len()).ok().filter(|length| *length <= SMALL_BYTES_MAX)?;
        // One more byte reveals that the file has grown, or that it is a kernel file without a length.
        if self.buffer.len() <= length {
            self.buffer.resize(length + 1, 0);
        }
        let mut filled = 0;
        loop {
            match file.read(&mut self.buffer[filled..=length]) {
                Ok(0) => return Some(filled),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            match filled {
                filled if filled > length => return None,
                // A regular file returns a short read only at its end.
                filled if filled == length => return Some(filled),
                _ => {}
            }
        }
    }
}
