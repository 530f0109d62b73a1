//! The cost of requests.

use std::time::Duration;

use quarrier_sparse::Merge;

use super::file::wanted;
use super::held::SparseFile;
use super::room::Room;
use crate::error::{Error, Failure, Status};
use crate::guard::run;
use crate::input::{Sized, fill, object, structure};
use crate::span::Span;

/// The cost of requests, and the limits on them. quarrier_cost_model_default() fills it.
///
/// A hole between two missing ranges is fetched along with them if its bytes cost no more than a separate
/// request.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CostModel {
    /// sizeof(quarrier_cost_model).
    pub struct_bytes: usize,
    /// The time from a request to its first byte, in seconds.
    pub latency_seconds: f64,
    /// The rate after the first byte. 0 or less: bytes take no time.
    pub bytes_per_second: f64,
    /// The price of a request, in any currency.
    pub price_per_request: f64,
    /// The price of a byte, in the same currency.
    pub price_per_byte: f64,
    /// The value of one unit of the currency, in seconds.
    pub seconds_per_price: f64,
    /// Maximum number of bytes in a request; 0 for no limit.
    pub request_bytes_max: u64,
    /// Requests begin and end at multiples of this, except at the end of the file; 0 and 1 for any
    /// offset.
    pub alignment: u64,
}

// SAFETY: the fields are numbers, so any bytes are a value; the first is a `usize`; the structure ends
// without padding.
unsafe impl Sized for CostModel {}

impl Default for CostModel {
    fn default() -> Self {
        CostModel::from(&quarrier_sparse::CostModel::default())
    }
}

impl From<&quarrier_sparse::CostModel> for CostModel {
    fn from(model: &quarrier_sparse::CostModel) -> Self {
        CostModel {
            struct_bytes: size_of::<CostModel>(),
            latency_seconds: model.latency.as_secs_f64(),
            bytes_per_second: model.bytes_per_second,
            price_per_request: model.price_per_request,
            price_per_byte: model.price_per_byte,
            seconds_per_price: model.seconds_per_price,
            request_bytes_max: model.request_bytes_max,
            alignment: model.alignment,
        }
    }
}

impl CostModel {
    /// Converts the caller's model; NULL for the default.
    ///
    /// # Safety
    /// The pointer is NULL, or points to a model of as many bytes as its `struct_bytes` says.
    pub(super) unsafe fn of(
        model: *const CostModel,
    ) -> Result<quarrier_sparse::CostModel, Failure> {
        // SAFETY: the caller keeps the contract of `structure`.
        let model = unsafe { structure(model, "model") }?;
        let latency = Duration::try_from_secs_f64(model.latency_seconds);
        Ok(quarrier_sparse::CostModel {
            latency: latency
                .map_err(|_| Failure::Argument("latency_seconds", "it is not a valid time"))?,
            bytes_per_second: model.bytes_per_second,
            price_per_request: model.price_per_request,
            price_per_byte: model.price_per_byte,
            seconds_per_price: model.seconds_per_price,
            request_bytes_max: model.request_bytes_max,
            alignment: model.alignment,
        })
    }
}

/// Sets all fields except struct_bytes, which must be set before: a server about 20 ms away, 50 MB/s, free
/// of charge, requests of at most 16 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_cost_model_default(
    model: *mut CostModel,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `model` is NULL or as long as
    // its `struct_bytes` says.
    unsafe { run(error, || fill(model, &CostModel::default(), "model")) }
}

/// Stores the cheapest requests for the missing bytes of many ranges, which may overlap and be in any order.
/// model may be NULL for the default. Otherwise like quarrier_sparse_file_need().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_need_by_cost(
    file: *const SparseFile,
    wanted_spans: *const Span,
    wanted_count: usize,
    model: *const CostModel,
    spans: *mut Span,
    capacity: usize,
    count: *mut usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `count` are NULL or writable; `model` is NULL or
    // as long as its `struct_bytes` says; `file` is NULL or alive, and all threads share it as a
    // pointer to const during the call; `wanted_spans` holds `wanted_count` values that nobody
    // changes during the call; `spans` has room for `capacity` ranges that nobody else uses during
    // the call.
    unsafe {
        run(error, || {
            let mut room = Room::new(spans, capacity)?;
            let (file, merge) = (object(file, "file")?, Merge::Cost(CostModel::of(model)?));
            let wanted = wanted(wanted_spans, wanted_count)?;
            let needed = file.look(|file| file.need_many(&wanted, &merge))?;
            needed.into_iter().for_each(|span| room.push(span));
            room.tell(count)
        })
    }
}
