//! A running search: the compiled set over one source after another.

use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::pipeline::{Access, Chunk, Kernel, Pipeline, Plan, Run, Sink};
use quarrier_core::region::AsData;
use quarrier_core::source::Memory;
use quarrier_search::{Choice, ChunkFindings, EngineName, Finding, RegexSeam, Sample, Searcher};

use super::device::{self, OnDevices};
use super::{Part, Search, SmallFiles, features};
use crate::files::{Unallocated, within};
use crate::source::only_in_order;
use crate::{Ceiling, Error, Machine, Place, Result};

/// A compiled search; see [`Search::start`].
pub struct Running<'s> {
    search: &'s Search,
    machine: &'s Machine,
    searcher: Arc<Searcher>,
    on_devices: Option<OnDevices>,
    /// The buffer size for many findings, if none was requested.
    dense_buffer_bytes: Option<usize>,
    findings: u64,
}

/// The outcome of searching one source.
#[derive(Debug)]
pub struct Searched {
    /// The offsets at which findings may start; it ends at `u64::MAX` for a stream, whose length is
    /// unknown.
    pub range: Range<u64>,
    /// The run: bytes, time, load of stages, plan, unreadable ranges.
    pub run: Run,
}

/// Observes the search of one source. A closure that takes findings implements it.
pub trait Watch: Send {
    /// The run begins, over `range`.
    fn begin(&mut self, range: &Range<u64>) {
        let _ = range;
    }

    /// Whether to pass the plan before the run, and not only in its result.
    fn wants_plan(&self) -> bool {
        false
    }

    /// The plan of the run, if [`wants_plan`](Self::wants_plan) requested it.
    fn plan(&mut self, plan: &Plan) {
        let _ = plan;
    }

    /// A chunk was searched; `findings` are in order, and may be empty. `Break` ends the search of this
    /// source.
    fn take(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) -> ControlFlow<()>;
}

impl<F> Watch for F
where
    F: FnMut(&Chunk<'_>, &[Finding]) -> ControlFlow<()> + Send,
{
    fn take(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) -> ControlFlow<()> {
        self(chunk, findings)
    }
}

impl<'s> Running<'s> {
    pub(super) fn start(
        search: &'s Search,
        machine: &'s Machine,
        first: Option<&Place<'_>>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let local = match first {
            Some(Place::Local(source)) if search.engine == EngineName::Auto => Some(*source),
            _ => None,
        };
        let sample = local.map(Sample::take);
        let length = local.map_or(0, |source| {
            let span = search.span();
            span.end.min(source.length()).saturating_sub(span.start)
        });
        let mut builder = Searcher::builder()
            .options(search.options)
            .engine(search.engine)
            .aligned(search.aligned_bytes)
            .context(search.context_bytes_seen())
            .stop(stop);
        if let Some(sample) = &sample {
            builder = builder.sample(sample.clone());
        }
        let searcher = Arc::new(builder.build(search.patterns.clone())?);
        let on_devices =
            device::choose(search, machine, &searcher, (sample.as_ref(), length), stop)?;
        let dense_buffer_bytes = sample.and_then(|sample| searcher.buffer_bytes_max(&sample));
        Ok(Running { search, machine, searcher, on_devices, dense_buffer_bytes, findings: 0 })
    }

    /// The number of findings in all sources so far.
    pub fn findings(&self) -> u64 {
        self.findings
    }

    /// Whether the requested number of findings has been reached.
    pub fn is_full(&self) -> bool {
        self.findings >= self.search.findings_max
    }

    /// Explains the run, a line each: the engine of each pattern, the gate of each regex, and the
    /// devices.
    pub fn explain(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.searcher.choices().iter().map(Choice::to_string).collect();
        lines.extend(self.searcher.regex_gates().into_iter().map(|gate| {
            let regex = self.searcher.patterns()[gate.pattern as usize].label();
            match gate.runs {
                Some(runs) => format!("  {regex}: gated by {runs}"),
                None => format!("  {regex}: not gated, read by its automaton"),
            }
        }));
        if let Some(on) = &self.on_devices {
            let (found, all) = (on.searcher.needles(), self.searcher.needle_count());
            lines.push(format!("{}: {found} of {all} on {}", on.label, on.names.join(", ")));
        }
        lines
    }

    /// The engines in use, joined by `+`.
    pub fn engine_name(&self) -> String {
        match &self.on_devices {
            Some(on) => on.engine_name(),
            None => self.searcher.engine_name(),
        }
    }

    /// The device or devices in use: `cpu`, `gpu:0`, or several joined by `+`.
    pub fn device_label(&self) -> String {
        self.on_devices.as_ref().map_or("cpu".to_string(), |on| on.label.clone())
    }

    /// The names of the devices; empty for the CPU.
    pub fn device_names(&self) -> &[String] {
        self.on_devices.as_ref().map_or(&[], |on| &on.names)
    }

    /// The devices that failed, and why. The CPU did their part: no finding is missing.
    pub fn lost_devices(&self) -> Vec<String> {
        self.on_devices.as_ref().map_or_else(Vec::new, |on| on.searcher.lost())
    }

    /// The ceiling of a run: that of its source, or the transfer rate to the devices if that is lower.
    pub fn ceiling(&self, of_source: Option<Ceiling>) -> Option<Ceiling> {
        match &self.on_devices {
            Some(on) => on.ceiling(self.machine, of_source),
            None => of_source,
        }
    }

    /// Searches one source. Ends soon after `stop` becomes true; [`Run::position`] is where.
    ///
    /// # Errors
    /// If the source fails as a whole, the range begins past its end, or a regex matches too many
    /// bytes; those of [`Unallocated::read`] if only unallocated bytes are searched. Unreadable parts
    /// are not an error: the run lists them.
    pub fn search(
        &mut self,
        place: Place<'_>,
        stop: &AtomicBool,
        watch: &mut dyn Watch,
    ) -> Result<Searched> {
        let unallocated = match self.search.unallocated {
            true => Some(Unallocated::read(&place, false, stop)?),
            false => None,
        };
        self.search_among(place, unallocated.as_ref(), stop, watch)
    }

    /// Like [`search`](Self::search), with the unallocated bytes of the source if only those are
    /// searched.
    ///
    /// # Errors
    /// Those of [`search`](Self::search).
    pub fn search_among(
        &mut self,
        place: Place<'_>,
        unallocated: Option<&Unallocated>,
        stop: &AtomicBool,
        watch: &mut dyn Watch,
    ) -> Result<Searched> {
        let within = (None, unallocated);
        self.search_within(place, within, stop, watch).map(|(searched, _)| searched)
    }

    /// Searches one part of a source. Findings other than regex matches are those of the whole source. Regex
    /// matches are correct if the seams before the part confirm it: see [`RegexSeam`].
    ///
    /// # Errors
    /// Those of [`search`](Self::search), and [`Error::Unsupported`] for a stream.
    pub fn search_part(
        &mut self,
        place: Place<'_>,
        part: &Part,
        stop: &AtomicBool,
        watch: &mut dyn Watch,
    ) -> Result<(Searched, Vec<RegexSeam>)> {
        match place {
            Place::Stream { name, .. } => Err(only_in_order(name.to_string())),
            // A part shows the bytes around it, but unallocated ranges show none.
            place if self.search.unallocated => {
                let reason = "its unallocated bytes are searched as a whole, not part by part";
                Err(Error::Unsupported { name: place.name().to_string(), reason: reason.into() })
            }
            place => self.search_within(place, (Some(part), None), stop, watch),
        }
    }

    fn search_within(
        &mut self,
        place: Place<'_>,
        (part, unallocated): (Option<&Part>, Option<&Unallocated>),
        stop: &AtomicBool,
        watch: &mut dyn Watch,
    ) -> Result<(Searched, Vec<RegexSeam>)> {
        let name = place.name().to_string();
        let (seen, range) = match part {
            None => self.ranges_of(&Part::alone(self.search.span()), &place)?,
            Some(part) => self.ranges_of(part, &place)?,
        };
        let ranges = unallocated.map(|unallocated| within(unallocated.ranges(), &seen));
        // With gaps, the source itself determines how much to fetch ahead.
        if ranges.is_none() {
            place.announce(&self.around(&range, &seen));
        }
        let on = self.on_devices.as_ref();
        let kernel = on.map_or(Agent::Cpu(&self.searcher), Agent::Devices);
        let memory = |bytes: usize| on.map(|on| on.searcher.buffer(bytes));
        let nothing = Memory::new("-", Vec::new());
        let mut pipeline = self.pipeline(&place, &nothing, (&seen, &range), stop).memory(&memory);
        if let Some(ranges) = &ranges {
            pipeline = pipeline.ranges(ranges);
        }
        watch.begin(&range);
        if watch.wants_plan()
            && let Ok(plan) = pipeline.plan(self.searcher.need())
        {
            watch.plan(&plan);
        }
        let (search, mut kept) = (self.search, Vec::new());
        let mut findings = self.findings;
        let ends = part.map_or(&[][..], |part| &part.ends);
        let mut sink = self.searcher.sink_after(ends, |chunk, found| {
            search.hand_over(chunk, found, &mut kept, &mut findings, watch)
        });
        let run = match place {
            Place::Local(_) | Place::Remote(_) => kernel.run(&pipeline, &mut sink),
            Place::Stream { name, reader } => kernel.run_stream(&pipeline, name, reader, &mut sink),
        };
        let (too_long, seams) = (sink.too_long(), sink.seams());
        drop(sink);
        self.findings = findings;
        let mut run = run?;
        if ranges.is_some() && !run.stopped {
            // Allocated bytes may follow the last range.
            run.position = run.position.max(range.end);
        }
        match too_long {
            Some(error) if !self.is_full() => Err(Error::TooLong { name, error }),
            _ => Ok((Searched { range, run }, seams)),
        }
    }

    /// All findings in bytes that are in memory, in order, regardless of the request's range, lists and
    /// validators.
    pub(crate) fn find_all(&self, bytes: &[u8]) -> Result<Vec<Finding>> {
        self.searcher.find_all(bytes).map_err(|too_long| {
            let label = self.search.patterns[too_long.pattern as usize].label();
            let offset = too_long.offset;
            Error::Request(format!("{label}: matches more bytes than it may, at byte {offset}"))
        })
    }

    /// The searcher of many small files ahead; `None` if the request sets how to read sources, or uses
    /// a device.
    pub fn ahead(&self) -> Option<SmallFiles> {
        let workers = self.search.planning.workers;
        self.searcher_ahead().map(|searcher| SmallFiles::new(searcher, workers))
    }

    /// The searcher for small files that are read whole, under the conditions of [`ahead`](Self::ahead).
    pub(crate) fn searcher_ahead(&self) -> Option<Arc<Searcher>> {
        let (search, planning) = (self.search, &self.search.planning);
        let is_whole = search.range == (0..u64::MAX) && search.starts == (0..u64::MAX);
        let is_planned = planning.access.is_some()
            || planning.direct
            || planning.readers + planning.buffers + planning.buffer_bytes > 0;
        let is_of_files = self.search.unallocated;
        (is_whole && !is_planned && !is_of_files && self.on_devices.is_none())
            .then(|| Arc::clone(&self.searcher))
    }

    /// Counts the findings of a small file that was searched ahead, and passes them to `watch` as if it
    /// had been searched now.
    pub fn take_ahead(&mut self, data: &[u8], findings: &[Finding], watch: &mut dyn Watch) {
        watch.begin(&(0..data.len() as u64));
        // The result tells whether to continue with the file, but it has already been searched.
        let _ = self.search.hand_over(
            &Chunk::whole(data),
            findings,
            &mut Vec::new(),
            &mut self.findings,
            watch,
        );
    }

    /// The bytes that the search of a part may see, and the range where its findings start.
    fn ranges_of(&self, part: &Part, place: &Place<'_>) -> Result<(Range<u64>, Range<u64>)> {
        let seen = place.range(&self.search.range)?;
        let start = part.owned.start.clamp(seen.start, seen.end);
        let owned = start..part.owned.end.min(seen.end).max(start);
        Ok((seen, owned))
    }

    /// The bytes that a search of `range` reads, including those around it that `seen` allows.
    fn around(&self, range: &Range<u64>, seen: &Range<u64>) -> Range<u64> {
        let need = self.searcher.need();
        let start = range.start.saturating_sub(need.before_bytes as u64).max(seen.start);
        start..range.end.saturating_add(need.after_bytes as u64).min(seen.end).max(start)
    }

    /// The requested pipeline, completed with the rates of source and machine. It works on `range`, and
    /// shows bytes of `seen` around it.
    fn pipeline<'p, 'a: 'p>(
        &self,
        place: &Place<'a>,
        nothing: &'p Memory<Vec<u8>>,
        (seen, range): (&Range<u64>, &Range<u64>),
        stop: &'p AtomicBool,
    ) -> Pipeline<'p> {
        let planning = &self.search.planning;
        // SAFETY: a searcher compares bytes, on devices copies of them, and makes no `str` of them.
        // A watcher gets chunks, and may show the bytes of a match one by one.
        let promise = unsafe { AsData::promised() };
        let mut pipeline = Pipeline::new(place.source().unwrap_or(nothing))
            .show_changing(promise)
            .workers(planning.workers)
            .readers(planning.readers)
            .buffers(planning.buffers)
            .buffer_bytes(planning.buffer_bytes)
            .stop(stop);
        if let Some(access) = planning.access {
            pipeline = pipeline.access(access);
        } else if planning.direct && planning.readers == 0 {
            pipeline = pipeline.access(Access::Uring);
        }
        if !matches!(place, Place::Stream { .. }) {
            pipeline = pipeline.range(seen.clone()).owning(range.clone());
        }
        if let (Place::Local(_), 0, Some(bytes)) =
            (place, planning.buffer_bytes, self.dense_buffer_bytes)
        {
            pipeline = pipeline.buffer_bytes(bytes);
        }
        if let Some(on) = &self.on_devices {
            let length = range.end.saturating_sub(range.start);
            pipeline = on.pipeline(planning, pipeline, place.source(), length);
        }
        if let Place::Local(source) = place
            && let Some(rates) = self.machine.rates(*source, range)
        {
            pipeline = pipeline.rates(rates);
        }
        pipeline
    }
}

impl Search {
    /// The number of bytes around findings that the watcher or the lists see.
    fn context_bytes_seen(&self) -> usize {
        let of_judges = if self.judges.is_empty() { 0 } else { features::CONTEXT_BYTES };
        self.context_bytes.max(self.lists.context_bytes()).max(of_judges)
    }

    /// The finding, cut to its valid prefix.
    fn judged(&self, chunk: &Chunk<'_>, finding: &Finding) -> Option<Finding> {
        match self.judges.get(finding.pattern as usize) {
            Some(Some(judge)) => features::judged(*judge, chunk, finding),
            _ => Some(*finding),
        }
    }

    /// Passes the findings of a chunk that the request wants to `watch`, and counts them in `findings`.
    fn hand_over(
        &self,
        chunk: &Chunk<'_>,
        found: &[Finding],
        kept: &mut Vec<Finding>,
        findings: &mut u64,
        watch: &mut dyn Watch,
    ) -> ControlFlow<()> {
        let from = found.partition_point(|f| f.offset < self.starts.start);
        let to = found.partition_point(|f| f.offset < self.starts.end).max(from);
        let mut started = &found[from..to];
        let valid: Vec<Finding>;
        if !self.judges.is_empty() {
            valid = started.iter().filter_map(|finding| self.judged(chunk, finding)).collect();
            started = &valid;
        }
        if !self.lists.is_empty() {
            kept.clear();
            self.lists.keep(&self.patterns, chunk, started, kept);
            started = kept;
        }
        let room = usize::try_from(self.findings_max - *findings).unwrap_or(usize::MAX);
        let wanted = &started[..started.len().min(room)];
        *findings += wanted.len() as u64;
        watch.take(chunk, wanted)?;
        // Findings are in order, so none of the rest can start in the range.
        match to < found.len() || *findings >= self.findings_max {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The kernel that searches.
#[derive(Clone, Copy)]
enum Agent<'k> {
    Cpu(&'k Searcher),
    Devices(&'k OnDevices),
}

impl Agent<'_> {
    fn run(
        self,
        pipeline: &Pipeline<'_>,
        sink: &mut dyn Sink<ChunkFindings>,
    ) -> quarrier_core::Result<Run> {
        match self {
            Agent::Cpu(kernel) => pipeline.run(kernel, sink),
            Agent::Devices(on) => pipeline.run(&on.searcher, sink),
        }
    }

    fn run_stream(
        self,
        pipeline: &Pipeline<'_>,
        name: &str,
        reader: &mut (dyn Read + Send),
        sink: &mut dyn Sink<ChunkFindings>,
    ) -> quarrier_core::Result<Run> {
        match self {
            Agent::Cpu(kernel) => pipeline.run_stream(name, reader, kernel, sink),
            Agent::Devices(on) => pipeline.run_stream(name, reader, &on.searcher, sink),
        }
    }
}
