//! Findings that start in a part of a source equal those of the whole source, for any bytes at the
//! borders.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::AtomicBool;

use quarrier::search::{MatchList, MatchLists, Planning};
use quarrier::{Error, Machine, Place, Search};
use quarrier_core::pipeline::Chunk;
use quarrier_core::source::Memory;
use quarrier_search::{Finding, Options, Pattern};

/// Offset, pattern and length of all findings, with one worker and the smallest chunks.
fn found(search: &Search, text: &[u8]) -> Result<Vec<(u64, u32, u32)>, Error> {
    let (machine, stop) = (Machine::unknown(), AtomicBool::new(false));
    let source = Memory::new("memory", text.to_vec());
    let mut running = search.start(&machine, Some(&Place::Local(&source)), &stop)?;
    let mut all = Vec::new();
    let mut take = |_: &Chunk<'_>, findings: &[Finding]| {
        all.extend(findings.iter().map(|one| (one.offset, one.pattern, one.length)));
        ControlFlow::Continue(())
    };
    let searched = running.search(Place::Local(&source), &stop, &mut take)?;
    assert!(searched.range.end <= text.len() as u64);
    Ok(all)
}

fn regex(text: &str) -> Pattern {
    Pattern::regex(text).unwrap()
}

/// Compares every range of starts with the whole source.
fn check(search: &Search, text: &[u8]) {
    let whole = found(search, text).unwrap();
    assert!(!whole.is_empty());
    let length = text.len() as u64;
    for start in 0..=length {
        for end in start..=length + 1 {
            let starts: Range<u64> = start..end;
            let here = found(&search.clone().starts(starts.clone()), text).unwrap();
            let expected: Vec<_> =
                whole.iter().filter(|(offset, ..)| starts.contains(offset)).copied().collect();
            assert_eq!(here, expected, "{starts:?}");
        }
    }
}

#[test]
fn findings_that_start_in_a_range_are_those_of_the_whole_source_that_start_there() {
    let patterns = vec![
        Pattern::literal("ab").unwrap(),
        Pattern::literal("ab").unwrap().word().unwrap(),
        regex(r"ab$"),
        regex(r"(?m:^a?b$)"),
        regex(r"b\z"),
        regex(r"\Aa"),
        regex(r"\bab\b"),
        regex(r"a[ab]*(?:$|c)"),
    ];
    let options = Options { regex_length_bytes_max: 8, ..Options::default() };
    let planning = Planning { workers: 1, buffer_bytes: 7, ..Planning::default() };
    for planning in [Planning { workers: 1, ..Planning::default() }, planning] {
        let search = Search::new(patterns.clone()).options(options).planning(planning);
        check(&search, b"ab\nabab cab ab");
    }
}

#[test]
fn a_context_before_the_range_decides_about_its_matches() {
    let alert = Some(MatchList::parse(b"1\tab\t(ab)\n"));
    let search = Search::new(vec![Pattern::literal("ab").unwrap()]);
    let search = search.lists(MatchLists { stop: None, alert });
    check(&search, b"ab (ab) ab) (ab)");
}

#[test]
fn a_match_that_is_too_long_is_an_error_only_where_it_starts() {
    let options = Options { regex_length_bytes_max: 8, ..Options::default() };
    let search = Search::new(vec![regex("x+")]).options(options);
    let text = [b"xx ".as_slice(), &[b'x'; 100]].concat();
    let starts = |range| found(&search.clone().starts(range), &text);
    assert_eq!(starts(0..3).unwrap(), [(0, 0, 2)]);
    assert!(matches!(starts(0..4), Err(Error::TooLong { .. })));
    assert!(matches!(starts(0..u64::MAX), Err(Error::TooLong { .. })));
}
