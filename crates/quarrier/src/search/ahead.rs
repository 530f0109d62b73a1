//! Many small files: workers read and search them whole, ahead of the consumer, which takes the
//! findings in order.
//!
//! A pipeline for each file would start threads and map memory for a few kilobytes. Sources that are not
//! small files are passed on by name, in their turn.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::parallel::planned_workers;
use quarrier_search::{Finding, Searcher};

use crate::Named;
use crate::source::{Ahead as InTurn, SmallReader};

/// Maximum size of files that are read whole.
const SMALL_BYTES_MAX: usize = 256 << 10;
/// Number of names that a worker claims at a time.
const GROUP: usize = 32;

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
        let times = Times::default();
        let worker = || {
            let mut reader = SmallReader::new(SMALL_BYTES_MAX);
            let times = &times;
            move |named| searched(&self.searcher, &mut reader, named, times)
        };
        let ahead = InTurn { workers: self.workers, group: GROUP };
        let result = ahead.run(named, stop, worker, consume);
        let time =
            |nanoseconds: &AtomicU64| Duration::from_nanos(nanoseconds.load(Ordering::Relaxed));
        let (read, work) = (time(&times.read), time(&times.work));
        (result, AheadLoad { read, work, workers: self.workers })
    }
}

/// Nanoseconds that all threads spent.
#[derive(Default)]
struct Times {
    read: AtomicU64,
    work: AtomicU64,
}

fn add(to: &AtomicU64, time: Duration) {
    to.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

fn searched<'n>(
    searcher: &Searcher,
    reader: &mut SmallReader,
    named: &'n Named,
    times: &Times,
) -> Ahead<'n> {
    let other = Ahead::Other(named);
    let Named::Path(path) = named else { return other };
    let start = Instant::now();
    let read = reader.read(path);
    let middle = Instant::now();
    add(&times.read, middle - start);
    let Some(bytes) = read else { return other };
    // The regular path searches again and reports a match that is too long.
    let Ok(findings) = searcher.find_all(bytes) else { return other };
    add(&times.work, middle.elapsed());
    let data = if findings.is_empty() { Vec::new() } else { bytes.to_vec() };
    Ahead::Small { path, data, findings, length_bytes: bytes.len() as u64 }
}
