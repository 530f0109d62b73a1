//! The statistics, compared with those of another library.

use proptest::collection::vec;
use proptest::prelude::*;
use quarrier_gauge::statistics::{
    drift, mann_whitney, mean, median, median_deviation, median_interval, quantile, stddev,
    two_modes,
};
use statrs::statistics::{Data, Median, OrderStatistics, Statistics};
use statrs::stats_tests::Alternative;
use statrs::stats_tests::mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu};

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-3)
}

proptest! {
    #[test]
    fn middle_and_spread_are_those_of_the_oracle(samples in vec(-1e6_f64..1e6, 2..40)) {
        prop_assert!(near(median(&samples), Data::new(samples.clone()).median()));
        prop_assert!(near(mean(&samples), Statistics::mean(&samples)));
        prop_assert!(near(stddev(&samples), Statistics::std_dev(&samples)));
        let middle = median(&samples);
        let distances: Vec<f64> = samples.iter().map(|sample| (sample - middle).abs()).collect();
        prop_assert!(near(median_deviation(&samples), Data::new(distances).median()));
        let mut data = Data::new(samples.clone());
        prop_assert_eq!(quantile(&samples, 0.0), data.quantile(0.0));
        prop_assert_eq!(quantile(&samples, 1.0), data.quantile(1.0));
    }

    #[test]
    fn mann_and_whitney_agree_with_the_oracle(
        left in vec(-1e3_f64..1e3, 2..6),
        right in vec(-1e3_f64..1e3, 6..10),
    ) {
        // The oracle's exact answer is the complement unless the first of its sets is the larger.
        let mut all: Vec<f64> = left.iter().chain(&right).copied().collect();
        all.sort_by(f64::total_cmp);
        prop_assume!(all.windows(2).all(|pair| pair[0] < pair[1]));
        let (_, exact) =
            mannwhitneyu(&right, &left, MannWhitneyUMethod::Exact, Alternative::TwoSided).unwrap();
        prop_assert!(near(mann_whitney(&left, &right), exact));
    }

    #[test]
    fn with_ties_they_agree_too(
        left in vec((0_u8..6).prop_map(f64::from), 8..30),
        right in vec((0_u8..6).prop_map(f64::from), 8..30),
    ) {
        let method = MannWhitneyUMethod::AsymptoticInclContinuityCorrection;
        let (_, p) = mannwhitneyu(&left, &right, method, Alternative::TwoSided).unwrap();
        prop_assert!((mann_whitney(&left, &right) - p).abs() < 1e-6);
    }

    #[test]
    fn the_interval_holds_the_median_and_lies_among_the_samples(samples in vec(0.1_f64..10.0, 1..30)) {
        let (low, high) = median_interval(&samples, 0.95);
        let middle = median(&samples);
        prop_assert!(low <= middle && middle <= high);
        prop_assert!(quantile(&samples, 0.0) <= low && high <= quantile(&samples, 1.0));
        prop_assert_eq!(median_interval(&samples, 0.95), (low, high));
    }

    #[test]
    fn no_difference_is_found_between_a_set_and_itself(samples in vec(0.1_f64..10.0, 1..30)) {
        prop_assert!(mann_whitney(&samples, &samples) > 0.99);
    }
}

#[test]
fn few_runs_far_apart_differ_as_far_as_few_runs_can() {
    let (low, high) = ([1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4]);
    assert!(near(mann_whitney(&low, &high), 2.0 / 252.0));
    assert!(near(mann_whitney(&high, &low), 2.0 / 252.0));
    assert_eq!(mann_whitney(&[1.0], &[]), 1.0);
}

#[test]
fn two_modes_are_distinguished_from_one_with_a_straggler() {
    assert_eq!(two_modes(&[46.8, 79.0, 46.9, 79.1, 47.0]), Some((46.9, 79.05)));
    assert_eq!(two_modes(&[46.8, 46.9, 47.0, 46.7, 79.0]), None);
    assert_eq!(two_modes(&[1.0, 1.1, 1.2, 1.3, 1.4]), None);
    assert_eq!(two_modes(&[1.0, 1.0, 1.01, 1.01]), None);
    assert_eq!(two_modes(&[]), None);
}

#[test]
fn drift_is_a_steady_change_and_no_noise() {
    let falls = drift(&[2.0, 1.9, 1.8, 1.7, 1.6, 1.5]).unwrap();
    assert!((falls + 0.158).abs() < 0.001, "{falls}");
    assert_eq!(drift(&[1.0, 1.5, 0.9, 1.6, 1.0, 1.4]), None);
    assert_eq!(drift(&[1.0, 1.001, 1.002, 1.003, 1.004, 1.005]), None);
    assert_eq!(drift(&[1.0, 2.0, 3.0]), None);
}

#[test]
fn nothing_is_said_of_no_samples() {
    assert!(median(&[]).is_nan() && mean(&[]).is_nan() && quantile(&[], 0.5).is_nan());
    assert_eq!(stddev(&[1.0]), 0.0);
}
