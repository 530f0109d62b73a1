//! Compares two reports of the same measurements: which readings changed, and which changes cannot be
//! decided.
//!
//! The comparison assumes no distribution of runs. A rank test (Mann-Whitney) decides whether two sets
//! of runs differ; the median of all ratios between a run of one and a run of the other
//! (Hodges-Lehmann), with the matching confidence interval, says by how much.
//!
//! Runs of one process agree better with each other than with those of the next, so a difference below
//! [`EQUAL_WITHIN`] never counts.

use quarrier_report::number::counted;

use crate::conditions::Machine;
use crate::reading::Reading;
use crate::report::Report;
use crate::statistics::{mann_whitney, median, t_test};

/// Ratios within this distance of 1 count as equal.
pub const EQUAL_WITHIN: f64 = 0.05;

/// The significance level of the test for a difference.
pub(crate) const ALPHA: f64 = 0.01;
/// 97.5 % of a normal distribution lie below this many standard deviations.
const Z_95: f64 = 1.959_964;

/// The change of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Better by more than [`EQUAL_WITHIN`], and not by chance.
    Faster,
    /// Worse by more than [`EQUAL_WITHIN`], and not by chance.
    Slower,
    /// Within [`EQUAL_WITHIN`], and so is the whole interval.
    Equal,
    /// The runs do not decide whether it changed.
    TooNoisy,
}

impl Verdict {
    /// All verdicts, in order of importance to people.
    pub const ALL: [Verdict; 4] =
        [Verdict::Slower, Verdict::Faster, Verdict::TooNoisy, Verdict::Equal];

    /// The verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Equal => "equal",
            Verdict::TooNoisy => "too noisy",
        }
    }
}

/// A reading that both reports have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change<'r> {
    /// The earlier reading.
    pub before: &'r Reading,
    /// The later reading.
    pub after: &'r Reading,
    /// Its verdict.
    pub verdict: Verdict,
    /// The speed relative to the earlier reading: above 1 is better, for times too.
    pub ratio: f64,
    /// The 95 % interval of the ratio, or the nearest level that so few runs allow.
    pub interval: (f64, f64),
    /// The probability that chance alone causes such a difference.
    pub p: f64,
    /// Why the reading is too noisy; `None` for other verdicts.
    pub reason: Option<&'static str>,
}

impl Change<'_> {
    /// Whether chance causes such a difference with a probability of at most `alpha`: by the ranks of the
    /// runs, or by their logarithms if there are too few ranks to reach `alpha`.
    pub(crate) fn is_no_chance(&self, alpha: f64) -> bool {
        let (old, new) = (runs(self.before), runs(self.after));
        if can_differ(old.len(), new.len(), alpha) {
            return self.p <= alpha;
        }
        let logarithms = |runs: &[f64]| runs.iter().map(|run| run.ln()).collect::<Vec<_>>();
        t_test(&logarithms(&old), &logarithms(&new)) <= alpha
    }
}

/// A comparison of two reports, reading by reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison<'r> {
    /// Readings in both, in the order of the later report.
    pub changes: Vec<Change<'r>>,
    /// Readings only in the earlier report.
    pub only_before: Vec<&'r Reading>,
    /// Readings only in the later report.
    pub only_after: Vec<&'r Reading>,
    /// Whether both reports seem to be of the same machine.
    pub is_same_machine: bool,
    /// The limits of the process in words, then and now, if they differ.
    pub limits: Option<(String, String)>,
}

impl Comparison<'_> {
    /// The number of changes with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|change| change.verdict == verdict).count()
    }
}

/// Compares `after` with `before`. Readings correspond if area, measurement, unit and all parameters
/// are equal.
pub fn compare<'r>(before: &'r Report, after: &'r Report) -> Comparison<'r> {
    let mut left: Vec<Option<&Reading>> = before.readings.iter().map(Some).collect();
    let mut comparison = Comparison {
        is_same_machine: before.machine.name == after.machine.name
            && before.machine.cpu_model == after.machine.cpu_model,
        limits: limits(&before.machine, &after.machine),
        ..Comparison::default()
    };
    for reading in &after.readings {
        let same = left.iter_mut().find(|old| old.is_some_and(|old| is_same(old, reading)));
        match same.and_then(Option::take) {
            Some(old) => comparison.changes.push(change(old, reading)),
            None => comparison.only_after.push(reading),
        }
    }
    comparison.only_before = left.into_iter().flatten().collect();
    comparison
}

fn limits(before: &Machine, after: &Machine) -> Option<(String, String)> {
    let is_same = before.limits == after.limits && before.cpus == after.cpus;
    let words = |machine: &Machine| match machine.limits.is_none() {
        true => counted(machine.cpus.into(), "CPU"),
        false => machine.limits.describe(),
    };
    (!is_same).then(|| (words(before), words(after)))
}

fn is_same(a: &Reading, b: &Reading) -> bool {
    a.area == b.area
        && a.measurement == b.measurement
        && a.unit == b.unit
        && a.parameters.iter().count() == b.parameters.iter().count()
        && a.parameters.iter().all(|(name, value)| b.parameters.get(name) == Some(value))
}

/// Compares two readings.
pub fn change<'r>(before: &'r Reading, after: &'r Reading) -> Change<'r> {
    let old = runs(before);
    let new = runs(after);
    let ratios = ratios(&old, &new, after.unit.less_is_better());
    let mut change = Change {
        before,
        after,
        verdict: Verdict::TooNoisy,
        ratio: median(&ratios),
        interval: interval(&ratios, old.len(), new.len()),
        p: mann_whitney(&old, &new),
        reason: None,
    };
    let (low, high) = change.interval;
    let is_near = |ratio: f64| (1.0 - EQUAL_WITHIN..=1.0 / (1.0 - EQUAL_WITHIN)).contains(&ratio);
    if ratios.is_empty() || !change.ratio.is_finite() {
        change.reason = Some("there are no runs to compare");
    } else if before.is_disturbed_itself() || after.is_disturbed_itself() {
        change.reason = Some("others used the machine meanwhile, or a limit throttled it");
    } else if is_near(low) && is_near(high) {
        change.verdict = Verdict::Equal;
    } else if !is_near(change.ratio) && differs(&change, &old, &new) {
        change.verdict = if change.ratio > 1.0 { Verdict::Faster } else { Verdict::Slower };
    } else if can_differ(old.len(), new.len(), ALPHA) {
        change.reason = Some("the runs spread too far");
    } else {
        change.reason = Some("too few runs for their spread");
    }
    change
}

/// The runs, if they can be compared: a report from elsewhere may hold any numbers.
fn runs(reading: &Reading) -> Vec<f64> {
    let samples = reading.samples.iter().copied();
    samples.filter(|sample| sample.is_finite() && *sample > 0.0).take(RUNS_MOST).collect()
}

/// Maximum number of runs compared, since the number of pairs is quadratic.
const RUNS_MOST: usize = 1000;

/// The speed of each run of `new` relative to each run of `old`, sorted.
fn ratios(old: &[f64], new: &[f64], less_is_better: bool) -> Vec<f64> {
    let of_pair = |old: f64, new: f64| if less_is_better { old / new } else { new / old };
    let mut ratios: Vec<f64> =
        old.iter().flat_map(|&old| new.iter().map(move |&new| of_pair(old, new))).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// The ratios between which the test at 95 % would find no difference; all ratios if there are very few
/// runs.
fn interval(ratios: &[f64], n: usize, m: usize) -> (f64, f64) {
    let (Some(&least), Some(&most)) = (ratios.first(), ratios.last()) else {
        return (f64::NAN, f64::NAN);
    };
    let pairs = ratios.len() as f64;
    let spread = (pairs * (n + m + 1) as f64 / 12.0).sqrt();
    let outside = (pairs / 2.0 - Z_95 * spread).floor().max(0.0) as usize;
    let inner = ratios.get(outside).zip(ratios.get(ratios.len() - 1 - outside));
    inner.map_or((least, most), |(&low, &high)| (low, high))
}

/// Whether this many runs can differ at `alpha` at all: if every run of one set exceeds every run of
/// the other.
fn can_differ(n: usize, m: usize, alpha: f64) -> bool {
    let orders = (1..=m.min(40)).fold(1.0, |ways, k| ways * (n + k) as f64 / k as f64);
    2.0 / orders <= alpha
}

/// Whether the difference exceeds chance. If there are too few runs for the test, the sets must be
/// further apart than the spread of either.
fn differs(change: &Change<'_>, old: &[f64], new: &[f64]) -> bool {
    if can_differ(old.len(), new.len(), ALPHA) {
        return change.p <= ALPHA;
    }
    let ends = |runs: &[f64]| {
        runs.iter().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)))
    };
    let few = old.len().min(new.len());
    let (old, new) = (ends(old), ends(new));
    let gap = (new.0 / old.1).max(old.0 / new.1);
    let enough = old.1 / old.0 * (new.1 / new.0) * (1.0 + EQUAL_WITHIN / 2.0);
    few > 2 && gap >= enough
}
