//! Requests through io_uring: many in flight, bypassing the page cache.
//!
//! While the disk processes the next requests, the thread prepares the contents of later writes, in a
//! few more buffers than there are requests. It compares little more than one stamp of each read: see
//! [`RingWorker::take_in`].

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use quarrier_core::region::AlignedBuffer;

use super::job::{Action, Job};
use super::places::Places;
use super::room::TrialFile;
use super::worker::{Outcome, Recent};
use crate::error::Result;
use crate::schedule::{Schedule, Turn};

/// One block in this many bytes read is compared whole, and so are the last blocks of a run.
const WHOLE_EVERY_BYTES: usize = 16 << 20;
/// Buffers for writing beyond those in flight.
const SPARE_BUFFERS: usize = 8;

/// One thread's requests.
pub(super) struct RingWorker {
    ring: IoUring,
    places: Places,
    action: Action,
    depth: usize,
    slots: Vec<Slot>,
    /// Buffers whose bytes are no longer needed.
    idle: Vec<usize>,
    /// Buffers that have an offset and, for writes, their bytes.
    ready: VecDeque<usize>,
    /// Buffers whose request has ended, but whose bytes have not been compared yet.
    landed: Vec<usize>,
    in_flight: usize,
    /// The number of blocks compared so far.
    taken_in: usize,
}

/// A buffer and its current or last request.
struct Slot {
    buffer: AlignedBuffer,
    offset: u64,
    /// The offset that its bytes belong to: for writes the first for which they were generated; for
    /// reads that of the request, until the block was compared whole.
    held: Option<u64>,
    since: Instant,
}

/// Creates a ring for `depth` requests, or returns why the system refuses one.
pub(super) fn ring_of(depth: usize) -> io::Result<IoUring> {
    let entries = depth.next_power_of_two() as u32;
    // The thread polls for completions anyway, so they need not interrupt it. Older kernels reject the
    // flag.
    let ring = IoUring::builder()
        .setup_coop_taskrun()
        .build(entries)
        .or_else(|_| IoUring::new(entries))?;
    if ring.params().is_feature_ext_arg() {
        Ok(ring)
    } else {
        Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring of a kernel before 5.11"))
    }
}

impl RingWorker {
    pub(super) fn new(job: &Job, places: Places) -> io::Result<RingWorker> {
        let spare = if job.action == Action::Write { job.depth.min(SPARE_BUFFERS) } else { 0 };
        let buffers = job.depth + spare;
        let slot = |mut buffer: AlignedBuffer| {
            // The first touch of memory must not count as the disk's time.
            buffer.fill(1);
            Slot { buffer, offset: 0, held: None, since: Instant::now() }
        };
        Ok(RingWorker {
            ring: ring_of(job.depth)?,
            places,
            action: job.action,
            depth: job.depth,
            slots: AlignedBuffer::side_by_side(buffers, job.block_bytes)
                .into_iter()
                .map(slot)
                .collect(),
            idle: (0..buffers).collect(),
            ready: VecDeque::with_capacity(buffers),
            landed: Vec::with_capacity(buffers),
            in_flight: 0,
            taken_in: 0,
        })
    }

    /// Prepares a run outside the measured time: buffers get their offset and this run's bytes.
    pub(super) fn prepare(&mut self, file: &TrialFile, generation: u8) -> Result<()> {
        self.put_again(file, generation);
        self.settle(file, generation).map(|_| ())
    }

    /// Makes requests by `schedule`, and waits for all of them. [`RingWorker::compare_last`] compares
    /// the last ones.
    pub(super) fn run(
        &mut self,
        file: &TrialFile,
        generation: u8,
        schedule: &mut Schedule<'_>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let result = self.make_requests(file, generation, schedule, outcome);
        self.wait_for_all();
        result
    }

    /// Compares all of the last blocks read.
    pub(super) fn compare_last(&mut self, file: &TrialFile) -> Result<()> {
        self.take_in(file)?;
        for slot in &mut self.slots {
            if let Some(offset) = slot.held.take() {
                file.compare(offset, &slot.buffer)?;
            }
        }
        Ok(())
    }

    /// Makes the buffers of ended requests idle. Compares one stamp in each, every time in the next
    /// sector.
    ///
    /// Comparing all bytes would slow the disk down: its next transfer must first evict from the cache
    /// the bytes that the processor has read. Sequential reads of 1 MiB on a virtual disk ran at 2.0 to
    /// 2.4 GB/s without a comparison, at 1.8 to 1.9 with one per page, and at 1.0 to 2.4, varying from
    /// moment to moment, with all bytes compared (fio, which compares nothing, ran at 2.1 to 2.4 at
    /// that time).
    fn take_in(&mut self, file: &TrialFile) -> Result<()> {
        while let Some(index) = self.landed.pop() {
            self.idle.push(index);
            if self.action == Action::Write {
                continue;
            }
            let slot = &mut self.slots[index];
            slot.held = Some(slot.offset);
            let every = (WHOLE_EVERY_BYTES / slot.buffer.len()).max(1);
            if self.taken_in.is_multiple_of(every) {
                file.compare(slot.offset, &slot.buffer)?;
            } else {
                file.compare_stamp(slot.offset, &slot.buffer, self.taken_in)?;
            }
            self.taken_in += 1;
        }
        Ok(())
    }

    /// Gives this run's stamps to buffers that an earlier run prepared.
    fn put_again(&mut self, file: &TrialFile, generation: u8) {
        if self.action == Action::Write {
            for &index in &self.ready {
                let slot = &mut self.slots[index];
                let held =
                    file.content().write(slot.offset, generation, &mut slot.buffer, slot.held);
                slot.held = Some(held);
            }
        }
    }

    fn make_requests(
        &mut self,
        file: &TrialFile,
        generation: u8,
        schedule: &mut Schedule<'_>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        loop {
            let turn = self.launch(file, generation, schedule, &mut outcome.recent)?;
            let made_ready = self.settle(file, generation)?;
            let over = matches!(turn, Turn::Over);
            if made_ready && !over && self.in_flight < self.depth {
                continue;
            }
            let due = match turn {
                Turn::Wait(due) if self.in_flight < self.depth => Some(due),
                _ => None,
            };
            if self.in_flight == 0 {
                match due {
                    Some(due) => std::thread::sleep(due.saturating_duration_since(Instant::now())),
                    None => return Ok(()),
                }
                continue;
            }
            // Completions that arrived during submission need no system call.
            if self.ring.completion().is_empty() {
                self.enter(1, due).map_err(|error| file.failed("wait for requests", error))?;
            }
            self.reap(file, outcome)?;
        }
    }

    /// Submits the requests that are ready and due, one system call each, so that the disk has begun
    /// the first when the last is submitted. Random reads of 4 KiB, 32 in flight, alternating with fio,
    /// which does the same, reached 1.00 and, in another series, 0.97 of its rate (medians of 9), but
    /// 0.94 (median of 16) with one call for all ready requests.
    fn launch(
        &mut self,
        file: &TrialFile,
        generation: u8,
        schedule: &mut Schedule<'_>,
        recent: &mut Recent,
    ) -> Result<Turn> {
        let now = Instant::now();
        let mut turn = Turn::Go(now);
        while self.in_flight < self.depth && !self.ready.is_empty() {
            turn = schedule.turn(now);
            let Turn::Go(since) = turn else { break };
            let Some(index) = self.ready.pop_front() else { break };
            let slot = &mut self.slots[index];
            slot.since = since;
            let (fd, bytes) = (Fd(file.file().as_raw_fd()), slot.buffer.len() as u32);
            let entry = match self.action {
                Action::Read => opcode::Read::new(fd, slot.buffer.as_mut_ptr(), bytes)
                    .offset(slot.offset)
                    .build(),
                Action::Write => {
                    let held = slot.held.unwrap_or(slot.offset);
                    file.content().mark(slot.offset, bytes as usize, generation, held);
                    recent.add(slot.offset);
                    opcode::Write::new(fd, slot.buffer.as_ptr(), bytes).offset(slot.offset).build()
                }
            };
            // SAFETY: `buffer` is `bytes` long. It stays in its slot, and nothing reads or writes it
            // until its completion was seen: `wait_for_all` sees every completion before `run` returns
            // and when `self` is dropped, and leaks the buffers if it cannot. The kernel itself keeps
            // `fd` open for the request.
            let pushed = unsafe { self.ring.submission().push(&entry.user_data(index as u64)) };
            if pushed.is_err() {
                self.ready.push_front(index);
                break;
            }
            self.in_flight += 1;
            self.enter(0, None).map_err(|error| file.failed("submit requests", error))?;
        }
        Ok(turn)
    }

    /// Submits the pushed requests and waits for `wanted` completions, or until `due`.
    fn enter(&mut self, wanted: usize, due: Option<Instant>) -> io::Result<()> {
        loop {
            let answer = match due {
                None => self.ring.submit_and_wait(wanted),
                Some(due) => {
                    let left = due.saturating_duration_since(Instant::now());
                    let time = Timespec::from(left);
                    self.ring
                        .submitter()
                        .submit_with_args(wanted, &SubmitArgs::new().timespec(&time))
                }
            };
            match answer {
                Err(error) if error.raw_os_error() == Some(libc::ETIME) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map(|_| ()),
            }
        }
    }

    /// Handles the completions.
    fn reap(&mut self, file: &TrialFile, outcome: &mut Outcome) -> Result<()> {
        let now = Instant::now();
        let mut problem = None;
        for done in self.ring.completion() {
            let index = done.user_data() as usize;
            let slot = &self.slots[index];
            self.in_flight -= 1;
            self.landed.push(index);
            match usize::try_from(done.result()) {
                Ok(bytes) if bytes == slot.buffer.len() => {
                    outcome.requests += 1;
                    outcome.latencies.record(now.saturating_duration_since(slot.since));
                }
                Ok(_) => problem = Some((slot.offset, io::ErrorKind::UnexpectedEof.into())),
                Err(_) => {
                    let error = io::Error::from_raw_os_error(-done.result());
                    problem = Some((slot.offset, error));
                }
            }
        }
        outcome.count(now);
        match problem {
            None => Ok(()),
            Some((offset, error)) => Err(file.failed(&format!("read or write at {offset}"), error)),
        }
    }

    /// Compares reads, and gives idle buffers their next offset. Returns whether there were any.
    fn settle(&mut self, file: &TrialFile, generation: u8) -> Result<bool> {
        self.take_in(file)?;
        let mut made_ready = false;
        while let Some(index) = self.idle.pop() {
            let slot = &mut self.slots[index];
            let Some(offset) = self.places.next() else { break };
            slot.offset = offset;
            slot.held = match self.action {
                Action::Read => None,
                Action::Write => {
                    Some(file.content().write(offset, generation, &mut slot.buffer, slot.held))
                }
            };
            self.ready.push_back(index);
            made_ready = true;
        }
        Ok(made_ready)
    }

    /// Waits until the kernel no longer uses any buffer. If it cannot ask the kernel, it leaks the
    /// buffers.
    fn wait_for_all(&mut self) {
        while self.in_flight > 0 {
            if self.enter(1, None).is_err() {
                self.slots.drain(..).for_each(std::mem::forget);
                self.in_flight = 0;
                self.ready.clear();
                self.idle.clear();
                self.landed.clear();
                return;
            }
            let landed: Vec<usize> =
                self.ring.completion().map(|done| done.user_data() as usize).collect();
            self.in_flight -= landed.len();
            self.landed.extend(landed);
        }
    }
}

impl Drop for RingWorker {
    fn drop(&mut self) {
        self.wait_for_all();
    }
}
