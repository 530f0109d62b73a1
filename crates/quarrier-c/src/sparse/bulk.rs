//! Many ranges in one call.

use std::ffi::c_void;

use quarrier_sparse::{Merge, Span as Range};

use super::file::wanted;
use super::held::SparseFile;
use super::room::Room;
use crate::error::{Error, Failure, Status};
use crate::guard::run;
use crate::input::{bytes, items, items_mut, object, put};
use crate::span::Span;

/// Like quarrier_sparse_file_need(), for many ranges, which may overlap and be in any order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_need_many(
    file: *const SparseFile,
    wanted_spans: *const Span,
    wanted_count: usize,
    greedy: u64,
    spans: *mut Span,
    capacity: usize,
    count: *mut usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `count` are NULL or writable; `file` is NULL or
    // alive, and all threads share it as a pointer to const during the call; `wanted_spans` holds
    // `wanted_count` values that nobody changes during the call; `spans` has room for `capacity`
    // ranges that nobody else uses during the call.
    unsafe {
        run(error, || {
            let mut room = Room::new(spans, capacity)?;
            let file = object(file, "file")?;
            let merge = match greedy {
                0 => Merge::Exact,
                bytes_min => Merge::Greedy { bytes_min },
            };
            let wanted = wanted(wanted_spans, wanted_count)?;
            let needed = file.look(|file| file.need_many(&wanted, &merge))?;
            needed.into_iter().for_each(|span| room.push(span));
            room.tell(count)
        })
    }
}

/// Reads many ranges consecutively into buffer, whose length must be the sum of their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_read_many(
    file: *const SparseFile,
    spans: *const Span,
    span_count: usize,
    buffer: *mut c_void,
    length: usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `file` is NULL or alive, and
    // all threads share it as a pointer to const during the call; `spans` holds `span_count` values
    // that nobody changes during the call; `buffer` has room for `length` bytes that nobody else
    // uses during the call.
    unsafe {
        run(error, || {
            let spans = items(spans, span_count, "spans")?;
            check_length(spans, length, "buffer")?;
            let buffer = items_mut(buffer.cast::<u8>(), length, "buffer")?;
            let spans = spans.iter().map(|&span| Range::from(span));
            Ok(object(file, "file")?.look(|file| file.read_many_into(spans, buffer))?)
        })
    }
}

/// Writes many ranges, whose bytes are consecutive in data; length must be the sum of their lengths.
/// Writes nothing if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_write_many(
    file: *mut SparseFile,
    spans: *const Span,
    span_count: usize,
    data: *const c_void,
    length: usize,
    new_bytes: *mut u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `new_bytes` are NULL or writable; `file` is NULL
    // or alive, and only this thread uses it unless it lies in a store, as it is passed without
    // const; `spans` holds `span_count` values that nobody changes during the call; `data` holds
    // `length` bytes that nobody changes during the call.
    unsafe {
        run(error, || {
            let spans = items(spans, span_count, "spans")?;
            check_length(spans, length, "data")?;
            let data = bytes(data, length, "data")?;
            let spans = spans.iter().map(|&span| Range::from(span));
            let new = object(file, "file")?.change(|file| file.write_many(spans, data))?;
            put(new_bytes, new);
            Ok(())
        })
    }
}

/// Checks that the ranges add up to `length` bytes.
fn check_length(spans: &[Span], length: usize, name: &'static str) -> Result<(), Failure> {
    let sum = spans.iter().try_fold(0u64, |sum, span| sum.checked_add(span.length));
    match sum {
        Some(sum) if sum == length as u64 => Ok(()),
        _ => Err(Failure::Argument(name, "its length is not the sum of the ranges")),
    }
}
