//! Advice to use large pages, for memory with random access.

use super::PAGE_BYTES;

/// The size of a large page; other sizes are not requested.
pub(super) const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Asks the system to back `bytes` bytes at `start` with large pages when they are first touched,
/// where whole ones fit. Random lookups in a few megabytes then hit the TLB. The advice affects
/// only speed.
pub fn prefer_large_pages(start: *const u8, bytes: usize) {
    let first = start.addr().next_multiple_of(PAGE_BYTES);
    let end = (start.addr() + bytes) / PAGE_BYTES * PAGE_BYTES;
    if end.saturating_sub(first) < LARGE_PAGE_BYTES {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        let at = start.wrapping_add(first - start.addr()).cast_mut().cast();
        // SAFETY: `MADV_HUGEPAGE` changes no byte and no access right, whatever the range; the
        // kernel returns an error if nothing is mapped there.
        let _ = unsafe { rustix::mm::madvise(at, end - first, rustix::mm::Advice::LinuxHugepage) };
    }
}

/// Lets the system reclaim the pages of `bytes` bytes at `start`; the next access maps new ones.
/// Allocators often return recycled memory, which is still backed by small pages.
///
/// # Safety
/// The bytes belong to one allocation that only the caller has, and nobody relies on their values.
pub(super) unsafe fn give_pages_back(start: *mut u8, bytes: usize) {
    let first = start.addr().next_multiple_of(PAGE_BYTES);
    let end = (start.addr() + bytes) / PAGE_BYTES * PAGE_BYTES;
    #[cfg(target_os = "linux")]
    if end > first {
        let at = start.wrapping_add(first - start.addr()).cast();
        // SAFETY: the range has only whole pages within the caller's bytes, whose values nobody
        // relies on: they turn into zeros. If the kernel refuses, they stay as they are.
        let _ = unsafe { rustix::mm::madvise(at, end - first, rustix::mm::Advice::LinuxDontNeed) };
    }
}
