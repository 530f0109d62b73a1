//! `quarrier carve`.

mod account;
mod page;
mod request;
mod several;
mod units;
mod watch;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier::account::RemoteCost;
use quarrier::carve::{Begin, Carved, Carving, Free, Verification, verify};
use quarrier::{Error, Opened, Opener, Sources};
use quarrier_carve::Skimming;
use quarrier_carve::folder::REPORT;
use quarrier_core::name;
use quarrier_report::number;
use quarrier_units::Remarks;

use super::search::progress::Progress;
use super::{all_names, broken_output, complain_of, failed, warn_of_cache};
use crate::args::{Carve, Units};
use crate::cluster::Cluster;
use crate::commands::packed::PackedCarve;
use crate::{Outcome, complain, host, interrupt};

use watch::{Seen, Watch};

/// Runs the command.
pub(crate) fn run(carve: &Carve, cluster: Option<&dyn Cluster>) -> Outcome {
    let stop = interrupt::watch();
    run_until(carve, cluster, &stop).unwrap_or_else(|message| failed(&message, &stop))
}

fn error_message(error: Error) -> String {
    error.to_string()
}

fn run_until(
    carve: &Carve,
    cluster: Option<&dyn Cluster>,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, String> {
    let names = all_names(&carve.sources, &carve.files_from, stop).map_err(error_message)?;
    let sources = Sources::of_until(&names, stop);
    let written = [&carve.stats, &carve.report].into_iter().flatten();
    sources.refuse_overwriting(written.map(|path| path.as_path())).map_err(error_message)?;
    let packed = match carve.is_on_cluster() {
        true => Some(PackedCarve::of(carve, stop)?),
        false => None,
    };
    // The file of signatures may be a pipe, and is read once.
    let request = match &packed {
        Some(packed) => packed.request(carve.workers)?.folder(carve.folder.clone()),
        None => request::request(carve, stop)?,
    };
    let opener = Opener::new(carve.cache.options(), host::environment(), stop);
    let sources = sources.listed(&opener);
    let single = match (&names[..], sources.as_slice()) {
        ([], _) => return Err("no source was named".to_string()),
        ([name], [named]) if carve.files_from.is_empty() && !name::path_of(name).is_dir() => {
            Some((name, named))
        }
        _ => None,
    };
    let is_by_unit = |units: &&Units| units.to.is_some() || units.plans || units.cluster.is_some();
    if let Some(of_units) = carve.units.as_ref().filter(is_by_unit) {
        let on = packed.map(|packed| packed.single(single.is_some())).zip(cluster);
        let sources = (&names[..], &*sources, single.is_some());
        return units::run(carve, of_units, sources, (&request, on), &opener, stop);
    }
    let shard = carve.units.as_ref().and_then(|units| units.shard);
    let (name, named) = match single {
        Some(_) if shard.is_some_and(|shard| !shard.has(0)) => return Ok(Outcome::Nothing),
        Some(single) => single,
        None => return several::run(carve, (&names[..], &sources), &request, &opener, stop),
    };
    let mut opened = opener.open(named).map_err(error_message)?;
    let verified = match carve.verify {
        true => Some(verified(carve, &name::path_of(name), stop)?),
        false => None,
    };
    if matches!(verified, Some(Verification::Interrupted)) {
        return Ok(Outcome::Interrupted);
    }
    let name = opened.name().to_string();
    let notice = opened.notice().map(str::to_string);
    let begin = request.start(opened.place(), host::machine(), stop).map_err(error_message)?;
    let carving = match begin {
        Begin::Carving(carving) => carving,
        Begin::Finished => {
            let folder = carve.folder.as_deref().unwrap_or(Path::new(".")).display();
            complain(&format!("{folder}: is finished already; nothing was done"));
            return Ok(Outcome::Found);
        }
    };
    let mut run = Run {
        carve,
        name,
        range: carving.range().clone(),
        free: carving.free().map(free_in_words),
        // If damage prevents the run, the error names it, and a notice would repeat it.
        notices: notice.into_iter().chain(carving.notices().iter().cloned()).collect(),
        damages: carving.damages().to_vec(),
        verified,
        elapsed: Duration::ZERO,
        remote: None,
    };
    let (carved, seen) = carry_out(&run, *carving);
    warn_of_cache(&opener);
    match carved {
        Ok(carved) => {
            run.elapsed = carved.elapsed;
            run.remote = opener.remote_cost();
            run.close(&carved, &seen, &opened)
        }
        Err(error) => run.failed(&error, seen),
    }
}

/// Carves, and prints rows as files are found.
fn carry_out(run: &Run<'_>, carving: Carving<'_>) -> (quarrier::Result<Carved>, Seen) {
    for line in run.notices.iter().chain(&run.damages) {
        complain_of(&run.name, line);
    }
    let progress = Progress::new(&run.name, run.range.clone(), run.carve.quiet);
    let watch = Watch::new(run.carve);
    watch.begin(progress);
    let carved = carving.run(&watch);
    (carved, watch.end())
}

/// Compares the image with its stored hashes, and prints the outcome.
fn verified(carve: &Carve, path: &Path, stop: &AtomicBool) -> Result<Verification, String> {
    let name = name::of_path(path);
    let mut bar: Option<Progress> = None;
    let verified = verify(path, &mut |done, length| {
        bar.get_or_insert_with(|| Progress::new(&name, 0..length, carve.quiet)).advance_to(done);
        !stop.load(Ordering::Relaxed)
    });
    if let Some(mut bar) = bar {
        bar.clear();
    }
    let verified = verified.map_err(error_message)?;
    complain(&format!("{name}: {}", verified.describe()));
    Ok(verified)
}

/// Reports ranges that were not read, or examined less closely than the rest.
fn report_problems(name: &str, carved: &Carved) -> Outcome {
    let remarks = Remarks::of_run(name, carved, what_to_try);
    remarks.problems.iter().chain(&remarks.notices).for_each(|line| complain(line));
    if remarks.problems.is_empty() { Outcome::Found } else { Outcome::Incomplete }
}

/// The option that examines skimmed ranges more closely.
#[must_use]
pub(crate) fn what_to_try(reason: Skimming) -> &'static str {
    match reason {
        Skimming::Forgotten => "raise --max-memory",
        Skimming::Overlapping => "--embedded examines them",
        _ => "--thorough examines them",
    }
}

/// `36.0 MiB in 12 ranges, according to ext at byte 0`.
fn free_in_words(free: &Free) -> String {
    let pieces = if free.ranges == 1 { "range" } else { "ranges" };
    format!("{} in {} {pieces}, {}", number::bytes(free.bytes), free.ranges, free.according_to)
}

/// A finished run.
struct Run<'r> {
    carve: &'r Carve,
    name: String,
    range: Range<u64>,
    /// The carved part, with --unallocated, in words.
    free: Option<String>,
    /// Missing parts of an image; with --unallocated, parts that were skipped.
    notices: Vec<String>,
    /// Damage to file systems.
    damages: Vec<String>,
    verified: Option<Verification>,
    elapsed: Duration,
    /// The cost of remote sources and listings.
    remote: Option<RemoteCost>,
}

impl Run<'_> {
    /// Reports the files found, and the unreadable ranges.
    fn close(&self, carved: &Carved, seen: &Seen, opened: &Opened) -> Result<Outcome, String> {
        let (name, summary) = (&self.name, &carved.summary);
        let mut outcome = if seen.total() > 0 { Outcome::Found } else { Outcome::Nothing };
        if matches!(self.verified, Some(Verification::Differs(_))) || !self.damages.is_empty() {
            outcome = outcome.worse(Outcome::Incomplete);
        }
        outcome = outcome.worse(report_problems(name, carved));
        if summary.stopped {
            complain(&self.stopped_at(summary.position));
            outcome = outcome.worse(Outcome::Interrupted);
        }
        if self.carve.folder.is_some() && !self.carve.quiet {
            outcome = outcome.worse(account::table(self.carve.format, seen));
        }
        account::give(self, summary, seen, opened.local())?;
        Ok(outcome)
    }

    fn stopped_at(&self, position: u64) -> String {
        let name = &self.name;
        let at = match position >= self.range.end {
            true => "after everything was read and broken files were mended".to_string(),
            false => format!("at byte {position}"),
        };
        let then = match &self.carve.folder {
            Some(_) => format!("the files in {REPORT} are complete; --resume continues"),
            None => "the rows before it are complete".to_string(),
        };
        format!("{name}: interrupted {at}; {then}")
    }

    /// Reports why the run ended, and the files found until then.
    fn failed(&self, error: &Error, seen: Seen) -> Result<Outcome, String> {
        match seen.output_error {
            Some(error) => Ok(broken_output(&error)),
            None => Err(error.to_string()),
        }
    }
}
