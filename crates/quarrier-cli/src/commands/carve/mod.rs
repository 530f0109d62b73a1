//! `quarrier carve`.

mod account;
mod free;
mod own;
mod page;
mod target;
mod verify;
mod watch;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use quarrier_carve::folder::{Folder, Inside, REPORT, Resumed};
use quarrier_carve::mend::Effort;
use quarrier_carve::{Carver, Error, Summary};
use quarrier_core::region::AsData;
use quarrier_core::source::Source;
use serde_json::json;

use super::machine;
use super::search::progress::Progress;
use super::search::remote::Client;
use super::search::source::{self, Input, Named};
use super::search::{broken_output, is_closed_pipe, refuse_overwriting};
use crate::args::Carve;
use crate::{Outcome, complain, interrupt};

use target::Target;
use watch::{Seen, Watch};

/// Runs the command.
pub(crate) fn run(carve: &Carve) -> Outcome {
    let stop = interrupt::watch();
    // What it opens is closed with it.
    let client = Client::plain(&stop);
    let done = open(carve, &client).and_then(|input| match &input {
        Input::Source(source) => carve_one(carve, &**source, &stop),
        Input::Remote(source) => {
            source.announce(range_in(carve, source)?);
            carve_one(carve, source, &stop)
        }
        Input::Stream(name, _) => Err(format!(
            "{name}: can only be read in order, and files are read wherever they lie; \
             write it to a file first"
        )),
    });
    done.unwrap_or_else(|message| {
        complain(&message);
        Outcome::Failed
    })
}

/// Opens the one source.
fn open(carve: &Carve, client: &Client) -> Result<Input, String> {
    let named = source::expand(std::slice::from_ref(&carve.source));
    refuse_overwriting(&[&carve.stats, &carve.report], &named)?;
    let [one] = named.as_slice() else {
        let name = carve.source.to_string_lossy();
        return Err(format!("{name}: names {} sources; carve them one by one", named.len()));
    };
    refuse_folder_on_source(carve, one)?;
    one.open(false, client)
}

/// What is written to the file system of the device that is carved replaces what is to be found.
fn refuse_folder_on_source(carve: &Carve, named: &Named) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let (Some(folder), Named::Path(path)) = (&carve.folder, named) else { return Ok(()) };
    let beside = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let holder =
        std::fs::metadata(folder).or_else(|_| std::fs::metadata(beside.unwrap_or(Path::new("."))));
    let (Ok(device), Ok(holder)) = (std::fs::metadata(path), holder) else { return Ok(()) };
    match device.rdev() != 0 && device.rdev() == holder.dev() {
        true => Err(format!(
            "{}: lies on {}, which is carved; name a folder on another disk",
            folder.display(),
            path.display()
        )),
        false => Ok(()),
    }
}

fn carve_one(carve: &Carve, source: &dyn Source, stop: &AtomicBool) -> Result<Outcome, String> {
    let range = range_in(carve, source)?;
    let own = own::Own::read(carve)?;
    let verified = verify::verify(carve, stop)?;
    if verified.as_ref().is_some_and(|verified| verified.outcome == Outcome::Interrupted) {
        return Ok(Outcome::Interrupted);
    }
    let ground = free::Ground::of(carve, source, range.clone())?;
    for notice in &ground.notices {
        complain(&format!("{}: {notice}", source.name()));
    }
    let mut carver = carver(carve, &own, &ground, stop).map_err(|error| error.to_string())?;
    let target = match &carve.folder {
        None => Target::Dry(source.name().to_string()),
        Some(path) => {
            match folder(carve, path, source, &carver, &settings(carve, &own, &ground))? {
                Resumed::Finished => {
                    complain(&format!("{}: is finished already; nothing was done", path.display()));
                    return Ok(Outcome::Found);
                }
                Resumed::Begun(folder, begun) => {
                    carver = carver.resume(*begun);
                    Target::Folder(folder)
                }
            }
        }
    };
    if let Some(rates) = machine::rates(source, &range) {
        carver = carver.rates(rates);
    }
    let progress = Progress::new(source.name(), range.clone(), carve.quiet);
    let inside = carve
        .embedded
        .then(|| Inside::new(carve.types.clone(), carve.memory_bytes_max, carver.workers_count()));
    let watch = Watch::new(carve, &target, inside, progress);
    let started = Instant::now();
    let carved = carver.run(source, &watch).and_then(|summary| {
        watch.flush(None).map_err(Error::Keep)?;
        Ok(summary)
    });
    let is_complete = carved.as_ref().is_ok_and(|summary| !summary.stopped);
    let finished = target.finish(is_complete);
    let elapsed = started.elapsed();
    let seen = watch.end();
    let free::Ground { told, notices, .. } = ground;
    let run = Run { carve, source, range, free: told, notices, verified, elapsed };
    match carved {
        Ok(summary) => finished
            .map_err(|error| run.cannot_write(&error, &seen))
            .and_then(|()| run.close(&summary, &seen)),
        Err(error) => run.failed(&error, seen, &finished),
    }
}

/// A run that is over.
struct Run<'r> {
    carve: &'r Carve,
    source: &'r dyn Source,
    range: Range<u64>,
    /// How much of it is carved, with --unallocated.
    free: Option<String>,
    /// What of it was not looked at, with --unallocated.
    notices: Vec<String>,
    verified: Option<verify::Verification>,
    elapsed: Duration,
}

impl Run<'_> {
    /// Says what was found, and what could not be read.
    fn close(&self, summary: &Summary, seen: &Seen) -> Result<Outcome, String> {
        let name = self.source.name();
        let mut outcome = if seen.total() > 0 { Outcome::Found } else { Outcome::Nothing };
        if let Some(verified) = &self.verified {
            outcome = outcome.worse(verified.outcome);
        }
        for range in &summary.unreadable {
            complain(&format!("{name}: bytes {}..{} could not be read", range.start, range.end));
            outcome = outcome.worse(Outcome::Incomplete);
        }
        if summary.forgotten > 0 {
            let count = summary.forgotten;
            complain(&format!(
                "{name}: {count} broken files were not looked at again, or are left out; there are too many (--max-memory)"
            ));
        }
        if summary.unread > 0 {
            let count = summary.unread;
            complain(&format!(
                "{name}: {count} places where a file may begin were not looked at; there are too many close together"
            ));
        }
        if let Some(skipped) = &seen.skipped {
            complain(&format!("{name}: {}", skipped.in_words()));
        }
        if summary.stopped {
            complain(&self.stopped_at(summary.position));
            outcome = outcome.worse(Outcome::Interrupted);
        }
        if self.carve.folder.is_some() && !self.carve.quiet {
            outcome = outcome.worse(account::table(self.carve.format, seen));
        }
        account::give(self, summary, seen)?;
        Ok(outcome)
    }

    fn stopped_at(&self, position: u64) -> String {
        let name = self.source.name();
        let at = match position >= self.range.end {
            true => "when all was read and broken files were mended".to_string(),
            false => format!("at byte {position}"),
        };
        let then = match &self.carve.folder {
            Some(_) => format!("the files in {REPORT} are written whole; --resume goes on"),
            None => "the rows before it are complete".to_string(),
        };
        format!("{name}: interrupted {at}; {then}")
    }

    /// Says why it ended, and what there is.
    fn failed(
        &self,
        error: &Error,
        seen: Seen,
        finished: &io::Result<()>,
    ) -> Result<Outcome, String> {
        if let Some(error) = seen.output_error {
            return Ok(match is_closed_pipe(&error) {
                true => Outcome::Found,
                false => broken_output(&error),
            });
        }
        let Error::Keep(cause) = error else { return Err(error.to_string()) };
        match finished {
            Ok(()) => Err(self.cannot_write(cause, &seen)),
            Err(report) => {
                Err(format!("{}; nor can the report: {report}", self.cannot_write(cause, &seen)))
            }
        }
    }

    fn cannot_write(&self, error: &io::Error, seen: &Seen) -> String {
        let folder = self.carve.folder.as_deref().unwrap_or(Path::new("."));
        format!(
            "{}: cannot write: {error}; {} files are written and in {REPORT}; make room, and \
             --resume goes on",
            folder.display(),
            seen.total()
        )
    }
}

/// The carver that the command line asks for.
fn carver<'a>(
    carve: &Carve,
    own: &'a own::Own,
    ground: &free::Ground,
    stop: &'a AtomicBool,
) -> quarrier_carve::Result<Carver<'a>> {
    // SAFETY: these are formats of quarrier-carve, which says of all of them that they bear it; what
    // is kept is written and hashed.
    let promise = unsafe { AsData::promised() };
    let mut carver = Carver::new()
        .formats(own.with_all())
        .show_changing(promise)
        .embedded(carve.embedded)
        .ranges(ground.ranges.clone())
        .keep_broken(carve.keeps_broken)
        .memory_bytes_max(carve.memory_bytes_max)
        .stop(stop);
    if let Some(types) = &carve.types {
        // With --embedded, who holds files that are wanted need not be wanted: `inside` tells.
        let chosen = carver.kinds(types.clone())?;
        carver = if carve.embedded { chosen.all_kinds() } else { chosen };
    }
    if let Some(bytes) = carve.file_bytes_max {
        carver = carver.file_bytes_max(bytes);
    }
    if let Some(workers) = carve.workers {
        carver = carver.workers(workers);
    }
    if carve.thorough {
        carver = carver.effort(Effort::THOROUGH);
    }
    Ok(carver)
}

/// The options that say what is found: only with the same ones a run goes on.
fn settings(carve: &Carve, own: &own::Own, ground: &free::Ground) -> String {
    json!({
        "types": carve.types,
        "signatures": own.fingerprint,
        "embedded": carve.embedded,
        "keep": if carve.keeps_broken { "all" } else { "valid" },
        "max-size": carve.file_bytes_max,
        "range": [carve.range.start, carve.range.end],
        "unallocated": ground.fingerprint,
        "thorough": carve.thorough,
        "max-memory": carve.memory_bytes_max,
    })
    .to_string()
}

fn folder(
    carve: &Carve,
    path: &Path,
    source: &dyn Source,
    carver: &Carver<'_>,
    settings: &str,
) -> Result<Resumed, String> {
    let opened = match carve.resume {
        true => Folder::resume(path, source, settings, carver),
        false => Folder::create(path, source, settings)
            .map(|folder| Resumed::Begun(Box::new(folder), Box::default())),
    };
    opened.map_err(|error| match error {
        Error::Keep(error) => format!("{}: cannot write there: {error}", path.display()),
        error => error.to_string(),
    })
}

/// The wished range within the source.
fn range_in(carve: &Carve, source: &dyn Source) -> Result<Range<u64>, String> {
    let (wish, length) = (carve.range.clone(), source.length());
    if wish.start > length {
        return Err(format!(
            "{}: the range begins at byte {} but the source has {length} bytes",
            source.name(),
            wish.start
        ));
    }
    Ok(wish.start..wish.end.min(length))
}
