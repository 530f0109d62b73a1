//! The ranges and files of a mount that could not be read.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::sync::lock;

/// Maximum number of separate ranges to keep; failures outside of them are only counted.
const RANGES_MAX: usize = 1024;
/// Maximum number of unreadable files to name.
const FILES_MAX: usize = 100;

/// The ranges of a source that could not be read, except those that a later read returned, and files that
/// could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadRanges {
    /// The ranges, by offset.
    pub ranges: Vec<Range<u64>>,
    /// Files of file systems that could not be read, a line each, even if a later read succeeded.
    pub files: Vec<String>,
    /// The number of further failed reads, if there were too many to remember.
    pub more: u64,
    /// Place and reason of the first failure, even if a later read succeeded.
    pub first: Option<String>,
}

impl UnreadRanges {
    /// Whether everything could be read.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.files.is_empty() && self.more == 0
    }
}

/// Collects [`UnreadRanges`] from many threads.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// Whether there are ranges. Without any, a successful read takes no lock.
    has_some: AtomicBool,
    known: Mutex<UnreadRanges>,
}

impl Unread {
    /// Notes that a range could not be read, for this reason.
    pub(super) fn failed(&self, range: Range<u64>, reason: impl FnOnce() -> String) {
        if range.is_empty() {
            return;
        }
        let mut known = lock(&self.known);
        let start = range.start;
        known.first.get_or_insert_with(|| format!("cannot read at byte {start}: {}", reason()));
        add(&mut known, range);
        self.has_some.store(true, Ordering::Release);
    }

    /// Notes that a file of a file system could not be read.
    pub(super) fn file_failed(&self, path: &str, reason: &str) {
        let mut known = lock(&self.known);
        let is_known = known
            .files
            .iter()
            .any(|line| line.strip_prefix(path).is_some_and(|rest| rest.starts_with(": ")));
        let line = format!("{path}: {reason}");
        known.first.get_or_insert_with(|| line.clone());
        match known.files.len() {
            _ if is_known => {}
            FILES_MAX.. => known.more += 1,
            _ => known.files.push(line),
        }
    }

    /// Notes that a range was read.
    pub(super) fn succeeded(&self, range: Range<u64>) {
        if self.has_some.load(Ordering::Acquire) {
            let mut known = lock(&self.known);
            remove(&mut known.ranges, &range);
            self.has_some.store(!known.ranges.is_empty(), Ordering::Release);
        }
    }

    pub(super) fn ranges(&self) -> UnreadRanges {
        lock(&self.known).clone()
    }
}

/// Adds a range, merged with those that it touches.
fn add(known: &mut UnreadRanges, range: Range<u64>) {
    let ranges = &mut known.ranges;
    let first = ranges.partition_point(|one| one.end < range.start);
    let last = ranges.partition_point(|one| one.start <= range.end);
    if first == last && ranges.len() >= RANGES_MAX {
        known.more += 1;
        return;
    }
    let mut merged = range;
    for one in &ranges[first..last] {
        merged = merged.start.min(one.start)..merged.end.max(one.end);
    }
    ranges.splice(first..last, [merged]);
}

/// Removes a range from those that it overlaps.
fn remove(ranges: &mut Vec<Range<u64>>, range: &Range<u64>) {
    let first = ranges.partition_point(|one| one.end <= range.start);
    let last = ranges.partition_point(|one| one.start < range.end);
    if range.is_empty() || first >= last {
        return;
    }
    let before = ranges[first].start..range.start;
    let after = range.end..ranges[last - 1].end;
    ranges.splice(first..last, [before, after].into_iter().filter(|rest| !rest.is_empty()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudorandom numbers below `limit` (xorshift).
    fn numbers(seed: u64, limit: u64) -> impl FnMut() -> u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) % limit
        }
    }

    #[test]
    fn ranges_are_those_of_a_flag_for_each_byte() {
        for seed in 0..200 {
            let (unread, mut flags) = (Unread::default(), [false; 64]);
            let mut next = numbers(seed, 65);
            for step in 0..60 {
                let (one, two) = (next(), next());
                let range = one.min(two)..one.max(two);
                let has_failed = (step + seed) % 3 != 0;
                flags[range.start as usize..range.end as usize].fill(has_failed);
                match has_failed {
                    true => unread.failed(range, String::new),
                    false => unread.succeeded(range),
                }
                let known = unread.ranges().ranges;
                let is_in = |at: usize| known.iter().any(|range| range.contains(&(at as u64)));
                assert!((0..64).all(|at| is_in(at) == flags[at]), "{seed} {step}: {known:?}");
                assert!(known.windows(2).all(|pair| pair[0].end < pair[1].start), "{known:?}");
            }
        }
    }

    #[test]
    fn the_number_of_ranges_is_bounded_and_the_first_reason_is_kept() {
        let unread = Unread::default();
        for at in 0..2 * RANGES_MAX as u64 {
            unread.failed(2 * at..2 * at + 1, || format!("reason {at}"));
        }
        let known = unread.ranges();
        assert_eq!((known.ranges.len(), known.more), (RANGES_MAX, RANGES_MAX as u64));
        assert_eq!(known.first.as_deref(), Some("cannot read at byte 0: reason 0"));
    }

    #[test]
    fn a_file_is_listed_once_and_the_number_of_files_is_bounded() {
        let unread = Unread::default();
        for _ in 0..2 {
            for at in 0..FILES_MAX {
                unread.file_failed(&format!("f{at}"), "why");
            }
        }
        unread.file_failed("g", "why");
        let known = unread.ranges();
        assert_eq!((known.files.len(), known.more), (FILES_MAX, 1));
        assert_eq!(known.first.as_deref(), Some("f0: why"));
    }
}
