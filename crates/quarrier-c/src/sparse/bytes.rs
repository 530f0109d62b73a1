//! Files and stores as bytes.

use std::ffi::c_void;

use super::held::SparseFile;
use crate::error::{Error, Status};
use crate::guard::{run, value};
use crate::input::{bytes, free, object, put_new};

/// Bytes that the library allocated.
pub struct Bytes {
    pub(super) bytes: Vec<u8>,
}

/// Returns a pointer to the first byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_bytes_data(bytes: *const Bytes) -> *const c_void {
    // SAFETY: the header requires that `bytes` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    let bytes = unsafe { bytes.as_ref() };
    bytes.map_or(std::ptr::null(), |bytes| bytes.bytes.as_ptr().cast())
}

/// Returns the number of bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_bytes_length(bytes: *const Bytes) -> usize {
    // SAFETY: the header requires that `bytes` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { bytes.as_ref() }.map_or(0, |bytes| bytes.bytes.len())
}

/// Frees the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_bytes_free(bytes: *mut Bytes) {
    // SAFETY: the header requires that `bytes` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(bytes) });
}

/// Serialises a file without its pins, with a checksum.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_to_bytes(
    file: *const SparseFile,
    stored: *mut *mut Bytes,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `stored` are NULL or writable; `file` is NULL or
    // alive, and all threads share it as a pointer to const during the call.
    unsafe {
        run(error, || {
            let bytes = object(file, "file")?.look(quarrier_sparse::SparseFile::to_bytes);
            put_new(stored, "stored", Bytes { bytes })
        })
    }
}

/// Restores a file from the bytes of quarrier_sparse_file_to_bytes(). Returns QUARRIER_STATUS_CORRUPT for
/// any other bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_from_bytes(
    data: *const c_void,
    length: usize,
    file: *mut *mut SparseFile,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `file` are NULL or writable; `data` holds
    // `length` bytes that nobody changes during the call.
    unsafe {
        run(error, || {
            let read = quarrier_sparse::SparseFile::from_bytes(bytes(data, length, "data")?)?;
            put_new(file, "file", SparseFile::own(read))
        })
    }
}
