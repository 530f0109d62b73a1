//! `quarrier.ReadAhead`.

use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;
use quarrier_core::sync::lock;
use quarrier_sparse::Span;

use super::SparseFile;
use super::cost::CostModel;
use super::held::Work;
use super::number::Number;
use crate::errors::of_sparse;

/// Plans the fetches of one reader of a sparse file: the requested bytes, and a lookahead.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct ReadAhead {
    planner: Mutex<quarrier_sparse::ReadAhead>,
}

#[pymethods]
impl ReadAhead {
    #[new]
    #[pyo3(signature = (cost=None))]
    fn new(cost: Option<&CostModel>) -> Self {
        let planner = match cost {
            Some(cost) => quarrier_sparse::ReadAhead::new(cost.model()),
            None => quarrier_sparse::ReadAhead::learning(),
        };
        ReadAhead { planner: Mutex::new(planner) }
    }

    /// Returns the requests to make before the range can be read; none if all of it is held.
    fn plan(
        &self,
        py: Python<'_>,
        file: &SparseFile,
        offset: Number,
        length: Number,
    ) -> PyResult<Vec<(u64, u64)>> {
        let wanted = Span::new(offset.0, length.0);
        let requests =
            file.held.look(py, Work::Short, |file| lock(&self.planner).plan(file, wanted));
        let requests = requests.map_err(|error| of_sparse(py, &error))?;
        Ok(requests.into_iter().map(|span| (span.offset, span.length)).collect())
    }

    /// Records a request: its length in bytes, the seconds until its first bytes arrived, and the
    /// seconds until all had.
    fn observe(&self, length: u64, first_byte_seconds: f64, seconds: f64) {
        let duration = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let mut planner = lock(&self.planner);
        planner.observe(length, duration(first_byte_seconds), duration(seconds));
    }

    /// The number of bytes that arrive in the time that a request costs.
    #[getter]
    fn reach_bytes(&self) -> u64 {
        lock(&self.planner).reach_bytes()
    }
}
