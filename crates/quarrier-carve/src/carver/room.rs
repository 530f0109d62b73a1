//! The division of a carver's memory.
//!
//! ```text
//! 1/4  broken files, until all is read
//! 1/4  candidates of the strides under way
//! 1/8  recently read blocks of a source without windows
//! 3/8  strides being read, and windows: by thread
//! ```

use super::STRIDE_BYTES;
use crate::view::{WINDOW_BYTES, WINDOWS_MAX};

/// Maximum number of broken files, and of candidates of the strides under way, to remember.
const REMEMBERED_MAX: usize = 1 << 20;
/// Maximum memory for a broken file or a candidate with all of its results, in bytes.
const REMEMBERED_BYTES: u64 = 256;
const BLOCKS_MAX: u64 = 64;

/// Returns the maximum number of broken files to remember, which is also that of candidates.
pub(super) fn remembered_max(memory_bytes: u64) -> usize {
    let fit = memory_bytes / 4 / REMEMBERED_BYTES;
    usize::try_from(fit).map_or(REMEMBERED_MAX, |fit| fit.clamp(1, REMEMBERED_MAX))
}

/// Returns the maximum number of blocks to cache of a source without windows.
pub(super) fn blocks_max(memory_bytes: u64, block_bytes: u64) -> usize {
    (memory_bytes / 8 / block_bytes).clamp(1, BLOCKS_MAX) as usize
}

/// Returns the maximum number of threads.
pub(super) fn workers_max(memory_bytes: u64) -> usize {
    let fit = of_workers(memory_bytes) / (STRIDE_BYTES + WINDOW_BYTES);
    usize::try_from(fit).map_or(usize::MAX, |fit| fit.max(1))
}

/// Returns the maximum number of windows of each thread.
pub(super) fn windows_max(memory_bytes: u64, workers: usize) -> usize {
    let bytes = (of_workers(memory_bytes) / workers.max(1) as u64).saturating_sub(STRIDE_BYTES);
    usize::try_from(bytes / WINDOW_BYTES).map_or(WINDOWS_MAX, |fit| fit.clamp(1, WINDOWS_MAX))
}

fn of_workers(memory_bytes: u64) -> u64 {
    memory_bytes / 8 * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_do_not_exceed_the_whole() {
        for memory_bytes in (128 << 20..8u64 << 30).step_by(100 << 20) {
            let workers = workers_max(memory_bytes).min(64);
            let windows = windows_max(memory_bytes, workers) as u64;
            let remembered = 2 * remembered_max(memory_bytes) as u64 * REMEMBERED_BYTES;
            let blocks = blocks_max(memory_bytes, 1 << 20) as u64 * (1 << 20);
            let shown = workers as u64 * (STRIDE_BYTES + windows * WINDOW_BYTES);
            assert!(remembered + blocks + shown <= memory_bytes, "{memory_bytes}");
        }
        assert_eq!((workers_max(1), windows_max(1, 1), remembered_max(1)), (1, 1, 1));
        assert_eq!(windows_max(1 << 30, 4), WINDOWS_MAX);
    }
}
