//! Evaluates rules by reading only the places of a long scope where their strings may be.
//!
//! ```text
//!  hits of patterns, each with its offset ──→ windows: no match reaches beyond one
//!      ──→ boreal searches the windows for strings, then evaluates conditions over the whole scope
//! ```
//!
//! Every match of a string contains one of its patterns, and a window reaches further from it than
//! the longest match. So boreal finds the matches that it would find in the whole scope, and at the
//! edge of a window there is never a match that it would not find there.

use std::ops::Range;
use std::sync::Arc;

use boreal::memory::{FragmentedMemory, MemoryParams, Region, RegionDescription};

use crate::split::tokens;

/// Bytes around the longest match: the engine may leave out an occurrence of a pattern that overlaps
/// a reported one, and what precedes and follows a match decides whether it is a word.
const MARGIN: u64 = 64;
/// The windows may have one byte in so many of the scope.
const SHARE: u64 = 4;
/// The external variable that replaces `filesize`, which boreal does not define for windows.
pub(crate) const FILESIZE: &str = "quarrier_filesize";

/// Returns the windows around these hits, each an offset and the maximum length of a match, in a
/// scope of `length` bytes; `None` if they have too much of it.
pub(crate) fn windows(
    hits: impl Iterator<Item = (u64, u32)>,
    length: u64,
) -> Option<Vec<Range<usize>>> {
    let around = |(offset, reach): (u64, u32)| {
        let reach = u64::from(reach) + MARGIN;
        (offset.saturating_sub(reach), offset.saturating_add(reach).min(length))
    };
    let mut all: Vec<(u64, u64)> = hits.map(around).collect();
    all.sort_unstable();
    let mut windows: Vec<Range<usize>> = Vec::new();
    for (start, end) in all {
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        match windows.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => windows.push(start..end),
        }
    }
    let bytes: u64 = windows.iter().map(|window| window.len() as u64).sum();
    (bytes <= length / SHARE).then_some(windows)
}

/// Returns the text of a rule with [`FILESIZE`] in place of `filesize`.
pub(crate) fn without_filesize(text: &str) -> String {
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for token in tokens(text).filter(|token| &text[token.clone()] == "filesize") {
        out.push_str(&text[copied..token.start]);
        out.push_str(FILESIZE);
        copied = token.end;
    }
    out.push_str(&text[copied..]);
    out
}

/// A scope whose strings are searched for in windows only.
#[derive(Debug)]
pub(crate) struct Windows {
    bytes: Arc<Vec<u8>>,
    windows: std::vec::IntoIter<Range<usize>>,
    /// The region to fetch.
    region: Range<usize>,
    /// Whether the windows were searched: conditions then read the scope in one region.
    is_whole: bool,
    /// Whether the region of the whole scope was listed.
    is_listed: bool,
}

impl Windows {
    pub(crate) fn new(bytes: &Arc<Vec<u8>>, windows: Vec<Range<usize>>) -> Self {
        Windows {
            bytes: Arc::clone(bytes),
            windows: windows.into_iter(),
            region: 0..0,
            is_whole: false,
            is_listed: false,
        }
    }
}

impl FragmentedMemory for Windows {
    fn next(&mut self, _: &MemoryParams) -> Option<RegionDescription> {
        self.region = match self.is_whole {
            false => match self.windows.next() {
                Some(window) => window,
                None => {
                    self.is_whole = true;
                    return None;
                }
            },
            true if self.is_listed => return None,
            true => {
                self.is_listed = true;
                0..self.bytes.len()
            }
        };
        Some(RegionDescription { start: self.region.start, length: self.region.len() })
    }

    fn fetch(&mut self, _: &MemoryParams) -> Option<Region<'_>> {
        let mem = self.bytes.get(self.region.clone())?;
        Some(Region { start: self.region.start, mem })
    }

    fn reset(&mut self) {
        self.is_listed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_reach_further_than_matches_and_are_merged() {
        let found = windows([(5000, 10), (100, 20), (5100, 300), (99_990, 5)].into_iter(), 100_000);
        assert_eq!(found, Some(vec![16..184, 4736..5464, 99_921..100_000]));
        assert_eq!(windows([(0, 10)].into_iter(), 100), None);
        assert_eq!(windows([].into_iter(), 100), Some(vec![]));
    }

    #[test]
    fn only_the_keyword_is_replaced() {
        let text = "rule a { strings: $filesize = \"filesize\" $b = /filesize/ condition: $b /* filesize */ and filesize<1 }";
        let expected = "rule a { strings: $filesize = \"filesize\" $b = /filesize/ condition: $b /* filesize */ and quarrier_filesize<1 }";
        assert_eq!(without_filesize(text), expected);
    }
}
