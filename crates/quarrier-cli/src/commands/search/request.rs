//! Builds the request from the options.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use quarrier::rules::{RuleSearch, read_rules};
use quarrier::search::{MatchList, MatchLists, Planning, read_matches, read_patterns};
use quarrier::{OpenOptions, Search as Request};
use quarrier_search::{Options, Pattern};

use crate::args::{PatternArg, Search, of_words};
use crate::commands::packed::only_words;

/// The request for these options.
///
/// # Errors
/// A message for the user, if a pattern is invalid.
pub(super) fn request(search: &Search, stop: &AtomicBool) -> Result<Request, String> {
    let options = Options {
        ignore_case: search.ignore_case,
        utf16: search.utf16,
        utf16be: search.utf16be,
        encodings: search.encodings,
        xor: search.xor,
        base64: search.base64,
        regex_length_bytes_max: search.regex_length_bytes_max,
        regex_memory_bytes_max: search.regex_memory_bytes_max,
    };
    let mut patterns = patterns(&search.patterns, stop)?;
    if search.words {
        patterns = only_words(patterns)?;
    }
    let request =
        Request::new(patterns).features(&search.features).map_err(|error| error.to_string())?;
    Ok(request
        .options(options)
        .engine(search.engine)
        .device(search.device)
        .aligned(search.aligned_bytes)
        .context(super::lines::context_bytes(search))
        .findings_max(search.max_count.unwrap_or(u64::MAX))
        .range(search.range.clone())
        .unallocated(search.unallocated)
        .lists(lists(search, stop)?)
        .planning(planning(search)))
}

/// The request of a search for rules.
///
/// # Errors
/// A message for the user, if a rule is invalid.
pub(super) fn rule_request(search: &Search, stop: &AtomicBool) -> Result<RuleSearch, String> {
    let rules = read_rules(&search.rules, stop).map_err(|error| error.to_string())?;
    Ok(RuleSearch::new(rules)
        .scopes(search.scopes)
        .scope_bytes_max(search.rules_bytes_max)
        .scope_time_max(search.rules_time_max)
        .planning(planning(search))
        .engine(search.engine)
        .device(search.device))
}

pub(super) fn planning(search: &Search) -> Planning {
    Planning {
        workers: search.workers,
        readers: search.readers,
        buffers: search.buffers,
        buffer_bytes: search.buffer_bytes,
        access: search.access,
        direct: search.direct,
    }
}

/// The lists of matches; files of one type form one list.
fn lists(search: &Search, stop: &AtomicBool) -> Result<MatchLists, String> {
    let read = |paths: &[PathBuf]| -> Result<Option<MatchList>, String> {
        let mut list: Option<MatchList> = None;
        for path in paths {
            let more = read_matches(path, stop).map_err(|error| error.to_string())?;
            list = Some(list.unwrap_or_default().with(more));
        }
        Ok(list)
    };
    Ok(MatchLists { stop: read(&search.stop_lists)?, alert: read(&search.alert_lists)? })
}

/// The options for opening the sources.
pub(super) fn open_options(search: &Search) -> OpenOptions {
    search.cache.options().direct(search.direct).requests_max(search.requests)
}

/// All patterns in the order of the command line.
fn patterns(args: &[PatternArg], stop: &AtomicBool) -> Result<Vec<Pattern>, String> {
    let mut patterns = Vec::new();
    let error_message = |error: quarrier_search::Error| error.to_string();
    for arg in args {
        match arg {
            PatternArg::Text(text) => patterns.push(Pattern::literal(text).map_err(error_message)?),
            PatternArg::Hex(text) => patterns.push(Pattern::hex(text).map_err(error_message)?),
            PatternArg::Regex(text) => patterns.push(Pattern::regex(text).map_err(error_message)?),
            PatternArg::File(path) => {
                patterns.extend(read_patterns(path, stop).map_err(|error| error.to_string())?);
            }
        }
    }
    Ok(patterns)
}

/// Builds a request without a command line, for `search(…)` in SQL: `words` are options as typed there
/// (`-i`, `--aligned`, `512`), and the patterns come from a file or are written as in one.
///
/// # Errors
/// A message for the user, if a pattern or an option is invalid.
pub fn search_of_words(
    words: &[String],
    patterns: Vec<Pattern>,
) -> Result<(Request, OpenOptions), String> {
    let search = of_words(words)?;
    // No word names a file of patterns.
    let request = request(&search, &AtomicBool::new(false))?;
    let patterns = if search.words { only_words(patterns)? } else { patterns };
    Ok((request.with_patterns(patterns), open_options(&search)))
}
