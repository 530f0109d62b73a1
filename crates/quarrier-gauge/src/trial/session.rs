//! The state that all areas share during a measurement: the team, the effort, the progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{Effort, Needs, Progress, Series, Team, Trial, Windows, series};

use crate::array_bytes;
use crate::conditions::{Machine, Snapshot, free_memory_bytes};
use crate::error::{Error, Result};
use crate::reading::{Reading, Subject};

/// The runs so far, and everything that the next ones need.
///
/// A subject may be visited several times: areas measure everything in each visit, and the runs of the
/// same subject become one reading.
pub struct Session<'a> {
    /// The threads.
    pub team: Team,
    /// How long and how often to measure, over all visits.
    pub effort: Effort,
    /// The machine.
    pub machine: Machine,
    /// Size of an array beyond the caches, or the size that free memory allowed at the start: a size that
    /// changed between visits would make two readings of one.
    pub(crate) beyond_caches_bytes: usize,
    /// Set by the caller to stop the measurement.
    pub stop: &'a AtomicBool,
    progress: &'a mut dyn Progress,
    /// The number of the visit, from 1 on.
    visit: u32,
    /// The number of visits that share the effort.
    visits: u32,
    /// The time after which a visit to disturbed readings starts nothing more; `None` for other visits.
    again_until: Option<Instant>,
    found: Vec<Series>,
}

impl<'a> Session<'a> {
    /// Creates a session without readings, with a single visit.
    ///
    /// # Errors
    /// If the system does not report the allowed CPUs.
    pub fn new(
        effort: Effort,
        progress: &'a mut dyn Progress,
        stop: &'a AtomicBool,
    ) -> Result<Session<'a>> {
        let machine = Machine::detect();
        Ok(Session {
            team: Team::here()?,
            effort,
            beyond_caches_bytes: array_bytes::fitting_bytes(&machine, free_memory_bytes()),
            machine,
            stop,
            progress,
            visit: 1,
            visits: 1,
            again_until: None,
            found: Vec::new(),
        })
    }

    /// Begins visit `number` of `of`, counted from 1.
    pub fn visit(&mut self, number: u32, of: u32) {
        (self.visit, self.visits) = (number, of.max(1));
        self.progress.visit(number, of);
    }

    /// Begins one more visit, to the subjects whose runs were slowed by others. Starts nothing after
    /// `until`.
    pub fn visit_again(&mut self, until: Instant) {
        self.visit += 1;
        self.again_until = Some(until);
        self.progress.visit(self.visit, self.visit);
    }

    /// Whether to measure `subject` in this visit: ask before preparing anything for it.
    pub fn wants(&self, subject: &Subject) -> bool {
        let Some(until) = self.again_until else { return true };
        let is_disturbed = |place: usize| self.found[place].needs_another_visit();
        Instant::now() < until && self.earlier(subject).is_some_and(is_disturbed)
    }

    /// Announces the next subject and repeats `trial`, with the team, until its median is known. The
    /// runs are not stored yet: complete them, and pass them to [`Session::push`].
    ///
    /// # Errors
    /// The error of `trial`, or [`Error::Stopped`].
    pub fn runs(
        &mut self,
        subject: Subject,
        needs: Needs,
        mut trial: impl FnMut(&Team) -> Result<Trial>,
    ) -> Result<Series> {
        self.progress.begin(subject.area, &subject.measurement, &subject.parameters);
        let earlier = self.earlier(&subject).map(|place| &self.found[place]);
        let effort = self.effort.of_one(self.visits, earlier.map_or(0, Series::missing));
        let team = &self.team;
        let most_fused = |cores| team.most_fused_per_cycle(cores);
        let none = Series::new(subject, needs).after(earlier);
        series(&effort, none, self.stop, most_fused, || team.turn(), || trial(team))
    }

    /// Announces the next subject, whose unit is a rate, and makes one long run of it. `run` counts what
    /// it has done in `windows`, and calls its second argument now and then, which shows the progress. The
    /// run is not stored yet.
    ///
    /// # Errors
    /// The error of `run`, or [`Error::Stopped`].
    pub(crate) fn long_run(
        &mut self,
        subject: Subject,
        windows: &Windows,
        run: impl FnOnce(&Team, &mut dyn FnMut()) -> Result<()>,
    ) -> Result<Series> {
        self.progress.begin(subject.area, &subject.measurement, &subject.parameters);
        let before = Snapshot::take();
        let (progress, all) = (&mut *self.progress, windows.seconds());
        let mut show = || {
            if let Some((seconds, rate)) = windows.now() {
                progress.during(rate, subject.unit, (seconds, all));
            }
        };
        run(&self.team, &mut show)?;
        if self.stop.load(Ordering::Relaxed) {
            // A truncated run does not count.
            return Err(Error::Stopped);
        }
        let (window_seconds, rates) = (windows.window_seconds(), windows.rates());
        Series::of_windows(subject, window_seconds, rates, before.since())
    }

    /// Adds runs to those of an earlier visit to the same subject, or as a new reading.
    pub fn push(&mut self, runs: Series) {
        let place = match self.earlier(&runs.subject) {
            Some(place) => {
                self.found[place].join(runs, self.effort.runs);
                place
            }
            None => {
                self.found.push(runs);
                self.found.len() - 1
            }
        };
        for found in &mut self.found {
            found.compare_with(|cores| self.team.most_fused_per_cycle(cores));
        }
        self.progress.reading(&self.found[place].reading());
    }

    /// The index of the runs of earlier visits to `subject`. A subject already visited in this visit is
    /// another reading with the same name.
    fn earlier(&self, subject: &Subject) -> Option<usize> {
        let is_same =
            |found: &Series| found.subject == *subject && found.visits() < self.visit as usize;
        self.found.iter().position(is_same)
    }

    /// Calls [`Session::runs`], then [`Session::push`].
    ///
    /// # Errors
    /// The error of `trial`, or [`Error::Stopped`].
    pub fn measure(
        &mut self,
        subject: Subject,
        needs: Needs,
        trial: impl FnMut(&Team) -> Result<Trial>,
    ) -> Result<()> {
        let runs = self.runs(subject, needs, trial)?;
        self.push(runs);
        Ok(())
    }

    /// Returns an error if the caller requested a stop.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn check_stop(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// The readings of all visits so far, in the order of the first visit.
    pub fn readings(&self) -> Vec<Reading> {
        self.found.iter().map(Series::reading).collect()
    }
}
