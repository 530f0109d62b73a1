//! A reader that keeps many reads in flight through io_uring.
//!
//! One thread suffices for a device with deep queues. If the kernel or a container refuses
//! io_uring, the caller falls back to plain reads.

use std::os::fd::AsRawFd;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use io_uring::{IoUring, opcode, types};

use super::feed::{QueueFeed, Step, filled};
use super::pieces::Piece;
use super::retry;
use super::timeline::{Recorder, Stage};
use crate::region::{AlignedBuffer, Lease, PAGE_BYTES};
use crate::source::Source;

/// Maximum number of reads in flight.
const DEPTH: usize = 32;

/// A read in flight.
struct Flight<'a> {
    piece: Piece,
    buffer: Lease<'a, AlignedBuffer>,
    started: Instant,
}

/// Reads in flight, and the buffers that the kernel writes to meanwhile. No buffer leaves this
/// value before its read has completed; dropping the value waits for all of them.
struct Flights<'a> {
    ring: IoUring,
    file: types::Fd,
    slots: [Option<Flight<'a>>; DEPTH],
    in_flight: usize,
}

impl<'a> Flights<'a> {
    /// Returns `None` if io_uring cannot be used.
    fn of(source: &'a dyn Source) -> Option<Self> {
        let file = types::Fd(source.descriptor()?.as_raw_fd());
        let ring = IoUring::new(DEPTH as u32).ok()?;
        Some(Flights { ring, file, slots: [const { None }; DEPTH], in_flight: 0 })
    }

    /// Returns a free slot, if there is one.
    fn free(&self) -> Option<usize> {
        self.slots.iter().position(Option::is_none)
    }

    /// Starts reading a piece, in a free slot.
    fn start(&mut self, slot: usize, piece: Piece, mut buffer: Lease<'a, AlignedBuffer>) {
        // O_DIRECT needs reads of whole pages; the buffer has room for them.
        let bytes = ((piece.read.end - piece.read.start) as usize)
            .next_multiple_of(PAGE_BYTES)
            .min(buffer.len());
        let entry = opcode::Read::new(self.file, buffer.as_mut_ptr(), bytes as u32)
            .offset(piece.read.start)
            .build()
            .user_data(slot as u64);
        self.slots[slot] = Some(Flight { piece, buffer, started: Instant::now() });
        self.in_flight += 1;
        // SAFETY: the entry's pointer is valid for writing `bytes` bytes, at most the buffer's
        // length. The buffer stays in `slots`, where nobody accesses it, until `landed` has seen
        // its read complete; dropping `self` waits for that, so unwinding does, too. The source is
        // borrowed for `'a` and keeps the descriptor open.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.submit(0);
        }
    }

    /// Submits the requests, and waits until `ended` reads have completed.
    fn submit(&mut self, ended: usize) {
        while let Err(error) = self.ring.submit_and_wait(ended) {
            if error.kind() != std::io::ErrorKind::Interrupted {
                // Unwinding would free buffers to which the kernel may still write.
                std::process::abort();
            }
        }
    }

    /// Waits until at least one read has completed, and returns the results. At least one must be
    /// in flight.
    fn landed(&mut self) -> Vec<(Flight<'a>, i32)> {
        self.submit(1);
        let slots = &mut self.slots;
        let ended = self.ring.completion().filter_map(|done| {
            let flight = slots.get_mut(done.user_data() as usize)?.take()?;
            Some((flight, done.result()))
        });
        let ended: Vec<_> = ended.collect();
        self.in_flight -= ended.len();
        ended
    }
}

impl Drop for Flights<'_> {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            self.landed();
        }
    }
}

/// Reads all pieces of the feed. Returns false, with nothing read, if io_uring cannot be used.
pub(super) fn read<'a>(
    feed: &QueueFeed<'a>,
    sender: &SyncSender<Step<'a>>,
    recorder: &mut Recorder,
) -> bool {
    let Some(mut flights) = Flights::of(feed.source()) else { return false };
    let mut more = true;
    loop {
        while more && let Some(slot) = flights.free() {
            // While reads are in flight, do not wait for a free buffer.
            let asked = Instant::now();
            let is_idle = flights.in_flight == 0;
            let lease = if is_idle { feed.buffers().lend() } else { feed.buffers().try_lend() };
            if is_idle {
                recorder.waited(Stage::Read, asked);
            }
            let Some(buffer) = lease else {
                more = !is_idle;
                break;
            };
            match feed.cutter().next() {
                Some(Ok(piece)) => flights.start(slot, piece, buffer),
                Some(Err((index, error))) => {
                    let _ = sender.send(Step::Failed(index, error));
                    more = false;
                }
                None => more = false,
            }
        }
        if flights.in_flight == 0 {
            return true;
        }
        for (flight, result) in flights.landed() {
            let bytes = flight.piece.own.end - flight.piece.own.start;
            let step = complete(feed, flight, result, recorder, bytes);
            if step.is_failed() {
                feed.cutter().close();
                more = false;
            }
            if sender.send(step).is_err() {
                more = false;
            }
        }
    }
}

/// Turns a completion into a chunk; `read_at` repeats short or failed reads.
fn complete<'a>(
    feed: &QueueFeed<'a>,
    flight: Flight<'a>,
    result: i32,
    recorder: &mut Recorder,
    own_bytes: u64,
) -> Step<'a> {
    let Flight { piece, mut buffer, started } = flight;
    let wanted = (piece.read.end - piece.read.start) as usize;
    let got = usize::try_from(result).unwrap_or(0).min(wanted);
    let mut unreadable = Vec::new();
    if got < wanted {
        let offset = piece.read.start + got as u64;
        let rest = &mut buffer[got..wanted];
        if let Err(error) = retry::fill(feed.source(), offset, rest, &mut unreadable) {
            return Step::Failed(piece.index, error);
        }
    }
    recorder.busy(Stage::Read, started, own_bytes);
    filled(piece, buffer, unreadable)
}
