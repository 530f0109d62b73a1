//! Sustained rates: long runs on a disk, made short here.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_gauge::{Area, Error, Progress, Reading, Request, Result, Sustained, Unit, measure};

use crate::refusing::{Refused, with_refused};

const MIB: u64 = 1 << 20;

fn request(folder: &Path, time: Duration, file_bytes_max: u64) -> Request {
    let sustained = Some(Sustained { time, file_bytes_max });
    Request { areas: vec![Area::Disk], sustained, ..Request::full(folder, 3) }
}

/// Counts the calls of a run's progress.
#[derive(Default)]
struct Seen {
    begun: Cell<u32>,
    during: Cell<u32>,
}

impl Progress for Seen {
    fn begin(&mut self, _: Area, _: &str, _: &quarrier_gauge::Parameters) {
        self.begun.set(self.begun.get() + 1);
    }

    fn during(&mut self, rate: f64, unit: Unit, (seconds, all): (f64, f64)) {
        assert!(rate >= 0.0 && unit == Unit::BytesPerSecond && seconds > 0.0 && all > 0.0);
        self.during.set(self.during.get() + 1);
    }
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Measures for a fifth of a second each, with a file that is written and read several times on all but
/// the slowest disks. `None` if the file system has no `O_DIRECT`.
fn run(folder: &Path, seen: &mut Seen) -> Option<Vec<Reading>> {
    let request = request(folder, Duration::from_millis(200), 32 * MIB);
    match measure(&request, seen, &AtomicBool::new(false)) {
        Err(Error::BadRequest(why)) if why.contains("has no O_DIRECT") => None,
        measured => Some(measured.unwrap().readings),
    }
}

fn check_both(readings: &[Reading]) {
    let measured: Vec<&str> = readings.iter().map(|reading| &*reading.measurement).collect();
    assert_eq!(measured, ["sustained write", "sustained read"]);
    for reading in readings {
        // On a busy disk, windows as short as these may have no request.
        assert!(reading.value >= 0.0 && reading.value.is_finite(), "{reading:?}");
        assert!(!reading.notes.iter().any(|note| note.starts_with("0 B")), "{reading:?}");
        assert_eq!(reading.runs as usize, reading.samples.len());
        assert_eq!(reading.unit, Unit::BytesPerSecond);
        assert_eq!(reading.parameters.text("cache"), Some("direct"));
        assert_eq!(reading.parameters.get("file_bytes"), None, "it changes with the free space");
        let timeline = reading.timeline.as_ref().unwrap();
        assert_eq!((timeline.rates.len(), timeline.window_seconds), (20, 0.01));
        assert!(timeline.rates.ends_with(&reading.samples), "{reading:?}");
        let before = (timeline.rates.len() - reading.samples.len()) as f64 * 0.01;
        match timeline.steady_after_seconds {
            Some(after) => assert!((after - before).abs() < 1e-9, "{reading:?}"),
            None => assert!(reading.disturbed && reading.samples.len() == 5, "{reading:?}"),
        }
        let blocks = timeline.rates.iter().sum::<f64>() * 0.01 / MIB as f64;
        assert!((blocks - blocks.round()).abs() < 1e-6, "whole blocks: {blocks}");
        assert!(reading.notes.iter().any(|note| note.contains(" a file of 32 MiB")));
    }
}

#[test]
fn a_disk_is_written_and_read_over_time_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Seen::default();
    let Some(readings) = run(folder.path(), &mut seen) else { return };
    check_both(&readings);
    assert_eq!(seen.begun.get(), 2, "one visit");
    assert!(seen.during.get() > 0);
    assert_eq!(names(folder.path()), 0);
}

#[test]
fn without_io_uring_threads_take_blocks_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    with_refused(Refused::IoUring, || {
        let Some(readings) = run(folder.path(), &mut Seen::default()) else { return };
        check_both(&readings);
        for (reading, calls) in readings.iter().zip(["pwrite", "pread"]) {
            assert_eq!(reading.parameters.text("calls"), Some(calls));
            assert_eq!(reading.parameters.integer("threads"), Some(32));
        }
    });
}

#[test]
fn without_reserved_space_the_file_grows() {
    let folder = tempfile::tempdir().unwrap();
    with_refused(Refused::Reserving, || {
        let Some(readings) = run(folder.path(), &mut Seen::default()) else { return };
        check_both(&readings);
    });
    assert_eq!(names(folder.path()), 0);
}

#[test]
fn a_file_system_in_memory_is_refused() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let folder = tempfile::tempdir_in(memory).unwrap();
    assert!(run(folder.path(), &mut Seen::default()).is_none());
}

#[test]
fn a_stop_ends_it_at_once_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let request = request(folder.path(), Duration::from_secs(604_800), 32 * MIB);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(60));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        measure(&request, &mut (), &stop)
    });
    assert!(
        matches!(measured, Err(Error::Stopped | Error::BadRequest(_))),
        "stopped, or no O_DIRECT"
    );
    assert_eq!(names(folder.path()), 0);
}

fn refusal(request: &Request) -> Result<()> {
    measure(request, &mut (), &AtomicBool::new(false)).map(|_| ())
}

#[test]
fn impossible_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ten = Duration::from_secs(10);
    let small = request(folder.path(), ten, MIB);
    assert!(matches!(refusal(&small), Err(Error::NoRoom { asked_bytes, .. }) if asked_bytes > MIB));
    let long = Request { quick: true, ..request(folder.path(), ten * 2, MIB) };
    let error = refusal(&long).unwrap_err().to_string();
    assert!(error.contains("10 s at most"), "{error}");
    for areas in [vec![Area::Disk, Area::Cpu], vec![Area::Cpu], vec![]] {
        let error = refusal(&Request { areas, ..small.clone() }).unwrap_err().to_string();
        assert!(error.contains("the area disk, and no other"), "{error}");
    }
}
