//! The seams between chunks.

use super::{BoundedRegex, TooLong};
use crate::finding::Finding;

/// Mends the matches at the seams between chunks, in order.
pub(crate) struct Stitcher {
    /// For each regex, where its last match ended in the source.
    resume: Vec<u64>,
}

impl Stitcher {
    pub(crate) fn new(regexes: usize) -> Self {
        Stitcher { resume: vec![0; regexes] }
    }

    /// Replaces `matches`, those of regex number `index` that begin before `complete_until` in
    /// the chunk, by the right ones, given where the match before them ended.
    pub(crate) fn mend(
        &mut self,
        index: usize,
        regex: &BoundedRegex,
        text: &[u8],
        offset: u64,
        complete_until: u64,
        matches: &mut Vec<Finding>,
    ) -> std::result::Result<(), TooLong> {
        let resume = &mut self.resume[index];
        if matches.first().is_some_and(|first| first.offset < *resume) {
            let guessed = std::mem::take(matches);
            let end = complete_until.saturating_sub(offset) as usize;
            let mut from = (*resume - offset) as usize;
            // Search on from where the last match ended until a guess is met again.
            while from < end {
                match regex.next(text, from) {
                    Some(Ok(range)) if range.start < end => {
                        let start = offset + range.start as u64;
                        if let Ok(at) = guessed.binary_search_by_key(&start, |g| g.offset) {
                            matches.extend_from_slice(&guessed[at..]);
                            break;
                        }
                        from = range.end;
                        let length = range.len() as u32;
                        matches.push(Finding { offset: start, pattern: regex.pattern, length });
                    }
                    Some(Err(start)) if start < end => {
                        let offset = offset + start as u64;
                        return Err(TooLong { pattern: regex.pattern, offset });
                    }
                    _ => break,
                }
            }
        }
        if let Some(last) = matches.last() {
            *resume = last.offset + u64::from(last.length);
        }
        Ok(())
    }
}
