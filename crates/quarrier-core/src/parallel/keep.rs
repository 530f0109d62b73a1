//! Memory that kernels free and allocate again at once.

/// Keeps up to 64 MiB of freed memory in this process for later allocations.
///
/// By default glibc returns the memory of numpy's intermediate arrays to the system after each
/// step, and the kernel zeroes every page of the next ones on first touch: numpy calls on slices of
/// 128 KiB then take four times as long. For processes that run kernels; the setting applies to the
/// whole process and cannot be undone.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (what, bytes) in [(libc::M_MMAP_THRESHOLD, 16 << 20), (libc::M_TRIM_THRESHOLD, 64 << 20)] {
        // SAFETY: `mallopt` takes two numbers and no pointer, and sets its parameters under the
        // allocator's own lock.
        unsafe { libc::mallopt(what, bytes) };
    }
}
