//! The cost of requests, for `need` and `need_many`.

use std::time::Duration;

use pyo3::prelude::*;
use quarrier_sparse::Merge;

use crate::errors::raise;

/// The cost of requests: latency in seconds, bandwidth, prices; and their limits in bytes.
#[pyclass(frozen, eq, get_all, module = "quarrier")]
#[derive(Clone, PartialEq)]
pub(crate) struct CostModel {
    latency: f64,
    bytes_per_second: f64,
    price_per_request: f64,
    price_per_byte: f64,
    seconds_per_price: f64,
    request_bytes_max: u64,
    alignment: u64,
}

#[pymethods]
impl CostModel {
    #[new]
    #[pyo3(signature = (
        *, latency=0.02, bytes_per_second=50e6, price_per_request=0.0, price_per_byte=0.0,
        seconds_per_price=0.0, request_bytes_max=16_777_216, alignment=1,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the fields, by keyword only")]
    fn new(
        py: Python<'_>,
        latency: f64,
        bytes_per_second: f64,
        price_per_request: f64,
        price_per_byte: f64,
        seconds_per_price: f64,
        request_bytes_max: u64,
        alignment: u64,
    ) -> PyResult<Self> {
        if Duration::try_from_secs_f64(latency).is_err() {
            let message = format!("a latency of {latency} seconds is not possible");
            return Err(raise(py, "PlanError", (message,)));
        }
        Ok(CostModel {
            latency,
            bytes_per_second,
            price_per_request,
            price_per_byte,
            seconds_per_price,
            request_bytes_max,
            alignment,
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "quarrier.CostModel(latency={:?}, bytes_per_second={:?}, price_per_request={:?}, \
             price_per_byte={:?}, seconds_per_price={:?}, request_bytes_max={}, alignment={})",
            self.latency,
            self.bytes_per_second,
            self.price_per_request,
            self.price_per_byte,
            self.seconds_per_price,
            self.request_bytes_max,
            self.alignment,
        )
    }
}

impl CostModel {
    /// Converts the model to that of the crate.
    pub(super) fn model(&self) -> quarrier_sparse::CostModel {
        quarrier_sparse::CostModel {
            latency: Duration::try_from_secs_f64(self.latency).unwrap_or_default(),
            bytes_per_second: self.bytes_per_second,
            price_per_request: self.price_per_request,
            price_per_byte: self.price_per_byte,
            seconds_per_price: self.seconds_per_price,
            request_bytes_max: self.request_bytes_max,
            alignment: self.alignment,
        }
    }
}

/// Chooses how missing ranges become requests: by a cost model if one is given, else by requests of
/// at least `greedy` bytes, if that is not 0.
pub(super) fn merge(greedy: u64, cost: Option<&CostModel>) -> Merge {
    match cost {
        Some(cost) => Merge::Cost(cost.model()),
        None if greedy == 0 => Merge::Exact,
        None => Merge::Greedy { bytes_min: greedy },
    }
}
