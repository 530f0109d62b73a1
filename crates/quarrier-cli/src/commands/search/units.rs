//! `--to`, `--shard`, `--plan`: the search unit by unit.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier::account::{Stats, rate};
use quarrier::source::unreadable_line;
use quarrier::{Opener, Search as Request, Sources};
use quarrier_report::number;
use quarrier_search::Pattern;
use quarrier_units::{Error, Results, Row, SourceUnits, Stored, Unit, UnitSearch};

use super::sink::Counts;
use super::{COUNT_COLUMNS, FINDING_COLUMNS, matches, summary};
use crate::args::{Search, Units};
use crate::cluster::Cluster;
use crate::commands::packed::{PackedRequest, PackedSearch};
use crate::commands::results::{Planned, refuse_results_among_sources};
use crate::commands::spread::{self, Distributed, OwnFolder, Spread};
use crate::commands::{broken_output, is_closed_pipe};
use crate::output::Format;
use crate::output::rows::{self, Excerpt, Layout, Rows, Value};
use crate::{Outcome, complain, host};

/// Maximum number of units that are counted one by one.
const UNITS_MAX: u64 = 10_000_000;

/// Size of the sample that estimates the rate, in bytes.
const SAMPLE_BYTES: u64 = 64 << 20;

/// Searches, or prints the plan.
///
/// # Errors
/// A message for the user, before anything is searched.
pub(super) fn run(
    search: &Search,
    of_units: &Units,
    request: &Request,
    (sources, opener): (&Sources, &Opener),
    on: Option<(&PackedSearch, &dyn Cluster)>,
    stop: &AtomicBool,
) -> Result<Outcome, String> {
    let mut units = UnitSearch::new(request, host::machine(), stop);
    let folder = match (&of_units.to, on) {
        (None, Some(_)) => Some(OwnFolder::new()?),
        _ => None,
    };
    let mut results = folder.as_ref().map(|folder| Results::temporary(folder.path().to_path_buf()));
    if let Some(to) = &of_units.to {
        let place = Results::at(to, opener).map_err(|error| error.to_string())?;
        refuse_results_among_sources(&place, &search.sources)?;
        results = Some(place);
    }
    if let Some(results) = &results {
        units = units.keep(results.clone());
    }
    // Without a folder no join follows, so the rows of each unit have to be right on their own.
    let is_printed = of_units.shard.is_some() && of_units.to.is_none();
    let is_whole = is_printed && !units.is_exact_alone();
    let mut unit_bytes = if is_whole { u64::MAX } else { of_units.unit_bytes };
    let mut distributed = Distributed::default();
    if let (Some((packed, cluster)), Some(at), Some(results)) = (on, &of_units.cluster, &results) {
        if of_units.to.is_none() && !of_units.is_unit_size_given {
            unit_bytes = spread::unit_bytes(sources, opener, &search.range, stop);
        }
        let to = of_units.to.as_deref().map(spread::absolute_place).transpose()?;
        let request = PackedRequest::Search(Box::new(packed.clone())).pack()?;
        let (job, has) = (units.job(), &|unit: &Unit| units.has(unit));
        let spread = Spread { cluster, at, job, request, to: to.as_deref(), results, has };
        let of_sources = (&search.range, unit_bytes);
        distributed = spread.run((sources, opener), of_sources, stop)?;
        distributed.refused.iter().for_each(|unit| units.refuse(unit));
    }
    let mut work = Work {
        search,
        of_units,
        request,
        opener,
        stop,
        units,
        unit_bytes,
        number: 0,
        ran: distributed.ran,
        mine: 0,
        planned: Planned::default(),
        outcome: None,
        out: Out::new(search, request.patterns()),
        started: Instant::now(),
        bytes: 0,
    };
    // A shard's share counts as done even if it holds no units.
    for unit in &distributed.refused {
        let Unit { source, range, .. } = unit;
        complain(&format!(
            "{source}: bytes {}..{} were not searched: three workers of the cluster ended there",
            range.start, range.end
        ));
    }
    work.out.counts_nothing = of_units.plans || (of_units.shard.is_some() && of_units.to.is_some());
    let ended = match (of_units.plans, of_units.shard, &of_units.to) {
        (true, ..) => work.plan(sources),
        (false, None, _) => work.each(sources, Work::join),
        (false, Some(_), Some(_)) => work.each(sources, Work::store),
        (false, Some(_), None) => work.each(sources, Work::print),
    };
    match ended.and_then(|()| work.out.finish()) {
        Ok(()) => {}
        Err(error) if is_closed_pipe(&error) => {}
        Err(error) => return Ok(broken_output(&error)),
    }
    Ok(work.close())
}

/// A running search.
struct Work<'w> {
    search: &'w Search,
    of_units: &'w Units,
    request: &'w Request,
    opener: &'w Opener,
    stop: &'w AtomicBool,
    units: UnitSearch<'w>,
    unit_bytes: u64,
    /// The number of the next unit, over all sources.
    number: u64,
    /// Units run by this process, and all units of its share.
    ran: u64,
    mine: u64,
    planned: Planned,
    outcome: Option<Outcome>,
    out: Out<'w>,
    started: Instant,
    /// Bytes searched.
    bytes: u64,
}

impl<'w> Work<'w> {
    /// Calls `act` for each source that can be opened.
    fn each(
        &mut self,
        sources: &Sources,
        act: fn(&mut Self, &mut SourceUnits) -> Result<(), Error>,
    ) -> io::Result<()> {
        for named in sources.iter() {
            if self.stop.load(Ordering::Relaxed) {
                self.worsen(Outcome::Interrupted);
                break;
            }
            let range = self.search.range.clone();
            let opened = SourceUnits::open(named, self.opener, &range, self.unit_bytes);
            let done = opened.and_then(|mut source| {
                source.notice_line().iter().for_each(|notice| complain(notice));
                if source.len().saturating_add(self.number) > UNITS_MAX {
                    return Err(Error::Request(format!(
                        "{}: is {} units, which makes more than {UNITS_MAX} in total; raise --unit-size",
                        source.name(),
                        source.len()
                    )));
                }
                act(self, &mut source)
            });
            self.units.take_notices().iter().for_each(|notice| complain(notice));
            match done {
                Ok(()) => {}
                Err(Error::Search(quarrier::Error::Output(error))) => return Err(error),
                Err(error) => {
                    complain(&error.to_string());
                    let is_stopped = self.stop.load(Ordering::Relaxed);
                    self.worsen(if is_stopped { Outcome::Interrupted } else { Outcome::Failed });
                    if matches!(error, Error::Results { .. }) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Prints the rows of all units of a source.
    fn join(&mut self, source: &mut SourceUnits) -> Result<(), Error> {
        self.number += source.len();
        self.mine += source.len();
        let name = source.name().to_string();
        self.out.open().map_err(quarrier::Error::Output)?;
        let out = &mut self.out;
        let joined = self.units.join(source, &mut |row| out.row(&name, row))?;
        self.ran += joined.run;
        self.bytes += source.bytes();
        self.tell_unreadable(&name, &joined.unreadable);
        Ok(())
    }

    /// Runs the units of a source in this process's share, and stores their rows.
    fn store(&mut self, source: &mut SourceUnits) -> Result<(), Error> {
        let name = source.name().to_string();
        for number in self.own(source) {
            let unit = source.unit(number);
            self.mine += 1;
            if self.stop.load(Ordering::Relaxed) {
                self.worsen(Outcome::Interrupted);
                break;
            }
            match self.units.store(source, &unit) {
                Ok((stored, unreadable)) => {
                    if stored != Stored::Before {
                        self.ran += 1;
                        self.bytes += unit.bytes();
                    }
                    self.tell_unreadable(&name, &unreadable);
                }
                // The match is too long for the unit alone. The join decides whether it is in the
                // source.
                Err(Error::Search(error @ quarrier::Error::TooLong { .. })) => complain(&format!(
                    "bytes {}..{} are left to the join, because {error}",
                    unit.range.start, unit.range.end
                )),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Prints the rows of the units of a source in this process's share.
    fn print(&mut self, source: &mut SourceUnits) -> Result<(), Error> {
        let name = source.name().to_string();
        for number in self.own(source) {
            let unit = source.unit(number);
            self.mine += 1;
            self.out.open().map_err(quarrier::Error::Output)?;
            let out = &mut self.out;
            let ran = self.units.rows(source, &unit, &mut |row| out.row(&name, row))?;
            self.ran += 1;
            self.bytes += ran.bytes;
            self.tell_unreadable(&name, &ran.unreadable);
        }
        Ok(())
    }

    /// The units of a source in this process's share.
    fn own(&mut self, source: &SourceUnits) -> impl Iterator<Item = u64> + use<> {
        let (first, shard) = (self.number, self.of_units.shard);
        self.number += source.len();
        let is_own = move |number: &u64| shard.is_none_or(|shard| shard.has(first + number));
        (0..source.len()).filter(is_own)
    }

    /// Prints the number of units and bytes, and the time that the remaining ones take.
    fn plan(&mut self, sources: &Sources) -> io::Result<()> {
        self.each(sources, Work::count)?;
        let planned = std::mem::take(&mut self.planned);
        let mut measured = self.of_units.bytes_per_second.map(|rate| rate as f64);
        if measured.is_none() && planned.bytes > planned.bytes_done {
            measured = self.measure(sources);
        }
        planned.print(self.search.format, measured, self.of_units.nodes)
    }

    fn count(&mut self, source: &mut SourceUnits) -> Result<(), Error> {
        for number in self.own(source) {
            let unit = source.unit(number);
            self.planned.add(&unit, self.units.has(&unit)?);
        }
        Ok(())
    }

    /// Measures the search rate on the beginning of the first source that has bytes and costs no requests.
    fn measure(&self, sources: &Sources) -> Option<f64> {
        for named in sources.iter() {
            let whole = SourceUnits::open(named, self.opener, &(0..SAMPLE_BYTES), u64::MAX);
            let Ok(mut source) = whole else { continue };
            if source.is_empty() || source.is_remote() {
                continue;
            }
            let mut units = UnitSearch::new(self.request, host::machine(), self.stop);
            let unit = source.unit(0);
            let ran = units.rows(&mut source, &unit, &mut |_| Ok(())).ok()?;
            let seconds = ran.elapsed.max(Duration::from_micros(1)).as_secs_f64();
            return Some(ran.bytes as f64 / seconds);
        }
        None
    }

    fn tell_unreadable(&mut self, name: &str, unreadable: &[std::ops::Range<u64>]) {
        for range in unreadable {
            complain(&unreadable_line(name, range));
        }
        if !unreadable.is_empty() {
            self.worsen(Outcome::Incomplete);
        }
    }

    /// Writes statistics and a line about the units; returns the outcome.
    fn close(mut self) -> Outcome {
        if let Some(path) = &self.search.stats
            && let Err(message) = summary::write_stats(&self.stats(), path)
        {
            complain(&message);
            self.worsen(Outcome::Failed);
        }
        let is_shown = !self.search.quiet && io::IsTerminal::is_terminal(&io::stderr());
        if self.outcome == Some(Outcome::Interrupted) {
            self.tell_interrupted();
        } else if is_shown && !self.of_units.plans {
            let units = number::counted(self.mine, "unit");
            complain(&format!("{units}, {} of them searched now", number::count(self.ran)));
        }
        let found = self.out.found > 0 || self.out.counts_nothing;
        self.outcome.unwrap_or(if found { Outcome::Found } else { Outcome::Nothing })
    }

    fn tell_interrupted(&self) {
        if let Some(to) = &self.of_units.to {
            complain(&format!(
                "interrupted; the rows of the searched units are in {}, and the same command \
                 continues from there",
                to.to_string_lossy()
            ));
        }
    }

    fn stats(&self) -> Stats {
        let seconds = self.started.elapsed().as_secs_f64();
        Stats {
            command: "search",
            bytes: self.bytes,
            seconds,
            bytes_per_second: rate(self.bytes, seconds),
            findings: self.out.found,
            patterns: self.request.patterns().len(),
            workers: self.search.workers,
            engine: self.units.engine_name(),
            remote: self.opener.remote_cost(),
            ..Stats::default()
        }
    }

    /// Keeps the worse of two outcomes.
    fn worsen(&mut self, outcome: Outcome) {
        self.outcome = Some(self.outcome.map_or(outcome, |now| now.worse(outcome)));
    }
}

/// The destination of rows: standard output, or a count.
struct Out<'o> {
    format: Format,
    counts: Option<Counts>,
    patterns: &'o [Pattern],
    rows: Option<Box<dyn Rows>>,
    text: String,
    found: u64,
    /// Whether the run reports no findings, so that finished work is success.
    counts_nothing: bool,
}

impl<'o> Out<'o> {
    fn new(search: &Search, patterns: &'o [Pattern]) -> Self {
        let counts = search.count.then(|| Counts::new(patterns.len()));
        let (format, text) = (search.format, String::new());
        Out { format, counts, patterns, rows: None, text, found: 0, counts_nothing: false }
    }

    /// Begins to write. Writes nothing, not even a header, before there is something to search.
    fn open(&mut self) -> io::Result<()> {
        if self.rows.is_none() {
            let (layout, columns) = match self.counts {
                Some(_) => (Layout::Counts, COUNT_COLUMNS),
                None => (Layout::Findings, FINDING_COLUMNS),
            };
            self.rows = Some(rows::to_stdout(self.format, layout, columns)?);
        }
        Ok(())
    }

    fn row(&mut self, source: &str, row: &Row<'_>) -> io::Result<()> {
        self.found += 1;
        if let Some(counts) = &mut self.counts {
            counts.of_patterns[row.pattern as usize] += 1;
            return Ok(());
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let pattern = &self.patterns[row.pattern as usize];
        let values = [
            Value::Text(source),
            Value::Unsigned(row.offset),
            Value::Unsigned(u64::from(row.length)),
            Value::Text(&pattern.text),
            pattern.name.as_deref().map_or(Value::Missing, Value::Text),
            match self.format {
                Format::Text => Value::Missing,
                format => matches::shown(format, row.found, pattern, &mut self.text),
            },
        ];
        rows.row(&values, Excerpt { found: row.found, ..Excerpt::default() })
    }

    /// Writes the counts, if requested, and ends the rows.
    fn finish(&mut self) -> io::Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        for (pattern, &count) in
            self.patterns.iter().zip(self.counts.iter().flat_map(|counts| &counts.of_patterns))
        {
            let name = pattern.name.as_deref().map_or(Value::Missing, Value::Text);
            let values = [Value::Text(&pattern.text), name, Value::Unsigned(count)];
            rows.row(&values, Excerpt::default())?;
        }
        rows.finish()
    }
}
