//! A reader that keeps many reads in flight through io_uring.
//!
//! One thread suffices for a device with deep queues. Where the kernel or a container
//! refuses io_uring, the caller falls back to plain reads.

use std::os::fd::AsRawFd;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use io_uring::{IoUring, opcode, types};

use super::feed::{QueueFeed, Step, filled};
use super::pieces::Piece;
use super::retry;
use super::timeline::{Recorder, Stage};
use crate::region::{AlignedBuffer, Lease};

/// Reads in flight at most.
const DEPTH: usize = 32;

/// A read that the kernel is working on.
struct Flight<'a> {
    piece: Piece,
    buffer: Lease<'a, AlignedBuffer>,
    started: Instant,
}

/// Reads all pieces of the feed. False, with nothing read, where io_uring cannot be used.
pub(super) fn read<'a>(
    feed: &QueueFeed<'a>,
    sender: &SyncSender<Step<'a>>,
    recorder: &mut Recorder,
) -> bool {
    let Some(descriptor) = feed.source().descriptor() else { return false };
    let Ok(mut ring) = IoUring::new(DEPTH as u32) else { return false };
    let file = types::Fd(descriptor.as_raw_fd());
    let mut flights: [Option<Flight<'a>>; DEPTH] = [const { None }; DEPTH];
    let mut in_flight = 0;
    let mut more = true;
    loop {
        while more && in_flight < DEPTH {
            // With reads under way, a missing buffer is no reason to wait.
            let asked = Instant::now();
            let lease =
                if in_flight == 0 { feed.buffers().lend() } else { feed.buffers().try_lend() };
            if in_flight == 0 {
                recorder.waited(Stage::Read, asked);
            }
            let Some(mut buffer) = lease else {
                more = in_flight > 0;
                break;
            };
            let piece = match feed.cutter().next() {
                None => {
                    more = false;
                    break;
                }
                Some(Ok(piece)) => piece,
                Some(Err((index, error))) => {
                    let _ = sender.send(Step::Failed(index, error));
                    more = false;
                    break;
                }
            };
            let Some(slot) = flights.iter().position(Option::is_none) else { break };
            // Whole pages are asked for, as O_DIRECT wants it; the buffer has room for them.
            let bytes = ((piece.read.end - piece.read.start) as usize)
                .next_multiple_of(crate::region::PAGE_BYTES)
                .min(buffer.len());
            let entry = opcode::Read::new(file, buffer.as_mut_ptr(), bytes as u32)
                .offset(piece.read.start)
                .build()
                .user_data(slot as u64);
            flights[slot] = Some(Flight { piece, buffer, started: Instant::now() });
            // SAFETY: the buffer stays in `flights` until its completion was seen, and the
            // loop below takes every completion before this function returns.
            if unsafe { ring.submission().push(&entry) }.is_err() {
                break;
            }
            in_flight += 1;
        }
        if in_flight == 0 {
            return true;
        }
        while let Err(error) = ring.submit_and_wait(1) {
            if error.kind() != std::io::ErrorKind::Interrupted {
                // Nothing sane is left to do: buffers may be written to at any time.
                std::process::abort();
            }
        }
        let completed: Vec<(usize, i32)> =
            ring.completion().map(|done| (done.user_data() as usize, done.result())).collect();
        for (slot, result) in completed {
            in_flight -= 1;
            let Some(flight) = flights[slot].take() else { continue };
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

/// Turns a completion into a chunk; what came short or failed is read again, carefully.
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
