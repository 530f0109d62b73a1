//! The seams between chunks, and those between parts of a source that are searched separately.

use std::ops::Range;

use quarrier_core::pipeline::Chunk;

use super::watch::{Free, Watch};
use super::{BoundedRegex, TooLong};
use crate::finding::Finding;

/// The first and last match of a regex in a part of a source. They decide whether the matches of
/// the next part, which was searched as if nothing extended into it, are right.
///
/// They are right if `first` of the next part is not before the end of the last match in any
/// earlier part, and no earlier part has an open attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegexSeam {
    /// The pattern's index in the set.
    pub pattern: u32,
    /// Where the first match begins. This includes matches that are not reported because they are
    /// not aligned or touch unreadable bytes: no other match may begin inside them.
    pub first: Option<u64>,
    /// The last match.
    pub last: Option<Range<u64>>,
    /// Whether a match that begins in the part may prove longer than allowed, depending on bytes
    /// after the part.
    pub is_open: bool,
}

/// Corrects the matches at the seams between chunks, in order, and watches for matches that are too
/// long.
pub(crate) struct Stitcher {
    seams: Vec<Seam>,
    watches: Vec<Option<Watch>>,
}

/// The state of one regex at a seam.
#[derive(Clone)]
struct Seam {
    /// Where its first match began, and the range of its last one.
    first: Option<u64>,
    last: Option<Range<u64>>,
    /// Where its last match ended in the source.
    resume: u64,
    /// All its matches that begin before this offset are known.
    known_until: u64,
    chunk: Option<u64>,
    guesses: Guesses,
}

/// How the provisional matches of a chunk compare with the final ones.
#[derive(Clone, Copy, PartialEq)]
enum Guesses {
    /// No matches yet.
    None,
    /// The provisional matches are the final ones.
    Right,
    /// A match of the chunk before overlaps the first one, and no provisional match has been
    /// confirmed yet.
    Wrong,
}

impl Stitcher {
    /// Makes a stitcher for a part of a source. For some regexes, by the index of the pattern,
    /// `ends` has the end of their last match before the part.
    pub(crate) fn after(regexes: &[BoundedRegex], ends: &[(u32, u64)]) -> Self {
        let seam = |regex: &BoundedRegex| {
            let end = ends.iter().find(|(pattern, _)| *pattern == regex.pattern);
            let resume = end.map_or(0, |(_, end)| *end);
            let guesses = Guesses::None;
            Seam { first: None, last: None, resume, known_until: 0, chunk: None, guesses }
        };
        let watches = regexes.iter().map(Watch::new).collect();
        Stitcher { seams: regexes.iter().map(seam).collect(), watches }
    }

    /// Returns the first and last match of each regex.
    pub(crate) fn seams(&self, regexes: &[BoundedRegex]) -> Vec<RegexSeam> {
        let seam = |(index, regex): (usize, &BoundedRegex)| {
            let Seam { first, last, .. } = self.seams[index].clone();
            RegexSeam { pattern: regex.pattern, first, last, is_open: self.is_open(index) }
        };
        regexes.iter().enumerate().map(seam).collect()
    }

    /// Replaces `matches` by the final ones, given the end of the match before them. They are the
    /// provisional matches of regex number `index` that begin in the chunk before `complete_until`.
    /// `too_long` is the provisional match after them that is too long. If a match proved to be too
    /// long, returns the offset before which findings count.
    pub(crate) fn mend(
        &mut self,
        index: usize,
        regex: &BoundedRegex,
        chunk: &Chunk<'_>,
        complete_until: u64,
        too_long: Option<TooLong>,
        matches: &mut Vec<Finding>,
    ) -> Option<u64> {
        let resume = self.seams[index].resume;
        let too_long = self.seams[index].mend(regex, chunk, complete_until, too_long, matches);
        // No matches are known after a match that is too long.
        let until = too_long.map_or(complete_until, |too_long| too_long.offset + 1);
        let watch = self.watches[index].as_mut()?;
        let counts_until = watch.look(chunk, until, &mut Free::new(matches, resume))?;
        watch.follow_until(chunk, complete_until);
        Some(counts_until)
    }

    /// Follows the attempts of regex number `index` that began before a match that proved to be too
    /// long. Returns false once all of them are decided.
    pub(crate) fn follow(&mut self, index: usize, chunk: &Chunk<'_>, complete_until: u64) -> bool {
        let Some(watch) = &mut self.watches[index] else { return false };
        watch.follow_until(chunk, complete_until);
        watch.is_open()
    }

    /// Returns the start of the match of regex number `index` that is too long.
    pub(crate) fn too_long(&self, index: usize) -> Option<u64> {
        self.watches[index].as_ref()?.too_long()
    }

    /// Returns whether an earlier match of regex number `index` may still prove to be too long.
    pub(crate) fn is_open(&self, index: usize) -> bool {
        self.watches[index].as_ref().is_some_and(Watch::is_open)
    }
}

impl Seam {
    fn mend(
        &mut self,
        regex: &BoundedRegex,
        chunk: &Chunk<'_>,
        complete_until: u64,
        mut too_long: Option<TooLong>,
        matches: &mut Vec<Finding>,
    ) -> Option<TooLong> {
        if self.chunk != Some(chunk.index) {
            self.chunk = Some(chunk.index);
            self.guesses = Guesses::None;
        }
        let first = matches.first().map(|first| first.offset).or(too_long.map(|t| t.offset));
        if let (Guesses::None, Some(first)) = (self.guesses, first) {
            self.guesses = if first < self.resume { Guesses::Wrong } else { Guesses::Right };
        }
        if self.guesses == Guesses::Wrong {
            let guessed = std::mem::take(matches);
            let guessed_too_long = too_long.take();
            let end = complete_until.saturating_sub(chunk.offset) as usize;
            let mut from = (self.resume.max(self.known_until) - chunk.offset) as usize;
            // Continue after the last match until a provisional match is found again.
            while from < end {
                match regex.next(chunk.data, from) {
                    Some(Ok(range)) if range.start < end => {
                        let start = chunk.offset + range.start as u64;
                        if let Ok(at) = guessed.binary_search_by_key(&start, |g| g.offset) {
                            matches.extend_from_slice(&guessed[at..]);
                            too_long = guessed_too_long;
                            self.guesses = Guesses::Right;
                            break;
                        }
                        from = range.end;
                        let length = range.len() as u32;
                        matches.push(Finding { offset: start, pattern: regex.pattern, length });
                    }
                    Some(Err(start)) if start < end => {
                        let offset = chunk.offset + start as u64;
                        too_long = Some(TooLong { pattern: regex.pattern, offset });
                        break;
                    }
                    _ => break,
                }
            }
        }
        if let (Some(first), Some(last)) = (matches.first(), matches.last()) {
            self.first.get_or_insert(first.offset);
            self.resume = last.offset + u64::from(last.length);
            self.last = Some(last.offset..self.resume);
        }
        self.known_until = complete_until;
        too_long
    }
}
