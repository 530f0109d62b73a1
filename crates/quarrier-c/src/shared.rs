//! Memory that processes share.

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::error::{Error, Failure, Status};
use crate::guard::{run, value};
use crate::input::{free, put_new};

/// Zeroed memory that this process can share with others, on huge pages if the system has some. A forked
/// child shares the same memory; another process gets it by its file descriptor.
pub struct SharedRegion {
    region: quarrier_core::region::SharedRegion,
}

/// Creates a region. Free it with quarrier_shared_region_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_shared_region_new(
    length: usize,
    region: *mut *mut SharedRegion,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `region` are NULL or writable.
    unsafe {
        run(error, || {
            let made = quarrier_core::region::SharedRegion::new(length)?;
            put_new(region, "region", SharedRegion { region: made })
        })
    }
}

/// Creates a region over the memory of a file descriptor from another process; the descriptor is
/// duplicated. Nobody may truncate its file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_shared_region_from_fd(
    fd: i32,
    length: usize,
    region: *mut *mut SharedRegion,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `region` are NULL or writable, and that nobody
    // makes the file shorter; this crate makes no slice of the region. `fd` is not negative, and
    // the borrow ends when it is duplicated.
    unsafe {
        run(error, || {
            if fd < 0 {
                return Err(Failure::Argument("fd", "a file descriptor must not be negative"));
            }
            // The descriptor is borrowed only to duplicate it; the system refuses one that is not open.
            let file = BorrowedFd::borrow_raw(fd).try_clone_to_owned();
            let file = file.map_err(|error| Failure::Read(format!("descriptor {fd}"), error))?;
            let made = quarrier_core::region::SharedRegion::try_from_fd(file, length)?;
            put_new(region, "region", SharedRegion { region: made })
        })
    }
}

/// Returns the memory. It is valid as long as the region, and any thread may write to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_shared_region_data(region: *const SharedRegion) -> *mut c_void {
    // SAFETY: the header requires that `region` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    let region = unsafe { region.as_ref() };
    region.map_or(std::ptr::null_mut(), |region| region.region.as_ptr().as_ptr().cast())
}

/// Returns the length of the region in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_shared_region_length(region: *const SharedRegion) -> usize {
    // SAFETY: the header requires that `region` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { region.as_ref() }.map_or(0, |region| region.region.len())
}

/// Returns the file descriptor, which the region keeps; -1 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_shared_region_fd(region: *const SharedRegion) -> i32 {
    // SAFETY: the header requires that `region` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { region.as_ref() }.map_or(-1, |region| region.region.as_fd().as_raw_fd())
}

/// Frees a region; other processes keep theirs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_shared_region_free(region: *mut SharedRegion) {
    // SAFETY: the header requires that `region` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(region) });
}
