//! A search request for workers on other machines, which do not have its files of patterns.

use std::sync::atomic::AtomicBool;

use quarrier::Search as Request;
use quarrier::search::{Feature, MatchList, MatchLists, Planning};
use quarrier_search::{Encodings, Options, Pattern, parse_file_until};
use serde::{Deserialize, Serialize};

use super::Bytes;
use crate::args::{PatternArg, Search, of_words};

/// Everything that determines the findings of a search. It holds no credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedSearch {
    patterns: Vec<PackedPatterns>,
    features: Vec<String>,
    words: bool,
    ignore_case: bool,
    utf16: bool,
    utf16be: bool,
    encodings: String,
    xor: bool,
    base64: bool,
    regex_length_bytes_max: usize,
    regex_memory_bytes_max: usize,
    aligned_bytes: u64,
    range: (u64, u64),
    unallocated: bool,
    stop_lists: Vec<Bytes>,
    alert_lists: Vec<Bytes>,
    /// The places of the patterns that are searched for; `None` for all.
    only: Option<Vec<usize>>,
}

/// A pattern, or a file of patterns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum PackedPatterns {
    Text(String),
    Hex(String),
    Regex(String),
    File(String, Bytes),
}

impl PackedPatterns {
    fn add_to(&self, patterns: &mut Vec<Pattern>, stop: &AtomicBool) -> Result<(), String> {
        let message = |error: quarrier_search::Error| error.to_string();
        match self {
            PackedPatterns::Text(text) => patterns.push(Pattern::literal(text).map_err(message)?),
            PackedPatterns::Hex(text) => patterns.push(Pattern::hex(text).map_err(message)?),
            PackedPatterns::Regex(text) => patterns.push(Pattern::regex(text).map_err(message)?),
            PackedPatterns::File(name, bytes) => {
                let parsed = parse_file_until(&bytes.to_vec()?, stop);
                patterns.extend(parsed.map_err(|error| format!("{name}: {error}"))?);
            }
        }
        Ok(())
    }
}

impl PackedSearch {
    /// Reads the files of a search.
    ///
    /// # Errors
    /// A message for the user, if a file cannot be read.
    pub(crate) fn of(search: &Search, stop: &AtomicBool) -> Result<Self, String> {
        let lists = |paths: &[std::path::PathBuf]| -> Result<Vec<Bytes>, String> {
            paths.iter().map(|path| Bytes::read(path, "matches", stop)).collect()
        };
        let pattern = |arg: &PatternArg| -> Result<PackedPatterns, String> {
            Ok(match arg {
                PatternArg::Text(text) => PackedPatterns::Text(text.clone()),
                PatternArg::Hex(text) => PackedPatterns::Hex(text.clone()),
                PatternArg::Regex(text) => PackedPatterns::Regex(text.clone()),
                PatternArg::File(path) => {
                    let bytes = Bytes::read(path, "patterns", stop)?;
                    PackedPatterns::File(path.display().to_string(), bytes)
                }
            })
        };
        Ok(PackedSearch {
            patterns: search.patterns.iter().map(pattern).collect::<Result<_, _>>()?,
            features: search.features.iter().map(|feature| feature.name.to_string()).collect(),
            words: search.words,
            ignore_case: search.ignore_case,
            utf16: search.utf16,
            utf16be: search.utf16be,
            encodings: search.encodings.to_string(),
            xor: search.xor,
            base64: search.base64,
            regex_length_bytes_max: search.regex_length_bytes_max,
            regex_memory_bytes_max: search.regex_memory_bytes_max,
            aligned_bytes: search.aligned_bytes,
            range: (search.range.start, search.range.end),
            unallocated: search.unallocated,
            stop_lists: lists(&search.stop_lists)?,
            alert_lists: lists(&search.alert_lists)?,
            only: None,
        })
    }

    /// Packs a search without a command line, like [`search_of_words`](crate::search_of_words). `patterns` are
    /// the bytes of a file of patterns, called `name`. `None` if a cluster cannot search like that: neither
    /// unallocated bytes, which depend on the whole source, nor with headers, which may hold secrets.
    ///
    /// # Errors
    /// A message for the user, if a word is no option.
    pub fn of_words(
        words: &[String],
        (name, patterns): (&str, &[u8]),
    ) -> Result<Option<Self>, String> {
        let search = of_words(words)?;
        if search.unallocated || !search.cache.headers.is_empty() {
            return Ok(None);
        }
        // No word names a file.
        let packed = PackedSearch::of(&search, &AtomicBool::new(false))?;
        let file = PackedPatterns::File(name.to_string(), Bytes::of(patterns));
        Ok(Some(PackedSearch { patterns: vec![file], ..packed }))
    }

    /// The search for only the patterns at these places, in this order.
    #[must_use]
    pub fn only(self, places: &[usize]) -> Self {
        PackedSearch { only: Some(places.to_vec()), ..self }
    }

    /// The request.
    ///
    /// # Errors
    /// A message for the user, if a pattern is invalid.
    pub fn request(&self, planning: Planning, stop: &AtomicBool) -> Result<Request, String> {
        let mut patterns = Vec::new();
        for packed in &self.patterns {
            packed.add_to(&mut patterns, stop)?;
        }
        if self.words {
            patterns = only_words(patterns)?;
        }
        let features: Vec<Vec<&'static Feature>> =
            self.features.iter().map(|name| Feature::parse(name)).collect::<Result<_, _>>()?;
        let request = Request::new(patterns)
            .features(&features.concat())
            .map_err(|error| error.to_string())?;
        let request = match &self.only {
            None => request,
            Some(places) if places.iter().all(|&place| place < request.patterns().len()) => {
                request.only(places)
            }
            Some(_) => return Err("the request is damaged: it has fewer patterns".to_string()),
        };
        Ok(request
            .options(Options {
                ignore_case: self.ignore_case,
                utf16: self.utf16,
                utf16be: self.utf16be,
                encodings: Encodings::parse(&self.encodings)?,
                xor: self.xor,
                base64: self.base64,
                regex_length_bytes_max: self.regex_length_bytes_max,
                regex_memory_bytes_max: self.regex_memory_bytes_max,
            })
            .aligned(self.aligned_bytes)
            .range(self.range.0..self.range.1)
            .unallocated(self.unallocated)
            .lists(MatchLists { stop: list(&self.stop_lists)?, alert: list(&self.alert_lists)? })
            .planning(planning))
    }
}

fn list(lists: &[Bytes]) -> Result<Option<MatchList>, String> {
    let mut all: Option<MatchList> = None;
    for bytes in lists {
        all = Some(all.unwrap_or_default().with(MatchList::parse(&bytes.to_vec()?)));
    }
    Ok(all)
}

/// The same patterns, limited to whole words.
pub(crate) fn only_words(patterns: Vec<Pattern>) -> Result<Vec<Pattern>, String> {
    let words =
        patterns.into_iter().map(|pattern| pattern.word().map_err(|error| error.to_string()));
    words.collect()
}
