//! The gate on simulated pairs of reports whose effects are known.

use quarrier_gauge::compare::compare;
use quarrier_gauge::{Area, Parameters, Report, Unit, gate};

use crate::made_up::{self, Noise};

const PAIRS: u32 = 1000;

/// A simulated machine: the number of readings, the spread of its runs, and their number.
#[derive(Debug, Clone, Copy)]
struct Simulated {
    readings: u64,
    spread: f64,
    runs: usize,
}

impl Simulated {
    /// Creates a report; its first reading is `factor` times as fast as the others.
    fn report(self, factor: f64, noise: &mut Noise) -> Report {
        let readings = (0..self.readings).map(|number| {
            let value = 1e9 * if number == 0 { factor } else { 1.0 };
            let parameters = Parameters::new().with("block_bytes", number);
            let of = (Area::Memory, "copy");
            let about = (value, Unit::BytesPerSecond);
            made_up::reading(of, parameters, about, (self.spread, self.runs), noise)
        });
        Report { readings: readings.collect(), ..made_up::empty() }
    }

    /// The share of pairs that fail a gate of 5 %, if the later report has one reading that is `factor`
    /// times as fast.
    fn failing(self, factor: f64) -> f64 {
        let mut noise = Noise(7);
        let fails = (0..PAIRS).filter(|_| {
            let before = self.report(1.0, &mut noise);
            let after = self.report(factor, &mut noise);
            !gate(&compare(&before, &after), 5.0).slower.is_empty()
        });
        fails.count() as f64 / f64::from(PAIRS)
    }
}

#[test]
fn a_gate_gives_few_false_alarms_however_far_runs_spread() {
    for spread in [0.005, 0.02, 0.05, 0.1] {
        for (readings, runs) in [(1, 3), (1, 4), (1, 5), (1, 10), (10, 4), (10, 5)] {
            let machine = Simulated { readings, spread, runs };
            let alarms = machine.failing(1.0);
            assert!(alarms < 0.01, "{alarms} of {machine:?}");
        }
    }
}

#[test]
fn a_gate_misses_little_on_a_quiet_machine() {
    for (readings, runs) in [(1, 3), (1, 5), (1, 10), (10, 4), (10, 5), (10, 10)] {
        let machine = Simulated { readings, spread: 0.01, runs };
        let found = machine.failing(0.9);
        assert!(found > 0.95, "{found} of {machine:?}");
    }
}

#[test]
fn disturbed_readings_fail_no_gate_and_are_counted() {
    let (before, mut after) = (made_up::report(1), made_up::report(1));
    for reading in &mut after.readings {
        reading.disturbed = true;
        reading.samples.iter_mut().for_each(|sample| *sample *= 0.5);
    }
    let comparison = compare(&before, &after);
    let judged = gate(&comparison, 5.0);
    assert!(judged.slower.is_empty() && judged.compared == 0);
    assert_eq!(judged.disturbed, comparison.changes.len());

    // A reading that is marked only because an earlier run differs still counts for the gate.
    after.readings.iter_mut().for_each(|reading| reading.earlier_value = Some(reading.value));
    let rates = |unit: Unit| !unit.less_is_better();
    let slower = gate(&compare(&before, &after), 5.0).slower;
    assert!(slower.iter().any(|change| rates(change.after.unit)));
    assert!(slower.iter().all(|change| rates(change.after.unit)), "times are shorter");
}

#[test]
fn too_few_runs_leave_it_open() {
    let mut noise = Noise(1);
    for runs in [0, 1] {
        let machine = Simulated { readings: 1, spread: 0.0, runs };
        let (before, after) = (machine.report(1.0, &mut noise), machine.report(0.5, &mut noise));
        let judged = gate(&compare(&before, &after), 5.0);
        assert_eq!((judged.slower.len(), judged.undecided, judged.compared), (0, 1, 1));
    }
}
