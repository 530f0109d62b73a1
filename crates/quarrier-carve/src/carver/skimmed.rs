//! Ranges that were examined less closely than the rest, with a reason.

use std::ops::Range;

/// Places closer together than this form one range, as long as there are few ranges.
const GAP_BYTES: u64 = 64 << 10;
/// Maximum number of ranges listed for a reason. Beyond that, close ranges are joined.
const RANGES_MAX: usize = 4096;

/// Why a place was examined less closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Skimming {
    /// There were too many candidates close together to read all of them to an end.
    Crowded,
    /// Too many files are broken: the rest of these was not searched for, or these were dropped.
    Broken,
    /// There were too many broken files to remember these.
    Forgotten,
    /// A file here may be a part of another, and its contents were not examined.
    Overlapping,
}

impl Skimming {
    /// All reasons.
    pub const ALL: [Skimming; 4] =
        [Skimming::Crowded, Skimming::Broken, Skimming::Forgotten, Skimming::Overlapping];

    /// Returns the reason in words, for reports.
    pub fn describe(self) -> &'static str {
        match self {
            Skimming::Crowded => "too many places where a file may begin, close together",
            Skimming::Broken => "too many broken files to look for the rest of each",
            Skimming::Forgotten => "too many broken files to remember",
            Skimming::Overlapping => "overlapping files, at most one of which is real",
        }
    }
}

/// A range of the source that was examined less closely.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkimmedRange {
    /// In bytes of the source, from the first possible start of a file to the end of the last one.
    pub range: Range<u64>,
    /// The types that may begin there, in order.
    pub types: Vec<&'static str>,
    /// The number of places.
    pub places: u64,
    /// The reason.
    pub reason: Skimming,
}

impl SkimmedRange {
    /// Makes a range read from a journal.
    pub(crate) fn noted(range: Range<u64>, types: Vec<&'static str>, places: u64) -> Self {
        SkimmedRange { range, types, places, reason: Skimming::Crowded }
    }

    fn join(&mut self, other: SkimmedRange) {
        self.range.start = self.range.start.min(other.range.start);
        self.range.end = self.range.end.max(other.range.end);
        self.places += other.places;
        for one in other.types {
            if let Err(place) = self.types.binary_search(&one) {
                self.types.insert(place, one);
            }
        }
    }
}

/// Ranges with one reason, in order.
#[derive(Debug, Clone)]
pub(super) struct Skimmed {
    reason: Skimming,
    ranges: Vec<SkimmedRange>,
    gap_bytes: u64,
}

impl Skimmed {
    pub(super) fn new(reason: Skimming) -> Self {
        Skimmed { reason, ranges: Vec::new(), gap_bytes: GAP_BYTES }
    }

    /// Adds a place where a file of type `kind` may begin; it must not be before the last one.
    pub(super) fn add(&mut self, offset: u64, kind: &'static str) {
        self.add_range(offset..offset.saturating_add(1), kind);
    }

    /// Adds a range where a file of type `kind` may begin; it must not be before the last one.
    pub(super) fn add_range(&mut self, range: Range<u64>, kind: &'static str) {
        self.append(SkimmedRange { range, types: vec![kind], places: 1, reason: self.reason });
    }

    /// Adds a range that begins after all others, or in the last.
    pub(super) fn append(&mut self, one: SkimmedRange) {
        match self.ranges.last_mut() {
            Some(last) if is_near(last, &one, self.gap_bytes) => last.join(one),
            _ => self.ranges.push(one),
        }
        while self.ranges.len() > RANGES_MAX {
            self.gap_bytes = self.gap_bytes.saturating_mul(2);
            let ranges = std::mem::take(&mut self.ranges);
            for one in ranges {
                match self.ranges.last_mut() {
                    Some(last) if is_near(last, &one, self.gap_bytes) => last.join(one),
                    _ => self.ranges.push(one),
                }
            }
        }
    }

    pub(super) fn into_ranges(self) -> Vec<SkimmedRange> {
        self.ranges
    }
}

fn is_near(last: &SkimmedRange, next: &SkimmedRange, gap_bytes: u64) -> bool {
    next.range.start <= last.range.end.saturating_add(gap_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_near_each_other_are_one_range_of_all_their_types() {
        let mut skimmed = Skimmed::new(Skimming::Crowded);
        for (offset, kind) in [(10, "pdf"), (10, "gz"), (5000, "gz"), (1 << 20, "png")] {
            skimmed.add(offset, kind);
        }
        let listed: Vec<_> = skimmed.into_ranges();
        let listed: Vec<_> =
            listed.into_iter().map(|one| (one.range, one.types, one.places)).collect();
        let (first, second) = (10..5001, 1 << 20..(1 << 20) + 1);
        assert_eq!(listed, [(first, vec!["gz", "pdf"], 3), (second, vec!["png"], 1)]);
    }

    #[test]
    fn there_are_never_too_many_ranges_and_every_place_is_in_one() {
        let mut skimmed = Skimmed::new(Skimming::Broken);
        let places = (0..3 * RANGES_MAX as u64).map(|number| number * number * 1000);
        places.clone().for_each(|offset| skimmed.add(offset, "zip"));
        let ranges = skimmed.into_ranges();
        assert!(ranges.len() <= RANGES_MAX && ranges.len() > RANGES_MAX / 4, "{}", ranges.len());
        for offset in places {
            assert!(ranges.iter().any(|one| one.range.contains(&offset)), "{offset}");
        }
    }
}
