//! The disk: files that leave nothing behind, compared bytes, and refused measurements.

use std::cell::Cell;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::refusing::{Refused, with_refused};
use quarrier_gauge::disk::{Action, Cache, Job, Order, TrialFile, measure_job, measure_sync};
use quarrier_gauge::trial::{Effort, Session};
use quarrier_gauge::{Area, Error, Parameters, Progress, Reading, Request, Result, Unit, measure};

const MIB: u64 = 1 << 20;

fn effort() -> Effort {
    Effort {
        runs: 3,
        most_runs: 3,
        warm_up: Duration::ZERO,
        trial: Duration::from_millis(5),
        patience: Duration::from_millis(50),
        narrow: 0.5,
    }
}

fn file(folder: &Path, bytes: u64) -> TrialFile {
    TrialFile::make(folder, bytes, &AtomicBool::new(false)).unwrap()
}

fn run(file: &mut TrialFile, job: &Job) -> Result<Reading> {
    let go = AtomicBool::new(false);
    let mut nobody = ();
    let runs = measure_job(&mut Session::new(effort(), &mut nobody, &go)?, file, job)?;
    Ok(runs.reading())
}

fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for order in [Order::Sequential, Order::Random] {
        for action in [Action::Read, Action::Write] {
            let base = Job { action, ..Job::read(order, 4096) };
            for block_bytes in [512, 4096, 1 << 20] {
                for (depth, threads) in [(1, 1), (4, 1), (1, 3), (3, 2)] {
                    jobs.push(Job { block_bytes, depth, threads, ..base.clone() });
                }
            }
            for cache in [Cache::Cold, Cache::Warm] {
                for (block_bytes, threads) in [(1, 1), (3, 3), (511, 1), (512, 2), (1 << 20, 1)] {
                    jobs.push(Job { block_bytes, cache, threads, ..base.clone() });
                }
            }
        }
    }
    jobs
}

#[test]
fn every_job_reads_what_any_other_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), 8 * MIB);
    for job in jobs().into_iter().chain(jobs().into_iter().rev()) {
        let reading = run(&mut file, &job).unwrap_or_else(|error| panic!("{job:?}: {error}"));
        assert!(reading.value > 0.0, "{job:?}");
        assert!(reading.area == Area::Disk && reading.runs > 0);
        let unit = match job.order {
            Order::Sequential => Unit::BytesPerSecond,
            Order::Random => Unit::OpPerSecond,
        };
        assert_eq!(reading.unit, unit);
        assert_eq!(reading.parameters.integer("block_bytes"), Some(job.block_bytes as u64));
        let access = if job.order == Order::Random { "random" } else { "sequential" };
        assert_eq!(reading.parameters.text("access"), Some(access));
    }
}

#[test]
fn times_of_requests_are_in_order_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), 4 * MIB);
    let offered = Some(500.0);
    for offered_per_second in [None, offered] {
        let job = Job { offered_per_second, depth: 8, ..Job::read(Order::Random, 4096) };
        let reading = run(&mut file, &job).unwrap();
        let times = reading.percentiles.unwrap();
        assert!(0.0 < times.p50 && times.p50 <= times.p90 && times.p90 <= times.p99);
        assert!(times.p99 <= times.p999 && times.p999 <= times.max);
        let counted: u64 = times.buckets.iter().map(|bucket| bucket.1).sum();
        assert!(counted > 0);
        let load = if offered_per_second.is_some() { "offered" } else { "closed loop" };
        assert_eq!(reading.parameters.text("load"), Some(load));
        assert_eq!(reading.unit == Unit::Seconds, offered_per_second.is_some());
    }
}

#[test]
fn a_sync_is_timed_and_what_it_wrote_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), 4 * MIB);
    let go = AtomicBool::new(false);
    let mut nobody = ();
    let mut session = Session::new(effort(), &mut nobody, &go).unwrap();
    let reading = measure_sync(&mut session, &mut file).unwrap().reading();
    assert_eq!(reading.unit, Unit::Seconds);
    assert!(reading.percentiles.unwrap().p50 > 0.0);
    run(&mut file, &Job::read(Order::Sequential, 4096)).unwrap();
}

/// Makes the byte at `at` of each page wrong: of every page, since a short run may not reach all.
fn spoil(file: &TrialFile, at: u64) {
    for page in 0..file.bytes() / 4096 {
        let offset = page * 4096 + at;
        let mut byte = [0];
        file.file().read_exact_at(&mut byte, offset).unwrap();
        file.file().write_all_at(&[!byte[0]], offset).unwrap();
    }
}

#[test]
fn a_wrong_byte_is_found_whichever_way_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for at in [0, 7, 8, 511, 512, 4095] {
        for cache in [Cache::Direct, Cache::Cold, Cache::Warm] {
            for order in [Order::Sequential, Order::Random] {
                let mut file = file(folder.path(), MIB);
                spoil(&file, at);
                let job = Job { cache, ..Job::read(order, 64 << 10) };
                let Err(Error::Wrong { reason, .. }) = run(&mut file, &job) else {
                    panic!("{cache:?}, byte {at}")
                };
                assert!(reason.starts_with("byte "), "{reason}");
            }
        }
    }
}

#[test]
fn a_block_that_lies_in_another_ones_place_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), 4 * MIB);
    // The same position in the random bytes: only the stamps differ.
    let mut block = vec![0; MIB as usize];
    file.file().read_exact_at(&mut block, 0).unwrap();
    file.file().write_all_at(&block, MIB).unwrap();
    for cache in [Cache::Direct, Cache::Warm] {
        let job = Job { cache, ..Job::read(Order::Sequential, MIB as usize) };
        assert!(matches!(run(&mut file, &job), Err(Error::Wrong { .. })));
    }
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_trial_file_is_never_visible_and_its_space_is_freed() {
    let folder = tempfile::tempdir().unwrap();
    {
        let mut file = file(folder.path(), 4 * MIB);
        assert_eq!(names(folder.path()), 0);
        run(&mut file, &Job::write(Order::Random, 4096)).unwrap();
        assert_eq!(names(folder.path()), 0);
        // The same holds if the process is killed: no directory entry names the file.
        use std::os::unix::fs::MetadataExt;
        assert_eq!(file.file().metadata().unwrap().nlink(), 0);
    }
    assert_eq!(names(folder.path()), 0);
}

/// Checks the folder at each step, and ends the measurement in one of three ways.
struct Watch<'a> {
    folder: &'a Path,
    stop: &'a AtomicBool,
    panics: bool,
    seen: Cell<usize>,
}

impl Progress for Watch<'_> {
    fn begin(&mut self, _: Area, _: &str, _: &Parameters) {
        self.seen.set(self.seen.get() + 1);
        assert_eq!(names(self.folder), 0);
        assert!(!self.panics, "as the test wants it");
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn request(folder: &Path) -> Request {
    Request { areas: vec![Area::Disk], ..Request::quick(folder) }
}

#[test]
fn stopped_it_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut watch = Watch { folder: folder.path(), stop: &stop, panics: false, seen: Cell::new(0) };
    let error = measure(&request(folder.path()), &mut watch, &stop);
    assert!(matches!(error, Err(Error::Stopped)), "{error:?}");
    assert_eq!(watch.seen.get(), 1, "nothing begins after the stop");
    assert_eq!(names(folder.path()), 0);
}

#[test]
fn in_a_panic_it_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let died = std::thread::spawn(move || {
        let stop = AtomicBool::new(false);
        let mut watch = Watch { folder: &path, stop: &stop, panics: true, seen: Cell::new(0) };
        measure(&request(&path), &mut watch, &stop)
    });
    assert!(died.join().is_err());
    assert_eq!(names(folder.path()), 0);
}

#[test]
fn a_stop_before_the_file_is_made_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let made = TrialFile::make(folder.path(), 64 * MIB, &AtomicBool::new(true));
    assert!(matches!(made, Err(Error::Stopped)));
    assert_eq!(names(folder.path()), 0);
}

#[test]
fn a_stop_ends_a_long_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), 4 * MIB);
    let week = Effort { trial: Duration::from_secs(604_800), ..effort() };
    for (cache, depth, offered_per_second) in
        [(Cache::Direct, 4, None), (Cache::Warm, 1, None), (Cache::Direct, 4, Some(0.001))]
    {
        let stop = AtomicBool::new(false);
        let mut nobody = ();
        let mut session = Session::new(week.clone(), &mut nobody, &stop).unwrap();
        let job = Job { cache, depth, offered_per_second, ..Job::read(Order::Random, 4096) };
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                stop.store(true, Ordering::Relaxed);
            });
            measure_job(&mut session, &mut file, &job)
        });
        assert!(matches!(result, Err(Error::Stopped)), "{job:?}");
    }
}

#[test]
fn a_full_disk_is_reported_with_its_free_space() {
    let folder = tempfile::tempdir().unwrap();
    let made = TrialFile::make(folder.path(), 1 << 62, &AtomicBool::new(false));
    let Err(Error::NoRoom { asked_bytes, left_bytes, .. }) = made else { panic!("made") };
    assert!(asked_bytes >= 1 << 62 && left_bytes < 1 << 62);
}

#[test]
fn only_a_folder_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("file");
    std::fs::write(&taken, "mine").unwrap();
    for path in [taken.as_path(), Path::new("/dev/null"), &folder.path().join("none")] {
        let made = TrialFile::make(path, MIB, &AtomicBool::new(false));
        assert!(matches!(made, Err(Error::BadRequest(_))), "{}", path.display());
    }
    assert_eq!(std::fs::read(&taken).unwrap(), b"mine");
}

#[test]
fn jobs_that_do_not_fit_the_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), MIB);
    let direct = Job::read(Order::Sequential, 4096);
    for job in [
        Job { block_bytes: 2 << 20, ..direct.clone() },
        Job { block_bytes: 64 << 10, depth: 32, ..direct.clone() },
        Job { threads: 1000, ..direct.clone() },
        Job { block_bytes: 0, ..direct.clone() },
        Job { depth: 0, ..direct.clone() },
        Job { threads: 0, ..direct.clone() },
        Job { block_bytes: 513, ..direct.clone() },
        Job { block_bytes: 1, ..direct.clone() },
        Job { cache: Cache::Warm, depth: 2, ..direct.clone() },
        Job { offered_per_second: Some(f64::NAN), ..direct.clone() },
        Job { cache: Cache::Cold, block_bytes: 1, threads: 64, ..Job::write(Order::Random, 1) },
    ] {
        assert!(matches!(run(&mut file, &job), Err(Error::BadRequest(_))), "{job:?}");
    }
}

#[test]
fn more_threads_than_cores_do_their_part() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), 4 * MIB);
    let job = Job { threads: 33, ..Job::read(Order::Random, 4096) };
    assert!(run(&mut file, &job).unwrap().value > 0.0);
}

#[test]
fn without_direct_reads_it_goes_through_the_page_cache_and_says_so() {
    // A file system in memory cannot bypass the page cache, nor empty it.
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let folder = tempfile::tempdir_in(memory).unwrap();
    let mut file = file(folder.path(), 4 * MIB);
    assert_eq!(file.direct_bytes(), None);
    for depth in [1, 4] {
        for action in [Action::Read, Action::Write] {
            let job = Job { depth, action, ..Job::read(Order::Random, 4096) };
            let reading = run(&mut file, &job).unwrap();
            assert!(reading.notes.iter().any(|note| note.contains("no O_DIRECT")));
            assert_eq!(reading.parameters.integer("threads"), Some(depth as u64));
            let cache = if action == Action::Read { "warm" } else { "buffered" };
            assert_eq!(reading.parameters.text("cache"), Some(cache));
        }
    }
}

#[test]
fn without_io_uring_threads_replace_it_and_a_note_says_so() {
    let folder = tempfile::tempdir().unwrap();
    with_refused(Refused::IoUring, || {
        let mut file = file(folder.path(), 4 * MIB);
        for action in [Action::Read, Action::Write] {
            for offered_per_second in [None, Some(1_000.0)] {
                let base = Job::read(Order::Random, 4096);
                let job = Job { depth: 4, action, offered_per_second, ..base };
                let reading = run(&mut file, &job).unwrap();
                assert!(reading.notes.iter().any(|note| note.contains("io_uring refused")));
                assert_eq!(reading.parameters.integer("threads"), Some(4));
                assert_ne!(reading.parameters.text("calls"), Some("io_uring"));
            }
        }
    });
}

#[test]
fn without_nameless_files_the_name_is_removed_at_once() {
    for refused in [Refused::NamelessFiles, Refused::Reserving] {
        let folder = tempfile::tempdir().unwrap();
        with_refused(refused, || {
            let mut file = file(folder.path(), 4 * MIB);
            assert_eq!(names(folder.path()), 0);
            assert!(run(&mut file, &Job::read(Order::Random, 4096)).unwrap().value > 0.0);
        });
        assert_eq!(names(folder.path()), 0);
    }
}
