//! Repeats of a trial, until the median is known.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{CPU_SHARE_MIN, Effort, OVERLAP_MIN, Trial};
use crate::conditions::{During, Snapshot};
use crate::error::{Error, Result};
use crate::reading::{Reading, Subject, Unit};
use crate::statistics::{drift, mean, median, median_interval, stddev, two_modes};

/// More of one CPU than this in use by others disturbs a reading.
const OTHERS_MAX: f64 = 0.15;
/// The same where threads wait for answers: the kernel's own threads and interrupts are at work for
/// them, and count as others.
const OTHERS_MAX_WAITING: f64 = 0.5;
/// More of all CPUs than this taken by the host disturbs a reading.
const STEAL_MAX: f64 = 0.01;
/// A median that is known no better than to this part of it, either way, may be another next time.
const UNKNOWN_MAX: f64 = 0.05;
/// How often patience is doubled before fewer runs than asked for must do.
const PATIENCE_MOST: u32 = 3;

/// What a trial's threads need all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Their CPU: a trial without it says nothing and is dropped.
    Cpu,
    /// Answers from elsewhere: they wait in between, and that is what is measured.
    Answers,
}

/// The runs of one reading.
#[derive(Debug, Clone)]
pub struct Series {
    /// Those that were kept, in order of time.
    pub kept: Vec<Trial>,
    /// How many were dropped.
    pub dropped: u32,
    /// What held meanwhile.
    pub during: During,
    needs: Needs,
    /// Whether runs that should have been dropped were kept for want of others.
    starved: bool,
}

/// Repeats `trial` as `effort` says, after a warm-up. `after_drop` is called when a run was
/// dropped.
///
/// # Errors
/// What `trial` says, or [`Error::Stopped`] once `stop` is set.
pub fn series(
    effort: &Effort,
    needs: Needs,
    unit: Unit,
    stop: &AtomicBool,
    mut after_drop: impl FnMut(),
    mut trial: impl FnMut() -> Result<Trial>,
) -> Result<Series> {
    warm_up(effort.warm_up, stop, &mut trial)?;
    let before = Snapshot::take();
    let start = Instant::now();
    let (mut kept, mut dropped): (Vec<Trial>, Vec<Trial>) = (Vec::new(), Vec::new());
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let run = trial()?;
        if needs == Needs::Cpu && (run.cpu_share < CPU_SHARE_MIN || run.overlap < OVERLAP_MIN) {
            dropped.push(run);
            after_drop();
        } else {
            kept.push(run);
        }
        let tried = kept.len() + dropped.len();
        if tried >= effort.runs as usize && is_enough(effort, start.elapsed(), &kept, unit) {
            break;
        }
    }
    let starved = kept.len() < effort.runs as usize;
    let dropped_runs = dropped.len();
    if starved {
        dropped.sort_by(|a, b| b.cpu_share.total_cmp(&a.cpu_share));
        kept.extend(dropped.into_iter().take(effort.runs as usize - kept.len()));
    }
    let dropped = dropped_runs as u32;
    Ok(Series { kept, dropped, during: before.since(), needs, starved })
}

fn warm_up(
    time: Duration,
    stop: &AtomicBool,
    trial: &mut impl FnMut() -> Result<Trial>,
) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        trial()?;
    }
    Ok(())
}

fn is_enough(effort: &Effort, elapsed: Duration, kept: &[Trial], unit: Unit) -> bool {
    if kept.len() < effort.runs as usize {
        return elapsed > effort.patience * PATIENCE_MOST;
    }
    kept.len() >= effort.most_runs as usize
        || elapsed > effort.patience
        || is_narrow(&samples(kept, unit), effort.narrow)
}

fn is_narrow(samples: &[f64], narrow: f64) -> bool {
    let (low, high) = median_interval(samples, 0.95);
    let middle = median(samples).abs();
    (high - low) / 2.0 <= narrow * middle
}

/// The value of each run: seconds for one where seconds are asked for, else units a second.
fn samples(kept: &[Trial], unit: Unit) -> Vec<f64> {
    kept.iter()
        .map(|trial| match unit {
            Unit::Seconds => trial.seconds / trial.units,
            _ => trial.rate(),
        })
        .collect()
}

impl Series {
    /// Runs that nobody made.
    #[cfg(test)]
    pub(crate) fn of(kept: Vec<Trial>) -> Self {
        let during = During::default();
        Series { kept, dropped: 0, during, needs: Needs::Cpu, starved: false }
    }

    /// The reading that these runs make.
    pub fn reading(self, subject: Subject) -> Reading {
        let samples = samples(&self.kept, subject.unit);
        let mut during = self.during;
        let mut notes = Vec::new();
        during.cpu_share = match self.needs {
            Needs::Cpu => self.kept.iter().map(|trial| trial.cpu_share).fold(1.0, f64::min),
            Needs::Answers => 1.0,
        };
        let clocks: Vec<f64> =
            self.kept.iter().map(|trial| trial.clock_hertz).filter(|&clock| clock > 0.0).collect();
        during.clock_hertz = (!clocks.is_empty()).then(|| median(&clocks));
        during.disturbed = self.reasons(&samples, &mut notes);
        let better = if subject.unit.less_is_better() { f64::min } else { f64::max };
        Reading {
            area: subject.area,
            measurement: subject.measurement,
            parameters: subject.parameters,
            value: median(&samples),
            unit: subject.unit,
            mean: mean(&samples),
            stddev: stddev(&samples),
            best: samples.iter().copied().reduce(better).unwrap_or(f64::NAN),
            interval: median_interval(&samples, 0.95),
            runs: self.kept.len() as u32,
            dropped: self.dropped,
            disturbed: during.disturbed,
            samples,
            conditions: during,
            percentiles: None,
            received_share: None,
            notes,
        }
    }

    /// Whether something disturbed the runs; what it was is added to `notes`.
    fn reasons(&self, samples: &[f64], notes: &mut Vec<String>) -> bool {
        let told = notes.len();
        if self.starved {
            notes.push(format!("threads did not get their CPU in {} runs", self.dropped));
        } else if self.dropped as usize > self.kept.len() {
            notes.push("more runs were dropped than kept".to_owned());
        }
        let most = match self.needs {
            Needs::Cpu => OTHERS_MAX,
            Needs::Answers => OTHERS_MAX_WAITING,
        };
        if self.during.others > most {
            notes.push(format!("others kept {:.2} CPUs busy", self.during.others));
        }
        if self.during.steal > STEAL_MAX {
            notes.push(format!("the host took {:.1} % of the CPUs", self.during.steal * 100.0));
        }
        if let Some((low, high)) = two_modes(samples) {
            notes.push(format!("two modes: {low:.4e} and {high:.4e}"));
        }
        let (low, high) = median_interval(samples, 0.95);
        let unknown = (high - low) / 2.0 / median(samples).abs();
        if unknown > UNKNOWN_MAX {
            notes.push(format!("the runs disagree: known to ± {:.0} % only", unknown * 100.0));
        }
        if let Some(change) = drift(samples) {
            notes.push(format!("drift of {:+.0} % between the runs", change * 100.0));
        }
        notes.len() > told
    }
}
