//! `--rules`: searches for matches of YARA rules.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quarrier::account::{RemoteCost, Stats};
use quarrier::rules::{JudgedScope, RuleRow, RuleRun, RuleSearch, RulesSearched, Turn, WatchRules};
use quarrier::source::unreadable_line;
use quarrier::{Opened, Opener, Sources};
use quarrier_report::number;
use serde_json::json;

use super::progress::Progress;
use super::summary::{stats_of, write_stats};
use super::{
    Ended, SOURCE_COLUMNS, broken_output, complain_of, error_message, is_closed_pipe, names,
    request, warn_of_cache,
};
use crate::args::Search;
use crate::output::Format;
use crate::output::rows::{self, Column, Excerpt, Kind, Layout, Rows, Value};
use crate::{Outcome, complain, host};

const RULE_COLUMNS: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "scope", kind: Kind::Text },
    Column { name: "rule", kind: Kind::Text },
    Column { name: "tags", kind: Kind::Text },
    Column { name: "string", kind: Kind::Text },
    Column { name: "offset", kind: Kind::Optional },
    Column { name: "length", kind: Kind::Optional },
    Column { name: "match", kind: Kind::Bytes },
];

const COUNT_COLUMNS: &[Column] =
    &[Column { name: "rule", kind: Kind::Text }, Column { name: "count", kind: Kind::Unsigned }];

/// Runs a search for rules.
///
/// # Errors
/// A message for the user, if a rule is invalid.
pub(super) fn run_until(search: &Search, stop: &Arc<AtomicBool>) -> Result<Outcome, String> {
    let started = Instant::now();
    let request = request::rule_request(search, stop)?;
    let sources = Sources::of_until(names(search, stop)?, stop);
    sources
        .refuse_overwriting(search.stats.iter().map(|path| path.as_path()))
        .map_err(error_message)?;
    let opener = Opener::new(request::open_options(search), host::environment(), stop);
    let sources = sources.listed(&opener);
    // The patterns are compiled for a sample of the first source; a sample would consume a pipe.
    let first = sources.iter().next().filter(|first| first.is_seekable());
    let mut opened = first.map(|first| opener.open(first));
    let place = match &mut opened {
        Some(Ok(opened)) => Some(opened.place()),
        Some(Err(_)) | None => None,
    };
    let mut run = request.start(host::machine(), place.as_ref(), stop).map_err(error_message)?;
    if search.explain {
        run.explain().iter().for_each(|line| complain(line));
    }
    let mut session = Session::new(search, &request, &run, stop);
    session.compile_seconds = started.elapsed().as_secs_f64();
    if let Err(error) = session.search_all(&mut run, &sources, opened, &opener) {
        return Ok(broken_output(&error));
    }
    warn_of_cache(&opener);
    session.remote = opener.remote_cost();
    match session.finish() {
        Err(error) if !is_closed_pipe(&error) => Ok(broken_output(&error)),
        _ => Ok(session.close()),
    }
}

/// Everything that the sources of one command share.
struct Session<'s> {
    search: &'s Search,
    request: &'s RuleSearch,
    /// The engine and the device that search for patterns, and the names of the devices.
    searched_by: (String, String, Vec<String>),
    workers: usize,
    stop: &'s AtomicBool,
    rows: Option<Box<dyn Rows>>,
    /// The number of scopes in which each rule holds.
    counts: Vec<u64>,
    findings: u64,
    compile_seconds: f64,
    seconds: f64,
    done: Vec<RulesSearched>,
    remote: Option<RemoteCost>,
    outcome: Option<Outcome>,
}

impl<'s> Session<'s> {
    fn new(
        search: &'s Search,
        request: &'s RuleSearch,
        run: &RuleRun<'s>,
        stop: &'s AtomicBool,
    ) -> Self {
        let names = run.device_names().to_vec();
        Session {
            search,
            request,
            searched_by: (run.engine_name(), run.device_label(), names),
            workers: run.workers(),
            stop,
            rows: None,
            counts: vec![0; request.rules().rules().len()],
            findings: 0,
            compile_seconds: 0.0,
            seconds: 0.0,
            done: Vec::new(),
            remote: None,
            outcome: None,
        }
    }

    fn is_full(&self) -> bool {
        self.findings >= self.search.max_count.unwrap_or(u64::MAX)
    }

    fn worsen(&mut self, outcome: Outcome) {
        self.outcome = Some(self.outcome.map_or(outcome, |now| now.worse(outcome)));
    }

    fn open_rows(&self) -> io::Result<Box<dyn Rows>> {
        let (layout, columns) = match self.search.count {
            true => (Layout::Conditions, COUNT_COLUMNS),
            false if self.search.shown.only_sources => (Layout::Sources, SOURCE_COLUMNS),
            false => (Layout::Rules, RULE_COLUMNS),
        };
        rows::to_stdout(self.search.format, layout, columns)
    }

    /// Searches all sources; `first` is the first one if it is open already.
    ///
    /// # Errors
    /// If standard output cannot be written.
    fn search_all(
        &mut self,
        run: &mut RuleRun<'s>,
        sources: &Sources,
        first: Option<quarrier::Result<Opened>>,
        opener: &Opener,
    ) -> io::Result<()> {
        let started = Instant::now();
        let (mut turns, mut written, stop) = (0, Ok(()), self.stop);
        run.in_turn(sources.as_slice(), first, opener, stop, &mut |run, turn| {
            turns += 1;
            match turn.map_err(Ended::from).and_then(|turn| self.search_one(run, turn)) {
                Ok(()) => {}
                Err(Ended::Output(error)) => {
                    written = Err(error);
                    return ControlFlow::Break(());
                }
                Err(Ended::Source(message)) => {
                    complain(&message);
                    // Sources abandoned because of Ctrl-C did not fail.
                    let is_stopped = stop.load(Ordering::Relaxed);
                    self.worsen(if is_stopped { Outcome::Interrupted } else { Outcome::Failed });
                }
            }
            match self.is_full() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        self.seconds = started.elapsed().as_secs_f64();
        if stop.load(Ordering::Relaxed) && turns < sources.len() {
            let all = sources.len();
            complain(&format!(
                "interrupted after {turns} of {all} sources; their rows are complete"
            ));
            self.worsen(Outcome::Interrupted);
        }
        written
    }

    /// Searches one source, and reports missing parts.
    fn search_one(&mut self, run: &mut RuleRun<'s>, turn: Turn) -> Result<(), Ended> {
        let name = turn.name().to_string();
        let notice = turn.notice().map(str::to_string);
        // Write nothing, not even a header, before a source could be opened.
        let mut rows = match self.rows.take() {
            Some(rows) => rows,
            None => self.open_rows().map_err(Ended::Output)?,
        };
        let mut watch = OneSource {
            search: self.search,
            request: self.request,
            name: &name,
            rows: &mut *rows,
            counts: &mut self.counts,
            findings: &mut self.findings,
            progress: Progress::new(&name, 0..0, true),
            notice,
            error: None,
        };
        let searched = run.search_turn(turn, self.stop, &mut watch);
        watch.progress.clear();
        if searched.is_ok() {
            watch.tell_notice();
        }
        let error = watch.error.take();
        self.rows = Some(rows);
        if let Some(error) = error {
            return Err(Ended::Output(error));
        }
        let searched = searched?;
        self.tell_end(&name, &searched);
        self.done.push(searched);
        Ok(())
    }

    fn tell_end(&mut self, name: &str, searched: &RulesSearched) {
        searched.notices.iter().for_each(|notice| complain_of(name, notice));
        for range in &searched.unreadable {
            complain(&unreadable_line(name, range));
        }
        if searched.is_incomplete {
            self.worsen(Outcome::Incomplete);
        }
        if searched.is_stopped {
            complain(&format!("{name}: interrupted; the rows before are complete"));
            self.worsen(Outcome::Interrupted);
        }
    }

    /// Writes the rows that are complete only at the end.
    fn finish(&mut self) -> io::Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        if self.search.count {
            let all = self.request.rules().rules().iter().zip(&self.counts);
            for (rule, &count) in all.filter(|(rule, _)| !rule.is_private) {
                let values = [Value::Text(&rule.name), Value::Unsigned(count)];
                rows.row(&values, Excerpt::default())?;
            }
        }
        rows.finish()
    }

    /// Statistics and account; then the outcome.
    fn close(mut self) -> Outcome {
        let stats = self.stats();
        if let Some(path) = &self.search.stats
            && let Err(message) = write_stats(&stats, path)
        {
            complain(&message);
            self.worsen(Outcome::Failed);
        }
        if !self.search.quiet && io::stderr().is_terminal() {
            self.tell(&stats);
        }
        let found = if self.findings > 0 { Outcome::Found } else { Outcome::Nothing };
        self.outcome.unwrap_or(found)
    }

    fn stats(&self) -> Stats {
        let runs: Vec<_> = self.done.iter().filter_map(|done| done.run.as_ref()).collect();
        let bytes = self.done.iter().map(|done| done.bytes).sum();
        let mut stats = stats_of(&runs, (bytes, self.seconds), None);
        if runs.is_empty() {
            // A small source is read and searched by one thread, but several of them by all.
            (stats.workers, stats.access) = (self.workers.min(self.done.len().max(1)), "read");
        }
        let (engine, device, device_names) = self.searched_by.clone();
        Stats {
            findings: self.findings,
            patterns: self.request.rules().rules().len(),
            compile_seconds: self.compile_seconds,
            engine,
            device,
            device_names,
            remote: self.remote,
            ..stats
        }
    }

    /// The account in two lines on standard error.
    fn tell(&self, stats: &Stats) {
        let (files, scopes) = self
            .done
            .iter()
            .fold((0, 0), |(files, scopes), done| (files + done.files, scopes + done.scopes));
        let holding = self.counts.iter().filter(|count| **count > 0).count();
        let _ = writeln!(
            io::stderr(),
            "{} and {} in {:.3} s: {}\n{} of {} hold; {}, {} judged",
            number::bytes(stats.bytes),
            number::counted(files, "file"),
            stats.seconds,
            number::rate(stats.bytes_per_second),
            holding,
            number::counted(stats.patterns as u64, "rule"),
            number::counted(stats.findings, "row"),
            number::counted(scopes, "scope"),
        );
    }
}

/// Observes the search of one source.
struct OneSource<'o> {
    search: &'o Search,
    request: &'o RuleSearch,
    name: &'o str,
    rows: &'o mut dyn Rows,
    counts: &'o mut [u64],
    findings: &'o mut u64,
    progress: Progress,
    /// Missing parts of the source, until the search has reported them. If they prevent the search, the
    /// error names them.
    notice: Option<String>,
    /// Why rows could not be written.
    error: Option<io::Error>,
}

impl WatchRules for OneSource<'_> {
    fn begin(&mut self, range: &Range<u64>) {
        self.tell_notice();
        self.progress = Progress::new(self.name, range.clone(), self.search.quiet);
    }

    fn advance(&mut self, offset: u64) {
        self.progress.advance_to(offset);
    }

    fn take(&mut self, scope: &JudgedScope<'_>) -> ControlFlow<()> {
        self.progress.clear();
        self.tell_notice();
        match self.write(scope) {
            Ok(going) => going,
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl OneSource<'_> {
    fn tell_notice(&mut self) {
        self.notice.take().iter().for_each(|notice| complain_of(self.name, notice));
    }

    fn write(&mut self, scope: &JudgedScope<'_>) -> io::Result<ControlFlow<()>> {
        let mut holding = HashSet::new();
        for held in scope.held {
            if holding.insert(held.rule) {
                self.counts[held.rule] += 1;
            }
        }
        if self.search.shown.only_sources {
            *self.findings += 1;
            self.rows.row(&[Value::Text(self.name)], Excerpt::default())?;
            return Ok(ControlFlow::Break(()));
        }
        let (rules, mut text) = (self.request.rules(), String::new());
        for row in scope.rows(rules) {
            let tags = self.tags(&row.rule.tags);
            let tags = match self.search.format {
                Format::Json => Value::Json(&tags),
                _ => Value::Text(&tags),
            };
            let values = [
                Value::Text(self.name),
                Value::Text(scope.name),
                Value::Text(&row.rule.name),
                tags,
                row.string.map_or(Value::Missing, Value::Text),
                row.offset.map_or(Value::Missing, Value::Unsigned),
                row.length.map_or(Value::Missing, Value::Unsigned),
                self.found(&row, &mut text),
            ];
            if self.row(&values, row.found)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The tags: a list in JSON, else words.
    fn tags(&self, tags: &[String]) -> String {
        match self.search.format {
            Format::Json => json!(tags).to_string(),
            _ => tags.join(" "),
        }
    }

    /// The bytes found, in the output format.
    fn found<'t>(&self, row: &RuleRow<'t>, text: &'t mut String) -> Value<'t> {
        match self.search.format {
            // Text for people shows them in the excerpt.
            Format::Text => Value::Missing,
            Format::Arrow if row.string.is_some() => Value::Bytes(row.found),
            Format::Arrow => Value::Missing,
            Format::Json | Format::Csv => match row.match_text() {
                Some(found) => {
                    *text = found;
                    Value::Text(text)
                }
                None => Value::Missing,
            },
        }
    }

    /// Writes a row; returns whether to continue.
    fn row(&mut self, values: &[Value<'_>], found: &[u8]) -> io::Result<ControlFlow<()>> {
        *self.findings += 1;
        if !self.search.count {
            self.rows.row(values, Excerpt { found, ..Excerpt::default() })?;
        }
        match *self.findings >= self.search.max_count.unwrap_or(u64::MAX) {
            true => Ok(ControlFlow::Break(())),
            false => Ok(ControlFlow::Continue(())),
        }
    }
}
