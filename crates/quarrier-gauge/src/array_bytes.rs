//! Sizes of arrays beyond the caches.

use crate::conditions::Machine;

/// Smaller arrays say nothing about main memory on any machine.
const LEAST_BYTES: usize = 1 << 20;

/// Size of an array that exceeds every cache by far, on a machine with enough memory: four times the
/// last cache, and at least 128 MiB.
pub(crate) fn wanted_bytes(machine: &Machine) -> usize {
    let bytes = (4 * machine.last_cache_bytes()).clamp(128 << 20, 1 << 30);
    (bytes as usize).next_power_of_two()
}

/// Like [`wanted_bytes`], but smaller if three such arrays would not fit into `free_bytes` of memory; 0
/// means an unknown amount.
pub(crate) fn fitting_bytes(machine: &Machine, free_bytes: u64) -> usize {
    fitting(wanted_bytes(machine), free_bytes)
}

/// `bytes`, halved until three arrays of that size take at most half of the free memory.
fn fitting(bytes: usize, free_bytes: u64) -> usize {
    let fits = |bytes: &usize| free_bytes == 0 || 6 * *bytes as u64 <= free_bytes;
    let sizes = std::iter::successors(Some(bytes), |bytes| Some(bytes / 2));
    sizes.take_while(|&bytes| bytes >= LEAST_BYTES).find(fits).unwrap_or(LEAST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn arrays_fit_into_the_memory_that_is_left() {
        assert_eq!(fitting(128 << 20, 0), 128 << 20);
        assert_eq!(fitting(128 << 20, 8 << 30), 128 << 20);
        assert_eq!(fitting(128 << 20, 768 << 20), 128 << 20);
        assert_eq!(fitting(128 << 20, 300 << 20), 32 << 20);
        assert_eq!(fitting(128 << 20, 1), 1 << 20);
    }
}
