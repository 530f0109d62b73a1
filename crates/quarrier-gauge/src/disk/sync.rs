//! The time until a small write is on disk.

use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Instant;

use quarrier_core::region::AlignedBuffer;

use super::job::Order;
use super::places::Places;
use super::room::TrialFile;
use crate::error::{Error, Result};
use crate::latencies::Latencies;
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::schedule::{Schedule, Turn};
use crate::trial::{Needs, Series, Session, ThreadWork, Trial};

const BLOCK_BYTES: usize = 4096;

/// Writes blocks of 4 KiB in order and calls `fdatasync` after each; the value is the time of that call
/// alone. This is a closed loop: a slow call delays the next.
///
/// # Errors
/// If the system refuses, or a block differs when read back.
pub fn measure_sync(session: &mut Session<'_>, file: &mut TrialFile) -> Result<Series> {
    let parameters = Parameters::new()
        .with("block_bytes", BLOCK_BYTES)
        .with("access", "sequential")
        .with("threads", 1)
        .with("calls", "fdatasync")
        .with("load", "closed loop")
        .with("file_bytes", file.bytes())
        .with("file_system", file.file_system());
    let subject = Subject::new(Area::Disk, "sync", parameters, Unit::Seconds);
    let places = Places::of(Order::Sequential, BLOCK_BYTES, file.bytes(), 0, 1)
        .ok_or_else(|| Error::BadRequest("the trial file has no block".to_owned()))?;
    file.set_direct(false)?;
    let block = AlignedBuffer::new(BLOCK_BYTES);
    let mut writer = [Writer { places, block, last: 0, latencies: Latencies::new()? }];
    let (time, stop) = (session.effort.trial, session.stop);
    let mut times = Vec::new();
    let mut runs = session.runs(subject, Needs::Answers, |team| {
        let generation = file.next_generation();
        let shared: &TrialFile = file;
        let trial = team.run_unpinned(&mut writer, |_, writer| {
            writer.run(shared, generation, &mut Schedule::new(time, None, stop))
        })?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        writer[0].read_back(shared)?;
        let latencies = writer[0].latencies.clone();
        let trial = Trial { seconds: latencies.median_seconds(), units: 1.0, ..trial };
        times.push(latencies);
        Ok(trial)
    })?;
    runs.latencies = Some(Latencies::sum(&runs.kept_of(&times))?);
    Ok(runs)
}

/// Writes and waits.
struct Writer {
    places: Places,
    block: AlignedBuffer,
    /// The offset of the last block.
    last: u64,
    latencies: Latencies,
}

impl Writer {
    fn run(
        &mut self,
        file: &TrialFile,
        generation: u8,
        schedule: &mut Schedule<'_>,
    ) -> Result<ThreadWork> {
        self.latencies.clear();
        let mut count = 0;
        while let Turn::Go(_) = schedule.turn(Instant::now()) {
            let Some(offset) = self.places.next() else { break };
            let held = file.content().write(offset, generation, &mut self.block, None);
            file.content().mark(offset, BLOCK_BYTES, generation, held);
            file.file()
                .write_all_at(&self.block, offset)
                .map_err(|error| file.failed(&format!("write at {offset}"), error))?;
            let start = Instant::now();
            file.file().sync_data().map_err(|error| file.failed("write it to the disk", error))?;
            self.latencies.record(start.elapsed());
            (self.last, count) = (offset, count + 1);
        }
        Ok(ThreadWork { units: f64::from(count), check: self.last })
    }

    fn read_back(&mut self, file: &TrialFile) -> Result<()> {
        file.file()
            .read_exact_at(&mut self.block, self.last)
            .map_err(|error| file.failed(&format!("read at {}", self.last), error))?;
        file.compare(self.last, &self.block)
    }
}
