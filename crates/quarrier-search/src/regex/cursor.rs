//! Searches for a regex with its automaton, block by block.

use super::{BoundedRegex, Match, TooLong};
use crate::finding::Finding;

/// The position of a regex's search in a chunk, block by block.
pub(crate) struct Cursor<'r> {
    regex: &'r BoundedRegex,
    from: usize,
    /// A match found beyond the requested block.
    ahead: Option<Option<Match>>,
    /// Whether the search ended at a match that is too long.
    ended: bool,
}

impl<'r> Cursor<'r> {
    pub(crate) fn new(regex: &'r BoundedRegex, from: usize) -> Self {
        Cursor { regex, from, ahead: None, ended: false }
    }

    /// Returns where the next match may begin; `None` if the search has ended.
    pub(crate) fn from(&self) -> Option<usize> {
        (!self.ended).then_some(self.from)
    }

    /// Adds all further matches that begin before `end`. A match that is too long ends the search
    /// and is returned.
    pub(crate) fn walk(
        &mut self,
        text: &[u8],
        offset: u64,
        end: usize,
        found: &mut Vec<Finding>,
    ) -> Option<TooLong> {
        while !self.ended {
            let next = match self.ahead.take() {
                Some(next) => next,
                None => self.regex.next(text, self.from),
            };
            match next {
                Some(Ok(range)) if range.start < end => {
                    found.push(Finding {
                        offset: offset + range.start as u64,
                        pattern: self.regex.pattern,
                        length: range.len() as u32,
                    });
                    self.from = range.end;
                }
                Some(Err(start)) if start < end => {
                    self.ended = true;
                    let offset = offset + start as u64;
                    return Some(TooLong { pattern: self.regex.pattern, offset });
                }
                later => {
                    self.ahead = Some(later);
                    return None;
                }
            }
        }
        None
    }
}
