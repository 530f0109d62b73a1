//! Carves several sources, or a folder of them, each into its own subfolder.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier::carve::{Begin, Several};
use quarrier::{Carve as Request, Error, Named, Opener, Sources};
use quarrier_carve::Summary;
use quarrier_report::number;

use super::watch::Watch;
use super::{Run, account, error_message, report_problems};
use crate::args::Carve;
use crate::commands::search::progress::Progress;
use crate::commands::{broken_output, complain_of, warn_of_cache};
use crate::{Outcome, complain, host};

/// Carves all sources.
///
/// # Errors
/// A message for the user, if the output folder cannot be used.
pub(super) fn run(
    carve: &Carve,
    (names, sources): (&[OsString], &Sources),
    request: &Request,
    opener: &Opener,
    stop: &AtomicBool,
) -> Result<Outcome, String> {
    for (is_given, option) in [(carve.verify, "--verify"), (carve.report.is_some(), "--report")] {
        if is_given {
            return Err(format!("{option} is for one source; name the sources individually"));
        }
    }
    let mut several = request.several(names).map_err(error_message)?;
    let mut session = Session {
        carve,
        opener,
        stop,
        watch: Watch::new(carve),
        total: Summary::default(),
        elapsed: Duration::ZERO,
        outcome: Outcome::Found,
    };
    let shard = carve.units.as_ref().and_then(|units| units.shard);
    let is_own = |number: usize| shard.is_none_or(|shard| shard.has(number as u64));
    let own = sources.iter().enumerate().filter(|(number, _)| is_own(*number));
    let own: Vec<&Named> = own.map(|(_, named)| named).collect();
    let (mut is_complete, mut done, mut earlier) = (true, 0, 0);
    for &named in &own {
        if stop.load(Ordering::Relaxed) {
            is_complete = false;
            break;
        }
        if several.is_done(named) {
            (done, earlier) = (done + 1, earlier + 1);
            continue;
        }
        match session.carve_one(named, &mut several) {
            Ok(()) => done += 1,
            Err(Ended::Source(error)) => {
                complain(&error);
                is_complete = false;
                let is_stopped = stop.load(Ordering::Relaxed);
                session.worsen(if is_stopped { Outcome::Interrupted } else { Outcome::Failed });
            }
            Err(Ended::Run(_)) if session.watch.has_failed() => break,
            Err(Ended::Run(error)) => return Err(error),
        }
    }
    if session.watch.has_failed() {
        let seen = session.watch.end();
        return Ok(seen.output_error.map_or(Outcome::Failed, |error| broken_output(&error)));
    }
    if stop.load(Ordering::Relaxed) {
        let then = if carve.folder.is_some() { "; --resume continues" } else { "" };
        complain(&format!("interrupted after {done} of {} sources{then}", own.len()));
        session.worsen(Outcome::Interrupted);
    }
    warn_of_cache(opener);
    // --resume retries sources that failed.
    several.finish(sources, is_complete).map_err(error_message)?;
    if earlier == own.len() && earlier > 0 {
        complain("all sources are finished already; nothing was done");
        return Ok(Outcome::Found);
    }
    session.close(own.len(), earlier > 0)
}

/// Why a source ended early.
enum Ended {
    /// This source cannot be carved; others may be.
    Source(String),
    /// The output can no longer be written.
    Run(String),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        match error {
            Error::Write { .. } | Error::Folder { .. } => Ended::Run(error.to_string()),
            error => Ended::Source(error.to_string()),
        }
    }
}

/// The state that all sources share.
struct Session<'s> {
    carve: &'s Carve,
    opener: &'s Opener,
    stop: &'s AtomicBool,
    watch: Watch,
    total: Summary,
    elapsed: Duration,
    outcome: Outcome,
}

impl Session<'_> {
    fn carve_one(&mut self, named: &Named, several: &mut Several<'_>) -> Result<(), Ended> {
        let mut opened = self.opener.open(named)?;
        let name = opened.name().to_string();
        let notice = opened.notice().map(str::to_string);
        let request = several.request(named);
        let carving = match request.start(opened.place(), host::machine(), self.stop)? {
            Begin::Carving(carving) => carving,
            // An earlier run was killed before it recorded that this source is finished.
            Begin::Finished => return Ok(several.finished(named)?),
        };
        // If damage prevents the run, the error names it, and a notice would repeat it.
        for line in notice.iter().chain(carving.notices()).chain(carving.damages()) {
            complain_of(&name, line);
        }
        if !carving.damages().is_empty() {
            self.worsen(Outcome::Incomplete);
        }
        self.watch.begin(Progress::new(&name, carving.range().clone(), self.carve.quiet));
        let carved = carving.run(&self.watch)?;
        self.worsen(report_problems(&name, &carved));
        self.total.join(&carved.summary);
        self.elapsed += carved.elapsed;
        if carved.summary.stopped {
            let at = carved.summary.position;
            return Err(Ended::Source(format!("{name}: interrupted at byte {at}")));
        }
        Ok(several.finished(named)?)
    }

    fn worsen(&mut self, outcome: Outcome) {
        self.outcome = self.outcome.worse(outcome);
    }

    /// Prints the account of all sources.
    fn close(self, count: usize, is_resumed: bool) -> Result<Outcome, String> {
        let Session { carve, opener, watch, total, elapsed, outcome, .. } = self;
        let mut seen = watch.end();
        if let Some(error) = seen.output_error.take() {
            return Ok(broken_output(&error));
        }
        let mut outcome = match seen.total() {
            0 if !is_resumed => Outcome::Nothing.worse(outcome),
            _ => outcome,
        };
        if carve.folder.is_some() && !carve.quiet {
            outcome = outcome.worse(account::table(carve.format, &seen));
        }
        let run = Run {
            carve,
            name: number::counted(count as u64, "source"),
            range: 0..total.bytes,
            free: None,
            notices: Vec::new(),
            damages: Vec::new(),
            verified: None,
            elapsed,
            remote: opener.remote_cost(),
        };
        account::give(&run, &total, &seen, None)?;
        Ok(outcome)
    }
}
