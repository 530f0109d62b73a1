//! The seams between chunks.

use quarrier_core::pipeline::Chunk;

use super::{BoundedRegex, TooLong};
use crate::finding::Finding;

/// Mends the matches at the seams between chunks, in order.
pub(crate) struct Stitcher {
    seams: Vec<Seam>,
}

/// What is known of one regex.
#[derive(Clone)]
struct Seam {
    /// Where its last match ended in the source.
    resume: u64,
    /// All its matches that begin before this offset are known.
    known_until: u64,
    chunk: Option<u64>,
    guesses: Guesses,
}

/// What the guesses of a chunk are worth.
#[derive(Clone, Copy, PartialEq)]
enum Guesses {
    /// There was none yet.
    None,
    /// They are the matches.
    Right,
    /// The chunk before reaches into the first, and no right one was met yet.
    Wrong,
}

impl Stitcher {
    pub(crate) fn new(regexes: usize) -> Self {
        let seam = Seam { resume: 0, known_until: 0, chunk: None, guesses: Guesses::None };
        Stitcher { seams: vec![seam; regexes] }
    }

    /// Replaces `matches`, those of regex number `index` that begin in the chunk before
    /// `complete_until` and were not mended yet, by the right ones, given where the match
    /// before them ended. `too_long` is the guess of a match too long, behind them all; the
    /// right one is returned.
    pub(crate) fn mend(
        &mut self,
        index: usize,
        regex: &BoundedRegex,
        chunk: &Chunk<'_>,
        complete_until: u64,
        mut too_long: Option<TooLong>,
        matches: &mut Vec<Finding>,
    ) -> Option<TooLong> {
        let seam = &mut self.seams[index];
        if seam.chunk != Some(chunk.index) {
            seam.chunk = Some(chunk.index);
            seam.guesses = Guesses::None;
        }
        let first = matches.first().map(|first| first.offset).or(too_long.map(|t| t.offset));
        if let (Guesses::None, Some(first)) = (seam.guesses, first) {
            seam.guesses = if first < seam.resume { Guesses::Wrong } else { Guesses::Right };
        }
        if seam.guesses == Guesses::Wrong {
            let guessed = std::mem::take(matches);
            let guessed_too_long = too_long.take();
            let end = complete_until.saturating_sub(chunk.offset) as usize;
            let mut from = (seam.resume.max(seam.known_until) - chunk.offset) as usize;
            // Search on from where the last match ended until a guess is met again.
            while from < end {
                match regex.next(chunk.data, from) {
                    Some(Ok(range)) if range.start < end => {
                        let start = chunk.offset + range.start as u64;
                        if let Ok(at) = guessed.binary_search_by_key(&start, |g| g.offset) {
                            matches.extend_from_slice(&guessed[at..]);
                            too_long = guessed_too_long;
                            seam.guesses = Guesses::Right;
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
            seam.resume = last.offset + u64::from(last.length);
        }
        seam.known_until = complete_until;
        too_long
    }
}
