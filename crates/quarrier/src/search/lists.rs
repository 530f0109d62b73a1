//! Lists of matches: a stop list leaves matches out, an alert list keeps only its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, Pattern};

use super::copy_match;
use crate::{Result, read_instructions};

/// Maximum number of context bytes, on either side, that are compared.
const CONTEXT_BYTES_MAX: usize = 64;

/// Matches, a line each, as formatted by [`Pattern::show_match`].
///
/// Files of bulk_extractor are accepted unchanged: a line may come from a feature file (tab-separated
/// `offset`, match and context), be a match and its context, or come from a histogram (`n=7`, match). A
/// match with a context counts only in that context. A `*` matches any string; lines that begin with `#`
/// are comments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatchList {
    plain: HashSet<String>,
    /// The contexts of each match.
    within: HashMap<String, Vec<String>>,
    globs: Vec<String>,
}

impl MatchList {
    /// Parses a list.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut list = MatchList::default();
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        for line in bytes.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() && line[0] != b'#' {
                list.add(&normal(line));
            }
        }
        list
    }

    /// Adds the lines of another list.
    #[must_use]
    pub fn with(mut self, more: MatchList) -> Self {
        self.plain.extend(more.plain);
        self.globs.extend(more.globs);
        for (found, contexts) in more.within {
            self.within.entry(found).or_default().extend(contexts);
        }
        self
    }

    fn add(&mut self, line: &str) {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        match fields[..] {
            [_, found, context] => self.add_within(found, context),
            [count, found] if is_count(count) => {
                // "(utf16=3)" counts the matches that were UTF-16.
                let found = found.split_once(" (utf16=").map_or(found, |(found, _)| found);
                self.plain.insert(found.to_string());
            }
            [found, context] => self.add_within(found, context),
            [found] if found.contains('*') => self.globs.push(found.to_string()),
            [found] => _ = self.plain.insert(found.to_string()),
            _ => {}
        }
    }

    fn add_within(&mut self, found: &str, context: &str) {
        if context.is_empty() {
            self.plain.insert(found.to_string());
        } else {
            self.within.entry(found.to_string()).or_default().push(context.to_string());
        }
    }

    /// Number of bytes around a finding that are compared.
    fn context_bytes(&self) -> usize {
        if self.within.is_empty() { 0 } else { CONTEXT_BYTES_MAX }
    }

    fn has(&self, chunk: &Chunk<'_>, finding: &Finding, text: &str) -> bool {
        self.plain.contains(text)
            || self.globs.iter().any(|glob| is_like(glob, text))
            || self.within.get(text).is_some_and(|contexts| {
                contexts.iter().any(|context| matches_context(chunk, finding, text, context))
            })
    }
}

/// The lists of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatchLists {
    /// Matches to leave out.
    pub stop: Option<MatchList>,
    /// If present, only its matches count.
    pub alert: Option<MatchList>,
}

impl MatchLists {
    /// Whether the lists filter nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.stop.is_none() && self.alert.is_none()
    }

    /// All lines in a canonical order: equal for equal lists.
    pub(super) fn canonical(&self) -> String {
        let of_list = |list: &MatchList| {
            let plain: BTreeSet<_> = list.plain.iter().collect();
            let within: BTreeMap<_, _> = list.within.iter().collect();
            format!("{plain:?} {within:?} {:?}", list.globs)
        };
        format!("{:?}", (self.stop.as_ref().map(of_list), self.alert.as_ref().map(of_list)))
    }

    pub(super) fn context_bytes(&self) -> usize {
        let both = self.stop.iter().chain(&self.alert);
        both.map(MatchList::context_bytes).max().unwrap_or_default()
    }

    /// Appends the findings that pass the lists to `kept`.
    pub(super) fn keep(
        &self,
        patterns: &[Pattern],
        chunk: &Chunk<'_>,
        findings: &[Finding],
        kept: &mut Vec<Finding>,
    ) {
        let (mut copy, mut text) = (Vec::new(), String::new());
        for finding in findings {
            copy_match(chunk, finding, &mut copy);
            text.clear();
            patterns[finding.pattern as usize].show_match(&copy, &mut text);
            let has = |list: &MatchList| list.has(chunk, finding, &text);
            if !self.stop.as_ref().is_some_and(has) && self.alert.as_ref().is_none_or(has) {
                kept.push(*finding);
            }
        }
    }
}

/// Reads a list of matches from a file of at most
/// [`INSTRUCTION_BYTES_MAX`](crate::INSTRUCTION_BYTES_MAX) bytes; `-` is standard input.
///
/// # Errors
/// Those of [`read_instructions`].
pub fn read_matches(path: &Path, stop: &AtomicBool) -> Result<MatchList> {
    Ok(MatchList::parse(&read_instructions(path, "matches", stop)?))
}

/// A line as [`Pattern::show_match`] would format its bytes: escapes with three octal digits become
/// `\xNN`.
fn normal(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for part in line.utf8_chunks() {
        text.push_str(part.valid());
        text.extend(part.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    let octal = |digits: &str| digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let used = match (escape.get(1..2), escape.get(1..4), escape.get(2..4)) {
            (Some("x"), _, Some(hex)) if u8::from_str_radix(hex, 16).is_ok() => {
                out.push_str(&escape[..4].to_ascii_lowercase());
                4
            }
            (_, Some(digits), _) if octal(digits) => match u8::from_str_radix(digits, 8) {
                Ok(byte) => {
                    out.push_str(&format!("\\x{byte:02x}"));
                    4
                }
                Err(_) => 0,
            },
            _ => 0,
        };
        if used == 0 {
            out.push('\\');
        }
        rest = &escape[used.max(1)..];
    }
    out.push_str(rest);
    out
}

/// Whether the field has the form `n=7`.
fn is_count(field: &str) -> bool {
    let digits = field.strip_prefix("n=").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether `text` matches a glob, in which `*` is any string.
fn is_like(glob: &str, text: &str) -> bool {
    let (Some((first, _)), Some((_, last))) = (glob.split_once('*'), glob.rsplit_once('*')) else {
        return glob == text;
    };
    let Some(rest) = text.strip_prefix(first) else { return false };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    let between = glob.get(first.len() + 1..glob.len() - last.len()).unwrap_or_default();
    between.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Whether the bytes around a finding match a context, as far as the context extends.
fn matches_context(chunk: &Chunk<'_>, finding: &Finding, text: &str, context: &str) -> bool {
    // A copy, because others may change the bytes of a chunk while it is converted to a string.
    let shown = |bytes: &[u8]| {
        let copy = bytes.to_vec();
        normal(&copy)
    };
    let Some(start) = finding.offset.checked_sub(chunk.offset) else { return false };
    let (start, data) = (start as usize, chunk.data);
    let end = start.saturating_add(finding.length as usize).min(data.len());
    let before =
        shown(data.get(start.saturating_sub(CONTEXT_BYTES_MAX)..start).unwrap_or_default());
    let after = shown(data.get(end..(end + CONTEXT_BYTES_MAX).min(data.len())).unwrap_or_default());
    // The match may occur in its context more than once.
    context.match_indices(text).any(|(at, _)| {
        before.ends_with(&context[..at]) && after.starts_with(&context[at + text.len()..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(lists: &MatchLists, text: &[u8], pattern: &str) -> Vec<u64> {
        let patterns = vec![Pattern::regex(pattern).unwrap()];
        let found = quarrier_search::Searcher::builder().build(patterns.clone()).unwrap();
        let (mut kept, chunk) = (Vec::new(), Chunk::whole(text));
        lists.keep(&patterns, &chunk, &found.find_all(text).unwrap(), &mut kept);
        kept.iter().map(|finding| finding.offset).collect()
    }

    const TEXT: &[u8] = b"<a@x> <b@y> [a@x] <\xFF@z>";

    fn stopped(list: &[u8]) -> Vec<u64> {
        kept(&MatchLists { stop: Some(MatchList::parse(list)), alert: None }, TEXT, ".@[a-z]")
    }

    #[test]
    fn lines_of_every_kind_of_file_stop_their_match() {
        assert_eq!(stopped(b"# a@x\n"), [1, 7, 13, 19]);
        assert_eq!(stopped(b"a@x\r\nc@x\n"), [7, 19]);
        assert_eq!(stopped(b"n=2\ta@x (utf16=1)\n"), [7, 19]);
        assert_eq!(stopped(b"*@y\n\\xFF@z"), [1, 13]);
        assert_eq!(stopped(b"\\377@z"), [1, 7, 13]);
        assert_eq!(stopped(b"\xFF@z"), [1, 7, 13]);
    }

    #[test]
    fn a_match_with_a_context_is_stopped_there_only() {
        assert_eq!(stopped(b"1\ta@x\t<a@x> \n"), [7, 13, 19]);
        assert_eq!(stopped(b"a@x\t[a@x] <\\xff@\n"), [1, 7, 19]);
        assert_eq!(stopped(b"a@x\t(a@x)\n"), [1, 7, 13, 19]);
    }

    #[test]
    fn an_alert_list_excludes_the_rest_and_a_stop_list_takes_precedence() {
        let list = |text: &str| Some(MatchList::parse(text.as_bytes()));
        let both = |stop, alert| kept(&MatchLists { stop, alert }, TEXT, ".@[a-z]");
        assert_eq!(both(None, list("b@y\nq")), [7]);
        assert_eq!(both(list("*y"), list("*@*")), [1, 13, 19]);
        assert_eq!(both(None, list("")), [0; 0]);
    }

    #[test]
    fn globs_match_the_whole_text() {
        for (glob, text, expected) in [
            ("*", "", true),
            ("a*", "ab", true),
            ("a*b", "ab", true),
            ("a*b", "a", false),
            ("ab*ba", "aba", false),
            ("*b*", "abc", true),
            ("*b*b*", "abc", false),
            ("a**c", "abc", true),
        ] {
            assert_eq!(is_like(glob, text), expected, "{glob} {text}");
        }
    }
}
