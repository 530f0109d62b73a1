//! Sequential requests with `pread` and `pwrite`.

use std::os::unix::fs::FileExt;
use std::time::Instant;

use quarrier_core::region::AlignedBuffer;

use super::job::{Action, Cache, Job};
use super::places::Places;
use super::room::TrialFile;
use super::worker::Outcome;
use crate::error::Result;
use crate::schedule::{Schedule, Turn};

/// Smaller requests from the page cache are too short to be timed individually.
const TIMED_BYTES_MIN: usize = 4096;
/// Number of such requests between two readings of the clock.
const UNTIMED: usize = 64;

/// One thread's requests.
pub(super) struct PlainWorker {
    buffer: AlignedBuffer,
    block_bytes: usize,
    action: Action,
    cache: Cache,
    places: Places,
    /// The offset that the buffer's bytes belong to: the first for which they were generated, or the
    /// last one read.
    held: Option<u64>,
}

impl PlainWorker {
    pub(super) fn new(job: &Job, places: Places) -> PlainWorker {
        let mut buffer = AlignedBuffer::new(job.block_bytes);
        buffer.fill(1);
        let (block_bytes, action, cache) = (job.block_bytes, job.action, job.cache);
        PlainWorker { buffer, block_bytes, action, cache, places, held: None }
    }

    /// Makes requests by `schedule`. Data written through the page cache is on disk when this returns.
    pub(super) fn run(
        &mut self,
        file: &TrialFile,
        generation: u8,
        schedule: &mut Schedule<'_>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        if self.cache == Cache::Cold || self.action == Action::Write && self.cache == Cache::Warm {
            self.places.once();
        }
        let timed = self.block_bytes >= TIMED_BYTES_MIN || self.cache != Cache::Warm;
        let group = if timed { 1 } else { UNTIMED };
        let mut now = Instant::now();
        'all: loop {
            let since = match schedule.turn(now) {
                Turn::Over => break,
                Turn::Wait(due) => {
                    std::thread::sleep(due.saturating_duration_since(now));
                    now = Instant::now();
                    continue;
                }
                Turn::Go(since) => since,
            };
            for _ in 0..group {
                let Some(offset) = self.places.next() else { break 'all };
                self.request(file, generation, offset, outcome)?;
            }
            now = Instant::now();
            outcome.count(now);
            if timed {
                outcome.latencies.record(now.saturating_duration_since(since));
            }
        }
        if self.action == Action::Write {
            file.file().sync_data().map_err(|error| file.failed("write it to the disk", error))?;
        }
        Ok(())
    }

    fn request(
        &mut self,
        file: &TrialFile,
        generation: u8,
        offset: u64,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let bytes = &mut self.buffer[..self.block_bytes];
        let done = match self.action {
            Action::Read => file.file().read_exact_at(bytes, offset),
            Action::Write => {
                let held = file.content().write(offset, generation, bytes, self.held);
                self.held = Some(held);
                file.content().mark(offset, bytes.len(), generation, held);
                outcome.recent.add(offset);
                file.file().write_all_at(bytes, offset)
            }
        };
        done.map_err(|error| file.failed(&format!("read or write at {offset}"), error))?;
        outcome.requests += 1;
        if self.action == Action::Read {
            self.held = Some(offset);
            file.compare_hastily(offset, bytes)?;
        }
        Ok(())
    }

    /// Compares the whole block that was read last.
    pub(super) fn compare_last(&self, file: &TrialFile) -> Result<()> {
        match (self.action, self.held) {
            (Action::Read, Some(offset)) => file.compare(offset, &self.buffer[..self.block_bytes]),
            _ => Ok(()),
        }
    }
}
