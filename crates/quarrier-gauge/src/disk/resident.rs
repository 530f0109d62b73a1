//! What the page cache holds of a file.

use std::fs::File;
use std::io;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags};

/// The share of the first `bytes` of the file, not 0, that is in the page cache.
pub(super) fn resident_share(file: &File, bytes: u64) -> io::Result<f64> {
    let length = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut pages = vec![0u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: a new mapping at an address that the kernel chooses; nobody reads through it.
    let start = unsafe {
        rustix::mm::mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0)?
    };
    // SAFETY: `start` is a mapping of `length` bytes, and `pages` has a byte for each page of it.
    let answer = unsafe { libc::mincore(start, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: mapped above, with this length, and used by nobody.
    unsafe { rustix::mm::munmap(start, length)? };
    if answer != 0 {
        return Err(error);
    }
    let held = pages.iter().filter(|&&page| page & 1 == 1).count();
    Ok(held as f64 / pages.len() as f64)
}
