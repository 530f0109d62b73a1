//! Statistics of a few runs: median, spread, and whether two sets differ.
//!
//! The algorithms are quadratic at worst; the samples of a reading are few.

mod levels;
mod rank;
mod shape;
mod student;

pub use levels::Levels;
pub(crate) use levels::differ;
pub use rank::mann_whitney;
pub use shape::{drift, two_modes};
pub use student::t_test;

/// The middle value, or the mean of the two in the middle; NaN for no samples.
pub fn median(samples: &[f64]) -> f64 {
    let sorted = sorted(samples);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The sum divided by the number; NaN for no samples.
pub fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// The standard deviation of a sample (divided by n − 1); 0 for fewer than two.
pub fn stddev(samples: &[f64]) -> f64 {
    if samples.len() < 2 {
        return 0.0;
    }
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (squares / (samples.len() - 1) as f64).sqrt()
}

/// The median distance from the median. Times 1.4826 it estimates a standard deviation that one
/// bad run does not move.
pub fn median_deviation(samples: &[f64]) -> f64 {
    let middle = median(samples);
    median(&samples.iter().map(|sample| (sample - middle).abs()).collect::<Vec<_>>())
}

/// The value below which `share` (0 to 1) of the samples lie, interpolated between neighbours.
pub fn quantile(samples: &[f64], share: f64) -> f64 {
    quantile_of_sorted(&sorted(samples), share)
}

/// The confidence interval of the median at `confidence` (for example 0.95), by resampling 1,000 times.
/// Equal samples give equal intervals. A single sample is its own interval.
pub fn median_interval(samples: &[f64], confidence: f64) -> (f64, f64) {
    const RESAMPLES: usize = 1_000;
    if samples.len() < 2 {
        let only = median(samples);
        return (only, only);
    }
    let mut random = SplitMix(samples.len() as u64);
    let mut resample = vec![0.0; samples.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            resample.fill_with(|| samples[random.below(samples.len())]);
            median(&resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let outside = (1.0 - confidence) / 2.0;
    (quantile_of_sorted(&medians, outside), quantile_of_sorted(&medians, 1.0 - outside))
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * part
}

/// Vigna's generator: small, seeded, good enough to draw samples and to shuffle.
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}
