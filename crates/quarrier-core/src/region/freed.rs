//! Memory that was freed.

/// Gives memory that was freed back to the system: glibc keeps what lies between things that are
/// still in use, up to a third of a table that was just built. For the end of
/// work that freed much: all of the heap is looked through. Does nothing where there is no glibc.
pub fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointer, and is safe to call from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// From now on the process gives back what is freed at once where it is 64 KiB or more, and threads share
/// two heaps: it stays near what is in use, and allocates more slowly. For programs with little memory,
/// before they have threads. Does nothing where there is no glibc.
pub fn stay_small() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const GIVEN_BACK_BYTES: libc::c_int = 64 << 10;
        const HEAPS: libc::c_int = 2;
        // SAFETY: takes no pointer; these settings may be made at any time.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * GIVEN_BACK_BYTES);
            libc::mallopt(libc::M_ARENA_MAX, HEAPS);
        }
    }
}
