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
