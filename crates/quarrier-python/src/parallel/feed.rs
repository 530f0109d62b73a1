//! The pipeline's readers, which fill memory that worker processes share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use quarrier::source::Announced;
use quarrier_core::pipeline::{self, Delivery};
use quarrier_core::source::Source as _;

use super::SharedRegion;
use crate::errors::of_core;
use crate::source::{Failed, Opened, Source, open_source};

/// The interval between checks for signals while a caller waits for a chunk.
const PERIOD: Duration = Duration::from_millis(50);

/// Chunks of a source, read into slots of shared memory by threads.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct SharedFeed {
    feed: pipeline::SharedFeed,
    region: Py<SharedRegion>,
    /// Stops readers that wait for a network, and holds their errors.
    failed: Arc<Failed>,
}

#[pymethods]
impl SharedFeed {
    /// `source` is the result of `open_source`, or a path or URL.
    #[new]
    fn new(
        source: &Bound<'_, PyAny>,
        chunk: usize,
        overlap: usize,
        buffers: usize,
    ) -> PyResult<Self> {
        let py = source.py();
        let source = match source.cast::<Source>() {
            Ok(source) => source.clone().unbind(),
            Err(_) => {
                let path: PathBuf = source.extract()?;
                Py::new(py, open_source(py, path, None, None, None, false, None, None)?)?
            }
        };
        let failed = Arc::new(Failed::default());
        let opened = Opened::new(source, Arc::clone(&failed));
        // The scan reads all of it.
        opened.announce(0..opened.length());
        let feed = pipeline::SharedFeed::new(Box::new(opened), chunk, overlap, buffers)
            .map_err(|error| of_core(py, &error))?;
        let region = Py::new(py, SharedRegion::of_feed(feed.region()))?;
        Ok(SharedFeed { feed, region, failed })
    }

    /// The shared memory: slot i is at i * stride.
    #[getter]
    fn region(&self, py: Python<'_>) -> Py<SharedRegion> {
        self.region.clone_ref(py)
    }

    #[getter]
    fn stride(&self) -> usize {
        self.feed.stride_bytes()
    }

    /// The length of the source.
    #[getter]
    fn length(&self) -> u64 {
        self.feed.length()
    }

    #[getter]
    fn chunks(&self) -> u64 {
        self.feed.chunks()
    }

    /// Starts the threads. Fork all workers before.
    #[pyo3(signature = (readers=1))]
    fn start(&self, py: Python<'_>, readers: usize) -> PyResult<()> {
        self.feed.start(readers).map_err(|error| of_core(py, &error))
    }

    /// The next chunk as (slot, offset, owned, visible); None at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<(usize, u64, usize, usize)>> {
        loop {
            match py.detach(|| self.feed.next(PERIOD)) {
                Ok(Delivery::Chunk(slot)) => {
                    let (owned, visible) = (slot.owned_bytes, slot.visible_bytes);
                    return Ok(Some((slot.slot, slot.offset, owned, visible)));
                }
                Ok(Delivery::Ended) => return Ok(None),
                Ok(Delivery::NotYet) => py.check_signals()?,
                Err(error) => return Err(self.failed.raised(py, &error)),
            }
        }
    }

    /// Returns a slot, to be filled again.
    fn release(&self, py: Python<'_>, slot: usize) -> PyResult<()> {
        self.feed.release(slot).map_err(|error| of_core(py, &error))
    }

    /// Ranges that could not be read so far, as (offset, length, reason); their bytes are zero.
    fn problems(&self) -> Vec<(u64, u64, String)> {
        let problems = self.feed.problems().into_iter();
        let row = |problem: pipeline::Unreadable| {
            let range = problem.range;
            (range.start, range.end - range.start, problem.reason)
        };
        problems.map(row).collect()
    }

    /// Ends the feed and joins its threads.
    fn close(&self, py: Python<'_>) {
        self.failed.stop();
        py.detach(|| self.feed.close());
    }

    fn __repr__(&self) -> String {
        format!("<quarrier shared feed, {} chunks of {} bytes>", self.chunks(), self.length())
    }
}

/// Readers may be in the middle of a read when the feed is dropped; the interpreter waits for that
/// read, and for no other.
impl Drop for SharedFeed {
    fn drop(&mut self) {
        self.failed.stop();
    }
}
