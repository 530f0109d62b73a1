//! Plans from the measured rates of a source.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use quarrier_core::pipeline::{Access, AccessRate, Need, Pipeline, Rates};
use quarrier_core::source::Source;

/// A source that answers each request after a delay, and records the requests.
struct Slow {
    length: u64,
    wait: Duration,
    asked: Mutex<Vec<(u64, usize)>>,
}

impl Slow {
    fn new(length: u64, wait: Duration) -> Self {
        Slow { length, wait, asked: Mutex::default() }
    }
}

impl Source for Slow {
    fn name(&self) -> &str {
        "slow"
    }
    fn length(&self) -> u64 {
        self.length
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.asked.lock().unwrap().push((offset, buffer.len()));
        std::thread::sleep(self.wait);
        Ok(buffer.len().min((self.length - offset) as usize))
    }
}

fn rates(ways: &[(usize, usize, f64)]) -> Rates {
    let asked = ways.iter().map(|&(block_bytes, in_flight, bytes_per_second)| AccessRate {
        block_bytes,
        in_flight,
        bytes_per_second,
    });
    Rates { asked: asked.collect(), of: "the test".into() }
}

const MIB: usize = 1 << 20;

#[test]
fn a_plan_has_the_fewest_bytes_in_flight_with_nearly_the_best_rate() {
    let measured = rates(&[
        (MIB, 1, 1e8),
        (MIB, 4, 3.95e8),
        (MIB, 16, 4e8),
        (4 * MIB, 4, 4e8),
        (MIB / 4, 16, 3e8),
    ]);
    assert_eq!(measured.best().map(|best| (best.block_bytes, best.in_flight)), Some((MIB, 4)));
    assert_eq!(Rates::default().best(), None);
    let strange = [(512, 1, 1e9), (1 << 40, 1, 1e9), (MIB, 1 << 20, 1e9), (MIB, 0, 1e9)];
    assert_eq!(rates(&strange).best(), None);
}

#[test]
fn a_run_that_must_fetch_its_bytes_uses_the_best_rate() {
    let source = Slow::new(1 << 34, Duration::ZERO);
    let measured = rates(&[(2 * MIB, 6, 1e9), (MIB, 2, 1e8)]);
    let plan = Pipeline::new(&source).workers(3).rates(measured.clone());
    let plan = plan.plan(Need::default()).unwrap();
    // Twice as many requests: a disk can be slower than when it was measured.
    assert_eq!((plan.access, plan.readers, plan.buffer_bytes), (Access::Queue, 12, 2 * MIB));
    assert!(plan.buffers > plan.readers + plan.workers);
    assert!(plan.to_string().contains("the test gave 1000 MB/s with 6 requests of 2048 KiB"));

    let pipeline = Pipeline::new(&source).rates(measured.clone()).readers(3).buffer_bytes(MIB);
    let plan = pipeline.plan(Need::default()).unwrap();
    assert_eq!((plan.readers, plan.buffer_bytes), (3, MIB));

    let uring = Pipeline::new(&source).rates(measured).access(Access::Uring).workers(2);
    assert_eq!(uring.plan(Need::default()).unwrap().buffers, 14);
}

#[test]
fn a_slow_source_gets_many_requests_at_once() {
    let source = Slow::new(4 << 30, Duration::from_millis(5));
    let measured = Rates::probe(&source, 0..source.length).unwrap();
    let best = measured.best().unwrap();
    assert!(best.bytes_under_way() >= 8 * MIB as u64, "{measured:?}");
}

#[test]
fn a_trial_reads_each_byte_once_and_a_small_part_of_all() {
    let source = Slow::new(1 << 30, Duration::ZERO);
    let range = 1 << 20..1 << 30;
    let measured = Rates::probe(&source, range.clone()).unwrap();
    assert!(measured.asked.iter().all(|asked| asked.bytes_per_second > 0.0));
    let mut asked = source.asked.into_inner().unwrap();
    asked.sort_unstable();
    let mut end = range.start;
    for (offset, bytes) in asked {
        assert!(offset >= end, "bytes before {end} are read again at {offset}");
        end = offset + bytes as u64;
    }
    assert!(end <= range.start + (range.end - range.start) / 16);
}

#[test]
fn short_or_unreadable_ranges_are_not_tried() {
    assert_eq!(Rates::probe(&Slow::new(1 << 20, Duration::ZERO), 0..1 << 20), None);
    struct Broken;
    impl Source for Broken {
        fn name(&self) -> &str {
            "broken"
        }
        fn length(&self) -> u64 {
            1 << 40
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("broken"))
        }
    }
    assert_eq!(Rates::probe(&Broken, 0..1 << 40), None);
}
