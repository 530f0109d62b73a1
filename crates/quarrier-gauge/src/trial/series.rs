//! Repeats of a trial, until the median is known.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Effort, Series, Trial};
use crate::conditions::Snapshot;
use crate::error::{Error, Result};
use crate::reading::Unit;
use crate::statistics::{median, median_interval};

/// How often patience is doubled before fewer runs than requested suffice.
const PATIENCE_MOST: u32 = 3;

/// The needs of a trial's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Their CPU: a trial without it is meaningless and dropped.
    Cpu,
    /// Answers from elsewhere, whose time the trial measures.
    Answers,
}

/// Repeats `trial` by `effort`, after a warm-up, and adds the visit to `series`. It calls
/// `after_drop` when it has dropped a run; `most_fused` returns the fused multiply-adds per cycle
/// that each of as many cores has reached at best.
///
/// # Errors
/// The error of `trial`, or [`Error::Stopped`] once `stop` is set.
pub fn series(
    effort: &Effort,
    mut series: Series,
    stop: &AtomicBool,
    most_fused: impl Fn(usize) -> f64,
    mut after_drop: impl FnMut(),
    mut trial: impl FnMut() -> Result<Trial>,
) -> Result<Series> {
    let warm_ups = warm_up(effort.warm_up, stop, &mut trial)?;
    let before = Snapshot::take();
    let start = Instant::now();
    series.begin_visit(effort.runs, warm_ups);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let run = trial()?;
        let most = most_fused(run.cores);
        if !series.add(run, most) {
            after_drop();
        }
        if is_enough(effort, start.elapsed(), &series) {
            break;
        }
    }
    series.end_visit(before.since(), start.elapsed().as_secs_f64());
    Ok(series)
}

/// Warms up; returns the number of runs made.
fn warm_up(
    time: Duration,
    stop: &AtomicBool,
    trial: &mut impl FnMut() -> Result<Trial>,
) -> Result<usize> {
    let start = Instant::now();
    let mut runs = 0;
    while start.elapsed() < time {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        trial()?;
        runs += 1;
    }
    Ok(runs)
}

fn is_enough(effort: &Effort, elapsed: Duration, series: &Series) -> bool {
    let kept = series.kept_values();
    if kept.len() < effort.runs as usize {
        return series.made() >= effort.runs as usize && elapsed > effort.patience * PATIENCE_MOST;
    }
    kept.len() >= effort.most_runs as usize
        || elapsed > effort.patience
        || is_narrow(&kept, effort.narrow)
}

fn is_narrow(samples: &[f64], narrow: f64) -> bool {
    let (low, high) = median_interval(samples, 0.95);
    let middle = median(samples).abs();
    (high - low) / 2.0 <= narrow * middle
}

impl Trial {
    /// Returns seconds per unit if the unit is seconds, else units per second.
    pub(super) fn value(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Seconds => self.seconds / self.units,
            _ => self.rate(),
        }
    }
}
