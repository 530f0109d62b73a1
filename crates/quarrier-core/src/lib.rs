//! Memory regions, sources, and the pipeline that processes a source in parallel without needless
//! copies.
//!
//! ```text
//!  Source ──→ feed ──→ chunks ──→ workers ──→ turnstile ──→ Sink
//!  read_at    mapped windows or   Kernel      puts results
//!  map        buffers of a pool   (yours)     in order
//! ```
//!
//! A [`source::Source`] is bytes with a length, read at an offset. A
//! [`pipeline::Pipeline`] cuts it into chunks that overlap by as much as the kernel asks
//! for, lets M workers run a [`pipeline::Kernel`] over them in place, and hands the
//! results to a [`pipeline::Sink`] in the order of the source.
//!
//! ```
//! use quarrier_core::pipeline::{Chunk, Emitter, Kernel, Need, Pipeline};
//! use quarrier_core::source::Memory;
//!
//! /// Sums all bytes.
//! struct Sum;
//! impl Kernel for Sum {
//!     type Output = u64;
//!     fn need(&self) -> Need { Need::default() }
//!     fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, u64>) {
//!         *emit.output() += chunk.owned().iter().map(|&b| u64::from(b)).sum::<u64>();
//!     }
//! }
//!
//! let source = Memory::new("example", vec![1; 100_000]);
//! let mut total = 0;
//! let run = Pipeline::new(&source)
//!     .workers(2)
//!     .run(&Sum, &mut |_: &Chunk<'_>, sum: &mut u64| { total += std::mem::take(sum); })?;
//! assert_eq!(total, 100_000);
//! assert_eq!(run.bytes, 100_000);
//! # Ok::<(), quarrier_core::Error>(())
//! ```

pub mod source;

pub mod region;

pub mod pipeline;

pub mod panics;

pub mod parallel;

pub mod sync;

pub mod ranges;

pub mod size;

pub mod hex;

pub mod name;

pub mod varint;

pub mod civil;

pub mod isa;

pub mod cgroups;

pub mod lzfse;

pub mod meminfo;

pub mod scratch;

pub mod threads;

mod error;

pub use error::{Error, Result};
