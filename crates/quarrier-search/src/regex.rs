//! Regexes: leftmost-first matches that do not overlap, of bounded length, the same
//! wherever the source is cut into chunks.
//!
//! Two things would depend on the cut. First, where a match ends decides where the next may
//! begin, so a chunk's matches depend on the chunk before. Each chunk is searched as if
//! nothing reached into it, and a [`Stitcher`] mends that in order, where a match did.
//! Second, a match could run on beyond the bytes at hand. So its length is bounded, by the
//! regex itself or by `L`, the longest allowed; every chunk sees `L + 1` bytes behind its last
//! position. What counts is what matches within `L + 1` bytes from its start; a match of all
//! `L + 1` is an error.

use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::pattern::{Kind, Options, Pattern};

/// Bytes of context before and after, for `\b`, `^`, `$` (a UTF-8 character at most).
pub(crate) const CONTEXT_BYTES: usize = 8;

/// An unbounded repetition of more byte values than this runs through any raw data.
const WIDE_CLASS: usize = 128;

/// A compiled regex of the set.
pub(crate) struct BoundedRegex {
    regex: Regex,
    pub(crate) pattern: u32,
    /// No match is longer.
    pub(crate) length_bytes_max: usize,
}

/// A match longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// The pattern's index in the set.
    pub pattern: u32,
    /// Where the match begins in the source.
    pub offset: u64,
}

/// Compiles all regexes of the set.
pub(crate) fn compile(patterns: &[Pattern], options: Options) -> Result<Vec<BoundedRegex>> {
    patterns
        .iter()
        .enumerate()
        .filter_map(|(index, pattern)| match &pattern.kind {
            Kind::Regex(text) => Some(BoundedRegex::new(text, index as u32, options)),
            _ => None,
        })
        .collect()
}

impl BoundedRegex {
    fn new(text: &str, pattern: u32, options: Options) -> Result<Self> {
        let fail = |reason: String| Error::pattern(text, reason);
        let hir = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .unicode(false)
            .case_insensitive(options.ignore_case)
            .build()
            .parse(text)
            .map_err(|error| fail(one_line(&error)))?;
        if hir.properties().minimum_len() == Some(0) {
            return Err(fail("can match nothing at all, which is everywhere".to_string()));
        }
        let limit = options.regex_length_bytes_max;
        let length_bytes_max = match hir.properties().maximum_len() {
            Some(bytes) if bytes > limit => {
                return Err(fail(format!(
                    "can match {bytes} bytes, more than {limit}; raise --regex-max-length"
                )));
            }
            Some(bytes) => bytes,
            None => {
                if let Some(part) = unbounded_wide(&hir) {
                    return Err(fail(format!(
                        "could match without bound: '{part}' repeats nearly any byte; \
                         bound it, for example {{0,100}}"
                    )));
                }
                limit
            }
        };
        let config = Regex::config()
            .utf8_empty(false)
            .nfa_size_limit(Some(64 << 20))
            .hybrid_cache_capacity(16 << 20);
        let regex = Regex::builder()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|error| fail(one_line(&error)))?;
        Ok(BoundedRegex { regex, pattern, length_bytes_max })
    }

    /// Whether it matches anywhere in zeros that are surrounded by zeros.
    pub(crate) fn matches_zeros(&self) -> bool {
        let zeros = vec![0u8; self.length_bytes_max + 2 * CONTEXT_BYTES];
        let inner = CONTEXT_BYTES..zeros.len() - CONTEXT_BYTES;
        self.regex.search_half(&Input::new(&zeros).span(inner)).is_some()
    }

    /// The first match that begins at or after `from`, within the bound.
    fn next(&self, text: &[u8], mut from: usize) -> Option<std::result::Result<Range<usize>, usize>> {
        loop {
            let found = self.regex.search(&Input::new(text).range(from..))?.range();
            if found.len() <= self.length_bytes_max {
                return Some(Ok(found));
            }
            // Longer than allowed: what counts is what the bytes within reach say.
            let reach = found.start..found.start + self.length_bytes_max + 1;
            let input = Input::new(text).span(reach).anchored(Anchored::Yes);
            match self.regex.search(&input).map(|m| m.range()) {
                Some(short) if short.len() <= self.length_bytes_max => return Some(Ok(short)),
                Some(long) => return Some(Err(long.start)),
                None => from = found.start + 1,
            }
        }
    }
}

/// A regex's walk through a chunk, block by block.
pub(crate) struct Cursor<'r> {
    regex: &'r BoundedRegex,
    from: usize,
    /// A match found beyond the block that was asked for.
    ahead: Option<Option<std::result::Result<Range<usize>, usize>>>,
}

impl<'r> Cursor<'r> {
    pub(crate) fn new(regex: &'r BoundedRegex, from: usize) -> Self {
        Cursor { regex, from, ahead: None }
    }

    /// Adds all further matches that begin before `end`.
    ///
    /// # Errors
    /// The place of a match that is too long; the walk ends there.
    pub(crate) fn walk(
        &mut self,
        text: &[u8],
        offset: u64,
        end: usize,
        found: &mut Vec<Finding>,
    ) -> std::result::Result<(), TooLong> {
        loop {
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
                    let offset = offset + start as u64;
                    return Err(TooLong { pattern: self.regex.pattern, offset });
                }
                later => {
                    self.ahead = Some(later);
                    return Ok(());
                }
            }
        }
    }
}

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

/// The first part that repeats nearly any byte without bound, as text.
fn unbounded_wide(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Repetition(repetition) => {
            if repetition.max.is_none() && widest(&repetition.sub) > WIDE_CLASS {
                return Some(hir.to_string());
            }
            unbounded_wide(&repetition.sub)
        }
        HirKind::Capture(capture) => unbounded_wide(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().find_map(unbounded_wide)
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => None,
    }
}

/// How many byte values the narrowest byte of each way through allows, the largest of them:
/// a repetition is harmless as long as each round must meet some narrow byte.
fn widest(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().iter().map(|r| usize::from(r.end() - r.start()) + 1).sum()
        }
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .map(|r| (r.end() as usize - r.start() as usize) + 1)
            .sum::<usize>()
            .min(256),
        HirKind::Repetition(repetition) => widest(&repetition.sub),
        HirKind::Capture(capture) => widest(&capture.sub),
        HirKind::Concat(parts) => {
            parts.iter().filter(|p| p.properties().minimum_len() != Some(0)).map(widest).min().unwrap_or(0)
        }
        HirKind::Alternation(parts) => parts.iter().map(widest).max().unwrap_or(0),
        HirKind::Literal(_) => 1,
        HirKind::Empty | HirKind::Look(_) => 0,
    }
}

/// The gist of a regex error, which is printed over several lines with the pattern in it.
fn one_line(error: &dyn std::error::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    let gist = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("is not a regex");
    gist.trim().trim_start_matches("error: ").to_string()
}
