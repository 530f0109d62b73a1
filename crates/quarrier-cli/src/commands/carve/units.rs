//! `--to`, `--cluster`, `--plan`: carves source by source, and stores the rows of each.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier::carve::{Begin, Several, adopt, create_folder};
use quarrier::{Carve as Request, Named, Opener, Sources};
use quarrier_carve::JudgedStrides;
use quarrier_carve::folder::Row;
use quarrier_core::sync::{into_inner, lock};
use quarrier_units::{
    CarveProgress, CarveUnits, Error, JudgeUnits, Remarks, Results, SourceUnits, UNIT_BYTES, Unit,
};

use super::watch::Watch;
use super::{account, error_message, what_to_try};
use crate::args::{Carve, Units};
use crate::cluster::Cluster;
use crate::commands::packed::{PackedCarve, PackedRequest};
use crate::commands::results::{Planned, refuse_results_among_sources};
use crate::commands::search::progress::Progress;
use crate::commands::spread::{OwnFolder, Spread, absolute_place, unit_bytes_for};
use crate::commands::{broken_output, is_closed_pipe, warn_of_cache};
use crate::{Outcome, complain, host};

/// A source is judged by all workers if it makes at least this many units.
const UNITS_MIN: u64 = 4;

/// Size of the sample that estimates the rate, in bytes.
const SAMPLE_BYTES: u64 = 64 << 20;

/// Carves and stores rows, or prints the plan. The sources are given by their names, resolved, and whether
/// they are a single one that has the output folder for itself; `on` is the cluster that carves them.
///
/// # Errors
/// A message for the user, before anything is carved.
pub(super) fn run(
    carve: &Carve,
    of_units: &Units,
    (names, sources, is_single): (&[OsString], &Sources, bool),
    (request, on): (&Request, Option<(PackedCarve, &dyn Cluster)>),
    opener: &Opener,
    stop: &AtomicBool,
) -> Result<Outcome, String> {
    // Removed when the command ends.
    let own = match on.is_some() && of_units.to.is_none() {
        true => Some(OwnFolder::new()?),
        false => None,
    };
    let mut results = own.as_ref().map(|own| Results::temporary(own.path().to_path_buf()));
    if let Some(to) = &of_units.to {
        let place = Results::at(to, opener).map_err(|error| error.to_string())?;
        refuse_results_among_sources(&place, names)?;
        results = Some(place);
    }
    let units = results.clone().map(|results| CarveUnits::new(request, is_single, results));
    let several = match is_single || of_units.plans {
        true => None,
        false => Some(request.several(names).map_err(error_message)?),
    };
    let judge = results.clone().map(|results| JudgeUnits::new(request, results));
    let (is_on_cluster, refused, outcome) = (on.is_some(), HashSet::new(), None);
    let mut work = Work {
        carve,
        of_units,
        request,
        opener,
        stop,
        several,
        is_on_cluster,
        refused,
        judged: judge.map(|judge| (judge, HashMap::new())),
        outcome,
    };
    if let (Some(on), Some(units), Some(results)) = (on, &units, &results) {
        work.spread(sources, on, (units, results))?;
    }
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
    is_on_cluster: bool,
    /// The sources at which too many workers of the cluster ended.
    refused: HashSet<Unit>,
    /// The units of sources whose strides workers judged, by the unit of each source.
    judged: Option<(JudgeUnits, HashMap<Unit, Vec<Unit>>)>,
    outcome: Option<Outcome>,
}

/// The rows of a source, and lines about it.
type Rows = (Vec<Row>, Remarks);

impl Work<'_> {
    /// Lets the cluster carve all sources that have no object.
    fn spread(
        &mut self,
        sources: &Sources,
        (packed, cluster): (PackedCarve, &dyn Cluster),
        (units, results): (&CarveUnits, &Results),
    ) -> Result<(), String> {
        if let (Some(folder), None) = (&self.carve.folder, &self.several) {
            create_folder(folder).map_err(error_message)?;
        }
        let to = self.of_units.to.as_deref().map(absolute_place).transpose()?;
        let (at, to) = (self.of_units.cluster.as_deref().unwrap_or_default(), to.as_deref());
        self.judge(sources, (&packed, cluster, at, to), (units, results))?;
        let judged = self.judged.as_ref().map(|(_, judged)| judged);
        let is_judged = |unit: &Unit| judged.is_some_and(|judged| judged.contains_key(unit));
        let spread = Spread {
            cluster,
            at,
            job: units.job(),
            request: PackedRequest::Carve(Box::new(packed)).pack()?,
            to,
            results,
            has: &|unit| Ok(is_judged(unit) || units.has(unit)?),
        };
        let of_sources = (&self.carve.range, u64::MAX);
        let spread = spread.run((sources, self.opener), of_sources, self.stop);
        let distributed = spread.inspect_err(|_| {
            // Files of attempts that nobody will use.
            for named in sources.iter() {
                let _ = self.adopt(named, false);
            }
        })?;
        self.refused.extend(distributed.refused);
        Ok(())
    }

    /// Lets all workers judge the strides of a source that has most of the bytes. One worker would carve it while
    /// the others have nothing to do.
    fn judge(
        &mut self,
        sources: &Sources,
        (packed, cluster, at, to): (&PackedCarve, &dyn Cluster, &str, Option<&OsStr>),
        (units, results): (&CarveUnits, &Results),
    ) -> Result<(), String> {
        let Some((judge, judged)) = &mut self.judged else { return Ok(()) };
        let range = &self.carve.range;
        let open = |named| SourceUnits::open(named, self.opener, range, u64::MAX);
        // A source that cannot be opened is reported later.
        let opened = sources.iter().filter_map(|named| Some((named, open(named).ok()?.bytes())));
        let bytes: Vec<(&Named, u64)> = opened.collect();
        let total = bytes.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let unit_bytes = unit_bytes_for(total);
        let is_huge = |bytes: u64| bytes > total / 2 && bytes / UNITS_MIN >= unit_bytes;
        let Some((named, _)) = bytes.into_iter().find(|(_, bytes)| is_huge(*bytes)) else {
            return Ok(());
        };
        let message = |error: Error| error.to_string();
        let mut source = open(named).map_err(message)?;
        let whole = source.unit(0);
        if units.has(&whole).map_err(message)? {
            return Ok(());
        }
        let request = self.request;
        let cut = JudgeUnits::cut(request, &mut source, unit_bytes, host::machine(), self.stop);
        // What is wrong with it, carving it reports.
        let Ok(cut) = cut else { return Ok(()) };
        let spread = Spread {
            cluster,
            at,
            job: judge.job(),
            request: PackedRequest::Judge(Box::new(packed.clone())).pack()?,
            to,
            results,
            has: &|unit| judge.has(unit),
        };
        let distributed = spread.run_units(cut.clone(), self.stop)?;
        if !distributed.refused.is_empty() {
            // This process would end there, too.
            self.refused.insert(whole.clone());
        }
        judged.insert(whole, cut);
        Ok(())
    }

    /// Moves the files of a source that a worker of the cluster carved to their place, or removes them.
    fn adopt(&mut self, named: &Named, is_wanted: bool) -> Result<(), Error> {
        let (Some(folder), true) = (&self.carve.folder, self.is_on_cluster) else { return Ok(()) };
        let name = named.name().unwrap_or_default();
        let source = self.several.as_ref().map(|_| &*name);
        if adopt(folder, source, is_wanted)?
            && let Some(several) = &mut self.several
        {
            several.finished(named)?;
        }
        Ok(())
    }

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
        if self.refused.contains(&unit) {
            complain(&format!(
                "{}: was not carved: three workers of the cluster ended there",
                source.name()
            ));
            self.worsen(Outcome::Incomplete);
            return self.adopt(named, false);
        }
        let hand_over = |rows: Vec<Row>| match watch {
            Some(watch) => quarrier::carve::Watch::files(watch, rows, None),
            None => Ok(()),
        };
        if let Some(object) = units.object(&unit, &mut |line| complain(line))? {
            self.adopt(named, true)?;
            self.give(object.remarks());
            // The header is written even if there are no rows.
            hand_over(Vec::new()).map_err(quarrier::Error::Output)?;
            if watch.is_some() {
                object.rows(&mut |row| hand_over(vec![row]))?;
            }
            return Ok(());
        }
        self.adopt(named, false)?;
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
        let request = match &self.several {
            Some(several) => several.request(named),
            None => self.request.clone(),
        };
        if self.several.as_ref().is_some_and(|several| several.is_done(named)) {
            return Err(Error::Request(format!(
                "{}: its files are in the output folder, but their rows are not stored; name another \
                 folder with -o",
                source.name()
            )));
        }
        let shown = Shown::new(source.name(), self.carve.quiet);
        let judged = self.judged.as_ref().and_then(|(judge, of)| Some((judge, of.get(unit)?)));
        let strides = judged.map(|(judge, units)| judge.strides(units));
        let carved = units.carve(
            &request,
            (source, unit),
            strides.as_ref().map(|strides| strides as &dyn JudgedStrides),
            (&shown, what_to_try),
            host::machine(),
            self.stop,
        );
        shown.clear();
        let carved = carved?;
        if let Some((judge, units)) = judged {
            judge.remove(units);
        }
        if let Some(several) = &mut self.several {
            several.finished(named)?;
        }
        Ok((carved.rows, carved.remarks))
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
        match planned.print(self.carve.format, rate, self.of_units.nodes) {
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

/// The progress of a source.
struct Shown {
    name: String,
    is_quiet: bool,
    progress: Mutex<Option<Progress>>,
}

impl Shown {
    fn new(name: &str, is_quiet: bool) -> Self {
        Shown { name: name.to_string(), is_quiet, progress: Mutex::new(None) }
    }

    fn clear(self) {
        if let Some(mut progress) = into_inner(self.progress) {
            progress.clear();
        }
    }
}

impl CarveProgress for Shown {
    fn begin(&self, range: &Range<u64>) {
        *lock(&self.progress) = Some(Progress::new(&self.name, range.clone(), self.is_quiet));
    }

    fn advance_to(&self, offset: u64) {
        if let Some(progress) = &mut *lock(&self.progress) {
            progress.advance_to(offset);
        }
    }
}
