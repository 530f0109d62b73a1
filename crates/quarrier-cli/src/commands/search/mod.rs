//! `quarrier search`.

pub(in crate::commands) mod ceiling;
mod device;
pub(crate) mod finder;
mod hits;
pub(crate) mod opened;
mod patterns;
pub(in crate::commands) mod progress;
pub(in crate::commands) mod remote;
mod sink;
pub(in crate::commands) mod source;
pub(in crate::commands) mod summary;

use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::Error;
use quarrier_core::pipeline::{Access, Kernel, Pipeline, Run, Sink};
use quarrier_core::region::AsData;
use quarrier_core::source::Source;
use quarrier_remote::Counters;
use quarrier_search::{EngineName, Found, Options, Sample, Searcher};

use super::machine;
use crate::args::Search;
use crate::output::rows::{self, Column, Kind, Layout, Rows, Value};
use crate::{Outcome, complain, interrupt};

use device::OnDevices;
use hits::Hits;
use remote::Client;
use sink::Tally;
use source::{Input, Named};

const FINDING_COLUMNS: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "offset", kind: Kind::Unsigned },
    Column { name: "length", kind: Kind::Unsigned },
    Column { name: "pattern", kind: Kind::Text },
    Column { name: "name", kind: Kind::Text },
];

const COUNT_COLUMNS: &[Column] = &[
    Column { name: "pattern", kind: Kind::Text },
    Column { name: "name", kind: Kind::Text },
    Column { name: "count", kind: Kind::Unsigned },
];

/// What one source's search gave.
struct Searched {
    name: String,
    length_bytes: u64,
    run: Run,
    hits: Hits,
    range: Range<u64>,
    /// None for what cannot or should not be read again: streams, remote sources.
    source: Option<Box<dyn Source>>,
    /// What a remote source cost.
    counters: Option<Counters>,
}

/// Runs the command.
pub(crate) fn run(search: &Search) -> Outcome {
    let stop = interrupt::watch();
    match Session::new(search, &stop) {
        Ok(session) => session.run(),
        Err(message) => {
            complain(&message);
            Outcome::Failed
        }
    }
}

/// Everything that the sources of one command share.
struct Session<'s> {
    search: &'s Search,
    stop: &'s AtomicBool,
    searcher: Arc<Searcher>,
    on_devices: Option<OnDevices>,
    /// Devices of which was told that they failed.
    lost_told: usize,
    named: Vec<Named>,
    client: Client,
    /// The buffer size where findings are many and none was asked for.
    dense_buffer_bytes: Option<usize>,
    tally: Tally,
    build_seconds: f64,
    outcome: Option<Outcome>,
}

impl<'s> Session<'s> {
    fn new(search: &'s Search, stop: &'s Arc<AtomicBool>) -> Result<Self, String> {
        let started = std::time::Instant::now();
        let patterns = patterns::collect(&search.patterns)?;
        let named = source::expand(&search.sources);
        refuse_overwriting(&[&search.stats, &search.report], &named)?;
        let client = Client::new(search, stop);
        let options = Options {
            ignore_case: search.ignore_case,
            utf16: search.utf16,
            regex_length_bytes_max: search.regex_length_bytes_max,
        };
        let mut builder = Searcher::builder()
            .options(options)
            .engine(search.engine)
            .aligned(search.aligned_bytes)
            .context(search.context_bytes);
        let sample = named
            .first()
            .filter(|first| first.is_seekable() && search.engine == EngineName::Auto)
            .and_then(|first| first.open(search.direct, &client).ok())
            .and_then(|first| match first {
                Input::Source(source) => Some((Sample::take(&*source), source.length())),
                Input::Remote(_) | Input::Stream(..) => None,
            });
        let (sample, length) = sample.map_or((None, 0), |(sample, length)| (Some(sample), length));
        if let Some(sample) = &sample {
            builder = builder.sample(sample.clone());
        }
        let searcher = builder.build(patterns).map_err(|error| error.to_string())?;
        let searcher = Arc::new(searcher);
        let on_devices = device::choose(search, &searcher, sample.as_ref(), length)?;
        let dense_buffer_bytes = sample.and_then(|sample| searcher.buffer_bytes_max(&sample));
        if search.explain {
            searcher.choices().iter().for_each(|choice| complain(&choice.to_string()));
            if let Some(on) = &on_devices {
                let (found, all) = (on.searcher.needles(), searcher.needle_count());
                complain(&format!("{}: {found} of {all} on {}", on.label, on.names.join(", ")));
            }
        }
        let tally = Tally::new(searcher.patterns().len(), search.max_count);
        Ok(Session {
            search,
            stop,
            searcher,
            on_devices,
            lost_told: 0,
            named,
            client,
            dense_buffer_bytes,
            tally,
            build_seconds: started.elapsed().as_secs_f64(),
            outcome: None,
        })
    }

    fn run(mut self) -> Outcome {
        let mut rows: Option<Box<dyn Rows>> = None;
        let mut done = Vec::new();
        let mut is_read = true;
        for named in std::mem::take(&mut self.named) {
            if self.tally.is_full() || self.stop.load(Ordering::Relaxed) {
                break;
            }
            match self.open_and_search(&named, &mut rows) {
                Ok(searched) => done.push(searched),
                Err(Ended::Output(error)) if is_closed_pipe(&error) => {
                    is_read = false;
                    break;
                }
                Err(Ended::Output(error)) => return broken_output(&error),
                Err(Ended::Source(message)) => {
                    complain(&message);
                    // What was given up because of Ctrl-C did not fail.
                    let is_stopped = self.stop.load(Ordering::Relaxed);
                    self.worsen(if is_stopped { Outcome::Interrupted } else { Outcome::Failed });
                }
            }
        }
        if let (Some(rows), true) = (&mut rows, is_read) {
            match self.write_counts(&mut **rows, !done.is_empty()).and_then(|()| rows.finish()) {
                Err(error) if is_closed_pipe(&error) => is_read = false,
                Err(error) => return broken_output(&error),
                Ok(()) => {}
            }
        }
        self.close(&done, is_read)
    }

    fn open_and_search(
        &mut self,
        named: &Named,
        rows: &mut Option<Box<dyn Rows>>,
    ) -> Result<Searched, Ended> {
        let input = named.open(self.search.direct, &self.client).map_err(Ended::Source)?;
        // Nothing is written, not even a header, before there is something to search.
        let rows = match rows {
            Some(rows) => rows,
            None => rows.insert(self.open_rows().map_err(Ended::Output)?),
        };
        self.search_one(input, &mut **rows)
    }

    fn open_rows(&self) -> io::Result<Box<dyn Rows>> {
        let (layout, columns) = if self.search.count {
            (Layout::Counts, COUNT_COLUMNS)
        } else {
            (Layout::Findings, FINDING_COLUMNS)
        };
        rows::to_stdout(self.search.format, layout, columns)
    }

    /// Searches one source and says what could not be read.
    fn search_one(
        &mut self,
        input: Input,
        rows: &mut (dyn Rows + 'static),
    ) -> Result<Searched, Ended> {
        let name = input.name().to_string();
        let range = self.range_in(&input)?;
        let mut hits = Hits::new(range.clone());
        let mut progress = progress::Progress::new(&name, range.clone(), self.search.quiet);
        let shown = if self.search.count { None } else { Some(rows) };
        let dense_buffer_bytes = self.dense_buffer_bytes;
        let (search, stop, searcher, tally) =
            (self.search, self.stop, &*self.searcher, &mut self.tally);
        let on = self.on_devices.as_ref();
        let mut output = sink::Output {
            name: &name,
            patterns: searcher.patterns(),
            context_bytes: search.context_bytes,
            rows: shown,
            error: None,
        };
        let mut sink = searcher.sink(|chunk, findings| {
            progress.advance(chunk);
            sink::take(tally, &mut hits, &mut output, chunk, findings)
        });
        let memory = |bytes: usize| on.map(|on| on.searcher.buffer(bytes));
        let length = range.end.saturating_sub(range.start);
        let kernel = on.map_or(Either::Cpu(searcher), Either::Devices);
        let run = match input {
            Input::Source(source) => {
                let mut pipeline = pipeline(search, stop, &*source).range(range.clone());
                if let (None, Some(bytes)) = (search.buffer_bytes, dense_buffer_bytes) {
                    pipeline = pipeline.buffer_bytes(bytes);
                }
                pipeline = kernel.prepare(search, pipeline, Some(&*source), length);
                if let Some(rates) = machine::rates(&*source, &range) {
                    pipeline = pipeline.rates(rates);
                }
                if let (true, Ok(plan)) = (search.explain, pipeline.plan(searcher.need())) {
                    complain(&format!("{name}: {plan}"));
                }
                let run = kernel.run(&pipeline.memory(&memory), &mut sink);
                run.map(|run| (run, Some(source), None))
            }
            Input::Remote(source) => {
                source.announce(range.clone());
                let pipeline = pipeline(search, stop, &source).range(range.clone());
                let pipeline = kernel.prepare(search, pipeline, Some(&source), length);
                let run = kernel.run(&pipeline.memory(&memory), &mut sink);
                run.map(|run| (run, None, Some(source.counters())))
            }
            Input::Stream(name, mut reader) => {
                let nothing = quarrier_core::source::Memory::new("-", Vec::new());
                let pipeline =
                    kernel.prepare(search, pipeline(search, stop, &nothing), None, length);
                kernel
                    .run_stream(&pipeline.memory(&memory), &name, &mut reader, &mut sink)
                    .map(|run| (run, None, None))
            }
        };
        let too_long = sink.too_long();
        drop(sink);
        progress.clear();
        if let Some(error) = output.error {
            return Err(Ended::Output(error));
        }
        let (run, source, counters) = run.map_err(|error| Ended::Source(error.to_string()))?;
        if let Some(error) = too_long {
            return Err(Ended::Source(format!("{name}: {error}")));
        }
        self.tell_end(&name, &run, range.end);
        self.tell_lost();
        let length_bytes = run.position;
        Ok(Searched { name, length_bytes, range, run, hits, source, counters })
    }

    /// Says which devices failed since it was asked last.
    fn tell_lost(&mut self) {
        if let Some(on) = &self.on_devices {
            self.lost_told = on.tell_lost(self.lost_told);
        }
    }

    /// The wished range within a source.
    fn range_in(&self, input: &Input) -> Result<Range<u64>, Ended> {
        let wish = self.search.range.clone();
        let is_whole = wish == (0..u64::MAX);
        let source: &dyn Source = match input {
            Input::Stream(..) if is_whole => return Ok(wish),
            Input::Stream(name, _) => {
                return Err(Ended::Source(format!("{name}: --range needs a source with offsets")));
            }
            Input::Source(source) => &**source,
            Input::Remote(source) => source,
        };
        let length = source.length();
        if wish.start > length {
            return Err(Ended::Source(format!(
                "{}: the range begins at byte {} but the source has {length} bytes",
                source.name(),
                wish.start
            )));
        }
        Ok(wish.start..wish.end.min(length))
    }

    /// Says, after the findings, what was not read and where the run stopped.
    fn tell_end(&mut self, name: &str, run: &Run, end: u64) {
        for range in &run.unreadable {
            complain(&format!("{name}: bytes {}..{} could not be read", range.start, range.end));
        }
        if !run.unreadable.is_empty() {
            self.worsen(Outcome::Incomplete);
        }
        if self.stop.load(Ordering::Relaxed) && run.position < end {
            complain(&format!(
                "{name}: interrupted at byte {}; the findings before it are complete",
                run.position
            ));
            self.worsen(Outcome::Interrupted);
        }
    }

    fn write_counts(&self, rows: &mut dyn Rows, is_searched: bool) -> io::Result<()> {
        if !self.search.count || !is_searched {
            return Ok(());
        }
        for (pattern, &count) in self.searcher.patterns().iter().zip(&self.tally.counts) {
            let name = pattern.name.as_deref().map_or(Value::Missing, Value::Text);
            let values = [Value::Text(&pattern.text), name, Value::Unsigned(count)];
            rows.row(&values, rows::Excerpt::default())?;
        }
        Ok(())
    }

    /// Whether anybody will see the share of the ceiling, which takes time to measure.
    fn wants_account(&self) -> bool {
        self.search.stats.is_some() || self.search.report.is_some() || self.shows_account()
    }

    fn shows_account(&self) -> bool {
        !self.search.quiet && io::IsTerminal::is_terminal(&io::stderr())
    }

    /// Statistics, report and account; then the outcome.
    fn close(mut self, done: &[Searched], is_read: bool) -> Outcome {
        if let Some(warning) = self.client.cache_warning() {
            complain(&warning);
        }
        // The largest source stands for all: many small ones would take longer to measure
        // than to search.
        let ceiling = done
            .iter()
            .max_by_key(|searched| searched.run.bytes)
            .filter(|_| self.wants_account() && !self.stop.load(Ordering::Relaxed))
            .and_then(|s| ceiling::find(s.source.as_deref()?, &s.run.plan, s.range.clone()));
        let ceiling = match &self.on_devices {
            Some(on) if self.wants_account() => on.ceiling(ceiling),
            _ => ceiling,
        };
        let summary = summary::Summary::new(&self, done, ceiling);
        if let Some(path) = &self.search.stats
            && let Err(message) = summary.write_stats(path)
        {
            complain(&message);
            self.worsen(Outcome::Failed);
        }
        if let Some(path) = &self.search.report
            && let Err(message) = summary.write_report(path, &self, done)
        {
            complain(&message);
            self.worsen(Outcome::Failed);
        }
        if self.shows_account() {
            summary.tell();
        }
        // Who closes the pipe has seen enough.
        let found = self.tally.total > 0 || !is_read;
        self.outcome.unwrap_or(if found { Outcome::Found } else { Outcome::Nothing })
    }

    /// Keeps the worse of two outcomes: failed, then interrupted, then incomplete.
    fn worsen(&mut self, outcome: Outcome) {
        self.outcome = Some(self.outcome.map_or(outcome, |now| now.worse(outcome)));
    }
}

/// A pipeline with the wishes of the command line.
fn pipeline<'p>(search: &Search, stop: &'p AtomicBool, source: &'p dyn Source) -> Pipeline<'p> {
    // SAFETY: a searcher compares bytes, on devices copies of them, and what the sinks here show of
    // them is made byte by byte.
    let promise = unsafe { AsData::promised() };
    let mut pipeline = Pipeline::new(source)
        .show_changing(promise)
        .workers(search.workers.unwrap_or(0))
        .readers(search.readers.unwrap_or(0))
        .buffers(search.buffers.unwrap_or(0))
        .buffer_bytes(search.buffer_bytes.unwrap_or(0))
        .stop(stop);
    if let Some(access) = search.access {
        pipeline = pipeline.access(access);
    } else if search.direct && search.readers.is_none() {
        pipeline = pipeline.access(Access::Uring);
    }
    pipeline
}

/// The kernel of a run.
#[derive(Clone, Copy)]
enum Either<'k> {
    Cpu(&'k Searcher),
    Devices(&'k OnDevices),
}

impl Either<'_> {
    /// The pipeline as this kernel needs it for a source of `length` bytes.
    fn prepare<'p>(
        self,
        search: &Search,
        pipeline: Pipeline<'p>,
        source: Option<&dyn Source>,
        length: u64,
    ) -> Pipeline<'p> {
        match self {
            Either::Cpu(_) => pipeline,
            Either::Devices(on) => on.pipeline(search, pipeline, source, length),
        }
    }

    fn run(self, pipeline: &Pipeline<'_>, sink: &mut dyn Sink<Found>) -> Result<Run, Error> {
        match self {
            Either::Cpu(kernel) => pipeline.run(kernel, sink),
            Either::Devices(on) => pipeline.run(&on.searcher, sink),
        }
    }

    fn run_stream(
        self,
        pipeline: &Pipeline<'_>,
        name: &str,
        reader: &mut (dyn Read + Send),
        sink: &mut dyn Sink<Found>,
    ) -> Result<Run, Error> {
        match self {
            Either::Cpu(kernel) => pipeline.run_stream(name, reader, kernel, sink),
            Either::Devices(on) => pipeline.run_stream(name, reader, &on.searcher, sink),
        }
    }
}

/// Why a source's search ended early.
enum Ended {
    /// Nobody takes the rows.
    Output(io::Error),
    /// The source failed; the message says how.
    Source(String),
}

/// A closed pipe is success: the reader has what it wanted.
pub(in crate::commands) fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

pub(in crate::commands) fn broken_output(error: &io::Error) -> Outcome {
    complain(&format!("standard output: cannot write: {error}"));
    Outcome::Failed
}

/// Statistics and report must not replace what is read: it may be evidence.
pub(in crate::commands) fn refuse_overwriting(
    written: &[&Option<PathBuf>],
    named: &[Named],
) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &std::path::Path| {
        std::fs::metadata(path).ok().filter(|meta| meta.is_file()).map(|m| (m.dev(), m.ino()))
    };
    let read: Vec<_> = named.iter().flat_map(Named::paths).filter_map(|p| identity(&p)).collect();
    for path in written.iter().copied().flatten() {
        if identity(path).is_some_and(|id| read.contains(&id)) {
            return Err(format!("{}: is searched and would be overwritten", path.display()));
        }
    }
    Ok(())
}
