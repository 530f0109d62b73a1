//! Notes on the sources of answers. A door shows them after an answer, or never.

use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum number of unreadable ranges to list; more are only counted.
pub const RANGES_MAX: usize = 1000;

/// Maximum number of other lines about parts that an answer lacks, and of notices; more are only
/// counted.
pub const LINES_MAX: usize = 1000;

/// Notes on the sources of answers: the ranges that could not be read, other parts that an answer
/// lacks, and notices of sources that were read in full.
///
/// They take a bounded amount of memory, however many answers add to them, since a server may run
/// for months and show none: touching ranges of a source are merged, equal lines are kept once, and
/// notes beyond [`RANGES_MAX`] or [`LINES_MAX`] are only counted.
///
/// ```
/// let mut notes = quarrier::source::Notes::default();
/// notes.add_unreadable("disk.img", &[512..1024, 1024..1536]);
/// assert_eq!(notes.take_missing(), ["disk.img: bytes 512..1536 could not be read"]);
/// assert!(notes.take_missing().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Notes {
    /// The end of each unreadable range by its start, for each source by its name. The ranges of a
    /// source do not touch.
    unreadable: BTreeMap<String, BTreeMap<u64, u64>>,
    /// The number of these ranges.
    ranges: usize,
    ranges_left_out: u64,
    missing: Lines,
    notices: Lines,
}

/// Lines without duplicates, in the order in which they were added.
#[derive(Debug, Default)]
struct Lines {
    kept: Vec<String>,
    left_out: u64,
}

impl Notes {
    /// Adds ranges of a source that could not be read.
    pub fn add_unreadable(&mut self, name: &str, ranges: &[Range<u64>]) {
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            self.add_range(name, range.clone());
        }
    }

    fn add_range(&mut self, name: &str, Range { mut start, mut end }: Range<u64>) {
        let known = self.unreadable.get_mut(name);
        let touching = known.and_then(|known| {
            let (&first, _) =
                known.range(..=end).next_back().filter(|(_, last)| **last >= start)?;
            Some((known, first))
        });
        match touching {
            Some((known, mut at)) => loop {
                let last = known.remove(&at);
                self.ranges -= 1;
                (start, end) = (start.min(at), end.max(last.unwrap_or(end)));
                match known.range(..=end).next_back() {
                    Some((&next, &last)) if last >= start => at = next,
                    _ => break,
                }
            },
            None if self.ranges == RANGES_MAX => {
                self.ranges_left_out += 1;
                return;
            }
            None => {}
        }
        self.unreadable.entry(name.to_string()).or_default().insert(start, end);
        self.ranges += 1;
    }

    /// Adds lines about other parts of sources that an answer lacks.
    pub fn add_missing(&mut self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| self.missing.add(line));
    }

    /// Adds notices of sources that were read in full, a line each.
    pub fn add_notices(&mut self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| self.notices.add(line));
    }

    /// Takes the lines about parts that the answers since the last call lack: the unreadable ranges
    /// of each source, then the others.
    pub fn take_missing(&mut self) -> Vec<String> {
        let mut lines = Vec::with_capacity(self.ranges);
        for (name, ranges) in std::mem::take(&mut self.unreadable) {
            lines.extend(ranges.iter().map(|(start, end)| unreadable_line(&name, &(*start..*end))));
        }
        self.ranges = 0;
        let left_out = std::mem::take(&mut self.ranges_left_out);
        lines.extend((left_out > 0).then(|| {
            let were = if left_out == 1 { "range was" } else { "ranges were" };
            format!("{left_out} more unreadable {were} found and not listed")
        }));
        lines.extend(self.missing.take());
        lines
    }

    /// Takes the notices since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        self.notices.take()
    }
}

impl Lines {
    fn add(&mut self, line: String) {
        if self.kept.contains(&line) {
            return;
        }
        match self.kept.len() < LINES_MAX {
            true => self.kept.push(line),
            false => self.left_out += 1,
        }
    }

    fn take(&mut self) -> Vec<String> {
        let Lines { mut kept, left_out } = std::mem::take(self);
        kept.extend((left_out > 0).then(|| format!("{left_out} more notes are left out")));
        kept
    }
}

/// The line for people about a range of a source that could not be read.
pub fn unreadable_line(name: &str, range: &Range<u64>) -> String {
    format!("{name}: bytes {}..{} could not be read", range.start, range.end)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is intended")]
mod tests {
    use proptest::prelude::*;
    use quarrier_core::ranges::merged;

    use super::*;

    #[test]
    fn a_server_that_shows_no_notes_keeps_a_bounded_number() {
        let mut notes = Notes::default();
        for answer in 0..3 * RANGES_MAX as u64 {
            notes.add_unreadable("a.img", &[2 * answer..2 * answer + 1, 0..1]);
            notes.add_missing([format!("a.img: file {answer} is damaged"), "again".to_string()]);
            notes.add_notices([format!("{answer}.gz: is cut off")]);
        }
        // A range that touches known ones needs no room.
        notes.add_unreadable("a.img", &[1..2]);
        let missing = notes.take_missing();
        assert_eq!(missing.len(), RANGES_MAX - 1 + 1 + LINES_MAX + 1);
        assert_eq!(missing[0], "a.img: bytes 0..3 could not be read");
        assert!(missing.contains(&"2000 more unreadable ranges were found and not listed".into()));
        assert_eq!(missing.last().unwrap(), "2001 more notes are left out");
        let notices = notes.take_notices();
        assert_eq!(
            (notices.len(), notices.last().unwrap().as_str()),
            (1001, "2000 more notes are left out")
        );
        // Taking the notes makes room for others.
        notes.add_unreadable("b.img", &[5..6]);
        assert_eq!(notes.take_missing(), ["b.img: bytes 5..6 could not be read"]);
    }

    proptest! {
        #[test]
        fn ranges_added_in_any_order_are_listed_merged(
            added in prop::collection::vec((0usize..2, 0u64..60, 0u64..9), 0..30),
        ) {
            let names = ["a", "b"];
            let mut notes = Notes::default();
            let mut all = [Vec::new(), Vec::new()];
            for (source, start, bytes) in added {
                notes.add_unreadable(names[source], &[start..start + bytes]);
                all[source].push(start..start + bytes);
            }
            let expected = names.iter().zip(all).flat_map(|(name, ranges)| {
                merged(ranges).into_iter().map(move |range| unreadable_line(name, &range))
            });
            prop_assert_eq!(notes.take_missing(), expected.collect::<Vec<_>>());
        }
    }
}
