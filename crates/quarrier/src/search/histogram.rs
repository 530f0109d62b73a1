//! Counts of each distinct match.

use std::collections::HashMap;

use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, Pattern};

use super::copy_match;

/// Memory of an entry besides the bytes of its match: key, count, and its share of free slots.
const ENTRY_BYTES: u64 = 80;

/// The default memory limit of a histogram, in bytes.
pub const HISTOGRAM_BYTES_MAX: u64 = 1 << 30;

/// Counts distinct matches of each pattern, in bounded memory. A UTF-16 match counts as the same string in
/// UTF-8.
#[derive(Debug)]
pub struct Histogram<'p> {
    patterns: &'p [Pattern],
    counts: Vec<HashMap<Box<[u8]>, u64>>,
    bytes: u64,
    bytes_max: u64,
    left_out: u64,
    copy: Vec<u8>,
}

/// A row of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frequency {
    /// The index of the pattern.
    pub pattern: usize,
    /// The match, cut to [`MATCH_BYTES_MAX`](super::MATCH_BYTES_MAX) bytes.
    pub found: Box<[u8]>,
    /// The number of findings with this match.
    pub count: u64,
}

impl<'p> Histogram<'p> {
    /// Creates an empty histogram that takes about `bytes_max` bytes of memory at most.
    #[must_use]
    pub fn new(patterns: &'p [Pattern], bytes_max: u64) -> Self {
        let counts = patterns.iter().map(|_| HashMap::new()).collect();
        Histogram { patterns, counts, bytes: 0, bytes_max, left_out: 0, copy: Vec::new() }
    }

    /// Counts findings of a chunk.
    pub fn add(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) {
        for finding in findings {
            copy_match(chunk, finding, &mut self.copy);
            let index = finding.pattern as usize;
            let decoded = self.patterns[index].decode_match(&self.copy);
            let found = decoded.as_deref().map_or(self.copy.as_slice(), str::as_bytes);
            let counts = &mut self.counts[index];
            if let Some(count) = counts.get_mut(found) {
                *count += 1;
                continue;
            }
            let bytes = found.len() as u64 + ENTRY_BYTES;
            if self.bytes + bytes > self.bytes_max {
                self.left_out += 1;
                continue;
            }
            self.bytes += bytes;
            counts.insert(found.into(), 1);
        }
    }

    /// The number of findings that were not counted, because memory was full when their match first
    /// occurred.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// All rows, the most frequent first; equal counts are sorted by pattern, then by bytes.
    #[must_use]
    pub fn into_rows(self) -> Vec<Frequency> {
        let of_pattern = |(pattern, counts): (usize, HashMap<Box<[u8]>, u64>)| {
            counts.into_iter().map(move |(found, count)| Frequency { pattern, found, count })
        };
        let mut rows: Vec<Frequency> =
            self.counts.into_iter().enumerate().flat_map(of_pattern).collect();
        rows.sort_unstable_by(|a, b| {
            (b.count, a.pattern, &a.found).cmp(&(a.count, b.pattern, &b.found))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(
        patterns: &[Pattern],
        text: &[u8],
        findings: &[Finding],
        bytes_max: u64,
    ) -> (Vec<Frequency>, u64) {
        let mut histogram = Histogram::new(patterns, bytes_max);
        histogram.add(&Chunk::whole(text), findings);
        let left_out = histogram.left_out();
        (histogram.into_rows(), left_out)
    }

    #[test]
    fn the_most_frequent_comes_first_and_ties_are_in_order() {
        let patterns = ["re:[a-z]", "b"].map(|line| Pattern::regex(line).unwrap());
        let finding = |offset, pattern| Finding { offset, pattern, length: 1 };
        let findings = [finding(0, 0), finding(1, 0), finding(1, 1), finding(2, 0), finding(3, 0)];
        let (rows, left_out) = rows(&patterns, b"cbca", &findings, u64::MAX);
        let listed: Vec<_> = rows.iter().map(|r| (r.pattern, &r.found[..], r.count)).collect();
        let expected: [(usize, &[u8], u64); 4] =
            [(0, b"c", 2), (0, b"a", 1), (0, b"b", 1), (1, b"b", 1)];
        assert_eq!((listed.as_slice(), left_out), (&expected[..], 0));
    }

    #[test]
    fn memory_is_bounded_and_omitted_findings_are_counted() {
        let patterns = [Pattern::regex("..").unwrap()];
        let text: Vec<u8> = (0..=255).collect();
        let findings: Vec<Finding> =
            (0..200).map(|offset| Finding { offset, pattern: 0, length: 2 }).collect();
        let (rows, left_out) = rows(&patterns, &text, &findings, 10 * (ENTRY_BYTES + 2));
        assert_eq!((rows.len(), left_out), (10, 190));
    }

    #[test]
    fn both_forms_of_a_text_are_one_match() {
        let patterns = [Pattern::literal("ab").unwrap()];
        let findings =
            [(0, 2), (2, 4)].map(|(offset, length)| Finding { offset, pattern: 0, length });
        let (rows, _) = rows(&patterns, b"aba\0b\0", &findings, u64::MAX);
        assert_eq!(rows, [Frequency { pattern: 0, found: (*b"ab").into(), count: 2 }]);
    }
}
