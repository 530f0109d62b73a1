//! Joins the visits to one subject into one reading.
//!
//! A machine that shares its cores, memory and caches with others is slower for seconds at a time,
//! during which consecutive runs agree well. Only runs that are well apart in time can reveal it.

use super::{CORE_SHARE_MIN, Needs, Trial};
use crate::conditions::{During, Pressure};
use crate::error::{Error, Result};
use crate::latencies::Latencies;
use crate::reading::{Area, Reading, Subject, Timeline, Unit};
use crate::statistics::{Levels, drift, mean, median, median_interval, stddev, two_modes};

/// Others disturb a reading if they use more than this of one CPU.
const OTHERS_MAX: f64 = 0.15;
/// The same limit for threads that wait for answers: the kernel's own threads and interrupts work for
/// them, and count as others.
const OTHERS_MAX_WAITING: f64 = 0.5;
/// The host disturbs a reading if it takes more than this share of all CPUs.
const STEAL_MAX: f64 = 0.01;
/// A reading is uncertain if the interval of its median is wider than this share on either side, or if
/// its visits differ by more.
const UNKNOWN_MAX: f64 = 0.05;

/// The runs of one visit.
#[derive(Debug, Clone, Default)]
pub(super) struct Visit {
    /// The runs in order of time, including those to be dropped.
    pub(super) runs: Vec<Trial>,
    /// The number of discarded runs before them.
    pub(super) warm_ups: usize,
    pub(super) during: During,
    pub(super) seconds: f64,
}

/// Datagrams of the kept runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Datagrams {
    pub(crate) sent: u64,
    pub(crate) came: u64,
    pub(crate) lost: u64,
    /// Arrived after one that was sent later.
    pub(crate) late: u64,
}

/// The runs of one reading, over all visits so far.
#[derive(Debug, Clone)]
pub struct Series {
    /// The subject. The measurement adds parameters that only the runs reveal.
    pub subject: Subject,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The times of single events in the kept runs, if they were timed.
    pub(crate) latencies: Option<Latencies>,
    /// The datagrams, if the subject sent any.
    pub(crate) datagrams: Option<Datagrams>,
    /// The rate over time, if the runs are the windows of a long one.
    timeline: Option<Timeline>,
    needs: Needs,
    /// The minimum number of runs to keep.
    least: u32,
    /// The best known rate of fused multiply-adds per cycle that each of as many cores reached.
    most_fused: f64,
    /// The best run of visits that are not among these.
    best_before: Option<f64>,
    visits: Vec<Visit>,
}

impl Series {
    /// Creates an empty series.
    pub fn new(subject: Subject, needs: Needs) -> Series {
        Series {
            subject,
            notes: Vec::new(),
            latencies: None,
            datagrams: None,
            timeline: None,
            needs,
            least: 0,
            most_fused: 0.0,
            best_before: None,
            visits: Vec::new(),
        }
    }

    /// Creates the series of a long run, from the rate in each window of `window_seconds`: those after the
    /// last change of the rate are its runs. There must be 10 or more.
    pub(super) fn of_windows(
        subject: Subject,
        window_seconds: f64,
        rates: Vec<f64>,
        during: During,
    ) -> Result<Series> {
        let few = || Error::BadRequest(format!("{} windows are too few to judge", rates.len()));
        let levels = Levels::of(&rates).ok_or_else(few)?;
        let window = |rate: &f64| Trial {
            seconds: window_seconds,
            units: rate * window_seconds,
            cpu_share: 1.0,
            overlap: 1.0,
            ..Trial::default()
        };
        let at = |windows: usize| windows as f64 * window_seconds;
        let visit = Visit {
            runs: rates[levels.last_from..].iter().map(window).collect(),
            warm_ups: levels.last_from,
            during,
            seconds: at(rates.len()),
        };
        Ok(Series {
            notes: describe_levels(&levels, at, &rates[levels.last_from..], &subject),
            timeline: Some(Timeline {
                window_seconds,
                initial: levels.first,
                initial_seconds: at(levels.first_windows),
                steady_after_seconds: levels.is_steady.then(|| at(levels.last_from)),
                rates,
            }),
            visits: vec![visit],
            ..Series::new(subject, Needs::Answers)
        })
    }

    /// The same series after earlier visits to the subject, whose best run reveals which of these were
    /// slowed.
    pub(super) fn after(self, earlier: Option<&Series>) -> Series {
        Series { best_before: earlier.and_then(Series::best), ..self }
    }

    /// Begins a visit that must keep `least` runs, after `warm_ups` warm-ups.
    pub(super) fn begin_visit(&mut self, least: u32, warm_ups: usize) {
        self.least = least;
        self.visits.push(Visit { warm_ups, ..Visit::default() });
    }

    /// Adds a run to the visit, and returns whether it is kept so far; `most_fused` is the best rate of
    /// its cores.
    pub(super) fn add(&mut self, run: Trial, most_fused: f64) -> bool {
        self.most_fused = most_fused;
        if let Some(visit) = self.visits.last_mut() {
            visit.runs.push(run);
        }
        let best = self.best();
        let last = self.visits.last().and_then(|visit| visit.runs.last());
        last.is_some_and(|run| self.is_good(run, best))
    }

    /// Ends a visit with its conditions and its duration.
    pub(super) fn end_visit(&mut self, during: During, seconds: f64) {
        if let Some(visit) = self.visits.last_mut() {
            (visit.during, visit.seconds) = (during, seconds);
        }
    }

    /// Adds a later visit to the same subject. Both together must keep `least` runs.
    pub(super) fn join(&mut self, later: Series, least: u32) {
        self.least = least;
        self.visits.extend(later.visits);
        for note in later.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        match (&mut self.latencies, later.latencies) {
            (Some(all), Some(more)) => all.add(&more),
            (all, more) => *all = all.take().or(more),
        }
        if let (Some(all), Some(more)) = (&mut self.datagrams, later.datagrams) {
            all.sent += more.sent;
            all.came += more.came;
            all.lost += more.lost;
            all.late += more.late;
        }
    }

    /// Judges the runs again with a better estimate of the cores' best rate: runs that were kept may
    /// now be dropped.
    pub(super) fn compare_with(&mut self, most_fused: impl Fn(usize) -> f64) {
        let first = self.visits.iter().flat_map(|visit| &visit.runs).next();
        self.most_fused = first.map_or(0.0, |run| most_fused(run.cores));
    }

    /// The number of visits.
    pub(super) fn visits(&self) -> usize {
        self.visits.len()
    }

    /// The number of runs missing from the minimum.
    pub(super) fn missing(&self) -> u32 {
        self.least.saturating_sub(self.kept_values().len() as u32)
    }

    /// The number of runs.
    pub(super) fn made(&self) -> usize {
        self.visits.iter().map(|visit| visit.runs.len()).sum()
    }

    /// The values of the runs that are not dropped.
    pub(super) fn kept_values(&self) -> Vec<f64> {
        let best = self.best();
        let kept = self.runs().filter(|run| self.is_good(run, best));
        kept.map(|run| run.value(self.subject.unit)).collect()
    }

    /// Whether another visit could separate runs slowed by others from the rest.
    pub(super) fn needs_another_visit(&self) -> bool {
        self.needs == Needs::Cpu && self.reading().disturbed
    }

    /// The same series with `change` applied to each trial.
    pub(crate) fn map(mut self, change: impl Fn(&mut Trial)) -> Series {
        self.visits.iter_mut().flat_map(|visit| &mut visit.runs).for_each(change);
        self.best_before = None;
        self
    }

    /// The values in `noted`, one for each run of the first visit including warm-ups, that belong to
    /// runs which the reading uses.
    pub(crate) fn kept_of<'r, T>(&self, noted: &'r [T]) -> Vec<&'r T> {
        let warm_ups = self.visits.first().map_or(0, |visit| visit.warm_ups);
        let first = self.used().into_iter().filter(|run| run.visit == 0);
        first.filter_map(|run| noted.get(warm_ups + run.number)).collect()
    }

    fn runs(&self) -> impl Iterator<Item = &Trial> {
        self.visits.iter().flat_map(|visit| &visit.runs)
    }

    /// The best of the runs that had their cores; `None` if there is none.
    fn best(&self) -> Option<f64> {
        let values = self.runs().filter(|run| run.had_its_cores(self.most_fused));
        let values = values.map(|run| run.value(self.subject.unit)).chain(self.best_before);
        values.reduce(if self.subject.unit.less_is_better() { f64::min } else { f64::max })
    }

    /// The share of its cores, and of the best run's value, that a run had; 1 means all of it.
    fn share(&self, run: &Trial, best: Option<f64>) -> f64 {
        let value = run.value(self.subject.unit);
        let of_best = match best {
            Some(best) if self.subject.unit.less_is_better() => best / value,
            Some(best) => value / best,
            None => 1.0,
        };
        let of_core = match self.most_fused {
            most if most > 0.0 => run.fused_per_cycle / most,
            _ => 1.0,
        };
        run.cpu_share.min(of_core).min(of_best)
    }

    fn is_good(&self, run: &Trial, best: Option<f64>) -> bool {
        self.needs == Needs::Answers
            || (run.had_its_cores(self.most_fused) && self.share(run, best) >= CORE_SHARE_MIN)
    }

    /// The runs that make up the reading, in order of time: those that were kept and, if these are too
    /// few, the best of the others.
    fn used(&self) -> Vec<Used<'_>> {
        let best = self.best();
        let all = self.visits.iter().enumerate().flat_map(|(visit, found)| {
            let numbered = found.runs.iter().enumerate();
            numbered.map(move |(number, trial)| Used { visit, number, trial })
        });
        let (mut used, mut others): (Vec<Used<'_>>, Vec<Used<'_>>) =
            all.partition(|run| self.is_good(run.trial, best));
        others.sort_by(|a, b| self.share(b.trial, best).total_cmp(&self.share(a.trial, best)));
        others.truncate(self.missing() as usize);
        used.extend(others);
        used.sort_by_key(|run| (run.visit, run.number));
        used
    }

    /// The reading of these runs.
    pub fn reading(&self) -> Reading {
        let used = self.used();
        let unit = self.subject.unit;
        let samples: Vec<f64> = used.iter().map(|run| run.trial.value(unit)).collect();
        let dropped = self.made() - self.kept_values().len();
        let mut conditions = self.during();
        if self.needs == Needs::Cpu {
            conditions.cpu_share = used.iter().map(|run| run.trial.cpu_share).fold(1.0, f64::min);
        }
        let clocks = used.iter().map(|run| run.trial.clock_hertz).filter(|&clock| clock > 0.0);
        let clocks: Vec<f64> = clocks.collect();
        conditions.clock_hertz = (!clocks.is_empty()).then(|| median(&clocks));
        let mut notes = self.disturbances(&conditions);
        notes.extend(self.disagreement(&used, &samples));
        conditions.disturbed = !notes.is_empty();
        notes.extend(self.describe(&used, median(&samples), conditions.clock_hertz));
        let better = if unit.less_is_better() { f64::min } else { f64::max };
        let datagrams = self.datagrams.filter(|datagrams| datagrams.sent > 0);
        Reading {
            area: self.subject.area,
            measurement: self.subject.measurement.clone(),
            parameters: self.subject.parameters.clone(),
            value: median(&samples),
            unit,
            mean: mean(&samples),
            stddev: stddev(&samples),
            best: samples.iter().copied().reduce(better).unwrap_or(f64::NAN),
            interval: median_interval(&samples, 0.95),
            runs: used.len() as u32,
            dropped: dropped as u32,
            disturbed: conditions.disturbed,
            samples,
            conditions,
            percentiles: self.latencies.as_ref().and_then(Latencies::percentiles),
            timeline: self.timeline.clone(),
            earlier_value: None,
            // A network may duplicate a datagram.
            received_share: datagrams.map(|all| (all.came as f64 / all.sent as f64).min(1.0)),
            notes,
        }
    }

    /// The conditions during all visits: shares of time, weighted by duration.
    fn during(&self) -> During {
        let seconds: f64 = self.visits.iter().map(|visit| visit.seconds).sum();
        let mean = |share: fn(&During) -> f64| {
            let parts = self.visits.iter().map(|visit| share(&visit.during) * visit.seconds);
            if seconds > 0.0 { parts.sum::<f64>() / seconds } else { 0.0 }
        };
        During {
            load: self.visits.first().map_or(0.0, |visit| visit.during.load),
            steal: mean(|during| during.steal),
            others: mean(|during| during.others),
            throttled_periods: self.visits.iter().map(|v| v.during.throttled_periods).sum(),
            throttled_seconds: self.visits.iter().map(|v| v.during.throttled_seconds).sum(),
            pressure: self.visits.iter().all(|v| v.during.pressure.is_some()).then(|| Pressure {
                cpu: mean(|during| during.pressure.unwrap_or_default().cpu),
                memory: mean(|during| during.pressure.unwrap_or_default().memory),
                io: mean(|during| during.pressure.unwrap_or_default().io),
            }),
            cpu_share: 1.0,
            clock_hertz: None,
            disturbed: false,
        }
    }

    /// Notes on other users of the machine, and on limits.
    fn disturbances(&self, during: &During) -> Vec<String> {
        let mut notes = Vec::new();
        if self.missing() > 0 {
            let (kept, made) = (self.kept_values().len(), self.made());
            notes.push(format!("only {kept} of {made} runs were not slowed by others"));
        }
        let most = match self.needs {
            Needs::Cpu => OTHERS_MAX,
            Needs::Answers => OTHERS_MAX_WAITING,
        };
        if during.others > most {
            notes.push(format!("others kept {:.2} CPUs busy", during.others));
        }
        if during.steal > STEAL_MAX {
            notes.push(format!("the host took {:.1} % of the CPUs", during.steal * 100.0));
        }
        // Runs that need a CPU are dropped if a quota took it; runs that wait for answers do not reveal
        // that.
        if self.needs == Needs::Answers && during.throttled_periods > 0 {
            let (periods, seconds) = (during.throttled_periods, during.throttled_seconds);
            notes
                .push(format!("a CPU quota throttled it in {periods} periods, for {seconds:.2} s"));
        }
        notes
    }

    /// Why the next median may differ; the first reason that applies, or `None`.
    fn disagreement(&self, used: &[Used<'_>], samples: &[f64]) -> Option<String> {
        let name = self.subject.unit.name();
        let is_changing = |over: &Timeline| over.steady_after_seconds.is_none();
        if self.timeline.as_ref().is_some_and(is_changing) {
            return Some("the rate still changed at the end: measure for longer".to_owned());
        }
        if let Some(medians) = self.visits_that_differ(used) {
            let all: Vec<String> = medians.iter().map(|median| format!("{median:.3e}")).collect();
            return Some(format!("visits well apart in time differ: {} {name}", all.join(", ")));
        }
        if let Some((low, high)) = two_modes(samples) {
            return Some(format!("two modes: {low:.3e} and {high:.3e} {name}"));
        }
        if let Some(change) = drift(samples) {
            return Some(format!("drift of {:+.0} % between the runs", change * 100.0));
        }
        let (low, high) = median_interval(samples, 0.95);
        let unknown = (high - low) / 2.0 / median(samples).abs();
        (unknown > UNKNOWN_MAX)
            .then(|| format!("the runs disagree: known to ± {:.0} % only", unknown * 100.0))
    }

    /// The median of each visit, if the visits that make up the reading differ, or if only one counts.
    fn visits_that_differ(&self, used: &[Used<'_>]) -> Option<Vec<f64>> {
        let unit = self.subject.unit;
        let (mut medians, mut of_reading) = (Vec::new(), Vec::new());
        for (number, visit) in self.visits.iter().enumerate() {
            let here = used.iter().filter(|run| run.visit == number);
            let here: Vec<f64> = here.map(|run| run.trial.value(unit)).collect();
            if here.is_empty() {
                let all: Vec<f64> = visit.runs.iter().map(|run| run.value(unit)).collect();
                medians.push(median(&all));
            } else {
                medians.push(median(&here));
                of_reading.push(median(&here));
            }
        }
        let least = of_reading.iter().copied().fold(f64::INFINITY, f64::min);
        let most = of_reading.iter().copied().fold(0.0, f64::max);
        let is_one = of_reading.len() == 1 && medians.len() > 1;
        (is_one || most > least * (1.0 + UNKNOWN_MAX)).then_some(medians)
    }

    /// Notes for the reader besides the value.
    fn describe(&self, used: &[Used<'_>], value: f64, clock_hertz: Option<f64>) -> Vec<String> {
        let mut notes = self.notes.clone();
        let cores = used.first().map_or(0, |run| run.trial.cores);
        if let (Area::Cpu, Some(clock), 1..) = (self.subject.area, clock_hertz, cores) {
            let per_cycle = value / clock / cores as f64;
            notes.push(format!("{per_cycle:.2} a cycle at {:.2} GHz", clock / 1e9));
        }
        if let (Area::Memory, Unit::OpPerSecond) = (self.subject.area, self.subject.unit) {
            notes.push(format!("{:.2} ns a load", 1e9 / value));
        }
        if let Some(Datagrams { lost, late, .. }) = self.datagrams {
            notes.push(format!("{lost} datagrams lost, {late} out of order"));
        }
        notes
    }
}

/// Notes on how the rate of a long run changed; `at` is the time of a window, and `windows` are the last
/// ones.
fn describe_levels(
    levels: &Levels,
    at: impl Fn(usize) -> f64,
    windows: &[f64],
    subject: &Subject,
) -> Vec<String> {
    let unit = subject.unit.name();
    let mut notes = Vec::new();
    let (first, last) = (levels.first, levels.last);
    if levels.is_steady && levels.differ() {
        let (until, from) = (at(levels.first_windows), at(levels.last_from));
        let share = 100.0 * last / first;
        notes.push(format!(
            "{first:.3e} {unit} in the first {until:.1} s, {last:.3e} {unit} after {from:.1} s: \
             {share:.0} %"
        ));
    }
    let mean = mean(windows);
    if (mean - last).abs() > UNKNOWN_MAX * last {
        notes
            .push(format!("some windows are much slower or faster: the mean is {mean:.3e} {unit}"));
    }
    notes
}

/// A run that is part of a reading.
struct Used<'a> {
    visit: usize,
    number: usize,
    trial: &'a Trial,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::reading::Parameters;

    /// A series of one run for each rate; runs with rates below 0 did not get their CPU.
    fn series(rates: &[f64], latency: Duration) -> Series {
        let run = |rate: &f64| Trial {
            seconds: 1.0,
            units: rate.abs(),
            cpu_share: if *rate > 0.0 { 1.0 } else { 0.5 },
            overlap: 1.0,
            ..Trial::default()
        };
        let runs = rates.iter().map(run).collect();
        let visit = Visit { runs, warm_ups: 1, during: During::default(), seconds: 1.0 };
        let subject =
            Subject::new(Area::Network, "throughput", Parameters::new(), Unit::BytesPerSecond);
        let mut series = Series::new(subject, Needs::Cpu);
        series.least = rates.len() as u32;
        series.visits = vec![visit];
        let mut latencies = Latencies::new().unwrap();
        latencies.record(latency);
        series.latencies = Some(latencies);
        series.datagrams = Some(Datagrams { sent: 10, came: 9, lost: 1, late: 0 });
        series
    }

    #[test]
    fn a_long_run_is_its_windows_after_the_last_change() {
        let subject =
            || Subject::new(Area::Disk, "writes", Parameters::new(), Unit::BytesPerSecond);
        let of = |rates: Vec<f64>| Series::of_windows(subject(), 2.0, rates, During::default());
        let reading = of([[250.0; 12], [100.0; 12]].concat()).unwrap().reading();
        assert_eq!((reading.value, reading.runs, reading.disturbed), (100.0, 12, false));
        assert_eq!(reading.samples, [100.0; 12]);
        let note = "2.500e2 B/s in the first 24.0 s, 1.000e2 B/s after 24.0 s: 40 %";
        assert_eq!(reading.notes, [note]);
        let timeline = reading.timeline.unwrap();
        assert_eq!((timeline.initial, timeline.initial_seconds), (250.0, 24.0));
        assert_eq!((timeline.steady_after_seconds, timeline.rates.len()), (Some(24.0), 24));
        let falling = (0..20).map(|window| 1000.0 - 45.0 * f64::from(window)).collect();
        let reading = of(falling).unwrap().reading();
        assert!(reading.disturbed && reading.runs == 5, "{reading:?}");
        assert!(reading.notes[0].contains("still changed at the end"), "{reading:?}");
        assert_eq!(reading.timeline.unwrap().steady_after_seconds, None);
        assert!(of(vec![1.0; 9]).is_err());
    }

    #[test]
    fn counts_and_times_of_visits_are_added_up() {
        let mut all = series(&[1.0], Duration::from_micros(1));
        let mut later = series(&[1.0], Duration::from_micros(100));
        later.datagrams = Some(Datagrams { sent: 30, came: 30, lost: 0, late: 2 });
        all.notes.push("buffered".to_owned());
        later.notes.push("buffered".to_owned());
        all.join(later, 2);
        let reading = all.reading();
        assert_eq!(reading.received_share, Some(39.0 / 40.0));
        assert_eq!(reading.notes, ["buffered", "1 datagrams lost, 2 out of order"]);
        let times = reading.percentiles.unwrap();
        let counted: u64 = times.buckets.iter().map(|bucket| bucket.1).sum();
        assert_eq!(counted, 2);
        assert!(times.p50 < 2e-6 && times.max > 9e-5, "{times:?}");
    }

    #[test]
    fn values_noted_beside_runs_are_found_again() {
        let runs = series(&[1.0, -1.0, 1.0], Duration::ZERO);
        let noted = ["warm-up", "first", "dropped", "third"];
        assert_eq!(runs.missing(), 1);
        // Without another run, the dropped one counts.
        assert_eq!(runs.kept_of(&noted), [&"first", &"dropped", &"third"]);
        assert_eq!(Series { least: 2, ..runs }.kept_of(&noted), [&"first", &"third"]);
    }

    #[test]
    fn throttling_by_a_quota_disturbs_runs_that_do_not_reveal_it() {
        let mut all = series(&[1.0, 1.0], Duration::ZERO);
        all.visits[0].during = During {
            throttled_periods: 3,
            throttled_seconds: 0.25,
            pressure: Some(Pressure { cpu: 0.5, ..Pressure::default() }),
            ..During::default()
        };
        let of_cpus = all.reading();
        assert!(!of_cpus.disturbed, "{of_cpus:?}");
        assert_eq!(of_cpus.conditions.throttled_periods, 3);
        assert_eq!(of_cpus.conditions.pressure.unwrap().cpu, 0.5);
        let answers = Series { needs: Needs::Answers, ..all }.reading();
        assert!(answers.disturbed);
        assert!(answers.notes[0].contains("in 3 periods, for 0.25 s"), "{:?}", answers.notes);
    }

    #[test]
    fn runs_of_a_visit_without_a_cpu_are_left_out_if_another_had_it() {
        let mut all = series(&[-3.0, -3.0], Duration::ZERO);
        assert_eq!(all.reading().samples, [3.0, 3.0]);
        all.join(series(&[1.0, 1.0], Duration::ZERO), 2);
        let reading = all.reading();
        assert_eq!((reading.samples, reading.dropped), (vec![1.0, 1.0], 2));
    }
}
