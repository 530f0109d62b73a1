//! Read-only windows onto files, mapped without a copy.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::mm::{MapFlags, ProtFlags};

use super::guard::{self, Guarded};
use super::{ChangingBytes, PAGE_BYTES};

/// A read-only mapping of a range of a file.
///
/// Anybody with write access to the file can change the bytes at any time, so the window only gives
/// [`ChangingBytes`].
///
/// Touching a page that the file no longer has (it shrank) or whose disk fails would kill the
/// process with SIGBUS. While a window exists, such pages turn into zeros instead and
/// [`is_torn`](MappedWindow::is_torn) returns true; the caller then reads the range again with
/// `read_at`, which reports the cause. `guard` has the details.
#[derive(Debug)]
pub struct MappedWindow {
    base: *mut u8,
    mapped_bytes: usize,
    head_bytes: usize,
    bytes: usize,
    guarded: Guarded,
}

// SAFETY: this value owns the mapping, which is not tied to a thread, so another thread may read
// and unmap it.
unsafe impl Send for MappedWindow {}
// SAFETY: the mapping is read-only, and the fields never change.
unsafe impl Sync for MappedWindow {}

impl MappedWindow {
    /// Maps `range` of `file`; its start needs no alignment.
    ///
    /// # Errors
    /// The error of `mmap`, or `WouldBlock` if the guard already watches its maximum number of
    /// windows.
    pub fn new(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<Self> {
        let head_bytes = (range.start % PAGE_BYTES as u64) as usize;
        let bytes = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        if bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mapped_bytes = head_bytes + bytes;
        // SAFETY: a null hint lets the kernel choose free addresses, so the mapping aliases no
        // memory of ours. Other processes may write to the file while it is mapped; `ChangingBytes`
        // allows for that.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                range.start - head_bytes as u64,
            )?
        };
        let Some(guarded) = guard::watch(base as usize, mapped_bytes) else {
            // SAFETY: the range was just mapped with this base and length, and nobody else has its
            // address.
            let _ = unsafe { rustix::mm::munmap(base, mapped_bytes) };
            return Err(io::ErrorKind::WouldBlock.into());
        };
        Ok(MappedWindow { base: base.cast(), mapped_bytes, head_bytes, bytes, guarded })
    }

    /// The bytes of the range.
    pub fn bytes(&self) -> ChangingBytes<'_> {
        // SAFETY: `mmap` mapped `mapped_bytes = head_bytes + bytes` bytes at `base` for reading,
        // until `drop`, which the borrow of `self` excludes. The guard replaces pages that cannot
        // be read, so every byte is readable. They may change.
        unsafe { ChangingBytes::new(self.base.add(self.head_bytes), self.bytes) }
    }

    /// Whether a page could not be read since the window was made.
    pub fn is_torn(&self) -> bool {
        self.guarded.is_torn()
    }
}

impl Drop for MappedWindow {
    fn drop(&mut self) {
        self.guarded.release();
        // SAFETY: `new` mapped the range with this base and length, it is unmapped once, and
        // `ChangingBytes` borrow `self`, so none of them is left.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.mapped_bytes) };
    }
}
