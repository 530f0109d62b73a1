//! A running search for rules, over one source after another.

use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quarrier_core::parallel::planned_workers;
use quarrier_core::pipeline::Chunk;
use quarrier_core::source::{Memory, Source};
use quarrier_report::number;
use quarrier_rules::{Hits, Judge, JudgeError, Judged, Rules, ScopeName};
use quarrier_search::Finding;

use super::RuleSearch;
use super::bytes::{self, ScopeBytes};
use super::carved::carve;
use super::files::{File, Files, Group};
use super::going::Going;
use super::outcome::{RulesSearched, ScopeKind, WatchRules};
use crate::files::reach_at;
use crate::search::Running;
use crate::{Ceiling, Error, Machine, Place, Result};

/// Maximum size of a source that is read whole and searched at once.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// A compiled search for rules; see [`RuleSearch::start`].
pub struct RuleRun<'s> {
    pub(super) search: &'s RuleSearch,
    machine: &'s Machine,
    pub(super) gate: Option<Running<'s>>,
    pub(super) judge: Arc<Judge>,
}

impl<'s> RuleRun<'s> {
    pub(super) fn start(
        search: &'s RuleSearch,
        machine: &'s Machine,
        first: Option<&Place<'_>>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let gate = search.gate.as_ref().map(|gate| gate.start(machine, first, stop)).transpose()?;
        let judge = Arc::new(Judge::new(&search.rules, search.scope_time_max));
        Ok(RuleRun { search, machine, gate, judge })
    }

    /// Explains how the rules are gated, a line each: how many patterns represent how many strings, the
    /// rules that can hold without any, and the engines in use.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let all = self.search.rules.rules();
        let strings: usize = all.iter().map(|rule| rule.strings.1).sum();
        let gated: usize = all.iter().map(|rule| rule.strings.0).sum();
        let patterns = self.search.rules.patterns().len();
        let mut lines = vec![format!(
            "{}: {gated} of {} gated by {}",
            number::counted(all.len() as u64, "rule"),
            number::counted(strings as u64, "string"),
            number::counted(patterns as u64, "pattern"),
        )];
        let ungated = all
            .iter()
            .enumerate()
            .filter(|(place, rule)| !rule.is_private && self.search.rules.holds_without(*place));
        lines.extend(ungated.map(|(_, rule)| {
            let why = match rule.strings {
                (_, 0) => "has no strings",
                (0, _) => "has no string that is rare enough",
                _ => "can hold without its strings",
            };
            format!("  {}: {why}; it is evaluated in every scope", rule.name)
        }));
        lines.extend(self.gate.iter().flat_map(Running::explain));
        lines
    }

    /// The number of threads that evaluate rules.
    #[must_use]
    pub fn workers(&self) -> usize {
        planned_workers(self.search.workers)
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.search.rules
    }

    /// The engines that search for patterns, joined by `+`; empty if there are none.
    #[must_use]
    pub fn engine_name(&self) -> String {
        self.gate.as_ref().map(Running::engine_name).unwrap_or_default()
    }

    /// The device that searches for patterns.
    #[must_use]
    pub fn device_label(&self) -> String {
        self.gate.as_ref().map_or_else(|| "cpu".to_string(), Running::device_label)
    }

    /// The names of the devices; empty for the CPU.
    #[must_use]
    pub fn device_names(&self) -> &[String] {
        self.gate.as_ref().map_or(&[], Running::device_names)
    }

    /// The ceiling of a run, as in [`Running::ceiling`].
    #[must_use]
    pub fn ceiling(&self, of_source: Option<Ceiling>) -> Option<Ceiling> {
        self.gate.as_ref().map_or(of_source, |gate| gate.ceiling(of_source))
    }

    /// Evaluates the rules over one source and its files. Ends soon after `stop` becomes true.
    ///
    /// # Errors
    /// If the source fails as a whole; [`Error::Unsupported`] for a stream longer than the maximum scope.
    /// Parts that could not be read or evaluated are not an error: the outcome lists them.
    pub fn search(
        &mut self,
        place: Place<'_>,
        stop: &AtomicBool,
        watch: &mut dyn WatchRules,
    ) -> Result<RulesSearched> {
        match place {
            Place::Stream { name, reader } => {
                let image = self.whole_stream(name, reader, stop)?;
                self.search_source(Place::Local(&image), &image, stop, watch)
            }
            Place::Local(source) => self.search_source(place, source, stop, watch),
            Place::Remote(source) => self.search_source(place, source, stop, watch),
        }
    }

    fn whole_stream(
        &self,
        name: &str,
        reader: &mut (dyn Read + Send),
        stop: &AtomicBool,
    ) -> Result<Memory<Vec<u8>>> {
        let bytes_max = self.search.scope_bytes_max;
        match bytes::of_stream(reader, bytes_max, stop) {
            Ok(Some(bytes)) => Ok(Memory::new(name, bytes)),
            Ok(None) => {
                let most = number::bytes(bytes_max);
                let reason = format!(
                    "has more than {most}, and rules are evaluated over all of a stream; write it to a file \
                     first, or raise --rules-max-size"
                );
                Err(Error::Unsupported { name: name.to_string(), reason })
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                Err(Error::Stopped { name: name.to_string(), offset: 0 })
            }
            Err(error) => Err(quarrier_core::Error::io(name, "read", error).into()),
        }
    }

    fn search_source(
        &mut self,
        place: Place<'_>,
        source: &dyn Source,
        stop: &AtomicBool,
        watch: &mut dyn WatchRules,
    ) -> Result<RulesSearched> {
        let started = Instant::now();
        let mut done = RulesSearched { bytes: source.length(), ..RulesSearched::default() };
        let scopes = self.search.scopes;
        let files = match scopes.needs_files() {
            true => Files::list(source, reach_at(&place, scopes.deleted), stop)?,
            false => Files::default(),
        };
        files.notices.iter().for_each(|line| done.notice(line.clone()));
        files.damages.iter().for_each(|line| done.missing(line.clone()));
        let has_files = files.is_known && scopes.files;
        let groups = self.groups(&place, files, &mut done, stop, watch)?;
        done.files = groups.iter().map(|group| group.files.len() as u64).sum();
        let mut hits = AllHits { of_source: Hits::default(), groups };
        let small = self.find_patterns(place, source, &mut hits, &mut done, stop, watch)?;
        let mut going = Going { run: self, source, stop, done, watch };
        if !stop.load(Ordering::Relaxed) {
            // A `Break` here needs no handling, since nothing follows.
            let _ = going.judge_all(small, &hits.of_source, &hits.groups, has_files);
        }
        Ok(going.done.finished(started, stop))
    }

    /// The files that are scopes, or archives whose members are scopes, by type.
    fn groups(
        &self,
        place: &Place<'_>,
        files: Files,
        done: &mut RulesSearched,
        stop: &AtomicBool,
        watch: &mut dyn WatchRules,
    ) -> Result<Vec<Group>> {
        let scopes = self.search.scopes;
        let Files { allocated, deleted, .. } = files;
        let carved = match at_offsets(place).filter(|_| scopes.carved) {
            None => Vec::new(),
            Some(place) => {
                let others = [&allocated[..], &deleted[..]];
                let workers = self.search.workers;
                let carved = carve(place, self.machine, workers, &others, stop, watch)?;
                carved.notices.into_iter().for_each(|line| done.notice(line));
                done.could_not_read(&carved.unreadable);
                if carved.left_out > 0 {
                    done.missing(format!(
                        "{} are not evaluated, because there are too many",
                        number::counted(carved.left_out, "carved file"),
                    ));
                }
                carved.files
            }
        };
        Ok(vec![
            Group::new(ScopeKind::File, scopes.files, allocated),
            Group::new(ScopeKind::Deleted, scopes.deleted, deleted),
            Group::new(ScopeKind::Carved, scopes.carved, carved),
        ])
    }

    /// Searches for the patterns of all strings. Returns the bytes if the source is small.
    fn find_patterns(
        &mut self,
        place: Place<'_>,
        source: &dyn Source,
        hits: &mut AllHits,
        done: &mut RulesSearched,
        stop: &AtomicBool,
        watch: &mut dyn WatchRules,
    ) -> Result<Option<ScopeBytes>> {
        let length = source.length();
        if length <= SMALL_BYTES_MAX {
            let small = match bytes::of_source(source, 1, stop) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
                small => {
                    small.map_err(|error| quarrier_core::Error::io(source.name(), "read", error))?
                }
            };
            if let Some(gate) = &self.gate {
                hits.add(&gate.find_all(&small.bytes)?);
            }
            return Ok(Some(small));
        }
        let Some(gate) = &mut self.gate else { return Ok(None) };
        watch.begin(&(0..length));
        let mut take = |chunk: &Chunk<'_>, findings: &[Finding]| {
            hits.add(findings);
            watch.advance(chunk.offset + chunk.own.end as u64);
            ControlFlow::Continue(())
        };
        let searched = gate.search(place, stop, &mut take)?;
        done.could_not_read(&searched.run.unreadable);
        done.run = Some(searched.run);
        Ok(None)
    }

    /// Reads a file and evaluates its rules.
    pub(super) fn judge_file(
        &self,
        source: &dyn Source,
        file: &File,
        hits: Option<&Hits>,
        stop: &AtomicBool,
    ) -> Scope {
        let ScopeBytes { bytes, unreadable } = match bytes::of_file(source, &file.entry, stop) {
            Ok(read) => read,
            Err(reason) => return Scope::failed(reason),
        };
        let (bytes, name) = (Arc::new(bytes), file.scope_name());
        let scope = match hits {
            Some(hits) => self.judged(bytes, &name, hits, stop),
            None => self.judge_bytes(bytes, &name, stop),
        };
        Scope { unreadable, ..scope }
    }

    /// Evaluates bytes that were not searched for patterns yet.
    pub(super) fn judge_bytes(
        &self,
        bytes: Arc<Vec<u8>>,
        name: &ScopeName,
        stop: &AtomicBool,
    ) -> Scope {
        let mut hits = Hits::default();
        match self.gate.as_ref().map(|gate| gate.find_all(&bytes)) {
            None => {}
            Some(Ok(findings)) => findings.iter().for_each(|finding| hits.add(finding.pattern)),
            Some(Err(error)) => return Scope::failed(error.to_string()),
        }
        self.judged(bytes, name, &hits, stop)
    }

    /// Evaluates the rules that may hold in these bytes.
    pub(super) fn judged(
        &self,
        bytes: Arc<Vec<u8>>,
        name: &ScopeName,
        hits: &Hits,
        stop: &AtomicBool,
    ) -> Scope {
        judged(&self.search.rules, &self.judge, bytes, name, hits, stop)
    }
}

/// Evaluates the rules that may hold in these bytes.
pub(super) fn judged(
    rules: &Rules,
    judge: &Judge,
    bytes: Arc<Vec<u8>>,
    name: &ScopeName,
    hits: &Hits,
    stop: &AtomicBool,
) -> Scope {
    let candidates = rules.candidates(hits, bytes.len() as u64, Some(&bytes));
    let judged =
        (!candidates.is_empty()).then(|| judge.judge_found(&bytes, name, &candidates, hits, stop));
    Scope { bytes, unreadable: Vec::new(), judged }
}

/// The patterns found.
struct AllHits {
    of_source: Hits,
    groups: Vec<Group>,
}

impl AllHits {
    fn add(&mut self, findings: &[Finding]) {
        for finding in findings {
            self.of_source.add_at(finding.pattern, finding.offset);
            self.groups.iter_mut().for_each(|group| group.add(finding));
        }
    }
}

/// A scope after it was read.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) unreadable: Vec<Range<u64>>,
    /// `None` if no rule could hold.
    pub(super) judged: Option<std::result::Result<Judged, JudgeError>>,
}

impl Scope {
    fn failed(reason: String) -> Self {
        let judged = Some(Err(JudgeError::Failed(reason)));
        Scope { bytes: Arc::default(), unreadable: Vec::new(), judged }
    }
}

/// Copies the place, unless it is a stream.
fn at_offsets<'p>(place: &Place<'p>) -> Option<Place<'p>> {
    match place {
        Place::Local(source) => Some(Place::Local(*source)),
        Place::Remote(source) => Some(Place::Remote(*source)),
        Place::Stream { .. } => None,
    }
}
