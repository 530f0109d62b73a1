//! Writes of less than a sector. They have no room for a stamp, so they invert bits in place;
//! afterwards they are verified and the file is restored.

use std::os::unix::fs::FileExt;
use std::time::Instant;

use quarrier_core::region::AlignedBuffer;

use super::job::Job;
use super::places::Places;
use super::room::TrialFile;
use super::worker::Outcome;
use crate::error::Result;
use crate::schedule::{Schedule, Turn};

/// Each thread writes into a window of this size.
pub(super) const WINDOW_BYTES: u64 = 1 << 20;
/// Writes between two readings of the clock.
const UNTIMED: usize = 64;

/// One thread's writes.
pub(super) struct SmallWriter {
    block: Vec<u8>,
    places: Places,
    /// The offset of the thread's window.
    first: u64,
    /// The number of bytes in its whole blocks.
    bytes: usize,
}

impl SmallWriter {
    /// Returns `None` if the file has no room for a window for each thread.
    pub(super) fn new(job: &Job, file: &TrialFile, thread: usize) -> Option<SmallWriter> {
        let all = WINDOW_BYTES * job.threads as u64;
        let window = Places::of(job.order, job.block_bytes, all, thread, job.threads)?;
        let places = (all <= file.bytes()).then_some(window)?;
        let blocks = all / job.block_bytes as u64 / job.threads as u64;
        let bytes = blocks * job.block_bytes as u64;
        let first = bytes * thread as u64;
        Some(SmallWriter { block: vec![0; job.block_bytes], places, first, bytes: bytes as usize })
    }

    pub(super) fn run(
        &mut self,
        file: &TrialFile,
        schedule: &mut Schedule<'_>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        while let Turn::Go(_) = schedule.turn(Instant::now()) {
            for _ in 0..UNTIMED {
                let Some(offset) = self.places.next() else { break };
                for (at, byte) in (offset..).zip(&mut self.block) {
                    *byte = !file.content().byte(at);
                }
                file.file()
                    .write_all_at(&self.block, offset)
                    .map_err(|error| file.failed(&format!("write at {offset}"), error))?;
                outcome.recent.add(offset);
                outcome.requests += 1;
            }
        }
        file.file().sync_data().map_err(|error| file.failed("write it to the disk", error))
    }

    /// Verifies the last writes and restores the file.
    pub(super) fn compare_and_mend(&mut self, file: &TrialFile, outcome: &Outcome) -> Result<()> {
        for offset in outcome.recent.offsets() {
            file.file()
                .read_exact_at(&mut self.block, offset)
                .map_err(|error| file.failed(&format!("read at {offset}"), error))?;
            let wrong =
                (offset..).zip(&self.block).find(|&(at, &byte)| byte != !file.content().byte(at));
            if let Some((at, _)) = wrong {
                return Err(file.wrong(at));
            }
        }
        self.mend(file)
    }

    fn mend(&self, file: &TrialFile) -> Result<()> {
        let mut buffer = AlignedBuffer::new(self.bytes);
        for (at, byte) in (self.first..).zip(buffer.iter_mut()) {
            *byte = file.content().byte(at);
        }
        file.file()
            .write_all_at(&buffer, self.first)
            .map_err(|error| file.failed(&format!("write at {}", self.first), error))
    }
}
