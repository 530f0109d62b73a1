//! Counts the findings in each slice of a source.

use std::ops::Range;

use quarrier_search::Finding;

/// The number of slices of a source.
const SLICES: usize = 512;

/// Findings in equal slices of a range. For a stream, whose length is unknown, slices double in size as
/// it is read.
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

    /// Counts findings, which must be in order of offset.
    pub(super) fn add(&mut self, mut findings: &[Finding]) {
        while let Some(first) = findings.first() {
            let slice = self.slice_of(first.offset);
            let end =
                (slice as u64 + 1).saturating_mul(self.slice_bytes).saturating_add(self.start);
            let count = findings.partition_point(|finding| finding.offset < end);
            self.counts[slice] += count as u64;
            findings = &findings[count..];
        }
    }

    /// The slice of an offset.
    fn slice_of(&mut self, offset: u64) -> usize {
        let mut slice = (offset - self.start) / self.slice_bytes;
        while slice >= SLICES as u64 {
            for index in 0..SLICES / 2 {
                self.counts[index] = self.counts[2 * index] + self.counts[2 * index + 1];
            }
            self.counts[SLICES / 2..].fill(0);
            self.slice_bytes *= 2;
            slice /= 2;
        }
        slice as usize
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
        let finding = |offset| Finding { offset, pattern: 0, length: 1 };
        let findings: Vec<Finding> = (0..100_000).map(finding).collect();
        findings.chunks(777).for_each(|some| hits.add(some));
        let slices = hits.of_length(100_000);
        assert_eq!(slices.iter().sum::<u64>(), 100_000);
        assert_eq!(slices[..slices.len() - 1], vec![256; slices.len() - 1]);
    }
}
