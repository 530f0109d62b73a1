//! The levels of a long run: how fast it began, and at which rate it stayed.

use super::{drift, median, median_deviation};

/// The number of windows that make a level, and the number around a window whose median stands for it: a
/// single slow window ends no level.
const FEW: usize = 5;
/// The end of a run that must no longer change: this part of it, as a divisor.
const TAIL_PART: usize = 5;
/// Windows belong to a level if they differ from its median by this share at most, or by twice the spread
/// of the level, up to [`APART_MAX`].
const APART: f64 = 0.1;
const APART_MAX: f64 = 0.3;
/// A median deviation times this estimates a standard deviation.
const DEVIATION: f64 = 1.4826;

/// The levels of a run, by windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// The median of the first windows, up to the first lasting change.
    pub first: f64,
    /// The number of these windows.
    pub first_windows: usize,
    /// The median of the last windows, after the last lasting change.
    pub last: f64,
    /// The index of the first of these windows.
    pub last_from: usize,
    /// Whether the rate did not change in the last fifth of the run, and was not 0.
    pub is_steady: bool,
}

impl Levels {
    /// Returns the levels of `rates`, one for each window; `None` for fewer than 10 windows.
    ///
    /// A change lasts if the median of five windows leaves the level, by 10 % or by twice the spread of
    /// the windows, for more than five windows. Changes at the very start that take fewer than three
    /// windows belong to no level.
    pub fn of(rates: &[f64]) -> Option<Levels> {
        if rates.len() < 2 * FEW {
            return None;
        }
        let tail = &rates[rates.len() - (rates.len() / TAIL_PART).max(FEW)..];
        let is_steady = is_one_level(tail);
        let smooth: Vec<f64> = (0..rates.len()).map(|at| around(rates, at)).collect();
        let backwards: Vec<f64> = smooth.iter().rev().copied().collect();
        let stays = if is_steady { lasts(&backwards, tail) } else { 0 };
        let last_from = rates.len() - stays.max(tail.len());
        let first_windows = lasts(&smooth, &rates[..FEW]).clamp(FEW, rates.len());
        Some(Levels {
            first: median(&rates[..first_windows]),
            first_windows,
            last: median(&rates[last_from..]),
            last_from,
            is_steady,
        })
    }

    /// Whether the last level is another than the first.
    pub fn differ(&self) -> bool {
        differ(self.first, self.last)
    }
}

/// Whether two rates of a long run are different levels.
pub(crate) fn differ(first: f64, last: f64) -> bool {
    (last - first).abs() > APART * first
}

/// The median of the windows around `at`.
fn around(rates: &[f64], at: usize) -> f64 {
    median(&rates[at.saturating_sub(FEW / 2)..(at + FEW / 2 + 1).min(rates.len())])
}

/// The number of windows, from the first of `smooth` on, that stay on the level of `windows`: breaks of
/// a few windows do not end it.
fn lasts(smooth: &[f64], windows: &[f64]) -> usize {
    let (level, apart) = (median(windows), apart(windows));
    let mut end = 0;
    for (at, rate) in smooth.iter().enumerate() {
        if (rate - level).abs() <= apart {
            end = at + 1;
        } else if at + 1 - end > FEW {
            break;
        }
    }
    end
}

/// How far a window may be from the level of `windows`.
fn apart(windows: &[f64]) -> f64 {
    let level = median(windows);
    (2.0 * DEVIATION * median_deviation(windows)).max(APART * level).min(APART_MAX * level)
}

/// Whether the two halves of `windows` have one level above 0, and do not drift.
fn is_one_level(windows: &[f64]) -> bool {
    let (first, second) = windows.split_at(windows.len() / 2);
    (median(first) - median(second)).abs() <= apart(windows)
        && drift(windows).is_none()
        && median(windows) > 0.0
}

#[cfg(test)]
mod tests {
    use super::super::SplitMix;
    use super::*;

    /// Windows at each of some levels, each window up to `noise` of the level away from it.
    fn run(levels: &[(f64, usize)], noise: f64) -> Vec<f64> {
        let mut random = SplitMix(7);
        let mut part = || random.below(2001) as f64 / 1000.0 - 1.0;
        let windows = levels.iter().flat_map(|&(rate, count)| std::iter::repeat_n(rate, count));
        windows.map(|rate| rate * (1.0 + noise * part())).collect()
    }

    #[test]
    fn a_burst_and_what_follows_are_told_apart() {
        for noise in [0.0, 0.03, 0.08] {
            let found = Levels::of(&run(&[(250.0, 31), (128.0, 29)], noise)).unwrap();
            assert_eq!((found.first_windows, found.last_from), (31, 31), "{noise}");
            assert!(found.is_steady && found.differ(), "{noise} {found:?}");
            let is_near = |value: f64, level: f64| (value / level - 1.0).abs() <= noise / 2.0;
            assert!(is_near(found.first, 250.0) && is_near(found.last, 128.0), "{found:?}");
        }
        // With a transition, and with a rate that rises.
        let found = Levels::of(&run(&[(900.0, 20), (500.0, 8), (100.0, 32)], 0.02)).unwrap();
        assert_eq!((found.first_windows, found.last_from), (20, 28));
        let found = Levels::of(&run(&[(50.0, 8), (100.0, 52)], 0.02)).unwrap();
        assert!(found.last_from == 8 && found.differ(), "{found:?}");
    }

    #[test]
    fn a_constant_rate_is_one_level_whatever_it_is() {
        for rate in [1e-300, 7e9, 1e300] {
            let found = Levels::of(&[rate; 20]).unwrap();
            let all = Levels {
                first: rate,
                first_windows: 20,
                last: rate,
                last_from: 0,
                is_steady: true,
            };
            assert_eq!(found, all);
            assert!(!found.differ());
        }
        let found = Levels::of(&run(&[(100.0, 60)], 0.25)).unwrap();
        assert!(found.is_steady && !found.differ() && found.last_from < 6, "{found:?}");
    }

    #[test]
    fn short_stalls_end_no_level() {
        let mut rates = run(&[(200.0, 60)], 0.02);
        for at in [10, 25, 26, 40, 41, 42, 43, 59] {
            rates[at] = 0.0;
        }
        let found = Levels::of(&rates).unwrap();
        assert_eq!((found.first_windows, found.last_from), (60, 0), "{found:?}");
    }

    #[test]
    fn a_rate_that_changes_until_the_end_is_not_steady() {
        let falling: Vec<f64> = (0..60).map(|at| 1000.0 / (1.0 + f64::from(at) / 20.0)).collect();
        let found = Levels::of(&falling).unwrap();
        assert!(!found.is_steady && found.last_from == 48, "{found:?}");
        let found = Levels::of(&run(&[(250.0, 54), (100.0, 6)], 0.02)).unwrap();
        assert!(!found.is_steady, "{found:?}");
        let found = Levels::of(&[0.0; 20]).unwrap();
        assert!(!found.is_steady && found.last == 0.0 && !found.differ(), "{found:?}");
    }

    #[test]
    fn too_few_windows_have_no_levels() {
        assert_eq!(Levels::of(&[1.0; 9]), None);
        assert!(Levels::of(&[1.0; 10]).is_some());
    }
}
