//! The pipeline: a feed fills buffers or maps windows, M workers run a kernel over them, and a sink
//! takes the results in the order of the source.
//!
//! It replaces the "agents" of older carvers. A worker takes a buffer before it takes a chunk
//! number, so the lowest chunk in flight always has a buffer and can be finished: the pipeline
//! cannot deadlock with any number of buffers.

mod chunk;
mod feed;
mod pieces;
mod plan;
mod rates;
mod retry;
mod run;
#[cfg(target_os = "linux")]
mod shared;
mod stream;
mod timeline;
mod touch;
mod turnstile;
#[cfg(target_os = "linux")]
mod uring;

pub use chunk::Chunk;
pub use plan::{Access, Pipeline, Plan};
pub use rates::{AccessRate, Rates};
pub use run::Run;
#[cfg(target_os = "linux")]
pub use shared::{Delivery, SharedFeed, Slot, Unreadable};
pub use timeline::{Span, Stage, StageLoad, Timeline};
pub use touch::Touch;
pub use turnstile::Emitter;

use std::ops::ControlFlow;

/// The context that a kernel needs around the positions that a chunk owns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Bytes before the first owned position, as far as the source has them.
    pub before_bytes: usize,
    /// Bytes after the last owned position: for patterns of at most L bytes, L - 1.
    pub after_bytes: usize,
    /// Whether the kernel finds nothing in zeros surrounded by zeros, so that the pipeline can skip
    /// the holes of sparse sources (except `before_bytes` and `after_bytes` at their edges).
    pub skip_zeros: bool,
}

/// Work on chunks, in place. All workers share one kernel value.
pub trait Kernel: Sync {
    /// The result of a chunk. The pipeline reuses the values: the sink empties them.
    type Output: Default + Send;

    /// The context that a chunk must show around its owned positions. Called once, before the start.
    fn need(&self) -> Need;

    /// The name of a worker in reports: `worker 1` for number 0. Workers whose names differ only in
    /// a final number are listed together.
    fn worker_name(&self, worker: usize) -> String {
        format!("worker {}", worker + 1)
    }

    /// Works on one chunk and leaves results in `emit.output()`. Results must depend on
    /// the owned positions and their surroundings only, never on where the chunk was cut.
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Self::Output>);
}

/// Takes results in the order of the source, one at a time.
///
/// Any closure `FnMut(&Chunk, &mut Output)` is a sink that never stops.
pub trait Sink<O>: Send {
    /// Takes (and empties) `output`. The chunk's bytes are still visible. A chunk with very many
    /// results may come in several calls, with consecutive parts of its results.
    ///
    /// `Break` ends the run early: the pipeline reads no more.
    fn take(&mut self, chunk: &Chunk<'_>, output: &mut O) -> ControlFlow<()>;
}

impl<O, F: FnMut(&Chunk<'_>, &mut O) + Send> Sink<O> for F {
    fn take(&mut self, chunk: &Chunk<'_>, output: &mut O) -> ControlFlow<()> {
        self(chunk, output);
        ControlFlow::Continue(())
    }
}
