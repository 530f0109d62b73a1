//! `quarrier search`.

mod hits;
mod lines;
mod located;
mod matches;
pub(in crate::commands) mod progress;
pub(crate) mod request;
mod rules;
mod sink;
mod small;
pub(in crate::commands) mod summary;
mod units;

use std::ffi::OsString;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier::files::{Unallocated, places};
use quarrier::search::{Ahead, Histogram, Running, SmallFiles, Watch};
use quarrier::source::unreadable_line;
use quarrier::{Error, Named, Opened, Opener, Sources};
use quarrier_core::name;
use quarrier_core::pipeline::{Chunk, Plan, Run};
use quarrier_search::{Finding, Pattern};

use super::{all_names, broken_output, complain_of, failed, is_closed_pipe, warn_of_cache};
use crate::args::Search;
use crate::cluster::Cluster;
use crate::commands::packed::PackedSearch;
use crate::output::rows::{self, Column, Kind, Layout, Rows, Value};
use crate::{Outcome, complain, host, interrupt};

use hits::Hits;
use located::{Located, with_place};
use matches::Matches;
use sink::{Counts, Output};
use small::Small;

const FINDING_COLUMNS: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "offset", kind: Kind::Unsigned },
    Column { name: "length", kind: Kind::Unsigned },
    Column { name: "pattern", kind: Kind::Text },
    Column { name: "name", kind: Kind::Text },
    Column { name: "match", kind: Kind::Bytes },
];

/// The columns of findings, with the line number.
const NUMBERED_COLUMNS: &[Column] = &[
    FINDING_COLUMNS[0],
    FINDING_COLUMNS[1],
    FINDING_COLUMNS[2],
    FINDING_COLUMNS[3],
    FINDING_COLUMNS[4],
    FINDING_COLUMNS[5],
    Column { name: "line", kind: Kind::Unsigned },
];

const SOURCE_COLUMNS: &[Column] = &[Column { name: "source", kind: Kind::Text }];

const COUNT_COLUMNS: &[Column] = &[
    Column { name: "pattern", kind: Kind::Text },
    Column { name: "name", kind: Kind::Text },
    Column { name: "count", kind: Kind::Unsigned },
];

const HISTOGRAM_COLUMNS: &[Column] = &[
    Column { name: "pattern", kind: Kind::Text },
    Column { name: "name", kind: Kind::Text },
    Column { name: "match", kind: Kind::Bytes },
    Column { name: "count", kind: Kind::Unsigned },
];

/// The outcome of searching one source.
struct Searched {
    name: String,
    length_bytes: u64,
    run: Run,
    hits: Hits,
    range: Range<u64>,
    /// Kept open, so that a local source can be read again to measure its ceiling. `None` for many
    /// small files.
    opened: Option<Opened>,
}

/// Runs the command.
pub(crate) fn run(search: &Search, cluster: Option<&dyn Cluster>) -> Outcome {
    let stop = interrupt::watch();
    let ran = match search.rules.is_empty() {
        true => run_until(search, cluster, &stop),
        false => rules::run_until(search, &stop),
    };
    ran.unwrap_or_else(|message| failed(&message, &stop))
}

fn run_until(
    search: &Search,
    cluster: Option<&dyn Cluster>,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, String> {
    let started = std::time::Instant::now();
    let packed = match search.is_on_cluster() {
        true => Some(PackedSearch::of(search, stop)?),
        false => None,
    };
    // Files of patterns may be pipes, and are read once.
    let request = match &packed {
        Some(packed) => packed.request(request::planning(search), stop)?,
        None => request::request(search, stop)?,
    };
    let sources = Sources::of_until(names(search, stop)?, stop);
    let written = [&search.stats, &search.report].into_iter().flatten();
    sources.refuse_overwriting(written.map(|path| path.as_path())).map_err(error_message)?;
    let opener = Opener::new(request::open_options(search), host::environment(), stop);
    let sources = sources.listed(&opener);
    if let Some(of_units) = &search.units {
        let on = packed.as_ref().zip(cluster);
        return units::run(search, of_units, &request, (&sources, &opener), on, stop);
    }
    // The set is compiled for a sample of the first source; a sample would consume a pipe.
    let mut first = sources.iter().next().filter(|first| first.is_seekable());
    let open_one = |named: &Named| match search.locates {
        true => opener.open(named),
        false => opener.open_packed(named, request.packed()),
    };
    let mut opened = first.map(open_one);
    let place = match &mut opened {
        Some(Ok(opened)) => Some(opened.place()),
        Some(Err(_)) | None => None,
    };
    let running = request.start(host::machine(), place.as_ref(), stop).map_err(error_message)?;
    if search.explain {
        running.explain().iter().for_each(|line| complain(line));
    }
    let mut session = Session {
        search,
        opener: &opener,
        stop,
        counts: Counts::new(request.patterns().len()),
        histogram: search
            .histogram
            .then(|| Histogram::new(request.patterns(), search.histogram_bytes_max)),
        patterns: request.patterns(),
        running,
        lost_devices: 0,
        small: None,
        build_seconds: started.elapsed().as_secs_f64(),
        outcome: None,
    };
    let mut open = |named: &Named| match first.take_if(|first| std::ptr::eq(*first, named)) {
        Some(_) => opened.take().unwrap_or_else(|| open_one(named)),
        None => open_one(named),
    };
    let (done, is_read) = match session.search_all(&sources, &mut open) {
        Ok(done) => done,
        Err(error) => return Ok(broken_output(&error)),
    };
    warn_of_cache(&opener);
    Ok(session.close(&done, is_read))
}

/// The names of all sources.
fn names(search: &Search, stop: &AtomicBool) -> Result<Vec<OsString>, String> {
    all_names(&search.sources, &search.files_from, stop).map_err(error_message)
}

fn error_message(error: Error) -> String {
    error.to_string()
}

/// The combined outcome of the sources searched so far.
struct Going {
    rows: Option<Box<dyn Rows>>,
    done: Vec<Searched>,
}

/// Everything that the sources of one command share.
struct Session<'s> {
    search: &'s Search,
    opener: &'s Opener,
    stop: &'s AtomicBool,
    patterns: &'s [Pattern],
    running: Running<'s>,
    /// Small files that were searched ahead of the others.
    small: Option<Small>,
    /// The number of failed devices already reported.
    lost_devices: usize,
    counts: Counts,
    histogram: Option<Histogram<'s>>,
    build_seconds: f64,
    outcome: Option<Outcome>,
}

impl Session<'_> {
    /// Searches all sources, and writes the findings. Also returns whether the reader took all of them.
    ///
    /// # Errors
    /// If standard output cannot be written.
    fn search_all(
        &mut self,
        sources: &Sources,
        open: &mut dyn FnMut(&Named) -> quarrier::Result<Opened>,
    ) -> io::Result<(Vec<Searched>, bool)> {
        let mut state = Going { rows: None, done: Vec::new() };
        let ahead = self.running.ahead();
        // Small files are never images.
        let ahead = ahead.filter(|_| sources.len() > 1 && !self.search.locates);
        let is_read = match ahead {
            Some(ahead) => self.search_ahead(&ahead, sources, open, &mut state)?,
            None => {
                let others = sources.iter().map(Ahead::Other);
                self.go_through(&mut others.into_iter(), open, &mut state)?
            }
        };
        let Going { mut rows, done } = state;
        if !is_read {
            return Ok((done, false));
        }
        let Some(rows) = &mut rows else { return Ok((done, true)) };
        match self.write_totals(&mut **rows, !done.is_empty()).and_then(|()| rows.finish()) {
            Err(error) if is_closed_pipe(&error) => Ok((done, false)),
            written => written.map(|()| (done, true)),
        }
    }

    /// Like [`go_through`](Self::go_through), but searches small files ahead.
    fn search_ahead(
        &mut self,
        ahead: &SmallFiles,
        sources: &Sources,
        open: &mut dyn FnMut(&Named) -> quarrier::Result<Opened>,
        state: &mut Going,
    ) -> io::Result<bool> {
        let started = Instant::now();
        let stop = self.stop;
        let (is_read, load) =
            ahead.run(sources.as_slice(), stop, |results| self.go_through(results, open, state));
        let others: Duration = state.done.iter().map(|searched| searched.run.elapsed).sum();
        let elapsed = started.elapsed().saturating_sub(others);
        let small = self.small.as_ref().map_or(0, Small::files);
        let searched = small + state.done.len() as u64;
        if self.stop.load(Ordering::Relaxed) && searched < sources.len() as u64 {
            complain(&format!(
                "interrupted after {searched} of {} sources; their findings are complete",
                sources.len()
            ));
            self.worsen(Outcome::Interrupted);
        }
        if let Some(small) = self.small.take() {
            state.done.push(small.searched(elapsed, &load));
        }
        is_read
    }

    /// Takes the results of the sources until there are enough. Returns whether the reader took all of
    /// them.
    fn go_through(
        &mut self,
        results: &mut dyn Iterator<Item = Ahead<'_>>,
        open: &mut dyn FnMut(&Named) -> quarrier::Result<Opened>,
        state: &mut Going,
    ) -> io::Result<bool> {
        for result in results {
            if self.running.is_full() || self.stop.load(Ordering::Relaxed) {
                break;
            }
            let ended = match result {
                Ahead::Other(named) => self
                    .open_and_search(named, open, &mut state.rows)
                    .map(|searched| state.done.push(searched)),
                Ahead::Small { path, data, findings, length_bytes } => {
                    self.take_small(path, (&data, length_bytes), &findings, &mut state.rows)
                }
            };
            match ended {
                Ok(()) => {}
                Err(Ended::Output(error)) if is_closed_pipe(&error) => return Ok(false),
                Err(Ended::Output(error)) => return Err(error),
                Err(Ended::Source(message)) => {
                    complain(&message);
                    // Sources abandoned because of Ctrl-C did not fail.
                    let is_stopped = self.stop.load(Ordering::Relaxed);
                    self.worsen(if is_stopped { Outcome::Interrupted } else { Outcome::Failed });
                }
            }
        }
        Ok(true)
    }

    /// Shows the findings in a small file that was searched ahead.
    fn take_small(
        &mut self,
        path: &Path,
        (data, length_bytes): (&[u8], u64),
        findings: &[Finding],
        rows: &mut Option<Box<dyn Rows>>,
    ) -> Result<(), Ended> {
        let rows = match rows {
            Some(rows) => rows,
            None => rows.insert(self.open_rows().map_err(Ended::Output)?),
        };
        self.small.get_or_insert_default().add(length_bytes, findings);
        if findings.is_empty() {
            return Ok(());
        }
        let name = name::of_path(path);
        let sums = (&mut self.counts, self.histogram.as_mut());
        let mut watch = OneSource::new((self.search, self.patterns), &name, sums, &mut **rows);
        self.running.take_ahead(data, findings, &mut watch);
        match watch.output.error {
            Some(error) => Err(Ended::Output(error)),
            None => Ok(()),
        }
    }

    fn open_and_search(
        &mut self,
        named: &Named,
        open: &mut dyn FnMut(&Named) -> quarrier::Result<Opened>,
        rows: &mut Option<Box<dyn Rows>>,
    ) -> Result<Searched, Ended> {
        let opened = open(named)?;
        // Write nothing, not even a header, before a source could be opened.
        let rows = match rows {
            Some(rows) => rows,
            None => rows.insert(self.open_rows().map_err(Ended::Output)?),
        };
        self.search_one(opened, &mut **rows)
    }

    fn open_rows(&self) -> io::Result<Box<dyn Rows>> {
        let shown = &self.search.shown;
        let (layout, columns) = match self.search.count {
            true => (Layout::Counts, COUNT_COLUMNS),
            false if self.search.histogram => (Layout::Histogram, HISTOGRAM_COLUMNS),
            false if shown.only_sources => (Layout::Sources, SOURCE_COLUMNS),
            false if shown.only_matches => (Layout::Matches, FINDING_COLUMNS),
            false if shown.numbered => (Layout::Findings, NUMBERED_COLUMNS),
            false => (Layout::Findings, FINDING_COLUMNS),
        };
        let is_located = self.search.locates && layout == Layout::Findings;
        let columns = if is_located { with_place(columns) } else { columns };
        rows::to_stdout(self.search.format, layout, columns)
    }

    /// Searches one source and reports its unreadable ranges.
    fn search_one(
        &mut self,
        mut opened: Opened,
        rows: &mut (dyn Rows + 'static),
    ) -> Result<Searched, Ended> {
        let name = opened.name().to_string();
        let unallocated = match self.search.unallocated {
            true => Some(Unallocated::read(&opened.place(), self.search.locates, self.stop)?),
            false => None,
        };
        let places = match (&unallocated, self.search.locates) {
            (_, false) => None,
            (Some(unallocated), true) => Some(Arc::clone(unallocated.places())),
            (None, true) => Some(Arc::new(places(&opened.place(), self.stop)?)),
        };
        let mut notices: Vec<String> = opened.notice().map(str::to_string).into_iter().collect();
        let (of_systems, damages) = match (&unallocated, &places) {
            (Some(unallocated), _) => (unallocated.notices(), unallocated.damages()),
            (None, Some(places)) => (places.notices(), places.damages().to_vec()),
            (None, None) => Default::default(),
        };
        if !damages.is_empty() {
            self.worsen(Outcome::Incomplete);
        }
        notices.extend(of_systems.into_iter().chain(damages));
        let format = self.search.format;
        let mut located = None;
        let rows: &mut dyn Rows = match &places {
            Some(places) => located.insert(Located { rows, places, format }),
            None => rows,
        };
        let sums = (&mut self.counts, self.histogram.as_mut());
        let mut watch = OneSource::new((self.search, self.patterns), &name, sums, rows);
        watch.notices = notices;
        let (place, stop) = (opened.place(), self.stop);
        let searched = self.running.search_among(place, unallocated.as_ref(), stop, &mut watch);
        watch.progress.clear();
        let OneSource { hits, output, .. } = watch;
        if let Some(error) = output.error {
            return Err(Ended::Output(error));
        }
        let quarrier::search::Searched { range, run } = searched?;
        self.tell_end(&name, &run, range.end);
        self.tell_lost();
        let length_bytes = run.position;
        Ok(Searched { name, length_bytes, range, run, hits, opened: Some(opened) })
    }

    /// Reports the devices that failed since the last call.
    fn tell_lost(&mut self) {
        let lost = self.running.lost_devices();
        for why in lost.iter().skip(self.lost_devices) {
            complain(&format!("{why}; the CPU searched the rest, and nothing is missing"));
        }
        self.lost_devices = lost.len();
    }

    /// Reports, after the findings, the unread parts and where the run stopped.
    fn tell_end(&mut self, name: &str, run: &Run, end: u64) {
        for range in &run.unreadable {
            complain(&unreadable_line(name, range));
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

    /// Writes the rows that are complete only at the end.
    fn write_totals(&mut self, rows: &mut dyn Rows, is_searched: bool) -> io::Result<()> {
        if !is_searched {
            return Ok(());
        }
        if let Some(histogram) = self.histogram.take() {
            return self.write_histogram(histogram, rows);
        }
        if !self.search.count {
            return Ok(());
        }
        for (pattern, &count) in self.patterns.iter().zip(&self.counts.of_patterns) {
            let name = pattern.name.as_deref().map_or(Value::Missing, Value::Text);
            let values = [Value::Text(&pattern.text), name, Value::Unsigned(count)];
            rows.row(&values, rows::Excerpt::default())?;
        }
        Ok(())
    }

    fn write_histogram(&mut self, histogram: Histogram<'_>, rows: &mut dyn Rows) -> io::Result<()> {
        let left_out = histogram.left_out();
        if left_out > 0 {
            complain(&format!(
                "the histogram is full: {left_out} findings with new matches are left out; raise \
                 --histogram-memory, or narrow the patterns"
            ));
            self.worsen(Outcome::Incomplete);
        }
        let mut text = String::new();
        for row in histogram.into_rows() {
            let pattern = &self.patterns[row.pattern];
            let values = [
                Value::Text(&pattern.text),
                pattern.name.as_deref().map_or(Value::Missing, Value::Text),
                matches::shown(self.search.format, &row.found, pattern, &mut text),
                Value::Unsigned(row.count),
            ];
            rows.row(&values, rows::Excerpt::default())?;
        }
        Ok(())
    }

    /// Whether anybody will see the share of the ceiling, which is expensive to measure.
    fn wants_account(&self) -> bool {
        self.search.stats.is_some() || self.search.report.is_some() || self.shows_account()
    }

    fn shows_account(&self) -> bool {
        !self.search.quiet && io::IsTerminal::is_terminal(&io::stderr())
    }

    /// Statistics, report and account; then the outcome.
    fn close(mut self, done: &[Searched], is_read: bool) -> Outcome {
        // The largest source represents all: many small ones would take longer to measure than to
        // search.
        let ceiling = done
            .iter()
            .max_by_key(|searched| searched.run.bytes)
            .filter(|_| self.wants_account() && !self.stop.load(Ordering::Relaxed))
            .and_then(|s| {
                host::machine().ceiling(s.opened.as_ref()?.local()?, &s.run.plan, s.range.clone())
            });
        let ceiling = if self.wants_account() { self.running.ceiling(ceiling) } else { None };
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
        // A reader that closed the pipe has seen enough.
        let found = self.running.findings() > 0 || !is_read;
        self.outcome.unwrap_or(if found { Outcome::Found } else { Outcome::Nothing })
    }

    /// Keeps the worse of two outcomes: failed, then interrupted, then incomplete.
    fn worsen(&mut self, outcome: Outcome) {
        self.outcome = Some(self.outcome.map_or(outcome, |now| now.worse(outcome)));
    }
}

/// Observes the search of one source.
struct OneSource<'o, 's> {
    search: &'o Search,
    counts: &'o mut Counts,
    histogram: Option<&'o mut Histogram<'s>>,
    hits: Hits,
    progress: progress::Progress,
    /// Missing parts of the source, reported when the search begins. If they prevent the search, the error
    /// names them.
    notices: Vec<String>,
    output: Output<'o>,
}

impl<'o, 's> OneSource<'o, 's> {
    /// Adds the findings to `sums`, and writes them to `rows` if the request shows findings.
    fn new(
        (search, patterns): (&'o Search, &'o [Pattern]),
        name: &'o str,
        (counts, histogram): (&'o mut Counts, Option<&'o mut Histogram<'s>>),
        rows: &'o mut (dyn Rows + 'o),
    ) -> Self {
        let output = Output {
            name,
            patterns,
            context_bytes: search.context_bytes,
            shown: search.shown,
            matches: Matches::of(search.format),
            lines: lines::Lines::default(),
            rows: (!search.count && !search.histogram).then_some(rows),
            error: None,
        };
        let progress = progress::Progress::new(name, 0..0, true);
        let (hits, notices) = (Hits::new(0..0), Vec::new());
        OneSource { search, counts, histogram, hits, progress, notices, output }
    }
}

impl Watch for OneSource<'_, '_> {
    fn begin(&mut self, range: &Range<u64>) {
        for notice in self.notices.drain(..) {
            complain_of(self.output.name, &notice);
        }
        self.hits = Hits::new(range.clone());
        self.output.lines = lines::Lines::from(range.start);
        let (name, quiet) = (self.output.name, self.search.quiet);
        self.progress = progress::Progress::new(name, range.clone(), quiet);
    }

    fn wants_plan(&self) -> bool {
        self.search.explain
    }

    fn plan(&mut self, plan: &Plan) {
        complain(&format!("{}: {plan}", self.output.name));
    }

    fn take(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) -> ControlFlow<()> {
        self.progress.advance(chunk);
        self.counts.add(findings);
        self.hits.add(findings);
        if let Some(histogram) = &mut self.histogram {
            histogram.add(chunk, findings);
        }
        self.output.take(chunk, findings)
    }
}

/// Why a source's search ended early.
enum Ended {
    /// The reader refused more rows.
    Output(io::Error),
    /// The source failed; the message says how.
    Source(String),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Ended::Source(error.to_string())
    }
}
