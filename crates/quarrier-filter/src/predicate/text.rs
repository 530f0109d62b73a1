//! Conditions on one column of strings with a dictionary: evaluated once for each string of the
//! dictionary.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use quarrier_core::threads;
use quarrier_messages::column::{Dictionary, Strings};

use super::{Outcome, Set};
use crate::Expr;
use crate::expr::Matcher;
use crate::matching::{Matching, Shape};
use crate::naive::{self, Datum};

/// Minimum number of strings for which a second thread is worth starting.
const SHARED_TEXTS: usize = 8_192;

/// Returns the strings for which a condition on `column` alone has this outcome.
pub(crate) fn outcome(
    (expr, column): (&Expr, usize),
    wanted: Outcome,
    dictionary: &Dictionary,
    workers: usize,
) -> Set {
    let holds = |text: Option<&str>| {
        let outcome = match naive::truth(expr, &Text { column, text }) {
            Ok(Some(true)) => Some(Outcome::True),
            Ok(Some(false)) => Some(Outcome::False),
            Ok(None) => None,
            Err(_) => Some(Outcome::Fault),
        };
        outcome == Some(wanted)
    };
    let ranges = shared(0..dictionary.len(), workers, &|codes| {
        selected(codes, |code| holds(Some(dictionary.get(code))))
    });
    Set::union_of(ranges, holds(None))
}

/// Returns the strings that match a pattern.
pub(crate) fn matching(pattern: &Matching, dictionary: &Dictionary, workers: usize) -> Set {
    let prefix = match pattern.shape() {
        Shape::Everything => return Set::values(),
        Shape::Exact(text) => {
            return dictionary
                .code_of(text)
                .map_or_else(|_| Set::none(), |code| Set::range(code, code));
        }
        Shape::Prefix(prefix) => return codes_set(with_prefix(dictionary, prefix)),
        Shape::Contains(inner) => {
            let ranges =
                shared(0..dictionary.len(), workers, &|codes| containing(dictionary, codes, inner));
            return Set::union_of(ranges, false);
        }
        _ => fixed_prefix(pattern),
    };
    let ranges = shared(with_prefix(dictionary, &prefix), workers, &|codes| {
        selected(codes, |code| pattern.is_match(dictionary.get(code)))
    });
    Set::union_of(ranges, false)
}

fn codes_set(codes: Range<usize>) -> Set {
    if codes.is_empty() {
        return Set::none();
    }
    Set::range(codes.start as i64, codes.end as i64 - 1)
}

/// Returns the codes of the strings that begin with `prefix`.
fn with_prefix(dictionary: &Dictionary, prefix: &str) -> Range<usize> {
    let first = dictionary.code_of(prefix).unwrap_or_else(|next| next) as usize;
    let (mut low, mut high) = (first, dictionary.len());
    while low < high {
        let middle = low.midpoint(high);
        if dictionary.get(middle).starts_with(prefix) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    first..low
}

/// Returns the prefix that every match has.
fn fixed_prefix(pattern: &Matching) -> String {
    if pattern.by() != Matcher::Like {
        return String::new();
    }
    let escape = pattern.escape();
    pattern.source().chars().take_while(|&c| !matches!(c, '%' | '_') && Some(c) != escape).collect()
}

/// Divides `codes` among threads; returns ranges of codes in any order.
fn shared(
    codes: Range<usize>,
    workers: usize,
    find: &(dyn Fn(Range<usize>) -> Vec<(i64, i64)> + Sync),
) -> Vec<(i64, i64)> {
    let parts = workers.min(codes.len() / SHARED_TEXTS + 1);
    if parts <= 1 {
        return find(codes);
    }
    let (start, length) = (codes.start, codes.len());
    let cut = |part: usize| start + length * part / parts;
    let next = AtomicUsize::new(0);
    let all = threads::team(0..parts, |_| {
        let mut found = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return found;
            }
            found.extend(find(cut(part)..cut(part + 1)));
        }
    });
    all.concat()
}

/// Returns ranges of those of `codes` for which `wanted` is true.
fn selected(codes: Range<usize>, wanted: impl Fn(usize) -> bool) -> Vec<(i64, i64)> {
    let mut ranges = Vec::new();
    for code in codes {
        if wanted(code) {
            append(&mut ranges, code as i64);
        }
    }
    ranges
}

/// Appends a code; codes come in ascending order.
fn append(ranges: &mut Vec<(i64, i64)>, code: i64) {
    match ranges.last_mut() {
        Some((_, last)) if *last + 1 == code => *last = code,
        _ => ranges.push((code, code)),
    }
}

/// Returns those of `codes` whose string contains `inner`: searches all strings as one, and drops
/// matches across a boundary.
fn containing(strings: &Strings, codes: Range<usize>, inner: &str) -> Vec<(i64, i64)> {
    let mut ranges = Vec::new();
    let ends = strings.ends();
    let start_of = |code: usize| if code == 0 { 0 } else { ends[code - 1] as usize };
    let (from, to) = (start_of(codes.start), start_of(codes.end));
    let Ok(searcher) = regex::bytes::Regex::new(&regex::escape(inner)) else {
        return selected(codes, |code| strings.get(code).contains(inner));
    };
    let bytes = &strings.bytes()[from..to];
    let (mut at, mut code) = (0, codes.start);
    while let Some(found) = searcher.find_at(bytes, at) {
        let start = (from + found.start()) as u32;
        code += gallop(&ends[code..codes.end], start);
        let end = ends[code] as usize - from;
        if found.end() <= end {
            append(&mut ranges, code as i64);
            at = end;
        } else {
            at = found.start() + 1;
        }
    }
    ranges
}

/// Returns how many of `ends` are at most `start`; fast if few are.
fn gallop(ends: &[u32], start: u32) -> usize {
    let mut step = 1;
    while step < ends.len() && ends[step] <= start {
        step *= 2;
    }
    let low = step / 2;
    low + ends[low..step.min(ends.len())].partition_point(|&end| end <= start)
}

/// A row with a single string.
struct Text<'t> {
    column: usize,
    text: Option<&'t str>,
}

impl naive::Row for Text<'_> {
    fn datum(&self, column: usize) -> Datum<'_> {
        match self.text {
            Some(text) if column == self.column => Datum::Text(text.into()),
            _ => Datum::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{containing, matching};
    use crate::expr::Matcher;
    use crate::matching::Matching;
    use quarrier_messages::column::{Dictionary, Strings};

    #[test]
    fn a_pattern_selects_matching_strings() {
        let words =
            ["", "aa", "ab", "aab", "aba", "b", "ba", "baa", "bb", "bbb", "é", "éa", "aaaa"];
        let mut strings: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
        strings.extend(words.iter().flat_map(|a| words.iter().map(move |b| format!("{a}{b}c{b}"))));
        strings.sort();
        strings.dedup();
        let dictionary =
            Dictionary::from_sorted(strings.iter().map(String::as_str).collect::<Strings>());
        let patterns = [
            "%", "", "a%", "%a", "%aa%", "%ab%", "%c%", "a_", "a%b", "é%", "%é%", "_", "aa", "zz%",
        ];
        for pattern in patterns {
            let compiled = Matching::new(pattern, None, Matcher::Like).unwrap();
            for workers in [1, 3] {
                let set = matching(&compiled, &dictionary, workers);
                for (code, text) in strings.iter().enumerate() {
                    let found = set.contains(code as i128);
                    assert_eq!(found, compiled.is_match(text), "{pattern} {text}");
                }
            }
        }
        let whole = containing(&dictionary, 0..strings.len(), "a");
        assert_eq!(
            whole,
            [containing(&dictionary, 0..50, "a"), containing(&dictionary, 50..strings.len(), "a")]
                .concat()
                .into_iter()
                .fold(Vec::new(), |mut all: Vec<(i64, i64)>, range| {
                    match all.last_mut() {
                        Some(last) if last.1 + 1 == range.0 => last.1 = range.1,
                        _ => all.push(range),
                    }
                    all
                })
        );
    }
}
