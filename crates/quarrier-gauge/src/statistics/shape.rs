//! Checks whether runs agree, and reports two modes or a drift instead of averaging over them.

use super::{mean, median};

/// Smaller differences, as a share of the value, are not reported.
const WORTH_TELLING: f64 = 0.05;

/// Returns the two values between which the runs jump, if they do. Cut at the widest gap, each side
/// must have at least a fifth of the runs (and two), and the gap must be three times as wide as
/// either side and 5 % of the value.
pub fn two_modes(samples: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let least = (sorted.len() / 5).max(2);
    let cut = (least..(sorted.len() + 1).saturating_sub(least))
        .max_by(|&a, &b| (sorted[a] - sorted[a - 1]).total_cmp(&(sorted[b] - sorted[b - 1])))?;
    let (low, high) = sorted.split_at(cut);
    let gap = high[0] - low[low.len() - 1];
    let width = (low[low.len() - 1] - low[0]).max(high[high.len() - 1] - high[0]);
    let tells = gap > 3.0 * width && gap > WORTH_TELLING * median(samples).abs();
    tells.then(|| (median(low), median(high)))
}

/// Returns the change from the first half of the runs to the second, as a share of the first, if
/// the runs rise or fall steadily: there are at least six runs, three quarters more pairs in one
/// order than in the other, and a change of 5 %.
pub fn drift(samples: &[f64]) -> Option<f64> {
    if samples.len() < 6 {
        return None;
    }
    let mut order = 0.0;
    for (later, sample) in samples.iter().enumerate() {
        for earlier in &samples[..later] {
            order += if sample > earlier {
                1.0
            } else if sample < earlier {
                -1.0
            } else {
                0.0
            };
        }
    }
    let pairs = (samples.len() * (samples.len() - 1) / 2) as f64;
    let (first, second) = samples.split_at(samples.len() / 2);
    let change = mean(second) / mean(first) - 1.0;
    ((order / pairs).abs() >= 0.75 && change.abs() > WORTH_TELLING).then_some(change)
}
