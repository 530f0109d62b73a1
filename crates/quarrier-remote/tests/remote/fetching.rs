//! Which bytes are fetched, and how often.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use quarrier_core::source::{Source, read_full_at};

use quarrier_sparse::CostModel;

use crate::server::{Act, Server};
use crate::{exact, hasty, noise, remote};

/// The maximum that a request delivers at once, with some slack.
const ARRIVING_BYTES_MAX: u64 = 1 << 20;

const LATE: Act = Act::Late(Duration::from_millis(250));

#[test]
fn bytes_on_their_way_are_waited_for_and_not_fetched_twice() {
    let server = Server::new(noise(1_000_000, 1), |_| LATE);
    let remote = remote(exact());
    let source = remote.open(&server.url()).unwrap();
    let together = Barrier::new(16);
    thread::scope(|scope| {
        for n in 0..16 {
            let (source, together, server) = (&source, &together, &server);
            scope.spawn(move || {
                let mut bytes = vec![0; 10_000];
                together.wait();
                // Half of the threads read all of it, half a part.
                let part = &mut bytes[..if n % 2 == 0 { 10_000 } else { 5000 }];
                source.read_at(500_000, part).unwrap();
                assert_eq!(part, &server.object()[500_000..][..part.len()]);
            });
        }
    });
    let bytes: u64 = server.ranges().iter().map(|range| range.end - range.start).sum();
    assert_eq!(bytes, 10_000, "{:?}", server.ranges());
    assert!(server.ranges().len() <= 2);
    assert_eq!(source.counters().bytes_asked, 8 * 10_000 + 8 * 5000);
}

#[test]
fn held_bytes_are_not_fetched_again() {
    let server = Server::new(noise(100_000, 2), |_| Act::Serve);
    let remote = remote(exact());
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = vec![0; 1000];
    for _ in 0..3 {
        source.read_at(5000, &mut bytes).unwrap();
    }
    source.read_at(5500, &mut bytes).unwrap();
    assert_eq!(server.ranges(), [5000..6000, 6000..6500]);
}

#[test]
fn ranges_close_together_are_one_request_and_those_far_apart_are_several() {
    let server = Server::new(noise(10_000_000, 3), |_| LATE);
    let mut options = exact();
    options.cost = Some(CostModel {
        latency: Duration::from_millis(20),
        bytes_per_second: 5_000_000.0,
        ..CostModel::default()
    });
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    let near = (0..100).map(|n| n * 1000 + 1000..n * 1000 + 1100);
    let far = [5_000_000..5_000_100, 9_000_000..9_000_100];
    let ranges: Vec<_> = near.chain(far).collect();
    source.fetch_many(&ranges).unwrap();
    let mut asked = server.ranges();
    asked.sort_by_key(|range| range.start);
    assert_eq!(asked, [1000..100_100, 5_000_000..5_000_100, 9_000_000..9_000_100]);
    assert_eq!(server.under_way_max(), 3);
    let mut bytes = vec![0; 100];
    for range in ranges {
        source.read_at(range.start, &mut bytes).unwrap();
        assert_eq!(bytes, server.object()[range.start as usize..range.end as usize]);
    }
    assert_eq!(server.ranges().len(), 3);
}

#[test]
fn many_reads_fill_their_buffers_by_few_requests_and_can_be_stopped() {
    let server = Server::new(noise(10_000_000, 3), |_| LATE);
    let mut options = exact();
    // Less than the ranges: they are read before they can be evicted.
    options.memory_bytes_max = 50_000;
    options.cost = Some(CostModel { bytes_per_second: 5_000_000.0, ..CostModel::default() });
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    let offsets = [9_999_950, 5_000_000, 100_000, 0, 150_000, 5_000_000, u64::MAX];
    let mut buffers = vec![vec![0; 50_000]; offsets.len()];
    let mut reads: Vec<_> =
        offsets.iter().copied().zip(buffers.iter_mut().map(Vec::as_mut_slice)).collect();
    source.read_many_unless(&mut reads, &AtomicBool::new(false)).unwrap();
    for (offset, buffer) in offsets.iter().zip(&buffers) {
        let there = server.object().get(*offset as usize..).unwrap_or_default();
        let count = there.len().min(buffer.len());
        assert_eq!(buffer[..count], there[..count]);
        assert!(buffer[count..].iter().all(|&byte| byte == 0));
    }
    assert!(server.ranges().len() <= 4, "{:?}", server.ranges());
    let mut one = [0];
    let stopped = source.read_many_unless(&mut [(7_000_000, &mut one)], &AtomicBool::new(true));
    assert!(matches!(stopped, Err(quarrier_remote::Error::Closed { .. })), "{stopped:?}");
}

#[test]
fn a_reader_that_needs_no_holes_gets_none_above_its_limit() {
    let whole = 1000..9000;
    for (hole_bytes_max, expected) in [
        (u64::MAX, vec![whole]),
        (1000, vec![1000..4000, 7000..9000]),
        (999, vec![1000..2000, 3000..4000, 7000..9000]),
        (0, vec![1000..2000, 3000..4000, 7000..9000]),
    ] {
        let server = Server::new(noise(10_000, 3), |_| Act::Serve);
        let remote = remote(exact());
        let source = remote.open(&server.url()).unwrap();
        let mut buffers = vec![vec![0; 1000]; 4];
        let offsets = [7000, 1000, 3000, 8000];
        let mut reads: Vec<_> =
            offsets.iter().copied().zip(buffers.iter_mut().map(Vec::as_mut_slice)).collect();
        source.read_apart_unless(&mut reads, hole_bytes_max, &AtomicBool::new(false)).unwrap();
        for (offset, buffer) in offsets.iter().zip(&buffers) {
            assert_eq!(buffer[..], server.object()[*offset as usize..][..1000]);
        }
        let mut asked = server.ranges();
        asked.sort_by_key(|range| range.start);
        assert_eq!(asked, expected, "{hole_bytes_max}");
    }
}

#[test]
fn large_ranges_are_split_and_fetched_side_by_side_up_to_the_limit() {
    let server = Server::new(noise(4_000_000, 4), |_| LATE);
    let mut options = exact();
    options.request_bytes_max = 250_000;
    options.requests_max = 5;
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = vec![0; 4_000_000];
    assert_eq!(read_full_at(&source, 0, &mut bytes).unwrap(), bytes.len());
    assert_eq!(bytes, server.object());
    assert_eq!(server.ranges().len(), 16);
    assert!(server.ranges().iter().all(|range| range.end - range.start <= 250_000));
    assert_eq!(server.under_way_max(), 5);
}

#[test]
fn reading_on_keeps_several_large_requests_under_way() {
    let server = Server::new(noise(64 << 20, 5), |_| Act::Late(Duration::from_millis(5)));
    let remote = remote(hasty());
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = vec![0; 1 << 20];
    for n in 0..64 {
        assert_eq!(read_full_at(&source, n << 20, &mut bytes).unwrap(), bytes.len());
        assert_eq!(bytes, server.object()[(n << 20) as usize..][..bytes.len()]);
    }
    let counters = source.counters();
    assert_eq!(counters.bytes_fetched, 64 << 20, "nothing twice");
    assert!(counters.requests < 40, "{counters:?}");
    assert!(server.under_way_max() >= 3);
}

#[test]
fn an_announced_range_is_fetched_whole_and_nothing_beyond() {
    let server = Server::new(noise(32 << 20, 6), |_| Act::Serve);
    let remote = remote(hasty());
    let source = remote.open(&server.url()).unwrap();
    source.announce(4 << 20..20 << 20);
    let mut bytes = vec![0; 1 << 20];
    for n in 4..20 {
        read_full_at(&source, n << 20, &mut bytes).unwrap();
        assert_eq!(bytes, server.object()[(n << 20) as usize..][..bytes.len()]);
    }
    assert_eq!(source.counters().bytes_fetched, (16 << 20) + (16 << 10));
    assert!(server.ranges().len() <= 9, "{:?}", server.ranges());
}

#[test]
fn memory_is_bounded_and_evicted_bytes_are_fetched_again() {
    let server = Server::new(noise(8 << 20, 7), |_| Act::Serve);
    let mut options = hasty();
    options.memory_bytes_max = 1 << 20;
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = vec![0; 100_000];
    for round in 0..2 {
        for n in 0..80u64 {
            let offset = n * 100_000 + round;
            read_full_at(&source, offset, &mut bytes).unwrap();
            assert_eq!(bytes, server.object()[offset as usize..][..bytes.len()]);
            // Pinned bytes do not count; neither do those that have just arrived, for a moment.
            let held = remote.memory_bytes();
            assert!(held <= (1 << 20) + 100_000 + ARRIVING_BYTES_MAX, "{held}");
        }
    }
    drop(source);
    assert_eq!(remote.memory_bytes(), 0);
}

#[test]
fn more_than_memory_holds_can_be_read_at_once() {
    let server = Server::new(noise(4 << 20, 8), |_| Act::Serve);
    let mut options = hasty();
    options.memory_bytes_max = 100_000;
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = vec![0; 4 << 20];
    assert_eq!(read_full_at(&source, 0, &mut bytes).unwrap(), bytes.len());
    assert_eq!(bytes, server.object());
}
