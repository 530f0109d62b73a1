//! Finds the places where files may begin, by one search for the signatures of all formats.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use quarrier_core::pipeline::{Pipeline, Run};
use quarrier_core::region::AsData;
use quarrier_core::source::Source;
use quarrier_core::sync::lock;
use quarrier_search::{Finding, Pattern, Searcher};

use super::Carver;
use crate::error::{Error, Result};
use crate::format::Format;

/// Bytes of an in-memory source per search.
const WINDOW_BYTES: usize = 16 << 20;

/// A place where a file may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// Its offset in the source.
    pub(super) offset: u64,
    /// Its format, as an index into the carver's list.
    pub(super) format: u32,
}

/// The compiled signatures of a list of formats.
pub(super) struct Signatures {
    searcher: Arc<Searcher>,
    /// Format and offset in the file, by pattern.
    of_pattern: Vec<(u32, u64)>,
    /// The longest signature in bytes.
    length_bytes_max: u64,
}

/// The most recently compiled patterns: compiling them takes longer than carving a small source.
static RECENT: Mutex<Option<(Vec<&'static str>, Arc<Searcher>)>> = Mutex::new(None);

/// The result of a search for candidates.
pub(super) struct CandidateSearch {
    /// In order, without duplicates.
    pub(super) candidates: Vec<Candidate>,
    /// The search covered everything before this offset.
    pub(super) until: u64,
    pub(super) run: Run,
}

impl Signatures {
    pub(super) fn new(formats: &[&dyn Format]) -> Result<Self> {
        let mut patterns = Vec::new();
        let mut of_pattern = Vec::new();
        let mut length_bytes_max = 1;
        for (index, format) in formats.iter().enumerate() {
            for signature in format.signatures() {
                let bytes = signature.hex.split_whitespace().map(str::len).sum::<usize>() / 2;
                length_bytes_max = length_bytes_max.max(bytes as u64);
                patterns.push(signature.hex);
                of_pattern.push((index as u32, signature.at));
            }
        }
        Ok(Signatures { searcher: compiled(patterns)?, of_pattern, length_bytes_max })
    }

    pub(super) fn count(&self) -> usize {
        self.of_pattern.len()
    }

    pub(super) fn engine_name(&self) -> String {
        self.searcher.engine_name()
    }

    /// Searches for candidates whose signature begins in `range`, with this many workers.
    pub(super) fn look(
        &self,
        source: &dyn Source,
        range: Range<u64>,
        carver: &Carver<'_>,
        workers: usize,
    ) -> Result<CandidateSearch> {
        let mut candidates = Vec::new();
        let mut until = range.end;
        let mut sink = self.searcher.sink(|_, findings: &[Finding]| {
            for finding in findings {
                if finding.offset >= range.end {
                    break;
                }
                if candidates.len() >= carver.candidates_max() {
                    until = finding.offset;
                    return ControlFlow::Break(());
                }
                let (format, at) = self.of_pattern[finding.pattern as usize];
                if let Some(offset) = finding.offset.checked_sub(at) {
                    candidates.push(Candidate { offset, format });
                }
            }
            ControlFlow::Continue(())
        });
        let seen = range.start..range.end.saturating_add(self.length_bytes_max - 1);
        let seen = seen.start..seen.end.min(source.length());
        // SAFETY: a searcher compares bytes and makes no `str` of them, and the sink reads only the
        // findings.
        let promise = unsafe { AsData::promised() };
        let mut pipeline = Pipeline::new(source).range(seen).workers(workers).stop(carver.stop);
        pipeline = pipeline.show_changing(promise);
        if source.is_resident() {
            pipeline = pipeline.buffer_bytes(WINDOW_BYTES);
        }
        if let Some(rates) = &carver.rates {
            pipeline = pipeline.rates(rates.clone());
        }
        let run = pipeline.run(&*self.searcher, &mut sink)?;
        candidates.sort_unstable();
        candidates.dedup();
        Ok(CandidateSearch { candidates, until, run })
    }
}

/// Compiles patterns, unless they are the most recent ones.
fn compiled(hex: Vec<&'static str>) -> Result<Arc<Searcher>> {
    if let Some((recent, searcher)) = &*lock(&RECENT)
        && *recent == hex
    {
        return Ok(Arc::clone(searcher));
    }
    let patterns: std::result::Result<Vec<Pattern>, _> =
        hex.iter().map(|hex| Pattern::hex(hex)).collect();
    let searcher = Searcher::builder().build(patterns.map_err(not_a_signature)?);
    let searcher = Arc::new(searcher.map_err(not_a_signature)?);
    *lock(&RECENT) = Some((hex, Arc::clone(&searcher)));
    Ok(searcher)
}

fn not_a_signature(error: quarrier_search::Error) -> Error {
    Error::Signature(format!("a signature cannot be searched for: {error}"))
}
