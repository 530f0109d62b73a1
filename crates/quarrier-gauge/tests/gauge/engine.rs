//! The engine of trials.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use quarrier_gauge::trial::{Effort, Needs, Series, Session, Team, ThreadWork, Trial, series};
use quarrier_gauge::{Area, Error, Parameters, Reading, Subject, Unit};

fn effort() -> Effort {
    Effort {
        runs: 3,
        most_runs: 5,
        warm_up: Duration::ZERO,
        trial: Duration::from_millis(1),
        patience: Duration::from_millis(20),
        narrow: 0.01,
    }
}

fn run(cpu_share: f64, seconds: f64) -> Trial {
    Trial { seconds, units: 1.0, checks: vec![0], cpu_share, overlap: 1.0, ..Trial::default() }
}

fn repeat(needs: Needs, trial: impl FnMut() -> quarrier_gauge::Result<Trial>) -> Series {
    repeat_on_cores(needs, 0.0, trial)
}

fn repeat_on_cores(
    needs: Needs,
    most_fused_per_cycle: f64,
    trial: impl FnMut() -> quarrier_gauge::Result<Trial>,
) -> Series {
    let go = AtomicBool::new(false);
    let most = |_| most_fused_per_cycle;
    series(&effort(), Series::new(subject(), needs), &go, most, || {}, trial).unwrap()
}

fn subject() -> Subject {
    Subject::new(Area::Cpu, "fma", Parameters::new().with("threads", 1), Unit::OpPerSecond)
}

#[test]
fn every_thread_works_once_and_all_of_it_is_counted() {
    let team = Team::here().unwrap();
    for threads in [1, 2, 3, 4 * team.cpus() + 1] {
        let mut states = team.prepare(threads, |index| Ok(index as u64)).unwrap();
        let trial = team
            .run(&mut states, |index, state| {
                *state += 100;
                Ok(ThreadWork { units: 2.0, check: index as u64 })
            })
            .unwrap();
        assert_eq!(trial.units, 2.0 * threads as f64);
        assert_eq!(trial.checks, (0..threads as u64).collect::<Vec<_>>());
        assert_eq!(states, (100..100 + threads as u64).collect::<Vec<_>>());
        assert!(trial.seconds > 0.0);
    }
}

#[test]
fn no_threads_are_refused() {
    let team = Team::here().unwrap();
    assert!(matches!(team.prepare(0, |_| Ok(())), Err(Error::BadRequest(_))));
    assert!(matches!(
        team.run(&mut Vec::<()>::new(), |_, ()| Ok(ThreadWork::default())),
        Err(Error::BadRequest(_))
    ));
}

#[test]
fn a_panic_in_a_thread_is_an_error() {
    let team = Team::here().unwrap();
    let error = team.run(&mut [(), ()], |index, ()| -> quarrier_gauge::Result<ThreadWork> {
        panic!("thread {index} gives up")
    });
    let Err(Error::Panicked(text)) = error else { panic!("{error:?}") };
    assert_eq!(text, "thread 0 gives up");
}

#[test]
fn a_trial_without_its_cpu_is_dropped_and_counted() {
    let runs = AtomicU32::new(0);
    let series = repeat(Needs::Cpu, || {
        let odd = runs.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        Ok(if odd { run(0.5, 2.0) } else { run(1.0, 1.0) })
    });
    let reading = series.reading();
    assert_eq!((reading.runs, reading.dropped), (3, 3));
    assert_eq!(reading.value, 1.0);
    assert_eq!(reading.samples, [1.0; 3]);
}

#[test]
fn threads_that_wait_for_answers_need_no_cpu() {
    let reading = repeat(Needs::Answers, || Ok(run(0.1, 1.0))).reading();
    assert_eq!((reading.runs, reading.dropped), (3, 0));
    assert_eq!(reading.conditions.cpu_share, 1.0);
}

#[test]
fn a_reading_whose_threads_never_got_their_cpu_is_disturbed() {
    let reading = repeat(Needs::Cpu, || Ok(run(0.5, 1.0))).reading();
    assert!(reading.disturbed && reading.conditions.disturbed);
    assert_eq!(reading.runs, 3);
    assert!(reading.dropped >= 3);
    assert!(reading.notes[0].contains("slowed by others"), "{:?}", reading.notes);
}

#[test]
fn threads_that_did_not_run_together_are_dropped() {
    let reading = repeat(Needs::Cpu, || Ok(Trial { overlap: 0.2, ..run(1.0, 1.0) }));
    assert!(reading.reading().disturbed);
}

#[test]
fn runs_continue_until_the_median_is_known_or_the_maximum_is_reached() {
    let steady = repeat(Needs::Cpu, || Ok(run(1.0, 1.0)));
    assert_eq!(steady.reading().runs, 3);
    let runs = AtomicU32::new(0);
    let wild = repeat(Needs::Answers, || {
        Ok(run(1.0, [1.0, 1.3, 0.8][runs.fetch_add(1, Ordering::Relaxed) as usize % 3]))
    });
    assert_eq!(wild.reading().runs, 5);
}

#[test]
fn two_modes_disturb_a_reading() {
    let runs = AtomicU32::new(0);
    let series = repeat(Needs::Answers, || {
        let fast = runs.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        Ok(run(1.0, if fast { 1.0 } else { 2.0 }))
    });
    let reading = series.reading();
    assert!(reading.disturbed);
    assert!(reading.notes.iter().any(|note| note.contains("two modes")), "{:?}", reading.notes);
}

#[test]
fn seconds_are_per_unit_and_the_smallest_is_best() {
    let runs = AtomicU32::new(0);
    let mut series = repeat(Needs::Answers, || {
        let seconds = 4.0 + f64::from(runs.fetch_add(1, Ordering::Relaxed));
        Ok(Trial { units: 4.0, ..run(1.0, seconds) })
    });
    series.subject.unit = Unit::Seconds;
    assert_eq!(series.reading().best, 1.0);
}

#[test]
fn a_stop_ends_the_series() {
    let stop = AtomicBool::new(true);
    let result = series(
        &effort(),
        Series::new(subject(), Needs::Cpu),
        &stop,
        |_| 0.0,
        || {},
        || Ok(run(1.0, 1.0)),
    );
    assert!(matches!(result, Err(Error::Stopped)));
}

/// The readings of one visit per value: all runs of a visit have its rate.
fn visited(rates: &[f64], subjects: impl Fn(usize) -> Subject) -> Vec<Reading> {
    let go = AtomicBool::new(false);
    let mut nobody = ();
    let mut session = Session::new(effort(), &mut nobody, &go).unwrap();
    for (visit, rate) in rates.iter().enumerate() {
        session.visit(visit as u32 + 1, rates.len() as u32);
        let trial = |_: &Team| Ok(run(1.0, 1.0 / rate));
        session.measure(subjects(visit), Needs::Cpu, trial).unwrap();
    }
    session.readings()
}

#[test]
fn two_visits_to_a_subject_are_one_reading() {
    let readings = visited(&[1.0, 1.04], |_| subject());
    let [reading] = &readings[..] else { panic!("{readings:?}") };
    assert_eq!(reading.samples, [1.0, 1.0, 1.04, 1.04]);
    assert_eq!((reading.runs, reading.value), (4, 1.02));
    assert!(!reading.disturbed, "{:?}", reading.notes);
}

#[test]
fn visits_that_differ_disturb_a_reading_and_both_are_reported() {
    for rates in [[1.0, 1.06], [1.06, 1.0]] {
        let reading = visited(&rates, |_| subject()).remove(0);
        let listed = rates.map(|rate| format!("{rate:.3e}")).join(", ");
        assert!(reading.disturbed && reading.conditions.disturbed);
        let [note] = &reading.notes[..] else { panic!("{:?}", reading.notes) };
        assert!(note.contains(&listed), "{note}");
    }
}

#[test]
fn other_subjects_and_the_same_one_twice_in_a_visit_are_readings_of_their_own() {
    let other = |threads: usize| {
        let parameters = Parameters::new().with("threads", threads);
        Subject::new(Area::Cpu, "fma", parameters, Unit::OpPerSecond)
    };
    assert_eq!(visited(&[1.0, 1.0], other).len(), 2);
    let go = AtomicBool::new(false);
    let mut nobody = ();
    let mut session = Session::new(effort(), &mut nobody, &go).unwrap();
    for visit in [1, 2] {
        session.visit(visit, 2);
        for rate in [1.0, 2.0] {
            let trial = |_: &Team| Ok(run(1.0, 1.0 / rate));
            session.measure(subject(), Needs::Cpu, trial).unwrap();
        }
    }
    let values: Vec<f64> = session.readings().iter().map(|reading| reading.value).collect();
    assert_eq!(values, [1.0, 2.0]);
}

#[test]
fn a_later_visit_makes_up_for_runs_that_were_dropped() {
    let go = AtomicBool::new(false);
    let mut nobody = ();
    let mut session = Session::new(effort(), &mut nobody, &go).unwrap();
    for (visit, cpu_share) in [(1, 0.5), (2, 1.0)] {
        session.visit(visit, 2);
        let trial = |_: &Team| Ok(run(cpu_share, 1.0 / cpu_share));
        session.measure(subject(), Needs::Cpu, trial).unwrap();
    }
    let reading = session.readings().remove(0);
    assert_eq!(reading.samples, [1.0; 3]);
    assert!(reading.dropped > 0);
    assert!(
        !reading.notes.iter().any(|note| note.contains("slowed by others")),
        "{:?}",
        reading.notes
    );
}

#[test]
fn a_run_on_a_core_that_others_share_is_dropped() {
    let runs = AtomicU32::new(0);
    let series = repeat_on_cores(Needs::Cpu, 2.0, || {
        let shared = runs.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        let fused_per_cycle = if shared { 1.8 } else { 1.95 };
        Ok(Trial { fused_per_cycle, ..run(1.0, if shared { 1.02 } else { 1.0 }) })
    });
    assert_eq!(series.reading().samples, [1.0; 3]);
    assert_eq!(series.reading().dropped, 3);
    assert!(!series.reading().disturbed);
}

#[test]
fn a_run_far_below_the_best_is_dropped_unless_it_waits_for_answers() {
    for (needs, expected) in [(Needs::Cpu, [1.0; 3]), (Needs::Answers, [0.8, 1.0, 1.0])] {
        let runs = AtomicU32::new(0);
        let mut series = repeat(needs, || {
            let first = runs.fetch_add(1, Ordering::Relaxed) == 0;
            Ok(run(1.0, if first { 1.25 } else { 1.0 }))
        });
        assert_eq!(series.reading().samples[..3], expected);
        // For times the smallest value is the best: the slowest run is dropped, too.
        series.subject.unit = Unit::Seconds;
        assert_eq!(series.reading().dropped, u32::from(needs == Needs::Cpu));
    }
}

#[test]
fn one_visit_without_others_is_not_enough() {
    let reading = visited(&[1.0, 0.8], |_| subject()).remove(0);
    assert!(reading.disturbed);
    assert!(reading.notes.iter().any(|note| note.contains("1.000e0, 8.000e-1")));
}

#[test]
fn one_more_visit_is_made_to_disturbed_readings_alone() {
    let go = AtomicBool::new(false);
    let mut nobody = ();
    let mut session = Session::new(effort(), &mut nobody, &go).unwrap();
    let other = Subject { measurement: "add".into(), ..subject() };
    for (visit, rate) in [(1, 1.0), (2, 0.8)] {
        session.visit(visit, 2);
        assert!(session.wants(&subject()) && session.wants(&other));
        session.measure(subject(), Needs::Cpu, |_| Ok(run(1.0, 1.0 / rate))).unwrap();
        session.measure(other.clone(), Needs::Cpu, |_| Ok(run(1.0, 1.0))).unwrap();
    }
    session.visit_again(Instant::now());
    assert!(!session.wants(&subject()), "its time is over");
    session.visit_again(Instant::now() + Duration::from_secs(3_600));
    assert!(session.wants(&subject()) && !session.wants(&other));
    session.measure(subject(), Needs::Cpu, |_| Ok(run(1.0, 1.0))).unwrap();
    assert!(!session.wants(&subject()));
    let readings = session.readings();
    assert_eq!(readings.len(), 2);
    assert!(readings.iter().all(|reading| !reading.disturbed && reading.value == 1.0));
}
