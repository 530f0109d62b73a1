//! Workers that fill one array in place, one chunk at a time.
//!
//! ```
//! use quarrier_core::parallel::{self, Cut};
//!
//! let mut squares = vec![0; 1_000];
//! parallel::init(&mut squares, Cut::default(), |out, start| {
//!     for (index, square) in out.iter_mut().enumerate() {
//!         *square = (start + index).pow(2);
//!     }
//! })?;
//! assert_eq!(squares[31], 961);
//!
//! // The mean of each value and its neighbours.
//! let mut means = vec![0; 1_000];
//! parallel::map([&squares], &mut means, 1, Cut::default(), |out, slices| {
//!     for (index, mean) in out.iter_mut().enumerate() {
//!         let at = slices.lead + index;
//!         let window = &slices.arrays[0][at.saturating_sub(1)..(at + 2).min(slices.arrays[0].len())];
//!         *mean = window.iter().sum::<usize>() / window.len();
//!     }
//! })?;
//! assert_eq!(means[31], (900 + 961 + 1024) / 3);
//! # Ok::<(), quarrier_core::Error>(())
//! ```
//!
//! Chunks are claimed one by one, so that uneven work balances. The result must not depend on how
//! an array was cut: that is the kernel's promise; `tests/core/parallel.rs` checks the others.

mod keep;

pub use keep::keep_freed_memory;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice::ChunksMut;
use std::sync::{Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::region::HUGE_PAGE_BYTES;
use crate::sync::{into_inner, lock};
use crate::threads;

/// How to cut an array, and how many workers to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Elements per chunk; 0: planned. (Chunks of 2 MiB for a long array, so that no two workers
    /// touch the same huge page; a few chunks per worker for a short one.)
    pub chunk: usize,
    /// Threads that run the kernel, including the caller's; 0: [`available_workers`].
    pub workers: usize,
}

/// The inputs that a kernel of [`map`] sees.
#[derive(Debug, Clone, Copy)]
pub struct Slices<'a, A, const N: usize> {
    /// Index in the whole arrays of the first element to fill.
    pub start: usize,
    /// Number of visible elements before it: the halo, or fewer at the start of the arrays.
    pub lead: usize,
    /// For each input, the elements to fill, and the halo on both sides as far as the array has it.
    pub arrays: [&'a [A]; N],
}

/// Returns the number of CPUs that this process may use, by affinity and cgroup quota.
pub fn available_workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Resolves a requested number of workers: 0 means [`available_workers`].
pub fn planned_workers(asked: usize) -> usize {
    if asked == 0 { available_workers() } else { asked }
}

/// Lets workers fill `out`: `kernel(part, start)` fills the part that begins at index `start`.
/// Every index belongs to exactly one part.
///
/// Costs about 30 µs per thread besides the kernel's time.
///
/// # Errors
/// [`Error::Panicked`] if the kernel panics: the other workers finish their current chunk and stop,
/// and the contents of `out` are undefined. [`Error::BadPlan`] for more than 4096 workers.
pub fn init<T: Send>(
    out: &mut [T],
    cut: Cut,
    kernel: impl Fn(&mut [T], usize) + Sync,
) -> Result<()> {
    let (chunk, workers) = plan(out, cut)?;
    let claims = Claims::new(out, chunk);
    threads::team(0..workers.max(1), |_| claims.work(&kernel));
    claims.end()
}

/// Lets workers fill `out` from `inputs` of the same length: `kernel(part, slices)` fills a part of
/// `out`, and sees the same part of each input and up to `halo` elements on both sides of it.
///
/// # Errors
/// The errors of [`init`], and [`Error::BadPlan`] if an input does not have the length of `out`.
pub fn map<A: Sync, T: Send, const N: usize>(
    inputs: [&[A]; N],
    out: &mut [T],
    halo: usize,
    cut: Cut,
    kernel: impl Fn(&mut [T], Slices<'_, A, N>) + Sync,
) -> Result<()> {
    let length = out.len();
    if let Some(input) = inputs.iter().find(|input| input.len() != length) {
        return Err(Error::BadPlan(format!(
            "an input has {} elements and the output {length}; they must have the same length",
            input.len()
        )));
    }
    init(out, cut, |part, start| {
        let first = start.saturating_sub(halo);
        let last = start.saturating_add(part.len()).saturating_add(halo).min(length);
        let arrays = inputs.map(|input| &input[first..last]);
        kernel(part, Slices { start, lead: start - first, arrays });
    })
}

/// Returns the elements per chunk, and a number of workers with a chunk for each.
fn plan<T>(out: &[T], cut: Cut) -> Result<(usize, usize)> {
    let workers = planned_workers(cut.workers);
    if workers > 4096 {
        return Err(Error::BadPlan(format!("{workers} workers are too many; 4096 at most")));
    }
    let chunk = match cut.chunk {
        0 => {
            let of = |bytes: usize| (bytes / size_of::<T>().max(1)).max(1);
            let (line, page) = (of(64), of(HUGE_PAGE_BYTES));
            // A few chunks per worker balance uneven work; no two workers share a cache line.
            (out.len() / (4 * workers)).next_multiple_of(line).clamp(line, page)
        }
        chunk => chunk,
    };
    Ok((chunk, workers.min(out.len().div_ceil(chunk))))
}

/// The elements left to fill. A lock suffices: a worker holds it for some 20 ns per chunk.
struct Claims<'a, T> {
    chunk: usize,
    state: Mutex<State<'a, T>>,
}

struct State<'a, T> {
    left: ChunksMut<'a, T>,
    next: usize,
    panicked: Option<Error>,
}

impl<'a, T> Claims<'a, T> {
    fn new(out: &'a mut [T], chunk: usize) -> Self {
        let state = State { left: out.chunks_mut(chunk), next: 0, panicked: None };
        Claims { chunk, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State<'a, T>> {
        lock(&self.state)
    }

    fn claim(&self) -> Option<(&'a mut [T], usize)> {
        let mut state = self.state();
        let part = state.left.next()?;
        let start = state.next;
        state.next += self.chunk.min(part.len());
        Some((part, start))
    }

    /// Runs a worker until no elements are left.
    fn work(&self, kernel: &(impl Fn(&mut [T], usize) + Sync)) {
        while let Some((part, start)) = self.claim() {
            let range = start..start + part.len();
            // `init` returns an error after a panic, so the caller does not use the elements left
            // half filled.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| kernel(part, start))) {
                let mut state = self.state();
                state.left = <&mut [T]>::default().chunks_mut(1);
                let message = text_of(&*panic);
                state.panicked.get_or_insert(Error::Panicked { range, message });
            }
        }
    }

    fn end(self) -> Result<()> {
        let state = into_inner(self.state);
        state.panicked.map_or(Ok(()), Err)
    }
}

/// The message of a panic.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string())
}
