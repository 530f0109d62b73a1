//! Requests through io_uring: many under way, past the page cache.
//!
//! While the disk works on the next requests, what was read is compared and what is to be
//! written is made: there are a few more buffers than requests.

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

/// A block in so many bytes read is compared whole, and of the others a stamp a page: to compare
/// each block of 4 KiB took 4 % of their rate (32 under way, beside fio).
const WHOLE_EVERY_BYTES: usize = 64 << 10;
/// Buffers beyond the requests under way.
const SPARE_BUFFERS: usize = 8;

/// One thread's requests.
pub(super) struct RingWorker {
    ring: IoUring,
    places: Places,
    action: Action,
    depth: usize,
    slots: Vec<Slot>,
    /// Buffers with nothing of interest.
    idle: Vec<usize>,
    /// Buffers that have their place, and for writing their bytes.
    ready: VecDeque<usize>,
    /// Buffers whose request is done, not yet looked at.
    landed: Vec<usize>,
    in_flight: usize,
    /// How many blocks were compared.
    compared: usize,
}

/// A buffer, and the request that it is or was used for.
struct Slot {
    buffer: AlignedBuffer,
    offset: u64,
    /// For which offset bytes to be written were put in.
    held: Option<u64>,
    since: Instant,
}

/// A ring for `depth` requests, or the reason why the system gives none.
pub(super) fn ring_of(depth: usize) -> io::Result<IoUring> {
    let entries = depth.next_power_of_two() as u32;
    // Completions need no interrupt of the thread: it comes for them anyway. Older kernels do
    // not know the flag.
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
        let buffers = job.depth + job.depth.min(SPARE_BUFFERS);
        let slot = |mut buffer: AlignedBuffer| {
            // The first touch of memory is not the disk's time.
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
            compared: 0,
        })
    }

    /// What takes time before a run, and is not the disk's: what was read last is compared, and
    /// buffers get their place and this run's bytes.
    pub(super) fn prepare(&mut self, file: &TrialFile, generation: u8) -> Result<()> {
        self.put_again(file, generation);
        self.settle(file, generation).map(|_| ())
    }

    /// Makes requests as `schedule` says, and waits for all of them. The last ones are compared by
    /// [`RingWorker::compare_last`].
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

    /// Compares what was read and not yet compared.
    pub(super) fn compare_last(&mut self, file: &TrialFile) -> Result<()> {
        while let Some(index) = self.landed.pop() {
            self.take_in(file, index)?;
        }
        Ok(())
    }

    /// A buffer whose request is done becomes idle; what was read into it is compared.
    fn take_in(&mut self, file: &TrialFile, index: usize) -> Result<()> {
        self.idle.push(index);
        let slot = &self.slots[index];
        if self.action == Action::Write {
            return Ok(());
        }
        let every = (WHOLE_EVERY_BYTES / slot.buffer.len()).max(1);
        self.compared += 1;
        if (self.compared - 1).is_multiple_of(every) {
            file.compare(slot.offset, &slot.buffer)
        } else {
            file.compare_hastily(slot.offset, &slot.buffer)
        }
    }

    /// What was made ready in an earlier run gets this run's stamps.
    fn put_again(&mut self, file: &TrialFile, generation: u8) {
        if self.action == Action::Write {
            for &index in &self.ready {
                let slot = &mut self.slots[index];
                file.content().write(slot.offset, generation, &mut slot.buffer, slot.held);
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
            self.enter(1, due).map_err(|error| file.failed("wait for requests", error))?;
            self.reap(file, outcome)?;
        }
    }

    /// Submits what is ready and due, each by itself: the disk has begun with the first when the last
    /// goes out. Random reads of 4 KiB, 32 deep, in turns with fio, which does the same: 1.00 and, in
    /// another series, 0.97 of its rate (medians of 9), and 0.94 (of 16) with one call for all that are
    /// ready.
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
                    file.content().mark(slot.offset, bytes as usize, generation);
                    recent.add(slot.offset);
                    opcode::Write::new(fd, slot.buffer.as_ptr(), bytes).offset(slot.offset).build()
                }
            };
            // SAFETY: the buffer stays in its slot, untouched, until the completion was seen;
            // `wait_for_all` sees every one before `run` returns, and leaves the buffers to the
            // kernel where it cannot.
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

    /// Submits what was pushed and waits for `wanted` completions, or until `due`.
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

    /// Takes completions.
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
        match problem {
            None => Ok(()),
            Some((offset, error)) => Err(file.failed(&format!("read or write at {offset}"), error)),
        }
    }

    /// Compares what was read, and gives idle buffers their next place. True if there were any.
    fn settle(&mut self, file: &TrialFile, generation: u8) -> Result<bool> {
        self.compare_last(file)?;
        let mut made_ready = false;
        while let Some(index) = self.idle.pop() {
            let slot = &mut self.slots[index];
            let Some(offset) = self.places.next() else { break };
            slot.offset = offset;
            if self.action == Action::Write {
                file.content().write(offset, generation, &mut slot.buffer, slot.held);
                slot.held = Some(offset);
            }
            self.ready.push_back(index);
            made_ready = true;
        }
        Ok(made_ready)
    }

    /// Waits until the kernel is done with all buffers. If it cannot be asked, they are left to
    /// it for good.
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
