//! Pages of a file, shown in memory without a copy.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::mm::{MapFlags, ProtFlags};

use super::guard::{self, Guarded};
use super::{ChangingBytes, PAGE_BYTES};

/// A read-only mapping of a range of a file.
///
/// Anybody with write access to the file can change the bytes shown, at any time. So the bytes are
/// handed out as [`ChangingBytes`].
///
/// Touching a page that the file no longer has (it shrank) or whose disk fails would kill
/// the process with SIGBUS. While a window exists, such pages turn into zeros instead and
/// [`is_torn`](MappedWindow::is_torn) says so; the caller then reads the range again with
/// `read_at`, which reports the cause. See `guard` for how.
#[derive(Debug)]
pub struct MappedWindow {
    base: *mut u8,
    mapped_bytes: usize,
    head_bytes: usize,
    bytes: usize,
    guarded: Guarded,
}

// SAFETY: the mapping is read-only memory owned by this value; nothing is tied to a thread.
unsafe impl Send for MappedWindow {}
// SAFETY: nothing of it writes to the pages.
unsafe impl Sync for MappedWindow {}

impl MappedWindow {
    /// Maps `range` of `file`; its start needs no alignment.
    ///
    /// # Errors
    /// The error of `mmap`, or `WouldBlock` if as many windows exist as can be guarded.
    pub fn new(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<Self> {
        let head_bytes = (range.start % PAGE_BYTES as u64) as usize;
        let bytes = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        if bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mapped_bytes = head_bytes + bytes;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of
        // ours. That another process may write the file while it is mapped is left to
        // `ChangingBytes`.
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
            // SAFETY: mapped just above, with this length, and nobody else knows of it.
            let _ = unsafe { rustix::mm::munmap(base, mapped_bytes) };
            return Err(io::ErrorKind::WouldBlock.into());
        };
        Ok(MappedWindow { base: base.cast(), mapped_bytes, head_bytes, bytes, guarded })
    }

    /// The bytes of the range.
    pub fn bytes(&self) -> ChangingBytes<'_> {
        // SAFETY: `base..base + mapped_bytes` is mapped readable until drop, and the guard
        // replaces pages that cannot be read, so that every byte may be touched.
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
        // SAFETY: mapped in `new` with this length; no slice of it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.mapped_bytes) };
    }
}
