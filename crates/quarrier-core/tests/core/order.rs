//! Flushed results, and the number of chunks that exist at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quarrier_core::pipeline::{Access, Chunk, Emitter, Kernel, Need, Pipeline};
use quarrier_core::source::{Memory, Source};

use crate::census::{ACCESSES, collect, noise, open_temp, scatter, temp_file, without_hanging};
use crate::faults::SlowSource;

/// Yields every owned offset, and flushes after every few.
struct Flushes {
    every: usize,
}

impl Kernel for Flushes {
    type Output = Vec<u64>;
    fn need(&self) -> Need {
        Need { before_bytes: 1, after_bytes: 1, skip_zeros: false }
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Vec<u64>>) {
        for position in chunk.own.clone() {
            emit.output().push(chunk.offset + position as u64);
            if emit.output().len() == self.every {
                emit.flush(chunk);
            }
        }
    }
}

fn check_flushes(source: &dyn Source, access: Access, buffers: usize, every: usize) {
    let pipeline = Pipeline::new(source)
        .access(access)
        .workers(4)
        .readers(3)
        .buffers(buffers)
        .buffer_bytes(1_000);
    let (run, offsets) = collect(&pipeline, &Flushes { every });
    assert_eq!(run.unwrap().bytes, source.length());
    assert!(offsets.iter().copied().eq(0..source.length()), "{access:?}: all offsets, in order");
}

#[test]
fn flushed_results_keep_the_order_of_the_source() {
    for access in ACCESSES {
        without_hanging(move || {
            let bytes = noise(100_000);
            let file = temp_file(&bytes);
            for (buffers, every) in [(1, 7), (2, 1), (4, 100), (12, 300), (12, 1_000), (12, 5_000)]
            {
                check_flushes(&open_temp(&file), access, buffers, every);
                check_flushes(&Memory::new("memory", &bytes[..]), access, buffers, every);
            }
        });
    }
}

/// If reads finish out of order, a worker must not wait for a chunk that only it could
/// process.
#[test]
fn flushing_does_not_lock_up_when_reads_finish_out_of_order() {
    for access in ACCESSES {
        without_hanging(move || {
            let delay = |offset| Duration::from_micros(scatter(offset, 3_000));
            let source = SlowSource::new(noise(100_000), delay);
            check_flushes(&source, access, 8, 10);
            check_flushes(&source, access, 8, 600);
        });
    }
}

#[test]
fn the_sink_sees_the_chunk_whose_results_it_takes() {
    let bytes = noise(50_000);
    let source = Memory::new("memory", &bytes[..]);
    let mut next = 0;
    let sink = &mut |chunk: &Chunk<'_>, part: &mut Vec<u64>| {
        for offset in part.drain(..) {
            assert_eq!(offset, next);
            let position = (offset - chunk.offset) as usize;
            assert!(chunk.own.contains(&position));
            assert_eq!(chunk.data[position], bytes[offset as usize]);
            next += 1;
        }
    };
    Pipeline::new(&source).workers(4).buffer_bytes(777).run(&Flushes { every: 50 }, sink).unwrap();
    assert_eq!(next, 50_000);
}

/// Counts the started chunks; the first one is slow.
#[derive(Default)]
struct Begun {
    chunks: AtomicU64,
}

impl Kernel for Begun {
    type Output = ();
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, chunk: &Chunk<'_>, _: &mut Emitter<'_, ()>) {
        self.chunks.fetch_add(1, Ordering::SeqCst);
        if chunk.index == 0 {
            std::thread::sleep(Duration::from_millis(60));
        }
    }
}

fn check_bound(source: &dyn Source, access: Access) {
    const BUFFERS: u64 = 5;
    let kernel = Begun::default();
    let mut taken = 0;
    let mut most = 0;
    Pipeline::new(source)
        .access(access)
        .workers(4)
        .buffers(BUFFERS as usize)
        .buffer_bytes(4096)
        .run(&kernel, &mut |_: &Chunk<'_>, (): &mut ()| {
            most = most.max(kernel.chunks.load(Ordering::SeqCst) - taken);
            taken += 1;
        })
        .unwrap();
    assert_eq!(taken, source.length() / 4096);
    assert!(most <= BUFFERS, "{access:?} over {}: {most} chunks at once", source.name());
}

/// Later chunks must not pile up in memory after a slow one.
#[test]
fn no_more_chunks_exist_at_once_than_there_are_buffers() {
    let bytes = noise(400 * 4096);
    let file = temp_file(&bytes);
    for access in ACCESSES {
        check_bound(&Memory::new("memory", &bytes[..]), access);
        check_bound(&open_temp(&file), access);
        // Sources without windows, and one that is a single hole: both need buffers.
        check_bound(&SlowSource::new(bytes.clone(), |_| Duration::ZERO), access);
        let hole = tempfile::NamedTempFile::new().unwrap();
        hole.as_file().set_len(400 * 4096).unwrap();
        check_bound(&open_temp(&hole), access);
    }
}
