//! The feed for workers in other processes: every chunk once, in slots that nobody else uses.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use proptest::prelude::*;
use quarrier_core::Error;
use quarrier_core::pipeline::{Delivery, SharedFeed, Slot};
use quarrier_core::source::{Memory, Source};

use crate::census::{noise, without_hanging};
use crate::faults::{FailingSource, GoneSource, ShortReadSource};

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the bytes of a slot that was delivered and not yet released.
fn shown(feed: &SharedFeed, slot: &Slot) -> Vec<u8> {
    let mut bytes = vec![0; slot.visible_bytes];
    let copied = feed.region().bytes().copy_to(slot.slot * feed.stride_bytes(), &mut bytes);
    assert_eq!(copied, slot.visible_bytes);
    bytes
}

fn feed(source: impl Source + 'static, chunk: usize, overlap: usize, buffers: usize) -> SharedFeed {
    SharedFeed::new(Box::new(source), chunk, overlap, buffers).unwrap()
}

/// Returns all chunks by offset, while holding all slots but one.
fn drain(feed: &SharedFeed, held_max: usize) -> Result<BTreeMap<u64, (usize, Vec<u8>)>, Error> {
    let mut chunks = BTreeMap::new();
    let mut held = Vec::new();
    loop {
        match feed.next(PATIENCE)? {
            Delivery::Ended => return Ok(chunks),
            Delivery::NotYet => panic!("nothing came in {PATIENCE:?}"),
            Delivery::Chunk(slot) => {
                held.push(slot);
                if held.len() < held_max && chunks.len() + held.len() < feed.chunks() as usize {
                    continue;
                }
                for slot in held.drain(..) {
                    let found = (slot.owned_bytes, shown(feed, &slot));
                    assert!(chunks.insert(slot.offset, found).is_none(), "delivered twice");
                    feed.release(slot.slot).unwrap();
                }
            }
        }
    }
}

/// The expected result of [`drain`].
fn expected(bytes: &[u8], chunk: usize, overlap: usize) -> BTreeMap<u64, (usize, Vec<u8>)> {
    let cut = |start: usize| {
        let owned = chunk.min(bytes.len() - start);
        let end = (start + chunk + overlap).min(bytes.len());
        (start as u64, (owned, bytes[start..end].to_vec()))
    };
    (0..bytes.len()).step_by(chunk).map(cut).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_chunk_is_delivered_once_with_its_overlap(
        length in 0_usize..20_000,
        chunk in prop_oneof![1_usize..5_000, Just(100_000)],
        overlap in prop_oneof![Just(0), 1_usize..3_000, Just(30_000)],
        buffers in 1_usize..6,
        readers in 1_usize..4,
        short_bytes in 1_usize..5_000,
    ) {
        let chunk = chunk.max(length / 500);
        let bytes = noise(length);
        let feed = feed(ShortReadSource::new(bytes.clone(), short_bytes), chunk, overlap, buffers);
        feed.start(readers).unwrap();
        prop_assert_eq!(drain(&feed, buffers).unwrap(), expected(&bytes, chunk, overlap));
        prop_assert!(feed.problems().is_empty());
        feed.close();
        prop_assert_eq!(feed.next(PATIENCE).unwrap(), Delivery::Ended);
    }
}

#[test]
fn sectors_that_cannot_be_read_are_zeros_and_are_listed_once() {
    let bytes = noise(10 * 512);
    // Sector 3 lies in the overlap of the first chunk and in the second, 7 and 8 are adjacent.
    let source = FailingSource::new(bytes.clone(), 512, &[3, 7, 8]);
    let feed = feed(source, 3 * 512, 512, 3);
    feed.start(2).unwrap();
    let mut damaged = bytes;
    for sector in [3, 7, 8] {
        damaged[sector * 512..(sector + 1) * 512].fill(0);
    }
    assert_eq!(drain(&feed, 1).unwrap(), expected(&damaged, 3 * 512, 512));
    let problems = feed.problems();
    let ranges: Vec<_> = problems.iter().map(|problem| problem.range.clone()).collect();
    assert_eq!(ranges, [3 * 512..4 * 512, 7 * 512..9 * 512]);
    assert!(problems[0].reason.contains("Input/output error"), "{}", problems[0].reason);
}

#[test]
fn a_source_that_is_gone_ends_the_feed_with_its_error_once() {
    without_hanging(|| {
        let feed = feed(GoneSource::new(noise(100_000), 5), 1_000, 0, 4);
        feed.start(2).unwrap();
        let error = drain(&feed, 1).unwrap_err().to_string();
        assert!(error.contains("gone"), "{error}");
        assert_eq!(feed.next(PATIENCE).unwrap(), Delivery::Ended);
    });
}

/// Two readers fail, the second after the caller has the error of the first.
#[test]
fn a_second_reader_that_fails_later_adds_no_error() {
    struct Later(Arc<Barrier>);
    impl Source for Later {
        fn name(&self) -> &str {
            "later"
        }
        fn length(&self) -> u64 {
            2_000
        }
        fn read_at(&self, offset: u64, _: &mut [u8]) -> std::io::Result<usize> {
            // Both readers are here before either fails.
            self.0.wait();
            if offset >= 1_000 {
                self.0.wait();
            }
            Err(std::io::Error::from_raw_os_error(libc::ENODEV))
        }
    }
    without_hanging(|| {
        let both = Arc::new(Barrier::new(2));
        let feed = feed(Later(Arc::clone(&both)), 1_000, 0, 2);
        feed.start(2).unwrap();
        assert!(feed.next(PATIENCE).is_err());
        both.wait();
        let soon = Duration::from_millis(20);
        assert!((0..5).all(|_| {
            std::thread::sleep(soon);
            matches!(feed.next(soon), Ok(Delivery::Ended))
        }));
    });
}

#[test]
fn a_source_that_panics_is_an_error_and_nobody_waits_forever() {
    struct Panicking;
    impl Source for Panicking {
        fn name(&self) -> &str {
            "panicking"
        }
        fn length(&self) -> u64 {
            10_000
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("no such thing")
        }
    }
    without_hanging(|| {
        let feed = feed(Panicking, 1_000, 0, 2);
        feed.start(1).unwrap();
        assert!(feed.next(PATIENCE).unwrap_err().to_string().contains("no such thing"));
    });
}

#[test]
fn nothing_is_read_before_the_start_or_without_free_slots() {
    without_hanging(|| {
        let feed = feed(Memory::new("memory", noise(10_000)), 1_000, 0, 2);
        let soon = Duration::from_millis(10);
        assert_eq!(feed.next(soon).unwrap(), Delivery::NotYet);
        feed.start(1).unwrap();
        let Delivery::Chunk(first) = feed.next(PATIENCE).unwrap() else { panic!() };
        let Delivery::Chunk(second) = feed.next(PATIENCE).unwrap() else { panic!() };
        assert_ne!(first.slot, second.slot);
        assert_eq!(feed.next(soon).unwrap(), Delivery::NotYet);
        feed.release(first.slot).unwrap();
        let Delivery::Chunk(third) = feed.next(PATIENCE).unwrap() else { panic!() };
        assert_eq!((third.slot, third.offset), (first.slot, 2_000));
    });
}

#[test]
fn closing_wakes_readers_and_waiting_threads() {
    without_hanging(|| {
        let feed = feed(Memory::new("memory", noise(10_000)), 1_000, 0, 1);
        feed.start(3).unwrap();
        let Delivery::Chunk(_) = feed.next(PATIENCE).unwrap() else { panic!() };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| feed.next(PATIENCE).unwrap());
            feed.close();
            assert_eq!(waiting.join().unwrap(), Delivery::Ended);
        });
    });
}

#[test]
fn wrong_use_is_refused() {
    let refused = |chunk, overlap, buffers| {
        let source = Box::new(Memory::new("memory", noise(100)));
        matches!(SharedFeed::new(source, chunk, overlap, buffers), Err(Error::BadPlan(_)))
    };
    assert!(refused(0, 0, 1));
    assert!(refused(1, 0, 0));
    assert!(refused(1, 0, 5_000));
    assert!(refused(1, usize::MAX, 1));
    let feed = feed(Memory::new("memory", noise(100)), 10, 0, 2);
    assert!(matches!(feed.release(0), Err(Error::BadPlan(_))));
    assert!(matches!(feed.release(9), Err(Error::BadPlan(_))));
    feed.start(1).unwrap();
    assert!(matches!(feed.start(1), Err(Error::BadPlan(_))));
}
