//! One pass over the bytes of a source.

use std::io::Read;
use std::sync::atomic::AtomicBool;

use quarrier_core::pipeline::{Need, Pipeline, Run};
use quarrier_core::source::{Memory, Source};

use super::drain::Drain;
use super::worker::FilterKernel;

/// The number of bytes that a chunk owns. Its results stay in memory until their turn.
const CHUNK_BYTES: usize = 4 << 20;

/// The origin of the bytes.
pub(super) enum Bytes<'b> {
    Source(&'b dyn Source),
    Stream(&'b mut (dyn Read + Send)),
}

impl Bytes<'_> {
    pub(super) fn end(&self) -> u64 {
        match self {
            Bytes::Source(source) => source.length(),
            Bytes::Stream(_) => u64::MAX,
        }
    }

    pub(super) fn run(
        self,
        name: &str,
        workers: usize,
        stop: &AtomicBool,
        kernel: &FilterKernel<'_>,
        drain: &mut Drain<'_, '_>,
    ) -> quarrier_core::Result<Run> {
        let nothing = Memory::new("-", Vec::new());
        let wishes = |source| Pipeline::new(source).workers(workers).stop(stop);
        match self {
            Bytes::Source(source) => {
                let pipeline = wishes(source);
                let bytes = pipeline.plan(Need::default())?.buffer_bytes.min(CHUNK_BYTES);
                pipeline.buffer_bytes(bytes).run(kernel, drain)
            }
            Bytes::Stream(stream) => wishes(&nothing).run_stream(name, stream, kernel, drain),
        }
    }
}
