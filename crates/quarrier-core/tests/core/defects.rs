//! Defects of older carvers' agents and buffers, each as a test that must never fail here.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use quarrier_core::pipeline::{Access, Chunk, Emitter, Kernel, Need, Pipeline};
use quarrier_core::source::{Memory, Source};

use crate::census::{ACCESSES, check_whole, collect, noise, open_temp, scatter, temp_file};
use crate::faults::{ShortReadSource, SlowSource};

const NEEDLE: &[u8] = b"\0\x02\0\x04"; // noise has no zeros, so it has no needles

/// Finds a needle of four bytes, naively.
struct FindNeedle;

impl Kernel for FindNeedle {
    type Output = Vec<u64>;
    fn need(&self) -> Need {
        Need { after_bytes: NEEDLE.len() - 1, ..Need::default() }
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Vec<u64>>) {
        for position in chunk.own.clone() {
            if chunk.data[position..].starts_with(NEEDLE) {
                emit.output().push(chunk.offset + position as u64);
            }
        }
    }
}

fn plant(bytes: &mut [u8], offsets: &[usize]) {
    for &offset in offsets {
        bytes[offset..offset + NEEDLE.len()].copy_from_slice(NEEDLE);
    }
}

fn check_found(source: &dyn Source, buffer_bytes: usize, expected: &[u64]) {
    for access in ACCESSES {
        for workers in [1, 3] {
            let pipeline =
                Pipeline::new(source).access(access).workers(workers).buffer_bytes(buffer_bytes);
            let (run, found) = collect(&pipeline, &FindNeedle);
            run.unwrap();
            assert_eq!(found, expected, "{access:?}, {workers} workers, {buffer_bytes} a buffer");
        }
    }
}

#[test]
fn pattern_across_a_buffer_border_is_seen_once() {
    for border in [4_096, 65_536] {
        for offset in border - 4..=border {
            let mut bytes = noise(3 * border);
            plant(&mut bytes, &[offset, offset + border]);
            let file = temp_file(&bytes);
            check_found(&open_temp(&file), border, &[offset as u64, (offset + border) as u64]);
        }
    }
}

#[test]
fn pattern_longer_than_a_buffer_is_seen_once() {
    let mut bytes = noise(50);
    plant(&mut bytes, &[3, 20, 46]);
    for buffer_bytes in 1..5 {
        check_found(&Memory::new("memory", &bytes[..]), buffer_bytes, &[3, 20, 46]);
    }
}

#[test]
fn first_and_last_position_are_seen() {
    for length in [4, 5, 4_095, 4_096, 4_097, 10_000] {
        let mut bytes = noise(length);
        let last = length - NEEDLE.len();
        plant(&mut bytes, &[0, last]);
        let mut expected = vec![0, last as u64];
        expected.dedup();
        if length == 5 {
            expected.remove(0); // the second needle lies over the first
        }
        let file = temp_file(&bytes);
        check_found(&open_temp(&file), 4_096, &expected);
    }
}

/// The end of the source has half a needle; the buffer still has the other half from an earlier
/// chunk.
#[test]
fn short_last_read_leaves_no_stale_bytes() {
    const BUFFER_BYTES: usize = 4_096;
    let mut bytes = noise(3 * BUFFER_BYTES + 2);
    plant(&mut bytes, &[0, BUFFER_BYTES, 2 * BUFFER_BYTES]);
    bytes[3 * BUFFER_BYTES..].copy_from_slice(&NEEDLE[..2]);
    let expected = [0, BUFFER_BYTES as u64, 2 * BUFFER_BYTES as u64];
    let file = temp_file(&bytes);
    check_found(&open_temp(&file), BUFFER_BYTES, &expected);
    check_found(&ShortReadSource::new(bytes.clone(), 1_000), BUFFER_BYTES, &expected);
    // The same for random bytes, with a single buffer that is used again and again.
    let unused = Memory::new("unused", b"");
    let pipeline = Pipeline::new(&unused).workers(1).buffers(1);
    let mut found = Vec::new();
    let mut sink = |_: &Chunk<'_>, part: &mut Vec<u64>| found.append(part);
    pipeline
        .buffer_bytes(BUFFER_BYTES)
        .run_stream("stream", &mut &bytes[..], &FindNeedle, &mut sink)
        .unwrap();
    assert_eq!(found, expected);
}

/// Takes some time, unrelated to the order of chunks, then yields all owned offsets.
struct Dawdles;

impl Kernel for Dawdles {
    type Output = Vec<(u64, u8)>;
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Self::Output>) {
        std::thread::sleep(Duration::from_micros(scatter(chunk.index, 4_000)));
        let offsets = chunk.offset + chunk.own.start as u64..;
        emit.output().extend(offsets.zip(chunk.owned().iter().copied()));
    }
}

#[test]
fn offsets_are_right_in_any_order_of_completion() {
    let bytes = noise(300_001);
    let file = temp_file(&bytes);
    let expected: Vec<(u64, u8)> = (0..).zip(bytes.iter().copied()).collect();
    let delay = |offset| Duration::from_micros(scatter(offset + 1, 2_000));
    for access in ACCESSES {
        for source in [&open_temp(&file) as &dyn Source, &SlowSource::new(bytes.clone(), delay)] {
            let pipeline = Pipeline::new(source).access(access).workers(6).readers(3);
            let (run, seen) = collect(&pipeline.buffer_bytes(1_500), &Dawdles);
            assert_eq!(run.unwrap().bytes, 300_001);
            assert!(seen == expected, "{access:?} over {}", source.name());
        }
    }
}

/// Reads its bytes twice, with a pause in between in which others read and work.
#[derive(Default)]
struct LooksTwice {
    changes: AtomicUsize,
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, &byte| sum * 31 % 1_000_003 + u64::from(byte))
}

impl Kernel for LooksTwice {
    type Output = Vec<u64>;
    fn need(&self) -> Need {
        Need { before_bytes: 100, after_bytes: 100, ..Need::default() }
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Vec<u64>>) {
        let first = sum(chunk.data);
        std::thread::sleep(Duration::from_micros(300 + scatter(chunk.index, 1_500)));
        let second = sum(chunk.data);
        self.changes.fetch_add(usize::from(first != second), Ordering::SeqCst);
        emit.output().push(second);
    }
}

#[test]
fn results_are_not_overwritten_while_read() {
    let bytes = noise(500_000);
    let file = temp_file(&bytes);
    for access in ACCESSES {
        for buffers in [1, 2, 3, 8] {
            let kernel = LooksTwice::default();
            let source = open_temp(&file);
            let pipeline = Pipeline::new(&source).access(access).workers(4).readers(3);
            let mut chunks = 0;
            let run = pipeline.buffers(buffers).buffer_bytes(5_000).run(
                &kernel,
                &mut |chunk: &Chunk<'_>, part: &mut Vec<u64>| {
                    // The bytes stay those of this chunk until the sink is done with them.
                    let start = chunk.offset as usize;
                    assert!(chunk.data == &bytes[start..start + chunk.data.len()]);
                    assert_eq!(std::mem::take(part), [sum(chunk.data)]);
                    chunks += 1;
                },
            );
            assert_eq!((run.unwrap().bytes, chunks), (500_000, 100));
            assert_eq!(kernel.changes.load(Ordering::SeqCst), 0, "{access:?}, {buffers} buffers");
        }
    }
}

/// Records the threads that worked; works long enough that every thread gets a chunk.
#[derive(Default)]
struct WhoWorks {
    threads: Mutex<BTreeSet<String>>,
}

impl Kernel for WhoWorks {
    type Output = ();
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, _: &Chunk<'_>, _: &mut Emitter<'_, ()>) {
        let id: ThreadId = std::thread::current().id();
        self.threads.lock().unwrap().insert(format!("{id:?}"));
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn every_worker_gets_work() {
    let file = temp_file(&noise(200_000));
    for access in ACCESSES {
        let kernel = WhoWorks::default();
        let source = open_temp(&file);
        let pipeline = Pipeline::new(&source).access(access).workers(4).buffer_bytes(2_000);
        pipeline.run(&kernel, &mut |_: &Chunk<'_>, (): &mut ()| {}).unwrap();
        assert_eq!(kernel.threads.lock().unwrap().len(), 4, "{access:?}");
    }
}

/// Returns the CPU time of this process, all threads together.
fn process_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live `timespec`, valid for the call to write.
    let rc = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(rc, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Measures in a separate process, where no other test uses the CPU: the test starts itself again,
/// with a variable set.
#[test]
fn three_idle_threads_do_not_spin() {
    const ALONE: &str = "QUARRIER_TEST_RUNS_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return check_idle_threads();
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "defects::three_idle_threads_do_not_spin"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
}

fn check_idle_threads() {
    let bytes = noise(20_000);
    for access in [Access::Read, Access::Queue] {
        let source = SlowSource::new(bytes.clone(), |_| Duration::from_millis(60));
        let (wall, cpu) = (Instant::now(), process_cpu_time());
        let pipeline = Pipeline::new(&source).access(access).workers(4).readers(1).buffers(1);
        check_whole(&pipeline.buffer_bytes(4_096), &bytes, Need::default());
        let (wall, cpu) = (wall.elapsed(), process_cpu_time() - cpu);
        assert!(wall >= Duration::from_millis(300), "{access:?}: the source was slow: {wall:?}");
        // A single thread that spins would use as much CPU time as there is wall time.
        assert!(cpu < wall / 4, "{access:?}: {cpu:?} of CPU time in {wall:?}");
    }
}
