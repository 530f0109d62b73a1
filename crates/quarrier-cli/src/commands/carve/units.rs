//! `--to`, `--plan`: carves source by source, and stores the rows of each.

use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier::carve::{Begin, Carved, Several, reported};
use quarrier::{Carve as Request, Named, Opener, Sources};
use quarrier_carve::folder::Row;
use quarrier_core::sync::{into_inner, lock};
use quarrier_units::{
    CarveUnits, Error, Remarks, Results, SourceUnits, UNIT_BYTES, Unit, in_report_order,
};

use super::watch::Watch;
use super::{account, error_message, remarks};
use crate::args::{Carve, Units};
use crate::commands::results::{Planned, refuse_results_among_sources};
use crate::commands::search::progress::Progress;
use crate::commands::{broken_output, is_closed_pipe, warn_of_cache};
use crate::{Outcome, complain, host};

/// Size of the sample that estimates the rate, in bytes.
const SAMPLE_BYTES: u64 = 64 << 20;

/// Maximum memory for the rows of a source, in bytes.
const ROWS_BYTES_MAX: usize = 1 << 30;

/// Carves and stores rows, or prints the plan. The sources are given by their names, resolved, and whether
/// they are a single one that has the output folder for itself.
///
/// # Errors
/// A message for the user, before anything is carved.
pub(super) fn run(
    carve: &Carve,
    of_units: &Units,
    (names, sources, is_single): (&[OsString], &Sources, bool),
    request: &Request,
    opener: &Opener,
    stop: &AtomicBool,
) -> Result<Outcome, String> {
    let mut units = None;
    if let Some(to) = &of_units.to {
        let results = Results::at(to, opener).map_err(|error| error.to_string())?;
        refuse_results_among_sources(&results, names)?;
        units = Some(CarveUnits::new(request, is_single, results));
    }
    let several = match is_single || of_units.plans {
        true => None,
        false => Some(request.several(names).map_err(error_message)?),
    };
    let work = Work { carve, of_units, request, opener, stop, several, outcome: None };
    match (units, of_units.plans) {
        (units, true) => work.plan(sources, units.as_ref()),
        (Some(units), false) => work.run(sources, &units),
        (None, false) => Err("--shard without --to carves into the folder of -o".to_string()),
    }
}

/// A running command.
struct Work<'w> {
    carve: &'w Carve,
    of_units: &'w Units,
    request: &'w Request,
    opener: &'w Opener,
    stop: &'w AtomicBool,
    /// The output folder of several sources.
    several: Option<Several<'w>>,
    outcome: Option<Outcome>,
}

/// The rows of a source, and lines about it.
type Rows = (Vec<Row>, Remarks);

impl Work<'_> {
    /// Carves the sources of this process's share that have no object, and prints the rows of all if there
    /// is no `--shard`.
    fn run(mut self, sources: &Sources, units: &CarveUnits) -> Result<Outcome, String> {
        // A shard prints nothing: the join does.
        let watch = self.of_units.shard.is_none().then(|| Watch::new(self.carve));
        let mut is_complete = true;
        for named in self.own(sources) {
            if self.is_stopped() {
                is_complete = false;
                break;
            }
            match self.one(named, units, watch.as_ref()) {
                Ok(()) => {}
                Err(Error::Search(quarrier::Error::Output(_))) => break,
                Err(error) => {
                    complain(&error.to_string());
                    is_complete = false;
                    self.worsen(if self.is_stopped() {
                        Outcome::Interrupted
                    } else {
                        Outcome::Failed
                    });
                    if matches!(error, Error::Results { .. }) {
                        break;
                    }
                }
            }
        }
        if self.is_stopped() {
            complain(
                "interrupted; the rows of the carved sources are stored, and the same command continues",
            );
            self.worsen(Outcome::Interrupted);
        }
        warn_of_cache(self.opener);
        if let Some(several) = self.several.take() {
            several.finish(sources, is_complete).map_err(error_message)?;
        }
        let Some(watch) = watch else { return Ok(self.outcome.unwrap_or(Outcome::Found)) };
        let mut seen = watch.end();
        if let Some(error) = seen.output_error.take().filter(|error| !is_closed_pipe(error)) {
            return Ok(broken_output(&error));
        }
        if self.carve.folder.is_some() && !self.carve.quiet {
            self.worsen(account::table(self.carve.format, &seen));
        }
        let found = if seen.total() > 0 { Outcome::Found } else { Outcome::Nothing };
        Ok(self.outcome.map_or(found, |outcome| outcome.worse(found)))
    }

    /// Carves a source unless it has an object. Its rows go to `watch`.
    fn one(
        &mut self,
        named: &Named,
        units: &CarveUnits,
        watch: Option<&Watch>,
    ) -> Result<(), Error> {
        let mut source = SourceUnits::open(named, self.opener, &self.carve.range, u64::MAX)?;
        if let Some(notice) = source.notice_line() {
            complain(&notice);
        }
        let unit = source.unit(0);
        let hand_over = |rows: Vec<Row>| match watch {
            Some(watch) => quarrier::carve::Watch::files(watch, rows, None),
            None => Ok(()),
        };
        if let Some(object) = units.object(&unit, &mut |line| complain(line))? {
            self.give(object.remarks());
            if watch.is_some() {
                object.rows(&mut |row| hand_over(vec![row]))?;
            }
            return Ok(());
        }
        let (rows, remarks) = self.carved(named, &mut source, &unit, units)?;
        self.give(&remarks);
        Ok(hand_over(rows).map_err(quarrier::Error::Output)?)
    }

    /// Carves a source, and stores its rows unless another try may find more.
    fn carved(
        &mut self,
        named: &Named,
        source: &mut SourceUnits,
        unit: &Unit,
        units: &CarveUnits,
    ) -> Result<Rows, Error> {
        let name = source.name().to_string();
        let request = match &self.several {
            Some(several) => several.request(named),
            None => self.request.clone(),
        };
        let begin = match self.several.as_ref().is_some_and(|several| several.is_done(named)) {
            true => Begin::Finished,
            false => request.start(source.place(), host::machine(), self.stop)?,
        };
        let Begin::Carving(carving) = begin else {
            return Err(Error::Request(format!(
                "{name}: its files are in the output folder, but their rows are not stored; name another \
                 folder with -o"
            )));
        };
        let of_source = |line: &String| quarrier::source::line_of(&name, line);
        let mut lines = Remarks {
            problems: carving.damages().iter().map(of_source).collect(),
            notices: carving.notices().iter().map(of_source).collect(),
        };
        let collect = Collect::new(Progress::new(&name, carving.range().clone(), self.carve.quiet));
        let ran = carving.run(&collect);
        let Some(mut rows) = collect.end() else {
            let mebibytes = ROWS_BYTES_MAX >> 20;
            return Err(Error::Request(format!(
                "{name}: the rows of its files take more than {mebibytes} MiB; carve it without --to, or \
                 with fewer --types"
            )));
        };
        let carved: Carved = ran?;
        if carved.summary.stopped {
            let offset = carved.summary.position;
            return Err(quarrier::Error::Stopped { name, offset }.into());
        }
        if self.carve.resume
            && let Some(folder) = &self.carve.folder
        {
            // Files of the earlier run have no rows in this one.
            rows = self.all_rows(folder, &request)?;
        }
        in_report_order(&mut rows);
        let of_run = remarks(&name, &carved);
        lines.problems.extend(of_run.problems);
        lines.notices.extend(of_run.notices);
        if !source.is_remote() || carved.summary.unreadable.is_empty() {
            units.store((&*source, unit), &rows, lines.clone())?;
        }
        if let Some(several) = &mut self.several {
            several.finished(named)?;
        }
        Ok((rows, lines))
    }

    /// All rows of the report in the output folder of a source, with paths as in the rows of a run.
    fn all_rows(&self, folder: &Path, request: &Request) -> Result<Vec<Row>, Error> {
        let Some(part) = request.part_name() else { return Ok(reported(folder)?) };
        let mut rows = reported(&folder.join(part))?;
        rows.iter_mut().for_each(|row| row.path = format!("{part}/{}", row.path));
        Ok(rows)
    }

    /// Prints lines about a source.
    fn give(&mut self, remarks: &Remarks) {
        remarks.problems.iter().chain(&remarks.notices).for_each(|line| complain(line));
        if !remarks.problems.is_empty() {
            self.worsen(Outcome::Incomplete);
        }
    }

    /// The sources in this process's share.
    fn own<'n>(&self, sources: &'n Sources) -> Vec<&'n Named> {
        let shard = self.of_units.shard;
        let is_own = |number: usize| shard.is_none_or(|shard| shard.has(number as u64));
        let own = sources.iter().enumerate().filter(|(number, _)| is_own(*number));
        own.map(|(_, named)| named).collect()
    }

    /// Prints the number of sources and bytes, and the time that the remaining ones take.
    fn plan(mut self, sources: &Sources, units: Option<&CarveUnits>) -> Result<Outcome, String> {
        let mut planned = Planned::default();
        for named in self.own(sources) {
            if self.is_stopped() {
                return Ok(Outcome::Interrupted);
            }
            let range: &Range<u64> = &self.carve.range;
            let counted =
                SourceUnits::open(named, self.opener, range, u64::MAX).and_then(|source| {
                    let unit = source.unit(0);
                    planned.add(&unit, units.map_or(Ok(false), |units| units.has(&unit))?);
                    Ok(())
                });
            if let Err(error) = counted {
                complain(&error.to_string());
                self.worsen(Outcome::Failed);
            }
        }
        let mut rate = self.of_units.bytes_per_second.map(|rate| rate as f64);
        if rate.is_none() && planned.bytes > planned.bytes_done {
            rate = self.measure(sources);
        }
        match planned.print(self.carve.format, rate) {
            Err(error) if !is_closed_pipe(&error) => Ok(broken_output(&error)),
            _ => Ok(self.outcome.unwrap_or(Outcome::Found)),
        }
    }

    /// Measures the rate on the beginning of the first source that has bytes and costs no requests.
    fn measure(&self, sources: &Sources) -> Option<f64> {
        for named in sources.iter() {
            let source = SourceUnits::open(named, self.opener, &(0..SAMPLE_BYTES), UNIT_BYTES);
            let Ok(mut source) = source else { continue };
            if source.is_empty() || source.is_remote() {
                continue;
            }
            let request = self.request.clone().folder(None).range(0..SAMPLE_BYTES);
            let begin = request.start(source.place(), host::machine(), self.stop).ok()?;
            let Begin::Carving(carving) = begin else { return None };
            let carved = carving.run(&()).ok()?;
            let seconds = carved.elapsed.max(Duration::from_micros(1)).as_secs_f64();
            return Some(carved.summary.bytes as f64 / seconds);
        }
        None
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Keeps the worse of two outcomes.
    fn worsen(&mut self, outcome: Outcome) {
        self.outcome = Some(self.outcome.map_or(outcome, |now| now.worse(outcome)));
    }
}

/// Collects the rows of a source, and shows its progress.
struct Collect {
    inner: Mutex<Collected>,
}

struct Collected {
    rows: Vec<Row>,
    /// The memory left for rows; `None` if they did not fit.
    bytes_left: Option<usize>,
    progress: Progress,
}

impl Collect {
    fn new(progress: Progress) -> Self {
        let rows = Vec::new();
        Collect {
            inner: Mutex::new(Collected { rows, bytes_left: Some(ROWS_BYTES_MAX), progress }),
        }
    }

    /// The rows; `None` if they did not fit in memory.
    fn end(self) -> Option<Vec<Row>> {
        let Collected { rows, bytes_left, mut progress } = into_inner(self.inner);
        progress.clear();
        bytes_left.map(|_| rows)
    }
}

/// The memory that a row takes, approximately.
fn memory_of(row: &Row) -> usize {
    let strings = [&row.source, &row.kind, &row.reason, &row.sha256, &row.path];
    let strings: usize = strings.iter().map(|text| text.len()).sum();
    let container = row.container.as_ref().map_or(0, String::len);
    size_of::<Row>() + strings + container + size_of_val(&row.extents[..])
}

impl quarrier::carve::Watch for Collect {
    fn files(&self, mut rows: Vec<Row>, done_until: Option<u64>) -> io::Result<()> {
        let all = &mut *lock(&self.inner);
        let bytes = rows.iter().map(memory_of).sum();
        all.bytes_left = all.bytes_left.and_then(|left| left.checked_sub(bytes));
        if all.bytes_left.is_none() {
            all.rows = Vec::new();
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        all.rows.append(&mut rows);
        if let Some(offset) = done_until {
            all.progress.advance_to(offset);
        }
        Ok(())
    }
}
