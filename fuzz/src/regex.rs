//! Regexes: leftmost-first matches that do not overlap, as the simplest engine finds them in the
//! whole text, with any setup.

use arbitrary::{Result, Unstructured};
use quarrier_search::{Error, Finding, Options, Pattern, Searcher};
use regex_automata::nfa::thompson::pikevm::{Cache, PikeVM};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::oracle::{self, Needle};
use crate::setup::{Setup, same};
use crate::{Target, Verdict, engines, text};

/// See the module.
pub const TARGET: Target = Target { name: "regex", run, once: ONCE, seeds: SEEDS, words: WORDS };

const ONCE: &[&[u8]] = &[&[0xFF; 100], b"\xFF\xFF"];

const SEEDS: &[&[u8]] = &[
    &[0; 100],
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\
      \x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x20\x21\x22\x23\x24\x25\x26\x27\x28\x29\x2a\x2b\x2c\x2d",
];

const WORDS: &[&[u8]] = &[&[0; 8], &[9; 3], &[11; 3], b"\x04\x00\x00", b"\x0b\x01\x70", &[0xFF; 8]];

const ALPHABET: &[u8] = b"aaaabbbAB\0\0\n \xFF\xC3\xA9";

const ATOMS: [&str; 18] = [
    "a", "a", "a", "b", "b", "ab", "aa", "[ab]", "[^a]", "[aA]", "A", r"\x00", r"\n", r"\xFF", ".",
    r"\w", r"\W", r"(?u:é)",
];
const LOOKS: [&str; 12] = [
    "^",
    "$",
    r"\b",
    r"\B",
    "(?m:^)",
    "(?m:$)",
    r"\A",
    r"\z",
    r"(?u:\b)",
    r"(?u:\B)",
    r"\b{start}",
    r"\b{end}",
];
const REPEATS: [&str; 14] = [
    "?", "*", "+", "??", "*?", "+?", "{2}", "{2,3}", "{3,}", "{0,4}", "{1,7}?", "{2,}?", "{5}",
    "{9}",
];

#[derive(Debug)]
struct Case {
    setup: Setup,
    options: Options,
    patterns: Vec<Pattern>,
    needles: Vec<Needle>,
    text: Vec<u8>,
}

/// Decodes a case from `bytes` and checks it.
pub fn run(bytes: &[u8]) -> Verdict {
    let mut u = Unstructured::new(bytes);
    let flood = matches!(u.arbitrary::<u16>(), Ok(0xFFFF));
    let case = if flood { flooded(&mut u) } else { Case::draw(&mut u) };
    match case {
        Ok(case) if !case.text.is_empty() => case.check(),
        _ => Verdict::Skipped,
    }
}

/// More findings than a searcher holds for one chunk (2^20), with matches that depend on where the
/// search begins all the way through.
fn flooded(u: &mut Unstructured<'_>) -> Result<Case> {
    let mut setup = Setup::draw(u)?;
    setup.buffer_bytes = u.int_in_range(20_001..=30_000)?;
    let mut patterns: Vec<Pattern> = (0..64).filter_map(|_| Pattern::hex("00").ok()).collect();
    let needles = (0..64).map(|index| (index, vec![(0, 0xFF)])).collect();
    let count = u.int_in_range(5..=9)?;
    patterns.extend(Pattern::regex(&format!(r"\x00{{{count}}}")));
    let text = vec![0; u.int_in_range(60_000..=70_000)?];
    Ok(Case { setup, options: Options::default(), patterns, needles, text })
}

impl Case {
    fn draw(u: &mut Unstructured<'_>) -> Result<Self> {
        let setup = Setup::draw(u)?;
        let options = Options {
            ignore_case: u.ratio(1, 4)?,
            regex_length_bytes_max: *u.choose(&[65_536, 65_536, 65_536, 100, 20, 8, 5, 3])?,
            ..Options::default()
        };
        let mut patterns = Vec::new();
        let mut needles = Vec::new();
        for index in 0..u.int_in_range(1..=4)? {
            if index > 0 && u.ratio(1, 3)? {
                let (literal, forms) = engines::draw_pattern(u, ALPHABET, options, None)?;
                patterns.push(literal);
                needles.extend(forms.into_iter().map(|form| (index, form)));
            } else {
                let mut regex = String::new();
                for _ in 0..u.int_in_range(1..=3)? {
                    regex += &node(u, 2)?;
                }
                // Regexes often begin or end with these, which are prone to errors.
                if u.ratio(1, 6)? {
                    regex.insert_str(0, u.choose(&LOOKS)?);
                }
                if u.ratio(1, 6)? {
                    regex += u.choose(&LOOKS)?;
                }
                patterns.extend(Pattern::regex(&regex));
            }
        }
        let text = text::draw(u, ALPHABET, setup.buffer_bytes, 4 * patterns.len(), |u| {
            let count = u.int_in_range(1..=9)?;
            text::letters(u, &ALPHABET[..7], count)
        })?;
        Ok(Case { setup, options, patterns, needles, text })
    }

    fn check(&self) -> Verdict {
        let built = Searcher::builder()
            .options(self.options)
            .sample(self.setup.sample(&self.text))
            .aligned(self.setup.aligned_bytes)
            .context(self.setup.context_bytes)
            .build(self.patterns.clone());
        let searcher = match built {
            Ok(searcher) => searcher,
            Err(Error::Pattern { .. }) => return Verdict::Skipped,
            Err(error) => panic!("{error}\n{}", self.shown()),
        };
        let range = self.setup.range(&self.text);
        let Some((expected, too_long)) = self.expected() else { return Verdict::Skipped };
        let mut checked = self.setup.check(&searcher, &self.text, &expected, too_long);
        if range.len() == self.text.len() {
            let at_once = match (searcher.find_all(&self.text), too_long) {
                (Ok(found), None) => same(&found, &expected),
                (Err(error), Some(offset)) if error.offset == offset => Ok(()),
                (found, offset) => Err(format!("{found:?}, too long expected at {offset:?}")),
            };
            checked = checked.and(at_once.map_err(|problem| format!("find_all: {problem}")));
        }
        if let Err(problem) = checked {
            panic!("{problem}\n{}", self.shown());
        }
        Verdict::Checked
    }

    /// Returns the expected findings, and the start of the first match that is too long.
    fn expected(&self) -> Option<(Vec<Finding>, Option<u64>)> {
        let range = self.setup.range(&self.text);
        let text = &self.text[range.clone()];
        let mut expected = oracle::find(&self.needles, text);
        let mut too_long: Option<usize> = None;
        for (index, pattern) in self.patterns.iter().enumerate().filter(|(_, p)| p.is_regex()) {
            let oracle = Oracle::new(&pattern.text, self.options)?;
            let (matches, ended) = oracle.find_all(text);
            expected.extend(matches.into_iter().map(|(start, length)| Finding {
                offset: start as u64,
                pattern: index as u32,
                length: length as u32,
            }));
            too_long = too_long.into_iter().chain(ended).min();
        }
        let offset = range.start as u64;
        expected.retain(|finding| too_long.is_none_or(|end| finding.offset < end as u64));
        expected.iter_mut().for_each(|finding| finding.offset += offset);
        expected.retain(|finding| finding.offset.is_multiple_of(self.setup.aligned_bytes));
        expected.sort_unstable();
        Some((expected, too_long.map(|start| start as u64 + offset)))
    }

    fn shown(&self) -> String {
        let (setup, options) = (&self.setup, self.options);
        let (patterns, text) = (text::shown_patterns(&self.patterns), text::shown(&self.text));
        format!("{setup:?}\n{options:?}\n{patterns}\n{text}")
    }
}

/// Draws a part of a regex.
fn node(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    let kind = if depth == 0 { 0 } else { u.int_in_range(0..=11)? };
    Ok(match kind {
        0..=4 => (*u.choose(&ATOMS)?).to_string(),
        5..=6 => node(u, depth - 1)? + &node(u, depth - 1)?,
        7..=8 => format!("(?:{}|{})", node(u, depth - 1)?, node(u, depth - 1)?),
        9..=10 => format!("(?:{}){}", node(u, depth - 1)?, u.choose(&REPEATS)?),
        _ => (*u.choose(&LOOKS)?).to_string(),
    })
}

/// The simplest engine, started separately at every position.
struct Oracle {
    regex: PikeVM,
    length_bytes_max: usize,
}

impl Oracle {
    fn new(text: &str, options: Options) -> Option<Self> {
        let config =
            syntax::Config::new().unicode(false).utf8(false).case_insensitive(options.ignore_case);
        let regex = PikeVM::builder().syntax(config).build(text).ok()?;
        Some(Oracle { regex, length_bytes_max: options.regex_length_bytes_max })
    }

    /// Returns starts and lengths of the matches, up to the start of one that is too long.
    ///
    /// The match at a position is the one within one byte more than allowed.
    fn find_all(&self, text: &[u8]) -> (Vec<(usize, usize)>, Option<usize>) {
        let mut cache = self.regex.create_cache();
        if text.len() <= self.length_bytes_max {
            let matches = self.regex.find_iter(&mut cache, text);
            return (matches.map(|found| (found.start(), found.len())).collect(), None);
        }
        let mut matches = Vec::new();
        let mut start = 0;
        while start < text.len() {
            match self.match_at(&mut cache, text, start) {
                Some(length) if length > self.length_bytes_max => return (matches, Some(start)),
                Some(length) => {
                    matches.push((start, length));
                    start += length;
                }
                None => start += 1,
            }
        }
        (matches, None)
    }

    /// Returns the length of the match that begins at `start`.
    fn match_at(&self, cache: &mut Cache, text: &[u8], start: usize) -> Option<usize> {
        let reach = start..text.len().min(start + self.length_bytes_max + 1);
        let input = Input::new(text).span(reach).anchored(Anchored::Yes);
        self.regex.find(cache, input).map(|found| found.len())
    }
}
