//! Sources that fail to read: bad sectors, devices that disappear, short and interrupted reads.

use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;
use quarrier_core::Error;
use quarrier_core::pipeline::{Access, Chunk, Emitter, Kernel, Need, Pipeline};

use crate::census::{
    ACCESSES, Census, check_chunk, check_whole, collect, for_all, noise, without_hanging,
};
use crate::faults::{FailingSource, GoneSource, InterruptedSource, ShortReadSource};

/// Returns the ranges of these sectors in a source of `length` bytes, adjacent ones joined.
fn ranges(bad_sectors: &[u64], sector_bytes: usize, length: u64) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for sector in bad_sectors {
        let start = sector * sector_bytes as u64;
        let end = (start + sector_bytes as u64).min(length);
        match joined.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => joined.push(start..end),
        }
    }
    joined
}

/// Returns the parts of `ranges` within `part`.
fn clip(ranges: &[Range<u64>], part: &Range<u64>) -> Vec<Range<u64>> {
    let clipped = ranges.iter().map(|r| r.start.max(part.start)..r.end.min(part.end));
    clipped.filter(|r| r.start < r.end).collect()
}

/// Checks that everything but the bad sectors is read; these are zero, and listed in each chunk
/// that shows them and in the account.
fn check_bad_sectors(
    length: usize,
    sector_bytes: usize,
    bad_sectors: &[u64],
    need: Need,
    set: impl Fn(Pipeline<'_>) -> Pipeline<'_>,
) {
    let bytes = noise(length);
    let bad = ranges(bad_sectors, sector_bytes, length as u64);
    let mut expected = bytes.clone();
    for range in &bad {
        expected[range.start as usize..range.end as usize].fill(0);
    }
    let source = FailingSource::new(bytes, sector_bytes, bad_sectors);
    let pipeline = set(Pipeline::new(&source));
    let run = check_whole(&pipeline, &expected, need);
    assert_eq!(run.unreadable, bad);
    let (_, seen) = collect(&pipeline, &Census { expected: &expected, need });
    for chunk in &seen {
        assert_eq!(chunk.unreadable, clip(&bad, &chunk.shown), "{chunk:?}");
    }
}

#[test]
fn bad_sectors_are_listed_exactly_and_everything_around_them_is_read() {
    let bad = [0, 1, 40, 41, 43, 1_000, 1_953];
    for access in ACCESSES {
        for buffer_bytes in [1_000, 4_096, 65_536, 1 << 20] {
            let need = Need { before_bytes: 3, after_bytes: 700, skip_zeros: false };
            check_bad_sectors(1_000_000, 512, &bad, need, |pipeline| {
                pipeline.access(access).buffer_bytes(buffer_bytes).workers(3)
            });
        }
    }
}

#[test]
fn bad_sectors_of_any_pattern_are_listed_exactly() {
    let bad = prop::collection::btree_set(0u64..400, 0..40);
    let input = (bad, prop_oneof![Just(512usize), Just(4096)], 0usize..9_000, 0usize..9_000);
    let input = (input, 4_000usize..300_000, 0..ACCESSES.len());
    for_all(48, input, |((bad, sector_bytes, before_bytes, after_bytes), buffer_bytes, access)| {
        let bad: Vec<u64> = Vec::from_iter(bad);
        let need = Need { before_bytes, after_bytes, skip_zeros: false };
        // The end of the source cuts the last sector short.
        check_bad_sectors(400 * sector_bytes - 100, sector_bytes, &bad, need, |pipeline| {
            pipeline.access(ACCESSES[access]).buffer_bytes(buffer_bytes).workers(2)
        });
    });
}

#[test]
fn a_disk_with_no_readable_sector_is_one_unreadable_range() {
    let bad = Vec::from_iter(0..200);
    check_bad_sectors(200 * 512, 512, &bad, Need::default(), |pipeline| pipeline);
}

#[test]
fn a_device_that_disappears_is_a_clear_error() {
    let bytes = noise(1 << 20);
    for access in ACCESSES {
        for workers in [1, 4] {
            let source = GoneSource::new(bytes.clone(), 20);
            let pipeline = Pipeline::new(&source)
                .access(access)
                .workers(workers)
                .readers(1)
                .buffer_bytes(4096);
            let census = Census { expected: &bytes, need: Need::default() };
            let (run, seen) = collect(&pipeline, &census);
            let error = run.unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with("gone: cannot read at byte "), "{text}");
            assert!(text.ends_with("No such device"), "{text}");
            let Error::Io { error, .. } = error else { panic!("{error:?}") };
            assert_eq!(error.raw_os_error(), Some(19));
            // The sink received the bytes from before the source disappeared, in order.
            let mut at = 0;
            for chunk in &seen {
                assert_eq!(chunk.own.start, at);
                check_chunk(chunk, &(0..1 << 20), Need::default());
                at = chunk.own.end;
            }
            assert!(seen.len() <= 20);
            if workers == 1 {
                assert_eq!(seen.len(), 20, "{access:?}: bytes read before are passed on");
            }
        }
    }
}

/// Works slowly, so that readers get far ahead.
struct Slow;

impl Kernel for Slow {
    type Output = ();
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, _: &Chunk<'_>, _: &mut Emitter<'_, ()>) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn readers_give_up_when_the_device_is_gone_however_much_is_left_to_read() {
    for access in ACCESSES {
        without_hanging(move || {
            let source = GoneSource::new(noise(1 << 20), 3);
            let pipeline =
                Pipeline::new(&source).access(access).buffer_bytes(128).workers(1).buffers(2);
            let run = pipeline.run(&Slow, &mut |_: &Chunk<'_>, (): &mut ()| {});
            assert!(matches!(run, Err(Error::Io { .. })), "{access:?}: {run:?}");
        });
    }
}

#[test]
fn short_reads_are_continued() {
    let bytes = noise(200_000);
    let need = Need { before_bytes: 10, after_bytes: 5_000, skip_zeros: false };
    for access in ACCESSES {
        for bytes_max in [1, 7, 511, 4096, 100_000] {
            let source = ShortReadSource::new(bytes.clone(), bytes_max);
            let pipeline = Pipeline::new(&source).access(access).workers(2).buffer_bytes(30_000);
            let run = check_whole(&pipeline, &bytes, need);
            assert!(run.unreadable.is_empty());
        }
    }
}

#[test]
fn interrupted_reads_are_repeated() {
    let bytes = noise(200_000);
    for access in ACCESSES {
        let source = InterruptedSource::new(bytes.clone());
        let pipeline = Pipeline::new(&source).access(access).workers(2).buffer_bytes(3_000);
        let run = check_whole(&pipeline, &bytes, Need::default());
        assert!(run.unreadable.is_empty(), "{access:?}: {:?}", run.unreadable);
    }
}

#[test]
fn a_source_without_windows_is_read_where_windows_were_asked_for() {
    let bytes = noise(200_000);
    let source = ShortReadSource::new(bytes.clone(), 1 << 20);
    let need = Need { before_bytes: 100, after_bytes: 100, skip_zeros: false };
    let run = check_whole(&Pipeline::new(&source).access(Access::Window), &bytes, need);
    assert_eq!(run.plan.access, Access::Window);
}

#[test]
fn reading_stops_when_the_error_kind_means_that_the_source_is_gone() {
    use std::io::ErrorKind::{ConnectionAborted, NotConnected, StaleNetworkFileHandle};
    for kind in [ConnectionAborted, NotConnected, StaleNetworkFileHandle] {
        for access in ACCESSES {
            let source = GoneSource::new(noise(1 << 20), 3).saying(kind);
            let pipeline = Pipeline::new(&source).access(access).readers(1).buffer_bytes(4096);
            let census = Census { expected: &noise(1 << 20), need: Need::default() };
            let (run, seen) = collect(&pipeline, &census);
            assert!(matches!(run, Err(Error::Io { .. })), "{access:?}");
            assert!(seen.len() <= 3);
        }
    }
}

#[test]
fn a_source_that_gives_up_because_the_run_is_to_end_is_no_failure() {
    let stop = std::sync::atomic::AtomicBool::new(true);
    let aborted = std::io::ErrorKind::ConnectionAborted;
    for access in ACCESSES {
        let source = GoneSource::new(noise(1 << 20), 0).saying(aborted);
        let pipeline = Pipeline::new(&source).access(access).buffer_bytes(4096).stop(&stop);
        let census = Census { expected: &noise(1 << 20), need: Need::default() };
        let (run, _) = collect(&pipeline, &census);
        let run = run.unwrap();
        assert_eq!((run.stopped, run.position), (true, 0));
    }
}
