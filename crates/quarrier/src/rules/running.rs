//! A search for rules under way: one source after another.

use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::parallel::planned_workers;
use quarrier_core::pipeline::{Chunk, Run};
use quarrier_core::source::{Memory, Source};
use quarrier_core::threads::team;
use quarrier_report::number;
use quarrier_rules::{Held, Hits, Judge, Judged, Rules, ScopeName, Unjudged};
use quarrier_search::Finding;

use super::RuleSearch;
use super::bytes::{self, ScopeBytes};
use super::files::{Extents, File, Files, Whole};
use crate::search::Running;
use crate::{Ceiling, Error, Machine, Place, Result};

/// A source up to this length is read whole and searched at once.
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// Bytes of files that are judged at a time: they are held until their turn comes.
const BATCH_BYTES_MAX: u64 = 256 << 20;
/// Files that are judged at a time.
const BATCH_FILES_MAX: usize = 256;
/// Bytes of all files of a source, at most, as a multiple of its length, or of a gibibyte: damaged file
/// systems may say that a million files share the same clusters.
const FILES_TIMES_MAX: u64 = 4;
/// Notices of a source that are kept; more are counted.
const NOTICES_MAX: usize = 50;

/// What a scope is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// All bytes of the source.
    Source,
    /// A file in it.
    File,
}

/// A scope in which rules hold.
#[derive(Clone, Copy)]
pub struct JudgedScope<'s> {
    /// What it is.
    pub kind: ScopeKind,
    /// `source`, or the path of the file; of several file systems with `#N` of the partition before it.
    pub name: &'s str,
    /// Its bytes.
    pub bytes: &'s [u8],
    /// The rules that hold, in the order of their declaration.
    pub held: &'s [Held],
    extents: Option<&'s Extents>,
}

impl JudgedScope<'_> {
    /// Where the byte at `offset` of the scope lies in the source; `None` if it lies nowhere as it is: in a
    /// hole, or in a file that is packed, or that a record of the file system holds.
    #[must_use]
    pub fn source_offset(&self, offset: u64) -> Option<u64> {
        match self.extents {
            Some(extents) => extents.at(offset),
            None => Some(offset),
        }
    }

    /// The bytes found, at most `bytes_max` of them.
    #[must_use]
    pub fn found(&self, offset: u64, length: u64, bytes_max: usize) -> &[u8] {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes_max);
        &self.bytes[start..start.saturating_add(length).min(self.bytes.len())]
    }
}

/// Sees the search of one source go on. A closure that takes scopes is one, too.
pub trait WatchRules: Send {
    /// The search for patterns begins, over `range`.
    fn begin(&mut self, range: &Range<u64>) {
        let _ = range;
    }

    /// The search for patterns has come to `offset`.
    fn advance(&mut self, offset: u64) {
        let _ = offset;
    }

    /// Rules hold in a scope. `Break` ends the search of this source.
    fn take(&mut self, scope: &JudgedScope<'_>) -> ControlFlow<()>;
}

impl<F> WatchRules for F
where
    F: FnMut(&JudgedScope<'_>) -> ControlFlow<()> + Send,
{
    fn take(&mut self, scope: &JudgedScope<'_>) -> ControlFlow<()> {
        self(scope)
    }
}

/// The outcome of one source.
#[derive(Debug, Default)]
pub struct RulesSearched {
    /// The bytes of the source.
    pub bytes: u64,
    /// The run of the search for patterns; `None` for a small source, and if no rule has patterns.
    pub run: Option<Run>,
    /// Files of its file systems.
    pub files: u64,
    /// Scopes whose rules were judged, because some could hold there.
    pub scopes: u64,
    /// What people should know, a line each, without the name of the source.
    pub notices: Vec<String>,
    /// Whether a rule may hold that is not reported: scopes were not judged, or files may be missing.
    pub is_incomplete: bool,
    /// Ranges that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
    /// Whether the stop flag ended it early.
    pub is_stopped: bool,
    /// The time it took.
    pub elapsed: Duration,
    notices_left_out: u64,
}

impl RulesSearched {
    fn notice(&mut self, line: String) {
        match self.notices.len() < NOTICES_MAX {
            true => self.notices.push(line),
            false => self.notices_left_out += 1,
        }
    }

    /// A notice of what is missing.
    fn missing(&mut self, line: String) {
        self.is_incomplete = true;
        self.notice(line);
    }

    fn could_not_read(&mut self, ranges: &[Range<u64>]) {
        self.unreadable.extend_from_slice(ranges);
    }

    fn finished(mut self, started: Instant, stop: &AtomicBool) -> Self {
        if self.notices_left_out > 0 {
            self.notices.push(format!("{} more notices are left out", self.notices_left_out));
        }
        self.unreadable.sort_unstable_by_key(|range| (range.start, range.end));
        self.unreadable.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            last.end = if joins { last.end.max(next.end) } else { last.end };
            joins
        });
        self.is_incomplete |= !self.unreadable.is_empty();
        self.is_stopped = stop.load(Ordering::Relaxed);
        self.elapsed = started.elapsed();
        self
    }
}

/// A compiled search for rules; see [`RuleSearch::start`].
pub struct RuleRun<'s> {
    search: &'s RuleSearch,
    gate: Option<Running<'s>>,
    judge: Judge,
}

impl<'s> RuleRun<'s> {
    pub(super) fn start(
        search: &'s RuleSearch,
        machine: &'s Machine,
        first: Option<&Place<'_>>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let gate = search.gate.as_ref().map(|gate| gate.start(machine, first, stop)).transpose()?;
        let judge = Judge::new(&search.rules, search.scope_time_max);
        Ok(RuleRun { search, gate, judge })
    }

    /// How the rules are gated, a line each: how many patterns stand for how many strings, the rules that
    /// can hold without any, and the engines that search.
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
            format!("  {}: {why}; it is judged in every scope", rule.name)
        }));
        lines.extend(self.gate.iter().flat_map(Running::explain));
        lines
    }

    /// The engines that search for patterns, joined by `+`; empty if there are none.
    #[must_use]
    pub fn engine_name(&self) -> String {
        self.gate.as_ref().map(Running::engine_name).unwrap_or_default()
    }

    /// Where the search for patterns runs.
    #[must_use]
    pub fn device_label(&self) -> String {
        self.gate.as_ref().map_or_else(|| "cpu".to_string(), Running::device_label)
    }

    /// The names of the devices; empty for the CPU.
    #[must_use]
    pub fn device_names(&self) -> &[String] {
        self.gate.as_ref().map_or(&[], Running::device_names)
    }

    /// The ceiling of a run, as [`Running::ceiling`].
    #[must_use]
    pub fn ceiling(&self, of_source: Option<Ceiling>) -> Option<Ceiling> {
        self.gate.as_ref().map_or(of_source, |gate| gate.ceiling(of_source))
    }

    /// Judges the rules in one source and its files. Ends soon after `stop` becomes true.
    ///
    /// # Errors
    /// When the source fails as a whole; [`Error::Unsupported`] for a stream that is longer than a scope may
    /// be. What could not be read or judged in parts is no error: the outcome says it.
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
                    "has more than {most}, and rules are judged over all of a stream; write it to a file \
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
        let files = Files::list(source, stop)?;
        files.notices.iter().for_each(|line| done.notice(line.clone()));
        files.damages.iter().for_each(|line| done.missing(line.clone()));
        done.files = files.files.len() as u64;
        let whole = Whole::of(&files.files);
        let of_files = whole.hits(files.files.len());
        let mut hits = AllHits { whole, of_source: Hits::default(), of_files };
        let small = self.find_patterns(place, source, &mut hits, &mut done, stop, watch)?;
        let mut going = Going { run: self, source, stop, done, watch };
        if !stop.load(Ordering::Relaxed)
            && going.judge_source(small, &hits.of_source, files.is_known).is_continue()
        {
            going.judge_files(&files.files, hits.of_files);
        }
        Ok(going.done.finished(started, stop))
    }

    /// Searches for the patterns of all strings. Returns the bytes of a small source.
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
            let small = match bytes::of_source(source, stop) {
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

    fn judge_file(
        &self,
        source: &dyn Source,
        file: &File,
        hits: Option<&Hits>,
        stop: &AtomicBool,
    ) -> Scope {
        let read = match bytes::of_file(source, &file.entry, stop) {
            Ok(read) => read,
            Err(reason) => return Scope::failed(reason),
        };
        let name = ScopeName::of(&file.path);
        match (hits, &self.gate) {
            (Some(hits), _) => self.judged(read, &name, hits, stop),
            (None, None) => self.judged(read, &name, &Hits::default(), stop),
            (None, Some(gate)) => match gate.find_all(&read.bytes) {
                Ok(findings) => {
                    let mut hits = Hits::default();
                    findings.iter().for_each(|finding| hits.add(finding.pattern));
                    self.judged(read, &name, &hits, stop)
                }
                Err(error) => Scope::failed(error.to_string()),
            },
        }
    }

    /// Judges bytes by the rules that may hold there.
    fn judged(&self, read: ScopeBytes, name: &ScopeName, hits: &Hits, stop: &AtomicBool) -> Scope {
        let ScopeBytes { bytes, unreadable } = read;
        let candidates = self.search.rules.candidates(hits, bytes.len() as u64, Some(&bytes));
        let bytes = Arc::new(bytes);
        let judged =
            (!candidates.is_empty()).then(|| self.judge.judge(&bytes, name, &candidates, stop));
        Scope { bytes, unreadable, judged }
    }
}

/// The scopes of one source, after the search for patterns.
struct Going<'g, 's> {
    run: &'g RuleRun<'s>,
    source: &'g dyn Source,
    stop: &'g AtomicBool,
    done: RulesSearched,
    watch: &'g mut dyn WatchRules,
}

impl Going<'_, '_> {
    /// Judges the source as a scope; whether to go on.
    fn judge_source(
        &mut self,
        small: Option<ScopeBytes>,
        hits: &Hits,
        has_files: bool,
    ) -> ControlFlow<()> {
        let search = self.run.search;
        let (length, most) = (self.source.length(), search.scope_bytes_max);
        let known = small.as_ref().map(|small| &*small.bytes);
        if search.rules.candidates(hits, length, known).is_empty() {
            small.iter().for_each(|small| self.done.could_not_read(&small.unreadable));
            return ControlFlow::Continue(());
        }
        if length > most {
            let line = format!(
                "rules are not judged over all of the source, which has {}, more than {}; raise \
                 --rules-max-size",
                number::bytes(length),
                number::bytes(most),
            );
            match has_files {
                true => self.done.notice(format!("{line}; those of its files are")),
                false => self.done.missing(line),
            }
            return ControlFlow::Continue(());
        }
        let read = match small.map_or_else(|| bytes::of_source(self.source, self.stop), Ok) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return ControlFlow::Break(());
            }
            Err(error) => {
                let line = format!("rules are not judged over all of the source: {error}");
                self.done.missing(line);
                return ControlFlow::Continue(());
            }
        };
        let name = ScopeName::of(self.source.name());
        let scope = self.run.judged(read, &name, hits, self.stop);
        self.hand_over("source", None, &scope)
    }

    /// Judges each file in which a rule may hold.
    fn judge_files(&mut self, files: &[File], hits: Vec<Option<Hits>>) {
        let rules = &self.run.search.rules;
        let bytes_max = self.source.length().max(1 << 30).saturating_mul(FILES_TIMES_MAX);
        let (mut batch, mut batch_bytes, mut all_bytes) = (Vec::new(), 0u64, 0u64);
        for (file, hits) in files.iter().zip(hits) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let size = file.entry.size;
            // The hits of a file in several pieces are found when it is read.
            let all = hits.is_none().then(Hits::all);
            let known = hits.as_ref().or(all.as_ref());
            if known.is_some_and(|hits| rules.candidates(hits, size, None).is_empty()) {
                continue;
            }
            if let Some(why) = self.refusal(file, all_bytes, bytes_max) {
                self.done.missing(format!("{}: {why}", file.path));
                continue;
            }
            let is_full = batch_bytes + size > BATCH_BYTES_MAX || batch.len() >= BATCH_FILES_MAX;
            if is_full && !batch.is_empty() {
                if self.judge_batch(&batch).is_break() {
                    return;
                }
                batch.clear();
                batch_bytes = 0;
            }
            batch_bytes += size;
            all_bytes = all_bytes.saturating_add(size);
            batch.push((file, hits));
        }
        // Nothing follows that could be left out.
        let _ = self.judge_batch(&batch);
    }

    /// Why a file is not judged, if it is not.
    fn refusal(&self, file: &File, all_bytes: u64, bytes_max: u64) -> Option<String> {
        let (size, most) = (file.entry.size, self.run.search.scope_bytes_max);
        if size > most {
            let (size, most) = (number::bytes(size), number::bytes(most));
            return Some(format!(
                "its rules are not judged: it has {size}, more than {most}; raise --rules-max-size"
            ));
        }
        (all_bytes.saturating_add(size) > bytes_max).then(|| {
            format!(
                "its rules are not judged: the files have more than {} together, which is \
                 {FILES_TIMES_MAX} times what the source has",
                number::bytes(bytes_max)
            )
        })
    }

    /// Judges files on all threads, and hands them over in order; whether to go on.
    fn judge_batch(&mut self, batch: &[(&File, Option<Hits>)]) -> ControlFlow<()> {
        let (run, source, stop) = (self.run, self.source, self.stop);
        let next = AtomicUsize::new(0);
        let workers = planned_workers(run.search.workers).clamp(1, batch.len().max(1));
        let work = |_| {
            let mut mine = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some((file, hits)) = batch.get(place) else { return mine };
                if !stop.load(Ordering::Relaxed) {
                    mine.push((place, run.judge_file(source, file, hits.as_ref(), stop)));
                }
            }
        };
        let mut judged: Vec<(usize, Scope)> =
            team(0..workers, work).into_iter().flatten().collect();
        judged.sort_by_key(|(place, _)| *place);
        for (place, scope) in judged {
            let (file, _) = &batch[place];
            let extents = Extents::of(&file.entry);
            self.hand_over(&file.path, Some(&extents), &scope)?;
        }
        ControlFlow::Continue(())
    }

    /// Passes on what holds in a scope, and notes what is missing; whether to go on.
    fn hand_over(
        &mut self,
        name: &str,
        extents: Option<&Extents>,
        scope: &Scope,
    ) -> ControlFlow<()> {
        self.done.could_not_read(&scope.unreadable);
        let judged = match &scope.judged {
            None => return ControlFlow::Continue(()),
            Some(Ok(judged)) => judged,
            Some(Err(Unjudged::Stopped)) => return ControlFlow::Break(()),
            Some(Err(Unjudged::Late)) => {
                let seconds = self.run.search.scope_time_max.as_secs_f64();
                self.done.missing(format!(
                    "{name}: rules take more than {seconds} s here, so none of them is reported; raise \
                     --rules-timeout, or leave out slow ones"
                ));
                return ControlFlow::Continue(());
            }
            Some(Err(Unjudged::Failed(reason))) => {
                self.done.missing(format!("{name}: its rules are not judged: {reason}"));
                return ControlFlow::Continue(());
            }
        };
        self.done.scopes += 1;
        self.note_overfull(name, judged);
        if judged.held.is_empty() {
            return ControlFlow::Continue(());
        }
        let kind = if extents.is_some() { ScopeKind::File } else { ScopeKind::Source };
        let held = &*judged.held;
        self.watch.take(&JudgedScope { kind, name, bytes: &scope.bytes, held, extents })
    }

    /// Notes strings with more matches than count.
    fn note_overfull(&mut self, name: &str, judged: &Judged) {
        let rules: &Rules = &self.run.search.rules;
        for (rule, string) in &judged.overfull {
            let holds = judged.held.iter().any(|held| held.rule == *rule);
            let rule = &rules.rules()[*rule];
            let line = format!(
                "{name}: {string} of rule {} is there more than {} times; the first of them count",
                rule.name,
                rules.matches_max(),
            );
            if rule.is_of_places {
                self.done.missing(line);
            } else if holds {
                self.done.notice(line);
            }
        }
    }
}

/// The patterns found.
struct AllHits {
    whole: Whole,
    of_source: Hits,
    /// None for a file that is searched when it is read.
    of_files: Vec<Option<Hits>>,
}

impl AllHits {
    fn add(&mut self, findings: &[Finding]) {
        for finding in findings {
            self.of_source.add(finding.pattern);
            let end = finding.offset.saturating_add(u64::from(finding.length));
            let file = self.whole.file(finding.offset..end);
            if let Some(Some(hits)) = file.and_then(|file| self.of_files.get_mut(file)) {
                hits.add(finding.pattern);
            }
        }
    }
}

/// A scope after it was read.
struct Scope {
    bytes: Arc<Vec<u8>>,
    unreadable: Vec<Range<u64>>,
    /// None if no rule could hold.
    judged: Option<std::result::Result<Judged, Unjudged>>,
}

impl Scope {
    fn failed(reason: String) -> Self {
        let judged = Some(Err(Unjudged::Failed(reason)));
        Scope { bytes: Arc::default(), unreadable: Vec::new(), judged }
    }
}
