//! What all areas share while they are measured: the team, the effort, who hears of progress.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Effort, Needs, Series, Team, Trial, series};
use crate::Progress;
use crate::conditions::Machine;
use crate::error::{Error, Result};
use crate::reading::{Reading, Subject};

/// The readings so far, and what is needed for the next.
pub struct Session<'a> {
    /// The threads.
    pub team: Team,
    /// How long and how often.
    pub effort: Effort,
    /// What is measured on.
    pub machine: Machine,
    /// Set by the caller to end it.
    pub stop: &'a AtomicBool,
    progress: &'a mut dyn Progress,
    readings: Vec<Reading>,
}

impl<'a> Session<'a> {
    /// No readings yet.
    ///
    /// # Errors
    /// The system does not say which CPUs may be used.
    pub fn new(
        effort: Effort,
        progress: &'a mut dyn Progress,
        stop: &'a AtomicBool,
    ) -> Result<Session<'a>> {
        Ok(Session {
            team: Team::here()?,
            effort,
            machine: Machine::detect(),
            stop,
            progress,
            readings: Vec::new(),
        })
    }

    /// Says what comes next and repeats `trial`, which is given the team, until its median is
    /// known.
    ///
    /// # Errors
    /// What `trial` says, or [`Error::Stopped`].
    pub fn runs(
        &mut self,
        subject: &Subject,
        needs: Needs,
        mut trial: impl FnMut(&Team) -> Result<Trial>,
    ) -> Result<Series> {
        self.progress.begin(subject.area, &subject.measurement, &subject.parameters);
        let team = &self.team;
        let next_cpu = || team.turn();
        series(&self.effort, needs, subject.unit, self.stop, next_cpu, || trial(team))
    }

    /// The reading of [`Session::runs`], not yet taken over: add what is to be added, and give it
    /// to [`Session::push`].
    ///
    /// # Errors
    /// What `trial` says, or [`Error::Stopped`].
    pub fn read(
        &mut self,
        subject: Subject,
        needs: Needs,
        trial: impl FnMut(&Team) -> Result<Trial>,
    ) -> Result<Reading> {
        Ok(self.runs(&subject, needs, trial)?.reading(subject))
    }

    /// Takes a reading over.
    pub fn push(&mut self, reading: Reading) {
        self.progress.reading(&reading);
        self.readings.push(reading);
    }

    /// Both: [`Session::read`] and [`Session::push`].
    ///
    /// # Errors
    /// What `trial` says, or [`Error::Stopped`].
    pub fn measure(
        &mut self,
        subject: Subject,
        needs: Needs,
        trial: impl FnMut(&Team) -> Result<Trial>,
    ) -> Result<()> {
        let reading = self.read(subject, needs, trial)?;
        self.push(reading);
        Ok(())
    }

    /// Marks readings that were taken over already, because of what was found out since.
    pub fn mark_disturbed(&mut self, note: &str, which: impl Fn(&Reading) -> bool) {
        for reading in self.readings.iter_mut().filter(|reading| which(reading)) {
            reading.disturb(note.to_owned());
        }
    }

    /// Stops here if the caller asked for it.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn go_on(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// What was read so far.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// All readings.
    pub fn into_readings(self) -> Vec<Reading> {
        self.readings
    }
}
