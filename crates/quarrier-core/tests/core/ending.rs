//! Runs that end early: by a flag, by the sink, by a panic; they must never hang.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier_core::pipeline::{Access, Chunk, Emitter, Kernel, Need, Pipeline, Sink};
use quarrier_core::source::{Memory, Source};

use crate::census::{
    ACCESSES, Neighbours, as_data, collect, noise, open_temp, temp_file, without_hanging,
};

const NEIGHBOURS: Neighbours = Neighbours { before: 2, after: 5 };

type Sums = Vec<(u64, u64)>;

/// Takes results of a number of chunks, then raises a flag or breaks.
struct Until<'f> {
    chunks_left: usize,
    flag: Option<&'f AtomicBool>,
    all: Sums,
}

impl Sink<Sums> for Until<'_> {
    fn take(&mut self, _: &Chunk<'_>, part: &mut Sums) -> ControlFlow<()> {
        assert!(self.chunks_left > 0 || self.flag.is_some(), "called again after Break");
        // A chunk has no results left after its last flush.
        self.chunks_left = self.chunks_left.saturating_sub(usize::from(!part.is_empty()));
        self.all.append(part);
        match self.flag {
            _ if self.chunks_left > 0 => ControlFlow::Continue(()),
            Some(flag) => {
                flag.store(true, Ordering::SeqCst);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

fn pipeline(source: &dyn Source, access: Access, workers: usize) -> Pipeline<'_> {
    let pipeline = Pipeline::new(source).access(access).show_changing(as_data());
    pipeline.workers(workers).readers(2).buffer_bytes(1_000)
}

#[test]
fn the_stop_flag_ends_a_run_early_and_keeps_results() {
    for access in ACCESSES {
        for workers in [1, 4] {
            without_hanging(move || {
                let bytes = noise(200_000);
                let file = temp_file(&bytes);
                let source = open_temp(&file);
                let stop = AtomicBool::new(false);
                let mut sink = Until { chunks_left: 10, flag: Some(&stop), all: Vec::new() };
                let first = pipeline(&source, access, workers).stop(&stop);
                let run = first.run(&NEIGHBOURS, &mut sink).unwrap();
                assert!(run.stopped);
                assert!((10_000..150_000).contains(&run.position), "position {}", run.position);
                assert_eq!(run.bytes, run.position);
                let oracle = NEIGHBOURS.oracle(&bytes);
                assert!(sink.all == oracle[..run.position as usize], "all before the position");
            });
        }
    }
}

#[test]
fn a_run_resumes_at_the_position_of_a_stopped_one() {
    let bytes = noise(50_000);
    let source = Memory::new("memory", &bytes[..]);
    let stop = AtomicBool::new(false);
    let kernel = Neighbours { before: 0, after: 5 };
    let mut sink = Until { chunks_left: 7, flag: Some(&stop), all: Vec::new() };
    let first = pipeline(&source, Access::Window, 2).stop(&stop);
    let position = first.run(&kernel, &mut sink).unwrap().position;
    let rest = pipeline(&source, Access::Window, 2).range(position..50_000);
    let (run, mut rest) = collect(&rest, &kernel);
    assert_eq!(run.unwrap().position, 50_000);
    sink.all.append(&mut rest);
    assert!(sink.all == kernel.oracle(&bytes));
}

#[test]
fn a_flag_that_is_up_before_the_run_lets_nothing_happen() {
    let bytes = noise(50_000);
    let source = Memory::new("memory", &bytes[..]);
    let stop = AtomicBool::new(true);
    for access in ACCESSES {
        let (run, seen) =
            collect(&pipeline(&source, access, 2).range(77..50_000).stop(&stop), &NEIGHBOURS);
        let run = run.unwrap();
        assert_eq!((run.stopped, run.bytes, run.position, seen.len()), (true, 0, 77, 0));
    }
}

#[test]
fn break_from_the_sink_ends_the_run_and_is_the_last_call() {
    for access in ACCESSES {
        for (workers, chunks) in [(1, 1), (4, 1), (4, 9)] {
            without_hanging(move || {
                let bytes = noise(200_000);
                let file = temp_file(&bytes);
                let source = open_temp(&file);
                let mut sink = Until { chunks_left: chunks, flag: None, all: Vec::new() };
                let run = pipeline(&source, access, workers).run(&NEIGHBOURS, &mut sink).unwrap();
                assert!(run.stopped);
                assert_eq!(run.position, chunks as u64 * 1_000);
                assert!(sink.all == NEIGHBOURS.oracle(&bytes)[..chunks * 1_000]);
            });
        }
    }
}

/// Passes on one offset at a time.
struct OneByOne;

impl Kernel for OneByOne {
    type Output = Sums;
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Sums>) {
        for position in chunk.own.clone() {
            emit.output().push((chunk.offset + position as u64, 0));
            emit.flush(chunk);
            if emit.is_closed() {
                return;
            }
        }
    }
}

#[test]
fn break_and_stop_between_flushes_do_not_hang() {
    for access in ACCESSES {
        without_hanging(move || {
            let bytes = noise(100_000);
            let file = temp_file(&bytes);
            let source = open_temp(&file);
            for takes in [1, 500, 1_500, 2_000] {
                let mut sink = Until { chunks_left: takes, flag: None, all: Vec::new() };
                let run = pipeline(&source, access, 4).run(&OneByOne, &mut sink).unwrap();
                assert!(run.stopped);
                assert_eq!(sink.all.len(), takes);
                let stop = AtomicBool::new(false);
                let mut sink = Until { chunks_left: takes, flag: Some(&stop), all: Vec::new() };
                let run = pipeline(&source, access, 4).stop(&stop).run(&OneByOne, &mut sink);
                let run = run.unwrap();
                assert!(run.stopped);
                assert_eq!(run.position, sink.all.len() as u64, "whole chunks are done");
            }
        });
    }
}

/// Panics at one chunk; the others flush their results, so that some wait for it.
struct Panics;

impl Kernel for Panics {
    type Output = Sums;
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Sums>) {
        assert!(chunk.index != 20, "the kernel's own panic");
        emit.flush(chunk);
    }
}

#[test]
fn a_panic_of_the_kernel_ends_the_run_as_a_panic() {
    for access in ACCESSES {
        for workers in [1, 4] {
            without_hanging(move || {
                let file = temp_file(&noise(200_000));
                let source = open_temp(&file);
                let mut taken = 0;
                let run = catch_unwind(AssertUnwindSafe(|| {
                    pipeline(&source, access, workers)
                        .run(&Panics, &mut |chunk: &Chunk<'_>, _: &mut Sums| taken = chunk.index)
                }));
                assert!(run.is_err(), "{access:?}: the panic is passed on");
                assert!(taken < 20);
            });
        }
    }
}

#[test]
fn a_panic_of_the_sink_ends_the_run_as_a_panic() {
    for access in ACCESSES {
        without_hanging(move || {
            let file = temp_file(&noise(200_000));
            let source = open_temp(&file);
            let run = catch_unwind(AssertUnwindSafe(|| {
                pipeline(&source, access, 4).run(
                    &OneByOne,
                    &mut |_: &Chunk<'_>, part: &mut Sums| {
                        assert!(
                            part.iter().all(|(offset, _)| *offset < 5_500),
                            "the sink's own panic"
                        );
                        part.clear();
                    },
                )
            }));
            assert!(run.is_err(), "{access:?}: the panic is passed on");
        });
    }
}

/// A source whose reads panic.
struct PanickingSource;

impl Source for PanickingSource {
    fn name(&self) -> &str {
        "panicking"
    }
    fn length(&self) -> u64 {
        200_000
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(offset < 50_000, "the source's own panic");
        Ok(buffer.len())
    }
}

#[test]
fn a_panic_of_the_source_ends_the_run_as_a_panic() {
    for access in ACCESSES {
        without_hanging(move || {
            let run = catch_unwind(|| {
                pipeline(&PanickingSource, access, 4)
                    .run(&OneByOne, &mut |_: &Chunk<'_>, part: &mut Sums| part.clear())
            });
            assert!(run.is_err(), "{access:?}: the panic is passed on");
        });
    }
}

#[test]
fn one_buffer_and_eight_workers_do_not_lock_up() {
    for access in ACCESSES {
        without_hanging(move || {
            let bytes = noise(300_000);
            let file = temp_file(&bytes);
            let source = open_temp(&file);
            let one = pipeline(&source, access, 8).buffers(1).readers(3);
            let (run, seen) = collect(&one, &NEIGHBOURS);
            assert_eq!(run.unwrap().plan.buffers, 1);
            assert!(seen == NEIGHBOURS.oracle(&bytes));
            let (_, seen) = collect(&one, &OneByOne);
            assert_eq!(seen.len(), 300_000);
        });
    }
}

/// A pipe with short reads that panics after a number of bytes.
struct PanickingPipe {
    pipe: std::os::fd::OwnedFd,
    /// Whether reads go through io_uring, judged by the offset of the next read.
    is_ring: AtomicBool,
    has_panicked: AtomicBool,
}

const GIVEN: u64 = 10;

impl Source for PanickingPipe {
    fn name(&self) -> &str {
        "pipe"
    }
    fn length(&self) -> u64 {
        1 << 20
    }
    fn read_at(&self, offset: u64, _: &mut [u8]) -> io::Result<usize> {
        self.is_ring.store(offset == GIVEN, Ordering::SeqCst);
        self.has_panicked.store(true, Ordering::SeqCst);
        panic!("the source's own panic")
    }
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(self.pipe.as_fd())
    }
}

/// The kernel writes to the buffers of reads in flight until they complete.
#[test]
fn a_panic_of_the_source_waits_for_reads_under_way() {
    let (pipe, mut writer) = io::pipe().unwrap();
    let (is_ring, has_panicked) = Default::default();
    let source = PanickingPipe { pipe: pipe.into(), is_ring, has_panicked };
    writer.write_all(&[1; GIVEN as usize]).unwrap();
    let is_closed = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The other reads wait for bytes until the writer is gone.
            while !source.has_panicked.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(200));
            is_closed.store(true, Ordering::SeqCst);
            drop(writer);
        });
        catch_unwind(AssertUnwindSafe(|| {
            let run = pipeline(&source, Access::Uring, 1).buffers(8);
            let run = run.run(&NEIGHBOURS, &mut |_: &Chunk<'_>, _: &mut Sums| {});
            assert!(run.is_err(), "unreachable: {run:?}");
        }))
        .map_err(|_| is_closed.load(Ordering::SeqCst))
    });
    let has_waited = run.expect_err("the panic is passed on");
    assert!(has_waited || !source.is_ring.load(Ordering::SeqCst));
}
