//! Memory that is looked up at random.

use super::PAGE_BYTES;

/// The size of a large page; other sizes are not requested.
pub(super) const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Asks the system to keep `bytes` bytes at `start` on large pages, where whole ones fit, when
/// they are touched for the first time. Look-ups all over a few megabytes then find their pages'
/// addresses in the processor's own table. Advice: nothing but speed depends on it.
pub fn prefer_large_pages(start: *const u8, bytes: usize) {
    let first = start.addr().next_multiple_of(PAGE_BYTES);
    let end = (start.addr() + bytes) / PAGE_BYTES * PAGE_BYTES;
    if end.saturating_sub(first) < LARGE_PAGE_BYTES {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        let at = start.wrapping_add(first - start.addr()).cast_mut().cast();
        // SAFETY: this advice changes no byte, wherever it points; where nothing is mapped the
        // system refuses it.
        let _ = unsafe { rustix::mm::madvise(at, end - first, rustix::mm::Advice::LinuxHugepage) };
    }
}

/// Lets the system take back the pages of `bytes` bytes at `start`; the next access maps new ones. An
/// allocator often returns memory used before, on the small pages that it had then.
///
/// # Safety
/// The bytes are the caller's alone, and nobody relies on their values.
pub(super) unsafe fn give_pages_back(start: *mut u8, bytes: usize) {
    let first = start.addr().next_multiple_of(PAGE_BYTES);
    let end = (start.addr() + bytes) / PAGE_BYTES * PAGE_BYTES;
    #[cfg(target_os = "linux")]
    if end > first {
        let at = start.wrapping_add(first - start.addr()).cast();
        // SAFETY: whole pages of the caller's memory, whose bytes may change. Where the system
        // refuses, they stay as they are.
        let _ = unsafe { rustix::mm::madvise(at, end - first, rustix::mm::Advice::LinuxDontNeed) };
    }
}
