//! The seams between chunks.

use quarrier_core::pipeline::Chunk;

use super::watch::{Free, Watch};
use super::{BoundedRegex, TooLong};
use crate::finding::Finding;

/// Mends the matches at the seams between chunks, in order, and watches for those that are too
/// long.
pub(crate) struct Stitcher {
    seams: Vec<Seam>,
    watches: Vec<Option<Watch>>,
}

/// The state of one regex at a seam.
#[derive(Clone)]
struct Seam {
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
    /// A match of the chunk before overlaps the first one, and no match has agreed yet.
    Wrong,
}

impl Stitcher {
    pub(crate) fn new(regexes: &[BoundedRegex]) -> Self {
        let seam = Seam { resume: 0, known_until: 0, chunk: None, guesses: Guesses::None };
        let watches = regexes.iter().map(Watch::new).collect();
        Stitcher { seams: vec![seam; regexes.len()], watches }
    }

    /// Replaces `matches`, the provisional ones of regex number `index` that begin in the chunk before
    /// `complete_until`, by the final ones, given the end of the match before them. `too_long` is the
    /// provisional match that is too long, after them all. If a match proved to be too long, returns
    /// the offset before which findings count.
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

    /// Follows what regex number `index` may still match from before a match that proved to be
    /// too long. False where that is decided.
    pub(crate) fn follow(&mut self, index: usize, chunk: &Chunk<'_>, complete_until: u64) -> bool {
        let Some(watch) = &mut self.watches[index] else { return false };
        watch.follow_until(chunk, complete_until);
        watch.is_open()
    }

    /// Where the match of regex number `index` begins that is too long.
    pub(crate) fn too_long(&self, index: usize) -> Option<u64> {
        self.watches[index].as_ref()?.too_long()
    }

    /// Whether an earlier match of regex number `index` may still prove to be too long.
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
            // Search on from where the last match ended until a guess is met again.
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
        if let Some(last) = matches.last() {
            self.resume = last.offset + u64::from(last.length);
        }
        self.known_until = complete_until;
        too_long
    }
}
