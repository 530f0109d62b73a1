//! The rivals aho-corasick and memchr, as a whole process: literal patterns over one file.
//!
//! `ahocorasick PATTERNS.hex FILE THREADS ENGINE` counts every occurrence of every pattern,
//! overlapping ones too. The file is mapped and cut into pieces of 1 MiB, each extended into its
//! neighbour so that exactly one piece counts each occurrence. The answer is one JSON object; exit
//! code 3 means that the engine does not support the patterns.
//!
//! | engine | is | supports |
//! |---|---|---|
//! | `auto` | the automaton that the crate chooses | any set |
//! | `dfa` | its DFA, also for sets where the crate would not choose it | up to 64 KiB of patterns |
//! | `packed` | its vector search (Teddy), restarted one byte further | the sets that `packed` accepts |
//! | `memmem` | memchr's search for one literal, restarted one byte further | one pattern |

use std::fs::File;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use aho_corasick::automaton::{Automaton, OverlappingState};
use aho_corasick::packed;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, dfa};
use anyhow::{Context, Result, bail};

const PIECE_BYTES: usize = 1 << 20;
const DFA_PATTERN_BYTES_MAX: usize = 64 << 10;
const NOT_SERVED: u8 = 3;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_SERVED),
        Err(error) => {
            eprintln!("ahocorasick: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns false if the engine does not support the patterns.
fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [patterns, file, threads, engine] = arguments.as_slice() else {
        bail!("usage: ahocorasick PATTERNS.hex FILE THREADS auto|dfa|packed|memmem");
    };
    let threads: usize = threads.parse().context("THREADS is not a number")?;
    let start = Instant::now();
    let patterns = read_patterns(patterns)?;
    let Some(engine) = Engine::new(engine, patterns)? else {
        return Ok(false);
    };
    let compiled = Instant::now();
    let file = File::open(file).with_context(|| file.clone())?;
    // SAFETY: nobody writes to or truncates the benchmark's own image while it is mapped.
    let image = unsafe { memmap2::Mmap::map(&file) }.context("cannot map the file")?;
    let found = scan(&engine, &image, threads);
    println!(
        "{}",
        serde_json::json!({
            "found": found,
            "compile_seconds": (compiled - start).as_secs_f64(),
            "scan_seconds": compiled.elapsed().as_secs_f64(),
        })
    );
    Ok(true)
}

fn read_patterns(path: &str) -> Result<Vec<Vec<u8>>> {
    let text = std::fs::read_to_string(path).with_context(|| path.to_string())?;
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    };
    let parse = |line: &str| line.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>();
    let lines = text.lines().filter(|line| !line.is_empty());
    let patterns: Vec<_> = lines
        .map(|line| parse(line).with_context(|| format!("{path}: '{line}' is not hexadecimal")))
        .collect::<Result<_>>()?;
    if patterns.is_empty() {
        bail!("{path}: holds no pattern");
    }
    Ok(patterns)
}

/// Counts the matches that belong to `own`, given `image` around it.
struct Engine {
    longest_bytes: usize,
    search: Search,
}

enum Search {
    Auto(AhoCorasick),
    Dfa(dfa::DFA),
    Packed { searcher: packed::Searcher, by_first_byte: Vec<Vec<Vec<u8>>> },
    Memmem(memchr::memmem::Finder<'static>),
}

impl Engine {
    fn new(name: &str, patterns: Vec<Vec<u8>>) -> Result<Option<Self>> {
        let longest_bytes = patterns.iter().map(Vec::len).max().unwrap_or(1);
        let search = match name {
            "auto" => Some(Search::Auto(
                AhoCorasick::builder()
                    .match_kind(MatchKind::Standard)
                    .kind(None::<AhoCorasickKind>)
                    .build(&patterns)?,
            )),
            "dfa" => dfa(&patterns)?.map(Search::Dfa),
            "packed" => packed(patterns),
            "memmem" => memmem(&patterns).map(Search::Memmem),
            _ => bail!("no engine '{name}'; there are: auto, dfa, packed, memmem"),
        };
        Ok(search.map(|search| Engine { longest_bytes, search }))
    }

    /// Counts the matches of the piece that owns `start..end`: automata assign a match by its end,
    /// the other engines by its start. Either way each match belongs to one piece.
    fn count(&self, image: &[u8], start: usize, end: usize) -> u64 {
        let around = self.longest_bytes - 1;
        let before = &image[start.saturating_sub(around)..end];
        let after = &image[start..(end + around).min(image.len())];
        let (before_bytes, own_bytes) = (before.len() - (end - start), end - start);
        match &self.search {
            Search::Auto(automaton) => automaton
                .find_overlapping_iter(before)
                .filter(|found| found.end() > before_bytes)
                .count() as u64,
            Search::Dfa(automaton) => count_by_dfa(automaton, before, before_bytes),
            Search::Packed { searcher, by_first_byte } => {
                count_by_packed(searcher, by_first_byte, after, own_bytes)
            }
            Search::Memmem(finder) => {
                let (mut found, mut at) = (0, 0);
                while let Some(next) = finder.find(&after[at..]) {
                    // The overlap is shorter than the pattern, so a match cannot start there.
                    found += 1;
                    at += next + 1;
                }
                found
            }
        }
    }
}

fn dfa(patterns: &[Vec<u8>]) -> Result<Option<dfa::DFA>> {
    let bytes: usize = patterns.iter().map(Vec::len).sum();
    if bytes > DFA_PATTERN_BYTES_MAX {
        return Ok(None);
    }
    let dfa = dfa::Builder::new().match_kind(MatchKind::Standard).build(patterns)?;
    Ok(Some(dfa))
}

fn count_by_dfa(automaton: &dfa::DFA, before: &[u8], before_bytes: usize) -> u64 {
    let input = Input::new(before);
    let mut state = OverlappingState::start();
    let mut found = 0;
    loop {
        if automaton.try_find_overlapping(&input, &mut state).is_err() {
            return found;
        }
        let Some(next) = state.get_match() else { return found };
        found += u64::from(next.end() > before_bytes);
    }
}

fn packed(patterns: Vec<Vec<u8>>) -> Option<Search> {
    let searcher = packed::Config::new().builder().extend(&patterns).build()?;
    let mut by_first_byte = vec![Vec::new(); 256];
    for pattern in patterns {
        by_first_byte[usize::from(pattern[0])].push(pattern);
    }
    Some(Search::Packed { searcher, by_first_byte })
}

/// The searcher returns one pattern at the leftmost position; the others are compared there.
fn count_by_packed(
    searcher: &packed::Searcher,
    by_first_byte: &[Vec<Vec<u8>>],
    after: &[u8],
    own_bytes: usize,
) -> u64 {
    let (mut found, mut at) = (0, 0);
    while at < own_bytes {
        let span = aho_corasick::Span { start: at, end: after.len() };
        let Some(next) = searcher.find_in(after, span) else { break };
        if next.start() >= own_bytes {
            break;
        }
        let rest = &after[next.start()..];
        let candidates = &by_first_byte[usize::from(rest[0])];
        found += candidates.iter().filter(|pattern| rest.starts_with(pattern)).count() as u64;
        at = next.start() + 1;
    }
    found
}

fn memmem(patterns: &[Vec<u8>]) -> Option<memchr::memmem::Finder<'static>> {
    let [pattern] = patterns else { return None };
    Some(memchr::memmem::Finder::new(pattern).into_owned())
}

fn scan(engine: &Engine, image: &[u8], threads: usize) -> u64 {
    let next_piece = AtomicUsize::new(0);
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                let mut found = 0;
                loop {
                    let start = next_piece.fetch_add(PIECE_BYTES, Ordering::Relaxed);
                    if start >= image.len() {
                        break;
                    }
                    let end = (start + PIECE_BYTES).min(image.len());
                    found += engine.count(image, start, end);
                }
                total.fetch_add(found, Ordering::Relaxed);
            });
        }
    });
    total.into_inner()
}
