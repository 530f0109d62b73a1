//! Streams: no length, no offsets, bytes in odd pieces. The results equal those of the same bytes
//! in memory.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use quarrier_core::pipeline::{Chunk, Emitter, Kernel, Need, Pipeline, Run, Sink};
use quarrier_core::source::Memory;
use quarrier_core::{Error, Result};

use crate::census::{
    Census, Neighbours, check_census, check_chunk, collect, for_all, noise, without_hanging,
};

/// A stream that delivers bytes in odd pieces, is interrupted now and then, and may fail at its
/// end.
struct OddPieces<'b> {
    bytes: &'b [u8],
    reads: usize,
    fails: bool,
}

impl<'b> OddPieces<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        OddPieces { bytes, reads: 0, fails: false }
    }
}

impl Read for OddPieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const PIECES: [usize; 7] = [1, 4_095, 13, 70_001, 3, 511, 2];
        self.reads += 1;
        if self.reads.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.bytes.is_empty() && self.fails {
            return Err(io::Error::from_raw_os_error(5));
        }
        let piece = PIECES[self.reads % PIECES.len()].min(buffer.len()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(piece);
        buffer[..piece].copy_from_slice(now);
        self.bytes = later;
        Ok(piece)
    }
}

/// Runs a kernel over a stream and returns all results, joined in the sink's order.
fn collect_stream<T: Send, K: Kernel<Output = Vec<T>>>(
    pipeline: &Pipeline<'_>,
    mut stream: OddPieces<'_>,
    kernel: &K,
) -> (Result<Run>, Vec<T>) {
    let mut all = Vec::new();
    let mut sink = |_: &Chunk<'_>, part: &mut Vec<T>| all.append(part);
    let run = pipeline.run_stream("stdin", &mut stream, kernel, &mut sink);
    (run, all)
}

#[test]
fn a_stream_yields_the_same_as_memory() {
    let size = (0u32..=17).prop_flat_map(|bits| 1usize << bits..=1 << bits.max(1));
    let around = || prop_oneof![Just(0usize), 1usize..20, 4_000usize..5_000];
    let input = (size, around(), around(), 1usize..=4, 1usize..=6, 0usize..30_000);
    let all = noise(100_000);
    for_all(60, input, |(buffer_bytes, before, after, workers, buffers, length)| {
        // A few hundred chunks at most, but more than one if possible.
        let bytes = &all[..usize::min(length, buffer_bytes * 300)];
        let nothing = Memory::new("unused", b"");
        let pipeline =
            Pipeline::new(&nothing).workers(workers).buffers(buffers).buffer_bytes(buffer_bytes);
        let need = Need { before_bytes: before, after_bytes: after, skip_zeros: true };
        let census = Census { expected: bytes, need };
        let (run, seen) = collect_stream(&pipeline, OddPieces::new(bytes), &census);
        let run = run.unwrap();
        check_census(&seen, 0..bytes.len() as u64, need);
        let most = seen.iter().map(|chunk| chunk.own.end - chunk.own.start).max().unwrap_or(0);
        assert!(most <= buffer_bytes as u64, "a chunk owns {most} positions");
        assert_eq!((run.bytes, run.position), (bytes.len() as u64, bytes.len() as u64));
        assert_eq!((run.stopped, run.hole_bytes, run.unreadable.len()), (false, 0, 0));
    });
}

#[test]
fn results_of_a_stream_are_those_of_memory_for_every_buffer_size() {
    let bytes = noise(40_000);
    let memory = Memory::new("memory", &bytes[..]);
    for (before, after) in [(0, 0), (1, 0), (0, 1), (3, 30), (30, 3)] {
        let kernel = Neighbours { before, after };
        let (_, expected) = collect(&Pipeline::new(&memory), &kernel);
        assert_eq!(expected, kernel.oracle(&bytes));
        for buffer_bytes in [100, 4_096, 8_191, 8_192, 10_000, 40_000, 1 << 20] {
            let pipeline = Pipeline::new(&memory).workers(3).buffer_bytes(buffer_bytes);
            let (run, found) = collect_stream(&pipeline, OddPieces::new(&bytes), &kernel);
            assert_eq!(run.unwrap().bytes, 40_000);
            assert!(found == expected, "buffers of {buffer_bytes}, {before} before, {after} after");
        }
    }
}

/// Yields the offsets of positions that the kernel knows to be the source's last.
struct LastPosition;

impl Kernel for LastPosition {
    type Output = Vec<u64>;
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Vec<u64>>) {
        if chunk.at_end && chunk.own.end == chunk.data.len() {
            emit.output().push(chunk.offset + chunk.own.end as u64 - 1);
        }
    }
}

#[test]
fn the_last_position_is_known_to_be_the_last_wherever_buffers_end() {
    let bytes = noise(20_000);
    let nothing = Memory::new("unused", b"");
    for length in [1, 2, 99, 100, 101, 4_096, 8_192, 8_292, 12_288, 16_384] {
        for buffer_bytes in [100, 4_096, 8_192] {
            let memory = Memory::new("memory", &bytes[..length]);
            let whole = Pipeline::new(&memory).buffer_bytes(buffer_bytes);
            let (_, expected) = collect(&whole, &LastPosition);
            assert_eq!(expected, [length as u64 - 1]);
            let pipeline = Pipeline::new(&nothing).buffer_bytes(buffer_bytes);
            let stream = OddPieces::new(&bytes[..length]);
            let (_, found) = collect_stream(&pipeline, stream, &LastPosition);
            assert_eq!(found, expected, "{length} bytes in buffers of {buffer_bytes}");
        }
    }
}

#[test]
fn an_empty_stream_has_no_chunks_and_ends_well() {
    let nothing = Memory::new("unused", b"");
    let need = Need { before_bytes: 4, after_bytes: 4, skip_zeros: false };
    let census = Census { expected: b"", need };
    let (run, seen) = collect_stream(&Pipeline::new(&nothing), OddPieces::new(b""), &census);
    assert_eq!((run.unwrap().bytes, seen.len()), (0, 0));
}

#[test]
fn bytes_before_a_stream_failure_are_processed() {
    let bytes = noise(100_000);
    let nothing = Memory::new("unused", b"");
    for (after_bytes, buffer_bytes) in [(0, 1 << 20), (9, 1 << 20), (9, 30_000), (5_000, 4_096)] {
        let need = Need { before_bytes: 5, after_bytes, skip_zeros: false };
        let census = Census { expected: &bytes, need };
        let stream = OddPieces { fails: true, ..OddPieces::new(&bytes) };
        let pipeline = Pipeline::new(&nothing).workers(3).buffer_bytes(buffer_bytes);
        let (run, seen) = collect_stream(&pipeline, stream, &census);
        let error = run.unwrap_err();
        assert_eq!(error.to_string(), "stdin: cannot read at byte 100000: Input/output error");
        assert!(matches!(error, Error::Io { .. }));
        let mut at = 0;
        for chunk in &seen {
            assert_eq!(chunk.own.start, at);
            // The end of a stream is unknown, so no chunk may treat the last byte read as the end.
            check_chunk(chunk, &(0..u64::MAX), Need { after_bytes: 0, ..need });
            assert!(chunk.shown.end >= chunk.own.end + after_bytes as u64);
            at = chunk.own.end;
        }
        assert_eq!(at + after_bytes as u64, 100_000, "all positions with their surroundings");
    }
}

#[test]
fn a_stream_ends_early_when_asked_to() {
    let bytes = noise(1_000_000);
    let nothing = Memory::new("unused", b"");
    let stop = AtomicBool::new(false);
    let pipeline = Pipeline::new(&nothing).workers(2).buffer_bytes(1_000).stop(&stop);
    let mut taken = 0;
    let mut stream = OddPieces::new(&bytes);
    let run = pipeline
        .run_stream(
            "stdin",
            &mut stream,
            &Neighbours { before: 0, after: 0 },
            &mut |chunk: &Chunk<'_>, part: &mut Vec<(u64, u64)>| {
                part.clear();
                taken += chunk.own.len() as u64;
                stop.store(true, Ordering::SeqCst);
            },
        )
        .unwrap();
    assert!(run.stopped);
    assert_eq!((run.bytes, run.position), (taken, taken));
    assert!(!stream.bytes.is_empty(), "the rest of the stream is left unread");
}

/// A sink that takes only one chunk.
struct TakesOne(u64);

impl Sink<Vec<(u64, u64)>> for TakesOne {
    fn take(&mut self, _: &Chunk<'_>, part: &mut Vec<(u64, u64)>) -> ControlFlow<()> {
        self.0 += part.len() as u64;
        ControlFlow::Break(())
    }
}

#[test]
fn a_stream_ends_when_the_sink_has_enough() {
    without_hanging(|| {
        let bytes = noise(1_000_000);
        let nothing = Memory::new("unused", b"");
        let mut sink = TakesOne(0);
        let run = Pipeline::new(&nothing)
            .workers(8)
            .buffers(1)
            .buffer_bytes(1_000)
            .run_stream(
                "stdin",
                &mut OddPieces::new(&bytes),
                &Neighbours { before: 0, after: 0 },
                &mut sink,
            )
            .unwrap();
        assert_eq!((run.stopped, run.bytes, sink.0), (true, 1_000, 1_000));
    });
}

/// A stream that has no bytes available before each of its parts.
struct Pausing<'b> {
    parts: &'b [&'b [u8]],
    has_paused: bool,
}

impl Read for Pausing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((first, rest)) = self.parts.split_first() else { return Ok(0) };
        self.has_paused = !self.has_paused;
        if self.has_paused {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        buffer[..first.len()].copy_from_slice(first);
        self.parts = rest;
        Ok(first.len())
    }
}

#[test]
fn bytes_before_a_pause_are_passed_on_and_marked() {
    let nothing = Memory::new("unused", b"");
    let mut chunks = Vec::new();
    let mut sink = |chunk: &Chunk<'_>, part: &mut Vec<(u64, u64)>| {
        part.clear();
        chunks.push((chunk.owned().to_vec(), chunk.at_pause));
    };
    let mut stream = Pausing { parts: &[b"abc", b"de", b"f"], has_paused: false };
    let kernel = Neighbours { before: 0, after: 0 };
    Pipeline::new(&nothing).run_stream("stdin", &mut stream, &kernel, &mut sink).unwrap();
    let expected = [(&b"abc"[..], true), (b"de", true), (b"f", false)];
    assert_eq!(chunks, expected.map(|(bytes, is_pause)| (bytes.to_vec(), is_pause)));
}
