//! `quarrier search`.

mod ceiling;
mod hits;
mod patterns;
mod progress;
mod sink;
mod source;
mod summary;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::pipeline::{Access, Pipeline, Run};
use quarrier_core::source::Source;
use quarrier_search::{EngineName, Options, Sample, Searcher};

use crate::args::Search;
use crate::output::rows::{self, Column, Kind, Layout, Rows, Value};
use crate::{Outcome, complain, interrupt};

use hits::Hits;
use sink::Tally;
use source::Input;

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
    ceiling: Option<ceiling::Ceiling>,
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
    searcher: Searcher,
    inputs: Vec<Input>,
    tally: Tally,
    build_seconds: f64,
    outcome: Option<Outcome>,
}

impl<'s> Session<'s> {
    fn new(search: &'s Search, stop: &'s AtomicBool) -> Result<Self, String> {
        let started = std::time::Instant::now();
        let patterns = patterns::collect(&search.patterns)?;
        let (mut inputs, mut failures) = (Vec::new(), Vec::new());
        for input in source::expand(&search.sources, search.direct) {
            match input {
                Ok(input) => inputs.push(input),
                Err(message) => failures.push(message),
            }
        }
        // Where nothing is left to search, the last failure is the answer to the command.
        let answer = if inputs.is_empty() { failures.pop() } else { None };
        let failed = !failures.is_empty();
        failures.iter().for_each(|message| complain(message));
        if inputs.is_empty() {
            return Err(answer.unwrap_or_else(|| "no source was given".to_string()));
        }
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
        if let (EngineName::Auto, Some(Input::Source(first))) = (search.engine, inputs.first()) {
            builder = builder.sample(Sample::take(&**first));
        }
        let searcher = builder.build(patterns).map_err(|error| error.to_string())?;
        if search.explain {
            searcher.choices().iter().for_each(|choice| complain(&choice.to_string()));
        }
        let tally = Tally::new(searcher.patterns().len(), search.max_count);
        Ok(Session {
            search,
            stop,
            searcher,
            inputs,
            tally,
            build_seconds: started.elapsed().as_secs_f64(),
            outcome: failed.then_some(Outcome::Failed),
        })
    }

    fn run(mut self) -> Outcome {
        let (layout, columns) = if self.search.count {
            (Layout::Counts, COUNT_COLUMNS)
        } else {
            (Layout::Findings, FINDING_COLUMNS)
        };
        let mut rows = match rows::to_stdout(self.search.format, layout, columns) {
            Ok(rows) => rows,
            Err(error) => return broken_output(&error),
        };
        let mut done = Vec::new();
        for input in std::mem::take(&mut self.inputs) {
            if self.tally.is_full() || self.stop.load(Ordering::Relaxed) {
                break;
            }
            match self.search_one(input, &mut *rows) {
                Ok(searched) => done.push(searched),
                Err(Ended::Output(error)) => return broken_output(&error),
                Err(Ended::Source(message)) => {
                    complain(&message);
                    self.worsen(Outcome::Failed);
                }
            }
        }
        let written = self.write_counts(&mut *rows).and_then(|()| rows.finish());
        if let Err(error) = written {
            return broken_output(&error);
        }
        self.close(&done)
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
        let (search, stop, searcher, tally) =
            (self.search, self.stop, &self.searcher, &mut self.tally);
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
        let run = match input {
            Input::Source(source) => {
                let pipeline = pipeline(search, stop, &*source).range(range.clone());
                let run = pipeline.run(searcher, &mut sink);
                run.map(|run| (run, Some(source)))
            }
            Input::Stream => {
                let nothing = quarrier_core::source::Memory::new("-", Vec::new());
                pipeline(search, stop, &nothing)
                    .run_stream("-", &mut io::stdin(), searcher, &mut sink)
                    .map(|run| (run, None))
            }
        };
        let too_long = sink.too_long();
        drop(sink);
        progress.clear();
        if let Some(error) = output.error {
            return Err(Ended::Output(error));
        }
        let (run, source) = run.map_err(|error| Ended::Source(error.to_string()))?;
        if let Some(error) = too_long {
            return Err(Ended::Source(format!("{name}: {error}")));
        }
        self.tell_end(&name, &run, range.end);
        let ceiling = source
            .filter(|_| self.wants_account())
            .and_then(|source| ceiling::measure(&*source, &run, range));
        let length_bytes = run.position;
        Ok(Searched { name, length_bytes, run, hits, ceiling })
    }

    /// The wished range within a source.
    fn range_in(&self, input: &Input) -> Result<Range<u64>, Ended> {
        let wish = self.search.range.clone();
        let is_whole = wish == (0..u64::MAX);
        match input {
            Input::Stream if is_whole => Ok(wish),
            Input::Stream => Err(Ended::Source("-: --range needs a source with offsets".into())),
            Input::Source(source) => {
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
        }
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

    fn write_counts(&self, rows: &mut dyn Rows) -> io::Result<()> {
        if !self.search.count {
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
    fn close(mut self, done: &[Searched]) -> Outcome {
        let summary = summary::Summary::new(&self, done);
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
        let found = if self.tally.total > 0 { Outcome::Found } else { Outcome::Nothing };
        self.outcome.unwrap_or(found)
    }

    /// Keeps the worse of two outcomes: failed, then interrupted, then incomplete.
    fn worsen(&mut self, outcome: Outcome) {
        let rank = |outcome: Outcome| match outcome {
            Outcome::Failed => 3,
            Outcome::Interrupted => 2,
            Outcome::Incomplete => 1,
            Outcome::Found | Outcome::Nothing => 0,
        };
        if self.outcome.is_none_or(|now| rank(outcome) > rank(now)) {
            self.outcome = Some(outcome);
        }
    }
}

/// A pipeline with the wishes of the command line.
fn pipeline<'p>(search: &Search, stop: &'p AtomicBool, source: &'p dyn Source) -> Pipeline<'p> {
    let mut pipeline = Pipeline::new(source)
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

/// Why a source's search ended early.
enum Ended {
    /// Nobody takes the rows.
    Output(io::Error),
    /// The source failed; the message says how.
    Source(String),
}

/// A closed pipe is success: the reader has what it wanted.
fn broken_output(error: &io::Error) -> Outcome {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Outcome::Found;
    }
    complain(&format!("standard output: cannot write: {error}"));
    Outcome::Failed
}
