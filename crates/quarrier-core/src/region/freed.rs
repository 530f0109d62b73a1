//! Returns freed memory to the system.

/// Returns freed memory to the system. Otherwise glibc keeps free memory between blocks in use: up
/// to a third of the size of a newly built table. Call it after work that freed much memory,
/// because it walks the whole heap. Does nothing without glibc.
pub fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes a number and no pointer, and locks each arena that it trims.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes the process return freed blocks of 64 KiB and more at once, and limits it to two malloc
/// arenas. Its memory then stays near the amount in use, but allocation is slower. For programs
/// with little memory, before they start threads. Does nothing without glibc.
pub fn stay_small() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const GIVEN_BACK_BYTES: libc::c_int = 64 << 10;
        const HEAPS: libc::c_int = 2;
        // SAFETY: `mallopt` takes two numbers and no pointer, and sets its parameters under the
        // allocator's own lock.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * GIVEN_BACK_BYTES);
            libc::mallopt(libc::M_ARENA_MAX, HEAPS);
        }
    }
}
