//! Memory that kernels free and want again at once.

/// Keeps up to 64 MiB of freed memory in this process for later allocations.
///
/// Otherwise glibc gives what numpy's intermediate arrays took back to the system after each
/// step, and every page of the next ones is zeroed by the kernel when it is touched: a
/// kernel of numpy calls on slices of 128 KiB takes four times as long. For processes that are
/// running kernels; it affects the whole process, and cannot be undone.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (what, bytes) in [(libc::M_MMAP_THRESHOLD, 16 << 20), (libc::M_TRIM_THRESHOLD, 64 << 20)] {
        // SAFETY: sets a number that the allocator decides by, under its own lock.
        unsafe { libc::mallopt(what, bytes) };
    }
}
