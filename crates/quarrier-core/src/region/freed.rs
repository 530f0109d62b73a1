//! Returns freed memory to the system, and keeps malloc within small limits.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use crate::meminfo;

/// Below this address space, every arena of malloc counts.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const SMALL_ADDRESS_SPACE_BYTES: u64 = 4 << 30;

/// Malloc's arenas in a small process.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FEW_ARENAS: libc::c_int = 2;

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
        // SAFETY: `mallopt` takes two numbers and no pointer, and sets its parameters under the
        // allocator's own lock.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * GIVEN_BACK_BYTES);
            libc::mallopt(libc::M_ARENA_MAX, FEW_ARENAS);
        }
    }
}

/// Limits the process to two malloc arenas if its address space is small (`ulimit -v`). Otherwise each
/// thread reserves 64 MiB of it for its own arena, until nothing is left for data. Call it before
/// starting threads. Does nothing without glibc.
pub fn fit_address_space() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if meminfo::address_bytes_max().is_some_and(|bytes| bytes < SMALL_ADDRESS_SPACE_BYTES) {
        // SAFETY: `mallopt` takes two numbers and no pointer, and sets its parameter under the
        // allocator's own lock.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, FEW_ARENAS);
        }
    }
}
