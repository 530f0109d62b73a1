//! The pipeline: a feed fills buffers or shows windows, M workers run a kernel over them,
//! a sink takes the results in the order of the source.
//!
//! This replaces the "agents" of older carvers. A worker that holds a chunk number also holds the
//! buffer for it, taken first: so the lowest chunk in flight can always be finished, and the pipeline
//! cannot lock up, whatever the number of buffers.

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

/// The context that a kernel must see around the positions that a chunk owns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Bytes before the first owned position, where the source has them.
    pub before_bytes: usize,
    /// Bytes after the last owned position: for patterns of at most L bytes, L - 1.
    pub after_bytes: usize,
    /// True where the kernel finds nothing in zeros surrounded by zeros, so that holes of
    /// sparse sources can be skipped (but for `before_bytes` and `after_bytes` at their edges).
    pub skip_zeros: bool,
}

/// Work on a chunk, in place. One kernel value serves all workers at once.
pub trait Kernel: Sync {
    /// The result of a chunk. Values are reused: the sink empties them.
    type Output: Default + Send;

    /// The context that a chunk must show around its owned positions. Called once, before the start.
    fn need(&self) -> Need;

    /// The name of a worker in the account: `worker 1` for number 0. Names that end in a number are
    /// listed beside others of their kind.
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
    /// Takes (and empties) `output`. The chunk's bytes can still be seen. It may be called
    /// more than once for a chunk with very many results, then with consecutive parts.
    ///
    /// `Break` ends the run early: nothing more is read.
    fn take(&mut self, chunk: &Chunk<'_>, output: &mut O) -> ControlFlow<()>;
}

impl<O, F: FnMut(&Chunk<'_>, &mut O) + Send> Sink<O> for F {
    fn take(&mut self, chunk: &Chunk<'_>, output: &mut O) -> ControlFlow<()> {
        self(chunk, output);
        ControlFlow::Continue(())
    }
}
