//! Results of earlier runs, compared with the next one.

use quarrier_gauge::profile::{MachineKey, Repeats};
use quarrier_gauge::report::{FORMAT, Report};
use quarrier_gauge::{Area, Parameters, Reading, Unit};

use crate::made_up::{Noise, reading};

fn report(when: u64, values: &[(Area, f64, bool)]) -> Report {
    let readings = values.iter().map(|&(area, value, disturbed)| {
        let parameters = Parameters::new().with("threads", 2u32).with("access", "random");
        let value = (value, Unit::BytesPerSecond);
        let made = reading((area, "read"), parameters, value, (0.0, 3), &mut Noise(1));
        Reading { disturbed, ..made }
    });
    Report {
        format: FORMAT,
        quarrier: String::new(),
        when,
        seconds: 1.0,
        machine: Default::default(),
        limited_by: None,
        conditions: Default::default(),
        readings: readings.collect(),
    }
}

fn nowhere(_: Area) -> String {
    String::new()
}

/// The readings marked as disturbed after `first` was stored in a file and compared with `second`.
fn marked(first: &Report, mut second: Report) -> Vec<bool> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deeper").join("repeats.json");
    let machine = MachineKey::default();
    let mut kept = Repeats::load(&path, &machine).unwrap();
    kept.update(first, nowhere);
    kept.save(&path).unwrap();
    let kept = Repeats::load(&path, &machine).unwrap();
    kept.hold(&mut second, nowhere);
    let marks: Vec<bool> = second.readings.iter().map(|reading| reading.disturbed).collect();
    assert_eq!(second.conditions.disturbed as usize, marks.iter().filter(|&&mark| mark).count());
    marks
}

#[test]
fn readings_that_do_not_repeat_are_marked() {
    use Area::{Cpu, Memory, Network};
    let first = report(1000, &[(Cpu, 100.0, false), (Memory, 100.0, false)]);
    let second =
        report(1060, &[(Cpu, 105.0, false), (Memory, 105.1, false), (Network, 1.0, false)]);
    assert_eq!(marked(&first, second), [false, true, false]);
    let second = report(1060, &[(Cpu, 95.3, false), (Memory, 95.2, false)]);
    assert_eq!(marked(&first, second), [false, true]);
}

#[test]
fn old_and_disturbed_runs_are_not_compared() {
    let first = report(1000, &[(Area::Cpu, 100.0, false)]);
    let second = |when| report(when, &[(Area::Cpu, 50.0, false)]);
    assert_eq!(marked(&first, second(4600)), [true]);
    assert_eq!(marked(&first, second(4601)), [false]);
    assert_eq!(marked(&first, second(999)), [false]);
    let first = report(1000, &[(Area::Cpu, 100.0, true)]);
    assert_eq!(marked(&first, second(1001)), [false]);
}

#[test]
fn a_changed_machine_repeats_from_its_second_run_on() {
    let mut kept = Repeats::new(MachineKey::default());
    kept.update(&report(1000, &[(Area::Cpu, 100.0, false)]), nowhere);
    for (when, is_marked) in [(1010, true), (1020, false)] {
        let mut next = report(when, &[(Area::Cpu, 200.0, false)]);
        kept.hold(&mut next, nowhere);
        assert_eq!(next.readings[0].disturbed, is_marked);
        assert_eq!(next.readings[0].earlier_value, is_marked.then_some(100.0));
        kept.update(&next, nowhere);
    }
}

#[test]
fn another_place_or_machine_has_nothing_to_do_with_it() {
    let mut kept = Repeats::new(MachineKey::default());
    kept.update(&report(1000, &[(Area::Disk, 100.0, false)]), |_| "/".to_owned());
    let mut next = report(1010, &[(Area::Disk, 200.0, false)]);
    kept.hold(&mut next, |_| "/home".to_owned());
    assert!(!next.readings[0].disturbed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("repeats.json");
    kept.save(&path).unwrap();
    let other = MachineKey { name: "other".to_owned(), ..MachineKey::default() };
    assert_eq!(Repeats::load(&path, &other).unwrap(), Repeats::new(other));
    std::fs::write(&path, b"{\"machine\": 1}").unwrap();
    assert!(Repeats::load(&path, &MachineKey::default()).is_err());
}
