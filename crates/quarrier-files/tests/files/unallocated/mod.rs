//! Free ranges according to file systems made by system tools if available, built by code otherwise,
//! and with known answers.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]
#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is intended")]

mod apple;
mod by_code;
mod by_tools;
mod known;

use quarrier_files::unallocated::Unallocated;

/// Whether all bytes of a range are free.
fn is_free(found: &Unallocated, start: u64, length: u64) -> bool {
    found.ranges.iter().any(|range| range.start <= start && start + length <= range.end)
}

/// Whether no byte of a range is free.
fn is_taken(found: &Unallocated, start: u64, length: u64) -> bool {
    found.ranges.iter().all(|range| range.end <= start || start + length <= range.start)
}

/// Checks that ranges are sorted, not empty, and not adjacent.
fn check_order(found: &Unallocated, length: u64) {
    let mut end = None;
    for range in &found.ranges {
        assert!(range.start < range.end && end.is_none_or(|end| end < range.start), "{range:?}");
        end = Some(range.end);
    }
    assert!(end.is_none_or(|end| end <= length));
}

fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
