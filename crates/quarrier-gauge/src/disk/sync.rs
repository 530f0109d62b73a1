//! How long it takes until a small write is on the disk.

use std::os::unix::fs::FileExt;
use std::time::Instant;

use quarrier_core::region::AlignedBuffer;

use super::job::Order;
use super::measure::last;
use super::places::Places;
use super::room::TrialFile;
use crate::error::{Error, Result};
use crate::latencies::Latencies;
use crate::reading::{Area, Parameters, Reading, Subject, Unit};
use crate::trial::{Done, Needs, Session, Trial};

const BLOCK_BYTES: usize = 4096;

/// One after the other, blocks of 4 KiB are written and `fdatasync` is called; its time alone is
/// the value. A closed loop: nothing waits for a slow one.
///
/// # Errors
/// The system refuses, or a block read back is not what was written.
pub fn measure_sync(session: &mut Session<'_>, file: &mut TrialFile) -> Result<Reading> {
    let parameters = Parameters::new()
        .with("block_bytes", BLOCK_BYTES)
        .with("threads", 1)
        .with("calls", "fdatasync")
        .with("load", "closed loop")
        .with("file_bytes", file.bytes())
        .with("file_system", file.file_system());
    let subject = Subject::new(Area::Disk, "sync", parameters, Unit::Seconds);
    let places = Places::of(Order::Sequential, BLOCK_BYTES, file.bytes(), 0, 1)
        .ok_or_else(|| Error::BadRequest("the trial file has no block".to_owned()))?;
    file.set_direct(false)?;
    let mut state = [(places, AlignedBuffer::new(BLOCK_BYTES))];
    let (time, stop) = (session.effort.trial, session.stop);
    let mut runs = Vec::new();
    let mut reading = session.read(subject, Needs::Answers, |team| {
        let generation = file.next_generation();
        let shared: &TrialFile = file;
        let times = std::sync::Mutex::new(Latencies::new()?);
        let trial = team.run(&mut state, |_, (places, block)| {
            team.unpin();
            let until = Instant::now() + time;
            let mut latencies = Latencies::new()?;
            let (mut count, mut written) = (0.0, 0);
            while Instant::now() < until && !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let Some(offset) = places.next() else { break };
                latencies.record(write_and_sync(shared, generation, offset, block)?);
                (count, written) = (count + 1.0, offset);
            }
            read_back(shared, written, block)?;
            if let Ok(mut times) = times.lock() {
                times.add(&latencies);
            }
            Ok(Done { units: count, check: written })
        })?;
        let times = times.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let trial = Trial { seconds: times.median_seconds(), units: 1.0, ..trial };
        runs.push(times);
        Ok(trial)
    })?;
    reading.percentiles = last(&runs, reading.runs)?.percentiles();
    Ok(reading)
}

fn write_and_sync(
    file: &TrialFile,
    generation: u8,
    offset: u64,
    block: &mut [u8],
) -> Result<std::time::Duration> {
    file.content().write(offset, generation, block, None);
    file.content().mark(offset, block.len(), generation);
    file.file()
        .write_all_at(block, offset)
        .map_err(|error| file.failed(&format!("write at {offset}"), error))?;
    let start = Instant::now();
    file.file().sync_data().map_err(|error| file.failed("write it to the disk", error))?;
    Ok(start.elapsed())
}

fn read_back(file: &TrialFile, offset: u64, block: &mut [u8]) -> Result<()> {
    file.file()
        .read_exact_at(block, offset)
        .map_err(|error| file.failed(&format!("read at {offset}"), error))?;
    file.compare(offset, block)
}
