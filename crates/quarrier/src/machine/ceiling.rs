//! The ceiling of a run: from the machine profile, or from a plain read of the same source, measured
//! after the run.

use std::ops::Range;

use quarrier_core::meminfo;
use quarrier_core::pipeline::{Access, Chunk, Kernel, Pipeline, Plan, Touch};
use quarrier_core::region::AsData;
use quarrier_core::source::{FileSource, Memory, Source};

use super::Machine;

/// The maximum rate at which the source's bytes can be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling {
    /// The name of the ceiling: `memory read`, `disk read` or `gpu copy`.
    pub of: &'static str,
    /// The rate in bytes per second.
    pub bytes_per_second: f64,
}

/// Size of the read that measures it: enough for a steady rate, and a fraction of a second long.
const MEMORY_BYTES: u64 = 256 << 20;
const DISK_BYTES: u64 = 128 << 20;
/// A smaller read takes about as long as the threads take to start, and means nothing.
const MEMORY_BYTES_MIN: u64 = 1 << 20;
const DISK_BYTES_MIN: u64 = 16 << 20;
/// A smaller range is read several times.
const MEMORY_BYTES_READ: u64 = 64 << 20;

impl Machine {
    /// The ceiling of a run over `range` of `source` according to `plan`: from the profile, or by a
    /// plain read of the same bytes, which takes a fraction of a second. `None` if neither is possible.
    pub fn ceiling(&self, source: &dyn Source, plan: &Plan, range: Range<u64>) -> Option<Ceiling> {
        self.known_ceiling(source, plan).or_else(|| measure(source, plan, range))
    }

    /// The memory bandwidth of `workers` threads, the ceiling of runs over loaded tables: from the
    /// profile, or measured by a plain read of 256 MiB, or of a quarter of the free memory if that is
    /// less. `None` if neither is possible.
    pub fn memory_ceiling(&self, workers: usize) -> Option<Ceiling> {
        let nothing = Memory::new("memory", Vec::new());
        let plan = plan(&nothing, workers)?;
        self.known_ceiling(&nothing, &plan).or_else(|| {
            // On a machine with little memory, use little of it.
            let most = meminfo::usable_bytes().map_or(MEMORY_BYTES, |bytes| bytes / 4);
            let length = usize::try_from(MEMORY_BYTES.min(most)).ok()?;
            let mut ones = Vec::new();
            ones.try_reserve_exact(length).ok()?;
            ones.resize(length, 1u8);
            measure(&Memory::new("memory", ones), &plan, 0..length as u64)
        })
    }

    /// The profile's value; `None` if other processes disturbed its measurement.
    fn known_ceiling(&self, source: &dyn Source, plan: &Plan) -> Option<Ceiling> {
        let (of, bytes_per_second) = match plan.access {
            Access::Window | Access::Read => {
                let memory = self.profile()?.memory.as_ref().filter(|memory| !memory.disturbed)?;
                let reads = &memory.read;
                let fits = reads.iter().filter(|read| read.threads as usize <= plan.workers);
                ("memory read", fits.map(|read| read.per_second).fold(0.0, f64::max))
            }
            Access::Queue | Access::Uring => {
                let disk = self.disk_of(source).filter(|disk| !disk.disturbed)?;
                let reads = disk.sequential_read.iter();
                ("disk read", reads.map(|read| read.bytes_per_second).fold(0.0, f64::max))
            }
        };
        (bytes_per_second > 0.0).then_some(Ceiling { of, bytes_per_second })
    }
}

fn plan(source: &dyn Source, workers: usize) -> Option<Plan> {
    Pipeline::new(source).access(Access::Window).workers(workers).plan(Touch.need()).ok()
}

/// Measures the ceiling of such a run over `range` of `source`, with the same number of workers.
///
/// If the run used windows, the ceiling is the rate at which that many threads read memory (or the page
/// cache). If the run read from disk, its pages are cached by now, so the measurement bypasses the page
/// cache. `None` if a measurement is impossible: a range that is small or all holes, bytes that cannot
/// be read, no `O_DIRECT`.
fn measure(source: &dyn Source, plan: &Plan, range: Range<u64>) -> Option<Ceiling> {
    let from_memory = matches!(plan.access, Access::Window | Access::Read);
    let most = if from_memory { MEMORY_BYTES } else { DISK_BYTES };
    let sample = range.start..range.end.min(range.start.saturating_add(most));
    let direct;
    let (of, access, source) = if from_memory {
        ("memory read", plan.access, source)
    } else {
        direct = FileSource::open_direct(source.name().as_ref()).ok()?;
        ("disk read", Access::Uring, &direct as &dyn Source)
    };
    // SAFETY: `Touch` adds up bytes, which makes no `str` and relies on no two loads being equal;
    // the sink looks at no bytes.
    let promise = unsafe { AsData::promised() };
    let pipeline = Pipeline::new(source)
        .show_changing(promise)
        .access(access)
        .workers(plan.workers)
        .buffers(plan.buffers)
        .buffer_bytes(plan.buffer_bytes)
        .range(sample);
    let least = if from_memory { MEMORY_BYTES_MIN } else { DISK_BYTES_MIN };
    // Read a small range several times and take the best rate. Read from a disk once, since it is
    // cached afterwards.
    let (mut bytes_read, mut best) = (0, 0.0);
    while bytes_read == 0 || (from_memory && bytes_read < MEMORY_BYTES_READ) {
        let (bytes, seconds) = once(&pipeline).filter(|(bytes, _)| *bytes >= least)?;
        bytes_read += bytes;
        best = f64::max(best, bytes as f64 / seconds);
    }
    (best.is_finite() && best > 0.0).then_some(Ceiling { of, bytes_per_second: best })
}

/// The bytes and seconds of one read; `None` if part of the range could not be read.
fn once(pipeline: &Pipeline<'_>) -> Option<(u64, f64)> {
    let mut sum = 0u64;
    let read = pipeline
        .run(&Touch, &mut |_: &Chunk<'_>, bytes: &mut u64| {
            sum = sum.wrapping_add(std::mem::take(bytes));
        })
        .ok()?;
    let seconds = read.elapsed.as_secs_f64();
    (read.unreadable.is_empty() && seconds > 0.0).then_some((read.bytes, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quarrier_gauge::profile::{self, ByThreads, MachineProfile};

    fn measured(access: Access, source: &dyn Source) -> Option<Ceiling> {
        let plan = Pipeline::new(source).access(access).workers(2).plan(Touch.need()).unwrap();
        measure(source, &plan, 0..source.length())
    }

    #[test]
    fn too_little_says_nothing_of_the_machine() {
        for bytes in [0, 60, MEMORY_BYTES_MIN as usize - 1] {
            let source = Memory::new("little", vec![1; bytes]);
            assert!(measured(Access::Window, &source).is_none(), "{bytes} bytes");
            assert!(measured(Access::Read, &source).is_none(), "{bytes} bytes");
        }
        let source = Memory::new("enough", vec![1; MEMORY_BYTES_MIN as usize]);
        assert_eq!(measured(Access::Window, &source).unwrap().of, "memory read");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let source = FileSource::open(&path).unwrap();
        assert!(measured(Access::Queue, &source).is_none());
    }

    #[test]
    fn disturbed_readings_are_no_ceiling() {
        let source = Memory::new("memory", vec![1; 1 << 20]);
        let plan = plan(&source, 2).unwrap();
        let known = |disturbed| {
            let read = [(1, 1e9), (2, 2e9), (4, 3e9)];
            let read = read.map(|(threads, per_second)| ByThreads { threads, per_second });
            let memory = profile::Memory { disturbed, read: read.to_vec(), ..Default::default() };
            let profile = MachineProfile { memory: Some(memory), ..MachineProfile::default() };
            Machine::with_profile(profile).known_ceiling(&source, &plan)
        };
        let expected = Ceiling { of: "memory read", bytes_per_second: 2e9 };
        assert_eq!(known(false), Some(expected));
        assert_eq!(known(true), None);
    }

    /// Memory with one unreadable byte.
    struct Damaged(Memory<Vec<u8>>);

    impl Source for Damaged {
        fn name(&self) -> &str {
            "damaged"
        }

        fn length(&self) -> u64 {
            self.0.length()
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
            if (offset..offset + buffer.len() as u64).contains(&12_345) {
                return Err(std::io::Error::other("bad sector"));
            }
            self.0.read_at(offset, buffer)
        }
    }

    #[test]
    fn a_read_with_errors_says_nothing_of_the_machine() {
        let source = Damaged(Memory::new("damaged", vec![1; 4 << 20]));
        assert!(measured(Access::Read, &source).is_none());
    }
}
