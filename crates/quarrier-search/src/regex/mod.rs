//! Regexes: leftmost-first, non-overlapping matches of bounded length, independent of where the
//! source is cut into chunks.
//!
//! Two things would depend on where the source is cut. First, the end of a match decides where the
//! next may begin, so a chunk's matches depend on the chunk before. Each chunk is searched as if no
//! match extended into it, and a [`Stitcher`] corrects the results, in order, if one did. Second, a
//! match could extend beyond the chunk's bytes. So its length is bounded, by the regex itself or by
//! `L`, the maximum allowed; every chunk sees `L + 1` bytes after its last position. The search
//! finds matches as if none could extend further than `L + 1` bytes from its start; a [`watch`]
//! follows, in order, the attempts that could go further, and the search ends at a match that is
//! longer than `L`.
//!
//! A repetition such as `.*` may look far ahead to find a short match, or none. So the source is
//! read in pieces of a few times `L`, and no start costs more than one piece: on adversarial data,
//! a byte costs as much as `L` bytes cost otherwise.
//!
//! The automaton of a regex searches a gigabyte or so a second. If every match must contain one of a few runs
//! of rare bytes (`factors`), filters look for the runs of all regexes at once (`spot`), and the automaton
//! runs only where one occurs (`gate`).

mod attempt;
mod byteset;
mod cursor;
mod earliest;
mod exact;
mod factors;
mod gate;
mod spot;
mod stitch;
mod watch;
mod wide;

pub(crate) use cursor::Cursor;
pub(crate) use gate::{Gate, Passage};
pub use stitch::RegexSeam;
pub(crate) use stitch::Stitcher;

use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::{Anchored, Input};
use regex_syntax::hir::Hir;

use crate::error::{Error, Result};
use crate::pattern::{Kind, Options, Pattern, Utf16};
use crate::wanted::Wanted;
use byteset::ByteSet;
use earliest::EarliestEnd;
use exact::Exact;

/// Bytes of context before and after, for `\b`, `^` and `$`, which look at one UTF-8 character at
/// most.
pub(crate) const CONTEXT_BYTES: usize = 8;

/// Minimum number of bytes to search at a time; less would cost more calls than it saves.
const PIECE_BYTES_MIN: usize = 1024;

/// Bounds on the memory of a lazy automaton's states in one thread. Below the minimum, it would compute the
/// same states again and again.
const STATES_BYTES_MAX: usize = 16 << 20;
const STATES_BYTES_MIN: usize = 2 << 20;

/// Maximum size of the compiled automaton of one regex.
const NFA_BYTES_MAX: usize = 64 << 20;

/// A compiled regex of the set.
pub(crate) struct BoundedRegex {
    regex: Regex,
    pub(crate) pattern: u32,
    /// The maximum length of a match.
    pub(crate) length_bytes_max: usize,
    /// The bytes that a match may begin with.
    first: ByteSet,
    /// Finds where the first match ends, to skip matches that are too long.
    ends: EarliestEnd,
    /// Its automaton, if the regex itself does not bound its matches.
    endless: Option<NFA>,
    /// Confirms the starts that `regex` finds, if that was compiled without assertions: see [`exact`].
    exact: Option<Exact>,
}

/// The range of a match, or the start of one that is longer than allowed.
type Match = std::result::Result<Range<usize>, usize>;

/// A match longer than allowed, which ends a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// The pattern's index in the set.
    pub pattern: u32,
    /// The offset in the source where the match begins.
    pub offset: u64,
}

/// Compiles all regexes of the set.
pub(crate) fn compile(
    patterns: &[Pattern],
    options: Options,
    wanted: Wanted<'_>,
) -> Result<Vec<BoundedRegex>> {
    let (mut regexes, mut bytes) = (Vec::new(), 0);
    let count = patterns.iter().filter(|pattern| pattern.is_regex()).count();
    let memory = options.regex_memory_bytes_max / 2;
    for (index, pattern) in patterns.iter().enumerate() {
        let Kind::Regex(text) = &pattern.kind else { continue };
        wanted.check()?;
        let hir = parse(text, pattern.wide, options.ignore_case)?;
        let states_bytes = states_bytes(memory, count);
        let order = pattern.wide.filter(|_| wide::has_assertions(&hir));
        let exact = order.map(|order| (hir.clone(), order));
        let hir = if exact.is_some() { wide::without_assertions(&hir) } else { hir };
        let regex = BoundedRegex::new(text, hir, exact, index as u32, options, states_bytes)?;
        bytes += regex.automata_bytes();
        if bytes > memory {
            let room = match memory >> 20 {
                0 => format!("{} KiB", memory >> 10),
                mebibytes => format!("{mebibytes} MiB"),
            };
            return Err(Error::Set(format!(
                "the first {} regexes take more than {room} of automata, half of --regex-memory; \
                 give fewer or simpler ones, raise it, or search in several runs",
                regexes.len() + 1,
            )));
        }
        regexes.push(regex);
    }
    Ok(regexes)
}

/// Returns the memory for the states of one automaton in one thread, such that the automata of
/// `regexes` regexes together fit into `memory`. Each regex has two automata, one of which reads
/// backwards.
fn states_bytes(memory: usize, regexes: usize) -> usize {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    (memory / (2 * regexes * threads).max(1)).clamp(STATES_BYTES_MIN, STATES_BYTES_MAX)
}

/// Validates a regex before the set is known.
pub(crate) fn verify(pattern: &Pattern) -> Result<()> {
    match &pattern.kind {
        Kind::Regex(text) => parse(text, pattern.wide, false).map(|_| ()),
        _ => Ok(()),
    }
}

/// Parses a regex over bytes, or over text in UTF-16, whose characters are Unicode's.
fn parse(text: &str, wide: Option<Utf16>, ignore_case: bool) -> Result<Hir> {
    let hir = regex_syntax::ParserBuilder::new()
        .utf8(wide.is_some())
        .unicode(wide.is_some())
        .case_insensitive(ignore_case)
        .build()
        .parse(text)
        .map_err(|error| Error::pattern(text, one_line(&error)))?;
    if hir.properties().minimum_len() == Some(0) {
        return Err(Error::pattern(text, "can match the empty string, which is everywhere"));
    }
    match wide {
        Some(order) => wide::in_utf16(&hir, order).map_err(|reason| Error::pattern(text, reason)),
        None => Ok(hir),
    }
}

impl BoundedRegex {
    /// Compiles `hir`, which lacks the assertions of `exact`, if there is one.
    fn new(
        text: &str,
        hir: Hir,
        exact: Option<(Hir, Utf16)>,
        pattern: u32,
        options: Options,
        states_bytes: usize,
    ) -> Result<Self> {
        let fail = |reason: String| Error::pattern(text, reason);
        let limit = options.regex_length_bytes_max;
        let length_bytes_max = match hir.properties().maximum_len() {
            Some(bytes) if bytes > limit => {
                return Err(fail(format!(
                    "can match {bytes} bytes, more than {limit}; raise --regex-max-length"
                )));
            }
            Some(bytes) => bytes,
            None => limit,
        };
        let compiled = |hir: &Hir| automaton(hir).map_err(|error| fail(one_line(&*error)));
        let config = Regex::config()
            .utf8_empty(false)
            .which_captures(WhichCaptures::Implicit)
            .nfa_size_limit(Some(NFA_BYTES_MAX.min(options.regex_memory_bytes_max)))
            .hybrid_cache_capacity(states_bytes);
        let regex = Regex::builder()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|error| fail(one_line(&error)))?;
        let endless = match hir.properties().maximum_len() {
            Some(_) => None,
            None => Some(compiled(exact.as_ref().map_or(&hir, |(hir, _)| hir))?),
        };
        let exact = match exact {
            Some((hir, order)) => Some(Exact::new(compiled(&hir)?, order)),
            None => None,
        };
        Ok(BoundedRegex {
            regex,
            pattern,
            length_bytes_max,
            first: ByteSet::ALL,
            ends: EarliestEnd::new(hir),
            endless,
            exact,
        })
    }

    /// Returns the memory of the compiled automata.
    fn automata_bytes(&self) -> usize {
        self.regex.memory_usage()
            + self.endless.as_ref().map_or(0, NFA::memory_usage)
            + self.exact.as_ref().map_or(0, Exact::memory_usage)
    }

    /// Returns whether the regex matches anywhere in zeros, including at their start and end.
    fn matches_zeros(&self) -> bool {
        let zeros = vec![0u8; self.length_bytes_max + 2 * CONTEXT_BYTES];
        self.regex.search_half(&Input::new(&zeros)).is_some()
    }

    /// Returns whether nothing begins, continues or ends in zeros that extend further than a chunk sees.
    pub(crate) fn may_skip_zeros(&self) -> bool {
        !self.matches_zeros() && !watch::is_open_in_zeros(self)
    }

    /// Returns the match that begins at `start`. The error is a match longer than the bound: of all
    /// `L + 1` bytes.
    fn at(&self, text: &[u8], start: usize) -> Option<Match> {
        let reach = start..text.len().min(start + self.length_bytes_max + 1);
        let input = Input::new(text).span(reach.clone()).anchored(Anchored::Yes);
        let range = match &self.exact {
            None => self.regex.search(&input)?.range(),
            Some(exact) => {
                self.regex.search_half(&input)?;
                exact.at(text, reach)?
            }
        };
        Some(if range.len() <= self.length_bytes_max { Ok(range) } else { Err(start) })
    }

    /// Returns the first match in `range`, if the regex itself bounds it.
    fn first_in(&self, text: &[u8], mut range: Range<usize>) -> Option<Range<usize>> {
        loop {
            let found = self.regex.search(&Input::new(text).range(range.clone()))?.range();
            let Some(exact) = &self.exact else { return Some(found) };
            if let Some(confirmed) = exact.at(text, found.start..range.end) {
                return Some(confirmed);
            }
            range.start = found.start + 1;
        }
    }

    /// Returns the first match that begins at or after `from`, within the bound.
    ///
    /// It searches piece by piece, each longer than the one before while nothing is found. The bytes that a
    /// greedy regex reads beyond its match then cost little compared with the bound.
    fn next(&self, text: &[u8], mut from: usize) -> Option<Match> {
        let reach = self.length_bytes_max + 1;
        let piece_min = (2 * reach).max(PIECE_BYTES_MIN);
        let mut piece = piece_min;
        while from < text.len() {
            let end = text.len().min(from.saturating_add(piece));
            let is_last = end == text.len();
            // Matches that begin here or later may need bytes after the piece.
            let known_until = if is_last { end } else { end - reach + 1 };
            let found = self.regex.search(&Input::new(text).range(from..end));
            match found.map(|found| found.range()) {
                Some(found) if found.start < known_until => {
                    if found.len() <= self.length_bytes_max && self.exact.is_none() {
                        return Some(Ok(found));
                    }
                    // The match is longer than allowed, or not confirmed yet: search again, within reach
                    // only.
                    if let Some(within) = self.at(text, found.start) {
                        return Some(within);
                    }
                    if found.len() <= self.length_bytes_max {
                        from = found.start + 1;
                        continue;
                    }
                    // No match that begins here or later ends before `first`; one that begins further before
                    // it than the reach is too long again.
                    let first = self.ends.after(text, found.start..end).unwrap_or(found.start);
                    from = first.saturating_sub(reach).max(found.start + 1);
                    piece = piece_min;
                }
                _ if is_last => return None,
                _ => {
                    from = known_until;
                    piece = piece.saturating_mul(2);
                }
            }
        }
        None
    }
}

fn automaton(hir: &Hir) -> std::result::Result<NFA, Box<thompson::BuildError>> {
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(NFA_BYTES_MAX));
    thompson::Compiler::new().configure(config).build_from_hir(hir).map_err(Box::new)
}

/// Extracts the gist of a regex error, which spans several lines with the pattern in it.
fn one_line(error: &dyn std::error::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    let gist = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("is not a regex");
    gist.trim().trim_start_matches("error: ").to_string()
}
