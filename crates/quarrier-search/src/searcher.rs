//! A compiled set of patterns: a kernel for the pipeline, and the sink that belongs to it.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use quarrier_core::pipeline::{Chunk, Emitter, Kernel, Need, Sink};

use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::gpu::Rest;
use crate::multi::{BLOCK_BYTES, Haystack};
use crate::pattern::{Needles, Options, PATTERNS_MAX, Pattern, too_many};
use crate::regex::{
    BoundedRegex, CONTEXT_BYTES, Cursor, Gate, Passage, RegexSeam, Stitcher, TooLong, compile,
};
use crate::sample::Sample;
use crate::strategy::{Choice, EngineName, Literals, choose};
use crate::wanted::Wanted;

/// Number of findings of a chunk to hold before flushing them in parts.
const FINDINGS_HELD: usize = 1 << 20;

/// The index in `regexes` of a pattern that is not a regex.
const NO_REGEX: u32 = u32::MAX;

/// A compiled set of patterns. One value serves any number of threads.
pub struct Searcher {
    patterns: Vec<Pattern>,
    needles: Needles,
    literals: Literals,
    regexes: Vec<BoundedRegex>,
    /// For each pattern its index in `regexes`.
    places: Vec<u32>,
    gate: Option<Gate>,
    choices: Vec<Choice>,
    aligned_bytes: u64,
    context_bytes: usize,
}

/// Settings for compiling a set.
#[derive(Debug, Clone)]
pub struct Builder<'s> {
    options: Options,
    engine: EngineName,
    sample: Option<Sample>,
    aligned_bytes: u64,
    context_bytes: usize,
    wanted: Wanted<'s>,
}

impl Default for Builder<'_> {
    fn default() -> Self {
        Builder {
            options: Options::default(),
            engine: EngineName::Auto,
            sample: None,
            aligned_bytes: 1,
            context_bytes: 0,
            wanted: Wanted::default(),
        }
    }
}

impl<'s> Builder<'s> {
    /// Sets the options that determine the meaning of the patterns.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the engine for literals and hex patterns.
    #[must_use]
    pub fn engine(mut self, engine: EngineName) -> Self {
        self.engine = engine;
        self
    }

    /// Sets a sample of the data; it affects the speed of the search, never its result.
    #[must_use]
    pub fn sample(mut self, sample: Sample) -> Self {
        self.sample = Some(sample);
        self
    }

    /// Restricts findings to offsets that are multiples of `bytes`.
    #[must_use]
    pub fn aligned(mut self, bytes: u64) -> Self {
        self.aligned_bytes = bytes.max(1);
        self
    }

    /// Sets the number of bytes around findings that the sink needs.
    #[must_use]
    pub fn context(mut self, bytes: usize) -> Self {
        self.context_bytes = bytes;
        self
    }

    /// Ends the compilation soon after `stop` becomes true. The current pattern is still compiled,
    /// which takes a second at most.
    #[must_use]
    pub fn stop(mut self, stop: &'s AtomicBool) -> Self {
        self.wanted = Wanted::until(stop);
        self
    }

    /// Compiles the set.
    ///
    /// # Errors
    /// [`Error::Set`] for an empty set, one of more than [`PATTERNS_MAX`] patterns, and regexes
    /// that take more memory than [`Options::regex_memory_bytes_max`]; [`Error::Pattern`] for a
    /// regex that does not compile or whose every match is longer than allowed; [`Error::Engine`]
    /// for an engine that cannot serve the set; [`Error::Stopped`] if it was [stopped](Self::stop).
    pub fn build(self, patterns: Vec<Pattern>) -> Result<Searcher> {
        if patterns.is_empty() {
            return Err(Error::Set("no pattern was given".to_string()));
        }
        if patterns.len() > PATTERNS_MAX {
            return Err(too_many());
        }
        let needles = Needles::new(&patterns, self.options)?;
        let wanted = self.wanted;
        wanted.check()?;
        let mut regexes = compile(&patterns, self.options, wanted)?;
        let sample = self.sample.unwrap_or_default();
        let (literals, mut choices) = choose(&needles, self.engine, &sample, wanted)?;
        let gate = if self.engine == EngineName::Naive {
            None
        } else {
            Gate::new(&mut regexes, &sample, wanted)?
        };
        choices.extend(regex_choices(&regexes, gate.as_ref()));
        let mut places = vec![NO_REGEX; patterns.len()];
        for (place, regex) in regexes.iter().enumerate() {
            places[regex.pattern as usize] = place as u32;
        }
        Ok(Searcher {
            patterns,
            needles,
            literals,
            regexes,
            places,
            gate,
            choices,
            aligned_bytes: self.aligned_bytes,
            context_bytes: self.context_bytes,
        })
    }
}

/// The prefilter before the automaton of a regex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegexGate {
    /// The pattern's index in the set.
    pub pattern: u32,
    /// Runs of bytes, with their distance from the start of a match; every match contains one of them. `None` if no
    /// run is rare in the sample: then the automaton reads all of the data.
    pub runs: Option<String>,
}

/// The part of the work on a chunk that remains for the CPU.
pub(crate) enum CpuPart<'l> {
    /// All of it.
    Everything,
    /// Regexes and these needles; a device has found the others.
    Remainder(Option<&'l Rest>),
}

/// The findings of a chunk: in order, and complete up to a position.
#[derive(Debug, Default)]
pub struct ChunkFindings {
    findings: Vec<Finding>,
    /// All findings that start before this offset are included.
    complete_until: u64,
    /// Findings, in order, that cannot be passed on yet.
    held: Vec<Finding>,
    /// For each regex at most one match that is too long; provisional until stitched, like the
    /// matches.
    too_long: Vec<TooLong>,
}

impl Searcher {
    /// Starts compiling a set.
    pub fn builder<'s>() -> Builder<'s> {
        Builder::default()
    }

    /// The patterns, in the order given.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Returns which engine serves which patterns, and why.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// Returns the prefilter of each regex, in the order of the patterns.
    pub fn regex_gates(&self) -> Vec<RegexGate> {
        let runs = |index| self.gate.as_ref().and_then(|gate| gate.description(index));
        let gate = |(index, regex): (usize, &BoundedRegex)| RegexGate {
            pattern: regex.pattern,
            runs: runs(index).map(str::to_string),
        };
        self.regexes.iter().enumerate().map(gate).collect()
    }

    /// Returns the names of the engines in use, joined by `+`.
    pub fn engine_name(&self) -> String {
        let names: Vec<_> = self.choices.iter().map(|choice| choice.engine).collect();
        names.join("+")
    }

    /// Returns the largest buffer, in bytes, whose findings can be held without flushing, for which
    /// workers would wait for each other. It is estimated on `sample`; `None` if even the largest
    /// buffers fit.
    pub fn buffer_bytes_max(&self, sample: &Sample) -> Option<usize> {
        let bytes = sample.bytes().len();
        let found = match self.literals {
            Literals::Naive => return None,
            _ => self.find_all(sample.bytes()).map_or(0, |findings| findings.len()),
        };
        let holds = (FINDINGS_HELD / 2).saturating_mul(bytes) / found.max(1);
        (holds < 16 << 20).then(|| holds.next_power_of_two().max(64 << 10))
    }

    /// Returns all findings in `text`, in order. For use without a pipeline.
    ///
    /// # Errors
    /// A regex match that is longer than allowed.
    pub fn find_all(&self, text: &[u8]) -> std::result::Result<Vec<Finding>, TooLong> {
        let chunk = Chunk::whole(text);
        let mut emit = Emitter::collecting();
        self.work(&chunk, &mut emit);
        let mut all = Vec::new();
        let mut sink = self.sink(|_, findings| {
            all.extend_from_slice(findings);
            ControlFlow::Continue(())
        });
        // The result does not matter, since this is the only chunk.
        let _ = sink.take(&chunk, &mut emit.into_output());
        match sink.first_too_long() {
            Some(too_long) => Err(too_long),
            None => {
                drop(sink);
                Ok(all)
            }
        }
    }

    /// Makes a sink that corrects regex matches at the seams of chunks and passes findings on.
    pub fn sink<F>(&self, take: F) -> FindingSink<'_, F>
    where
        F: FnMut(&Chunk<'_>, &[Finding]) -> ControlFlow<()> + Send,
    {
        self.sink_after(&[], take)
    }

    /// As [`sink`](Self::sink), for a part of a source. For each regex with a match before the
    /// part, `ends` has the index of its pattern and the end of its last match. No match in the
    /// part begins before that end.
    pub fn sink_after<F>(&self, ends: &[(u32, u64)], take: F) -> FindingSink<'_, F>
    where
        F: FnMut(&Chunk<'_>, &[Finding]) -> ControlFlow<()> + Send,
    {
        let stitcher = Stitcher::after(&self.regexes, ends);
        FindingSink { searcher: self, stitcher, of_each: Vec::new(), take, ending: None }
    }

    pub(crate) fn needles(&self) -> &Needles {
        &self.needles
    }

    /// Returns the number of needles: one or more for each pattern that is not a regex.
    pub fn needle_count(&self) -> usize {
        self.needles.len()
    }

    /// Returns the greatest distance from a finding's start that an engine examines.
    fn reach(&self, left: &CpuPart<'_>) -> usize {
        let gate = self.gate.as_ref().map_or(0, |gate| gate.reach);
        gate.max(match left {
            CpuPart::Everything => self.literals.reach(),
            CpuPart::Remainder(rest) => rest.map_or(0, |rest| rest.engine.anchor_offset_max()),
        })
    }

    /// Adds the literals with an anchor in `positions`.
    fn scan_literals(
        &self,
        left: &CpuPart<'_>,
        hay: &Haystack<'_>,
        positions: std::ops::Range<usize>,
        found: &mut Vec<Finding>,
    ) {
        match left {
            CpuPart::Everything => self.literals.scan(&self.needles, hay, positions, found),
            CpuPart::Remainder(Some(rest)) => {
                rest.engine.scan(&rest.needles, hay, positions, found)
            }
            CpuPart::Remainder(None) => {}
        }
    }

    /// Sorts the findings and drops those that do not count. Regex matches are dropped only after
    /// stitching, since one that does not count may still block another.
    fn settle(&self, findings: &mut Vec<Finding>, unreadable: &[std::ops::Range<u64>]) {
        if self.regexes.is_empty() {
            self.keep_reported(findings, unreadable);
        }
        sort_nearly_sorted(findings);
        if self.needles.has_twins() {
            findings.dedup();
        }
    }

    /// Replaces the needles from index `first` on by the findings that they represent.
    fn confirm(&self, hay: &Haystack<'_>, first: usize, findings: &mut Vec<Finding>) {
        if !self.needles.has_checks() {
            return;
        }
        let mut kept = first;
        for index in first..findings.len() {
            if let Some(finding) = self.needles.confirm(findings[index], hay.text, hay.offset) {
                findings[kept] = finding;
                kept += 1;
            }
        }
        findings.truncate(kept);
    }

    fn keep_reported(&self, findings: &mut Vec<Finding>, unreadable: &[std::ops::Range<u64>]) {
        if self.aligned_bytes > 1 {
            findings.retain(|f| f.offset.is_multiple_of(self.aligned_bytes));
        }
        if !unreadable.is_empty() {
            findings.retain(|f| {
                let end = f.offset + u64::from(f.length);
                unreadable.iter().all(|bad| end <= bad.start || f.offset >= bad.end)
            });
        }
    }
}

/// Sorts findings that are mostly in order: needles with anchors at different offsets arrive
/// slightly out of order. Insertion sort is then ten times as fast as a full sort; if it has to
/// move too many findings, a full sort follows.
fn sort_nearly_sorted(findings: &mut [Finding]) {
    let mut moves_left = 4 * findings.len();
    for index in 1..findings.len() {
        let finding = findings[index];
        if findings[index - 1].offset < finding.offset {
            continue;
        }
        let mut at = index;
        while at > 0 && findings[at - 1] > finding {
            if moves_left == 0 {
                findings[at] = finding;
                findings.sort_unstable();
                return;
            }
            findings[at] = findings[at - 1];
            at -= 1;
            moves_left -= 1;
        }
        findings[at] = finding;
    }
}

/// Describes, for display, how the regexes are searched for.
fn regex_choices(regexes: &[BoundedRegex], gate: Option<&Gate>) -> Vec<Choice> {
    let gated = gate.map_or(0, Gate::count);
    let choice = |patterns: usize, engine, reason: &str| {
        (patterns > 0).then(|| Choice { patterns, engine, reason: reason.to_string() })
    };
    let why_gated = "every match contains one of a few rare runs of bytes, which filters look for";
    let why_alone = "no rare run of bytes in every match, so each regex is searched on its own";
    let engine = gate.map_or("regex-packed", Gate::engine);
    [choice(gated, engine, why_gated), choice(regexes.len() - gated, "regex", why_alone)]
        .into_iter()
        .flatten()
        .collect()
}

impl Kernel for Searcher {
    type Output = ChunkFindings;

    fn need(&self) -> Need {
        let literal = self.needles.after_bytes();
        let regex = self.regexes.iter().map(|regex| regex.length_bytes_max).max();
        let zeros_match = self.needles.iter().any(|needle| needle.matches_zeros())
            || !self.regexes.iter().all(BoundedRegex::may_skip_zeros);
        Need {
            before_bytes: self
                .context_bytes
                .max(self.needles.before_bytes())
                .max(if regex.is_some() { CONTEXT_BYTES } else { 0 }),
            after_bytes: self.context_bytes
                + literal.max(regex.map_or(0, |bytes| bytes + 1 + CONTEXT_BYTES)),
            skip_zeros: !zeros_match,
        }
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, ChunkFindings>) {
        self.work_on(chunk, emit, &CpuPart::Everything, std::iter::empty());
    }
}

impl Searcher {
    /// Does the rest of the work on a chunk whose findings `given` are known.
    pub(crate) fn work_on(
        &self,
        chunk: &Chunk<'_>,
        emit: &mut Emitter<'_, ChunkFindings>,
        left: &CpuPart<'_>,
        given: impl Iterator<Item = Finding>,
    ) {
        let hay = Haystack { text: chunk.data, own: chunk.own.clone(), offset: chunk.offset };
        let mut alone = Alone::new(&self.regexes, self.gate.as_ref(), hay.own.start);
        let mut passage = self.gate.as_ref().map(|gate| gate.start(hay.own.start));
        let reach = self.reach(left);
        // Anchors may start after the last owned position.
        let end = (hay.own.end + reach).min(hay.text.len());
        let mut at = hay.own.start;
        let mut found = std::mem::take(emit.output());
        found.findings.extend(given);
        self.confirm(&hay, 0, &mut found.findings);
        if matches!(left, CpuPart::Remainder(None)) && self.regexes.is_empty() {
            at = end;
        }
        while at < end {
            let to = (at + BLOCK_BYTES).min(end);
            let before = found.findings.len();
            self.scan_literals(left, &hay, at..to, &mut found.findings);
            self.confirm(&hay, before, &mut found.findings);
            let regex_end = to.min(hay.own.end);
            let (all, too_long) = (&mut found.findings, &mut found.too_long);
            if let (Some(gate), Some(passage)) = (&self.gate, &mut passage) {
                gate.scan(&self.regexes, &hay, at..to, to == end, passage, all, too_long);
                for (index, from) in gate.gives_up(passage) {
                    alone.take(index, from.max(hay.own.start));
                }
            }
            alone.walk(&hay, regex_end, all, too_long);
            if let (Some(gate), Some(passage)) = (&self.gate, &mut passage) {
                alone.give_back(gate, passage, regex_end);
            }
            at = to;
            if found.findings.len() >= FINDINGS_HELD && emit.can_flush() {
                if emit.is_closed() {
                    break;
                }
                // All needles that start before this position have been found.
                let complete = hay.offset + to.saturating_sub(reach).min(hay.own.end) as u64;
                self.settle(&mut found.findings, chunk.unreadable);
                let split = found.findings.partition_point(|f| f.offset < complete);
                found.held.extend_from_slice(&found.findings[split..]);
                found.findings.truncate(split);
                found.complete_until = complete;
                let held = std::mem::take(&mut found.held);
                let (now, later) = found.too_long.iter().partition(|t| t.offset < complete);
                found.too_long = now;
                let held_too_long: Vec<TooLong> = later;
                *emit.output() = found;
                emit.flush(chunk);
                found = std::mem::take(emit.output());
                found.findings.clear();
                found.findings.extend_from_slice(&held);
                found.too_long = held_too_long;
            }
        }
        self.settle(&mut found.findings, chunk.unreadable);
        found.complete_until = hay.offset + hay.own.end as u64;
        *emit.output() = found;
    }
}

/// The regexes of a chunk that run without a gate.
struct Alone<'s> {
    regexes: &'s [BoundedRegex],
    cursors: Vec<Cursor<'s>>,
    /// Gated regexes that run without the gate, and for how many more blocks.
    guests: Vec<(usize, usize, Cursor<'s>)>,
}

/// Number of blocks that a regex runs without the gate after too many failed attempts.
const BLOCKS_ALONE: usize = 16;

impl<'s> Alone<'s> {
    fn new(regexes: &'s [BoundedRegex], gate: Option<&Gate>, from: usize) -> Self {
        let is_alone = |index: usize| !gate.is_some_and(|gate| gate.holds(index));
        let cursors = regexes.iter().enumerate().filter(|(index, _)| is_alone(*index));
        let cursors = cursors.map(|(_, regex)| Cursor::new(regex, from)).collect();
        Alone { regexes, cursors, guests: Vec::new() }
    }

    fn take(&mut self, index: usize, from: usize) {
        let cursor = Cursor::new(&self.regexes[index], from);
        self.guests.push((index, BLOCKS_ALONE, cursor));
    }

    /// Adds the matches that begin before `end`.
    fn walk(
        &mut self,
        hay: &Haystack<'_>,
        end: usize,
        found: &mut Vec<Finding>,
        too_long: &mut Vec<TooLong>,
    ) {
        for cursor in
            self.cursors.iter_mut().chain(self.guests.iter_mut().map(|guest| &mut guest.2))
        {
            too_long.extend(cursor.walk(hay.text, hay.offset, end, found));
        }
    }

    /// Returns regexes to the gate once all their matches before `end` are known.
    fn give_back(&mut self, gate: &Gate, passage: &mut Passage, end: usize) {
        self.guests.retain_mut(|(index, blocks, cursor)| {
            *blocks = blocks.saturating_sub(1);
            let (0, Some(from)) = (*blocks, cursor.from()) else { return true };
            gate.takes_back(*index, from.max(end), passage);
            false
        });
    }
}

/// Passes findings on in order; see [`Searcher::sink`].
pub struct FindingSink<'s, F> {
    searcher: &'s Searcher,
    stitcher: Stitcher,
    /// The matches of each regex in a chunk; kept to reuse the memory.
    of_each: Vec<Vec<Finding>>,
    take: F,
    /// The index of the regex with a match that is too long.
    ending: Option<usize>,
}

impl<F> FindingSink<'_, F> {
    /// Returns the match that ended the run because it was too long. Call it after the run.
    pub fn too_long(&self) -> Option<Error> {
        self.first_too_long().map(|TooLong { pattern, offset }| {
            let index = pattern as usize;
            let most = self.searcher.regexes.iter().find(|r| r.pattern == pattern);
            Error::Pattern {
                pattern: self.searcher.patterns[index].text.clone(),
                reason: format!(
                    "matches more than {} bytes at offset {offset}; bound it, or raise \
                     --regex-max-length",
                    most.map_or(0, |regex| regex.length_bytes_max)
                ),
            }
        })
    }

    /// Returns the first and last match of each regex. Call it after the run over a part of a
    /// source.
    pub fn seams(&self) -> Vec<RegexSeam> {
        self.stitcher.seams(&self.searcher.regexes)
    }

    fn first_too_long(&self) -> Option<TooLong> {
        let index = self.ending?;
        let offset = self.stitcher.too_long(index)?;
        Some(TooLong { pattern: self.searcher.regexes[index].pattern, offset })
    }

    /// Returns the matches of each regex, in order.
    fn sort_out(&mut self, findings: &[Finding]) -> Vec<Vec<Finding>> {
        let mut of_each = std::mem::take(&mut self.of_each);
        of_each.resize(self.searcher.regexes.len(), Vec::new());
        of_each.iter_mut().for_each(Vec::clear);
        for finding in findings {
            let place = self.searcher.places[finding.pattern as usize];
            if place != NO_REGEX {
                of_each[place as usize].push(*finding);
            }
        }
        of_each
    }

    /// Replaces the regex findings by the final ones, given the chunks before, and drops those
    /// after a match that is too long.
    fn mend(&mut self, chunk: &Chunk<'_>, found: &mut ChunkFindings) {
        let mut ending: Option<(u64, usize)> = None;
        let mut is_changed = false;
        let mut of_each = self.sort_out(&found.findings);
        for (index, regex) in self.searcher.regexes.iter().enumerate() {
            let matches = &mut of_each[index];
            let before = (matches.first().copied(), matches.len());
            let guess = match found.too_long.is_empty() {
                true => None,
                false => found.too_long.iter().copied().find(|t| t.pattern == regex.pattern),
            };
            let until = found.complete_until;
            let counts_until = self.stitcher.mend(index, regex, chunk, until, guess, matches);
            if let Some(counts_until) = counts_until
                && ending.is_none_or(|(least, _)| counts_until < least)
            {
                ending = Some((counts_until, index));
            }
            is_changed |= (matches.first().copied(), matches.len()) != before;
        }
        if is_changed {
            found.findings.retain(|f| self.searcher.places[f.pattern as usize] == NO_REGEX);
            of_each.iter().for_each(|matches| found.findings.extend_from_slice(matches));
        }
        self.of_each = of_each;
        found.too_long.clear();
        if is_changed {
            found.findings.sort_unstable();
        }
        self.searcher.keep_reported(&mut found.findings, chunk.unreadable);
        if let Some((counts_until, index)) = ending {
            found.findings.retain(|f| f.offset < counts_until);
            self.ending = Some(index);
        }
    }
}

impl<F> Sink<ChunkFindings> for FindingSink<'_, F>
where
    F: FnMut(&Chunk<'_>, &[Finding]) -> ControlFlow<()> + Send,
{
    fn take(&mut self, chunk: &Chunk<'_>, found: &mut ChunkFindings) -> ControlFlow<()> {
        if let Some(index) = self.ending {
            // The search has ended, but the first match that is too long is not known yet.
            let is_open = self.stitcher.follow(index, chunk, found.complete_until);
            found.findings.clear();
            found.too_long.clear();
            let flow = (self.take)(chunk, &found.findings);
            return if is_open { flow } else { ControlFlow::Break(()) };
        }
        if !self.searcher.regexes.is_empty() {
            self.mend(chunk, found);
        }
        let flow = (self.take)(chunk, &found.findings);
        found.findings.clear();
        match self.ending {
            // The sink stopped before the match that is too long.
            Some(_) if flow.is_break() => self.ending = None,
            Some(index) if !self.stitcher.is_open(index) => return ControlFlow::Break(()),
            _ => {}
        }
        flow
    }
}
