//! The ceiling of a run: what the machine profile says, or a plain read of the same source,
//! measured on the spot.

use std::ops::Range;

use quarrier_core::pipeline::{Access, Chunk, Kernel, Pipeline, Plan, Touch};
use quarrier_core::source::{FileSource, Memory, Source};

use crate::commands::machine;

/// How fast the source's bytes can be had at all.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Ceiling {
    /// `memory read` or `disk read`.
    pub(in crate::commands) of: &'static str,
    pub(in crate::commands) bytes_per_second: f64,
}

/// Bytes read to measure it: enough to be steady, few enough to take a fraction of a second.
const MEMORY_BYTES: u64 = 256 << 20;
const DISK_BYTES: u64 = 128 << 20;

/// The ceiling for a run that went by `plan`, as [`measure`] would find it, of the machine profile where there is one.
pub(in crate::commands) fn find(
    source: &dyn Source,
    plan: &Plan,
    range: Range<u64>,
) -> Option<Ceiling> {
    of_profile(source, plan).or_else(|| measure(source, plan, range))
}

/// What memory gives to so many threads, for who reads what it has loaded before: what the machine
/// profile says, or a plain read of memory of its own. Measured once, in a fraction of a second.
pub(in crate::commands) fn of_memory(workers: usize) -> Option<Ceiling> {
    let nothing = Memory::new("memory", Vec::new());
    let plan = plan(&nothing, workers)?;
    of_profile(&nothing, &plan).or_else(|| {
        let source = Memory::new("memory", vec![1; MEMORY_BYTES as usize]);
        measure(&source, &plan, 0..MEMORY_BYTES)
    })
}

fn plan(source: &dyn Source, workers: usize) -> Option<Plan> {
    Pipeline::new(source).access(Access::Window).workers(workers).plan(Touch.need()).ok()
}

fn of_profile(source: &dyn Source, plan: &Plan) -> Option<Ceiling> {
    let (of, bytes_per_second) = match plan.access {
        Access::Window | Access::Read => {
            let reads = &machine::known()?.memory.as_ref()?.read;
            let fits = reads.iter().filter(|read| read.threads as usize <= plan.workers);
            ("memory read", fits.map(|read| read.per_second).fold(0.0, f64::max))
        }
        Access::Queue | Access::Uring => {
            let reads = machine::disk_of(source)?.sequential_read.iter();
            ("disk read", reads.map(|read| read.bytes_per_second).fold(0.0, f64::max))
        }
    };
    (bytes_per_second > 0.0).then_some(Ceiling { of, bytes_per_second })
}

/// Measures the ceiling for such a run over `range` of `source`, with as many workers.
///
/// Where the run used windows, that is what memory (or the page cache) yields to as many
/// threads. Where it read from disk, its pages are cached by now, so it is read past the
/// cache. `None` where nothing can be measured: an empty range, only holes, no `O_DIRECT`.
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
    let pipeline = Pipeline::new(source)
        .access(access)
        .workers(plan.workers)
        .buffers(plan.buffers)
        .buffer_bytes(plan.buffer_bytes)
        .range(sample);
    let mut sum = 0u64;
    let read = pipeline
        .run(&Touch, &mut |_: &Chunk<'_>, bytes: &mut u64| {
            sum = sum.wrapping_add(std::mem::take(bytes));
        })
        .ok()?;
    let seconds = read.elapsed.as_secs_f64();
    (read.bytes > 0 && seconds > 0.0)
        .then(|| Ceiling { of, bytes_per_second: read.bytes as f64 / seconds })
}
