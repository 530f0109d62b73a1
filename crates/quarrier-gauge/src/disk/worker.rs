//! One thread's share of a job.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use quarrier_core::region::AlignedBuffer;

use super::content::SECTOR_BYTES;
use super::job::{Action, Cache, Job};
use super::places::Places;
use super::plain::PlainWorker;
use super::ring::RingWorker;
use super::room::TrialFile;
use super::small::SmallWriter;
use crate::error::{Error, Result};
use crate::latencies::Latencies;
use crate::schedule::Schedule;
use crate::trial::{ThreadWork, Windows};

/// Number of recent writes that are kept for reading back.
const RECENT: usize = 16;
/// Maximum number of their bytes to read back; at least one block.
const READ_BACK_BYTES: usize = 4 << 20;

/// The outcome of a thread's run.
pub(super) struct Outcome {
    pub(super) requests: u64,
    pub(super) latencies: Latencies,
    pub(super) recent: Recent,
    /// Counts the bytes of the requests by the time of their end.
    windows: Option<Arc<Windows>>,
    /// The number of requests that they have counted.
    counted: u64,
    block_bytes: u64,
}

impl Outcome {
    /// Counts the requests that have ended since the last call, in the window of `now`.
    pub(super) fn count(&mut self, now: Instant) {
        if let Some(windows) = &self.windows {
            windows.add(now, (self.requests - self.counted) * self.block_bytes);
            self.counted = self.requests;
        }
    }
}

/// The offsets of the last writes.
#[derive(Default)]
pub(super) struct Recent {
    offsets: [u64; RECENT],
    count: usize,
}

impl Recent {
    pub(super) fn add(&mut self, offset: u64) {
        self.offsets[self.count % RECENT] = offset;
        self.count += 1;
    }

    pub(super) fn offsets(&self) -> impl Iterator<Item = u64> {
        self.offsets[..self.count.min(RECENT)].iter().copied()
    }
}

/// How a thread makes requests.
enum Way {
    Ring(Box<RingWorker>),
    Plain(PlainWorker),
    Small(SmallWriter),
}

/// A thread's requests, run after run.
pub(super) struct Worker {
    way: Way,
    action: Action,
    block_bytes: usize,
    offered_per_second: Option<f64>,
    pub(super) outcome: Outcome,
}

impl Worker {
    /// Creates the worker of thread `thread`; `ring` selects io_uring.
    pub(super) fn new(job: &Job, file: &TrialFile, ring: bool, thread: usize) -> Result<Worker> {
        let too_small = || {
            let needed = job.block_bytes as u64 * job.threads as u64;
            Error::BadRequest(format!(
                "the trial file has {} bytes, and {} threads need {needed} or more",
                file.bytes(),
                job.threads
            ))
        };
        let small = job.action == Action::Write && job.block_bytes < SECTOR_BYTES;
        if small {
            let writer = SmallWriter::new(job, file, thread).ok_or_else(too_small)?;
            return Worker::of(job, Way::Small(writer));
        }
        let places = Places::of(job.order, job.block_bytes, file.bytes(), thread, job.threads);
        Worker::at(job, file, ring, places.ok_or_else(too_small)?)
    }

    /// Creates a worker that makes its requests at `places`; `ring` selects io_uring.
    pub(super) fn at(job: &Job, file: &TrialFile, ring: bool, places: Places) -> Result<Worker> {
        let way = if ring && job.cache == Cache::Direct {
            let worker = RingWorker::new(job, places)
                .map_err(|error| file.failed("set up io_uring", error))?;
            Way::Ring(Box::new(worker))
        } else {
            Way::Plain(PlainWorker::new(job, places))
        };
        Worker::of(job, way)
    }

    fn of(job: &Job, way: Way) -> Result<Worker> {
        Ok(Worker {
            way,
            action: job.action,
            block_bytes: job.block_bytes,
            offered_per_second: job.offered_per_second.map(|rate| rate / job.threads as f64),
            outcome: Outcome {
                requests: 0,
                latencies: Latencies::new()?,
                recent: Recent::default(),
                windows: None,
                counted: 0,
                block_bytes: job.block_bytes as u64,
            },
        })
    }

    /// The same worker, which also counts the bytes of its requests in `windows`, from their start on.
    pub(super) fn counting(mut self, windows: &Arc<Windows>) -> Worker {
        self.outcome.windows = Some(Arc::clone(windows));
        self
    }

    /// Prepares a run outside the measured time.
    pub(super) fn prepare(&mut self, file: &TrialFile, generation: u8) -> Result<()> {
        match &mut self.way {
            Way::Ring(worker) => worker.prepare(file, generation),
            Way::Plain(_) | Way::Small(_) => Ok(()),
        }
    }

    /// Makes requests for `time`, or until `stop` is set. Discards the outcome of the run before.
    pub(super) fn run(
        &mut self,
        file: &TrialFile,
        generation: u8,
        time: Duration,
        stop: &AtomicBool,
    ) -> Result<ThreadWork> {
        let outcome = &mut self.outcome;
        (outcome.requests, outcome.counted) = (0, 0);
        if let Some(windows) = &outcome.windows {
            windows.begin();
        }
        outcome.latencies.clear();
        outcome.recent = Recent::default();
        let mut schedule = Schedule::new(time, self.offered_per_second, stop);
        match &mut self.way {
            Way::Ring(worker) => worker.run(file, generation, &mut schedule, outcome),
            Way::Plain(worker) => worker.run(file, generation, &mut schedule, outcome),
            Way::Small(worker) => worker.run(file, &mut schedule, outcome),
        }?;
        Ok(ThreadWork { units: outcome.requests as f64, check: outcome.requests })
    }

    /// Compares the last blocks read, or some of the last ones written, outside the measured time.
    pub(super) fn compare(&mut self, file: &TrialFile) -> Result<()> {
        match &mut self.way {
            Way::Small(worker) => worker.compare_and_mend(file, &self.outcome),
            Way::Plain(worker) if self.action == Action::Read => worker.compare_last(file),
            Way::Ring(worker) if self.action == Action::Read => worker.compare_last(file),
            _ => self.read_back(file),
        }
    }

    fn read_back(&self, file: &TrialFile) -> Result<()> {
        let mut buffer = AlignedBuffer::new(self.block_bytes);
        let blocks = (READ_BACK_BYTES / self.block_bytes).max(1);
        for offset in self.outcome.recent.offsets().take(blocks) {
            file.file()
                .read_exact_at(&mut buffer, offset)
                .map_err(|error| file.failed(&format!("read at {offset}"), error))?;
            file.compare(offset, &buffer)?;
        }
        Ok(())
    }
}
