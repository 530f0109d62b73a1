//! How many findings lie in each slice of a source.

use std::ops::Range;

/// Slices that a source is divided into.
const SLICES: usize = 512;

/// Findings in equal slices of a range; of a stream, whose end is not known, slices double
/// in size as it goes on.
pub(super) struct Hits {
    start: u64,
    slice_bytes: u64,
    counts: Vec<u64>,
}

impl Hits {
    pub(super) fn new(range: Range<u64>) -> Self {
        let length = if range.end == u64::MAX { 0 } else { range.end - range.start };
        let slice_bytes = length.div_ceil(SLICES as u64).max(1);
        Hits { start: range.start, slice_bytes, counts: vec![0; SLICES] }
    }

    pub(super) fn add(&mut self, offset: u64) {
        let mut slice = (offset - self.start) / self.slice_bytes;
        while slice >= SLICES as u64 {
            for index in 0..SLICES / 2 {
                self.counts[index] = self.counts[2 * index] + self.counts[2 * index + 1];
            }
            self.counts[SLICES / 2..].fill(0);
            self.slice_bytes *= 2;
            slice /= 2;
        }
        self.counts[slice as usize] += 1;
    }

    /// The slices of the first `length` bytes.
    pub(super) fn of_length(&self, length: u64) -> &[u64] {
        let slices = (length.saturating_sub(self.start)).div_ceil(self.slice_bytes) as usize;
        &self.counts[..slices.clamp(1, SLICES)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_stream_grow_and_lose_nothing() {
        let mut hits = Hits::new(0..u64::MAX);
        (0..100_000).for_each(|offset| hits.add(offset));
        assert_eq!(hits.of_length(100_000).iter().sum::<u64>(), 100_000);
    }
}
