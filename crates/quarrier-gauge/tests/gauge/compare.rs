//! Comparison of two reports: chance differences are not changes, and real changes are found.

use proptest::prelude::*;
use quarrier_gauge::compare::{Verdict, change, compare};
use quarrier_gauge::{Area, Parameters, Reading, Unit};

use crate::made_up::{self, Noise};

fn reading(value: f64, unit: Unit, spread: f64, runs: usize, noise: &mut Noise) -> Reading {
    let parameters = Parameters::new().with("threads", 2);
    made_up::reading((Area::Memory, "triad"), parameters, (value, unit), (spread, runs), noise)
}

/// The number of each verdict for simulated runs around `before` and `after`.
fn verdicts(before: f64, after: f64, unit: Unit, spread: f64, runs: usize) -> [usize; 4] {
    let mut noise = Noise(7);
    let mut counts = [0; 4];
    for _ in 0..1000 {
        let old = reading(before, unit, spread, runs, &mut noise);
        let new = reading(after, unit, spread, runs, &mut noise);
        let verdict = change(&old, &new).verdict;
        counts[Verdict::ALL.iter().position(|known| *known == verdict).unwrap()] += 1;
    }
    counts
}

#[test]
fn runs_of_one_machine_are_rarely_called_different() {
    for runs in [3, 4, 5, 10, 25] {
        for spread in [0.001, 0.01, 0.03, 0.1, 0.3] {
            let [slower, faster, ..] = verdicts(40e9, 40e9, Unit::BytesPerSecond, spread, runs);
            assert!(slower + faster <= 20, "{runs} runs, {spread}: {slower} + {faster} of 1,000");
        }
    }
}

#[test]
fn a_change_of_a_fifth_is_found_where_runs_agree() {
    for runs in [3, 5, 10] {
        let [slower, ..] = verdicts(40e9, 32e9, Unit::BytesPerSecond, 0.01, runs);
        let [_, faster, ..] = verdicts(40e9, 50e9, Unit::BytesPerSecond, 0.01, runs);
        assert!(slower >= 950 && faster >= 950, "{runs} runs: {slower}, {faster}");
    }
}

#[test]
fn a_longer_time_is_slower() {
    let [slower, ..] = verdicts(100e-9, 130e-9, Unit::Seconds, 0.01, 5);
    let [_, faster, ..] = verdicts(100e-9, 70e-9, Unit::Seconds, 0.01, 5);
    assert!(slower >= 990 && faster >= 990);
}

#[test]
fn a_change_too_small_to_matter_is_equal() {
    let [.., equal] = verdicts(40e9, 40.4e9, Unit::BytesPerSecond, 0.001, 25);
    assert_eq!(equal, 1000);
}

#[test]
fn disturbed_readings_are_too_noisy_to_compare() {
    let mut noise = Noise(1);
    let old = reading(40e9, Unit::BytesPerSecond, 0.01, 5, &mut noise);
    let mut new = reading(20e9, Unit::BytesPerSecond, 0.01, 5, &mut noise);
    assert_eq!(change(&old, &new).verdict, Verdict::Slower);
    new.disturbed = true;
    let changed = change(&old, &new);
    assert_eq!(changed.verdict, Verdict::TooNoisy);
    assert!(changed.reason.unwrap().contains("others"));
}

#[test]
fn readings_are_matched_by_all_their_parameters_in_any_order() {
    let (mut before, mut after) = (made_up::report(1), made_up::report(1));
    after.readings.reverse();
    let parameters = Parameters::new().with("threads", 1).with("type", "f64");
    let moved = Parameters::new().with("type", "f64").with("threads", 1);
    before.readings[0].parameters = parameters;
    after.readings.last_mut().unwrap().parameters = moved;
    let both = compare(&before, &after);
    assert_eq!(both.changes.len(), before.readings.len());
    assert_eq!((both.only_before.len(), both.only_after.len()), (0, 0));
    assert!(both.is_same_machine);
    assert!(both.changes.iter().all(|c| c.before.value == c.after.value && c.ratio == 1.0));

    // Another affinity is not another machine, but is reported.
    assert_eq!(both.limits, None);
    after.machine.cpus = 1;
    after.machine.limits.affinity_cpus = Some(1);
    after.machine.limits.affinity_of_cpus = Some(4);
    let both = compare(&before, &after);
    assert!(both.is_same_machine);
    let words = ("4 CPUs".to_string(), "affinity 1 of 4 CPUs".to_string());
    assert_eq!(both.limits, Some(words));

    after.readings[0].unit = Unit::OpPerSecond;
    after.machine.cpu_model.push('X');
    let both = compare(&before, &after);
    assert_eq!((both.only_before.len(), both.only_after.len()), (1, 1));
    assert!(!both.is_same_machine);
}

proptest! {
    #[test]
    fn any_runs_have_a_verdict_and_to_swap_them_turns_it_round(
        old in prop::collection::vec(-1.0..1e12f64, 0..30),
        new in prop::collection::vec(prop_oneof![1.0..1e12f64, Just(f64::NAN)], 0..30),
    ) {
        let mut noise = Noise(1);
        let mut before = reading(1.0, Unit::BytesPerSecond, 0.0, 3, &mut noise);
        let mut after = before.clone();
        before.samples = old;
        after.samples = new;
        let (there, back) = (change(&before, &after), change(&after, &before));
        let turned = match there.verdict {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            same => same,
        };
        prop_assert_eq!(back.verdict, turned);
        prop_assert!((0.0..=1.0).contains(&there.p));
        prop_assert!(there.interval.0.is_nan() || there.interval.0 <= there.interval.1);
        prop_assert_eq!(there.reason.is_some(), there.verdict == Verdict::TooNoisy);
    }
}
