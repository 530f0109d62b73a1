//! Holes of sparse sources: skipped if zeros do not matter, synthesised if they do, and never read.

use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;

use proptest::prelude::*;
use quarrier_core::pipeline::{Access, Need, Pipeline, Run};
use quarrier_core::source::Source;
use tempfile::NamedTempFile;

use crate::census::{
    ACCESSES, Census, Seen, check_chunk, check_whole, collect, for_all, noise, open_temp,
};
use crate::faults::SparseSource;

/// Returns sorted, disjoint extents, from lengths of hole, data, hole, data …
fn extents(lengths: &[(u64, u64)]) -> Vec<Range<u64>> {
    let mut at = 0;
    let mut extents = Vec::new();
    for &(hole, data) in lengths {
        extents.push(at + hole..at + hole + data);
        at += hole + data;
    }
    extents
}

/// Runs with holes skipped, and checks that every position that sees data is owned once, in order.
fn check_skipping(
    source: &SparseSource,
    extents: &[Range<u64>],
    need: Need,
    set: &Pipeline<'_>,
) -> Run {
    let length = source.length();
    let (run, seen) = collect(set, &Census { expected: source.bytes(), need });
    let run = run.unwrap();
    let mut at = 0;
    for chunk in &seen {
        assert!(chunk.own.start >= at, "owned twice: {chunk:?}");
        check_chunk(chunk, &(0..length), need);
        check_sees_no_data(at..chunk.own.start, extents, need);
        at = chunk.own.end;
    }
    check_sees_no_data(at..length, extents, need);
    assert_eq!(run.bytes, seen.iter().map(|chunk: &Seen| chunk.own.end - chunk.own.start).sum());
    assert_eq!(run.bytes + run.hole_bytes, length);
    run
}

fn check_sees_no_data(skipped: Range<u64>, extents: &[Range<u64>], need: Need) {
    if skipped.is_empty() {
        return;
    }
    let seen_from = skipped.start.saturating_sub(need.before_bytes as u64);
    let seen_to = skipped.end + need.after_bytes as u64;
    for extent in extents {
        let is_apart = extent.end <= seen_from || seen_to <= extent.start;
        assert!(is_apart, "{skipped:?} was skipped but {need:?} sees {extent:?}");
    }
}

#[test]
fn holes_are_skipped_if_zeros_do_not_matter() {
    let extents = [100_000..100_010, 5_000_000..5_070_000];
    let source = SparseSource::new(noise(8 << 20), &extents);
    let need = Need { before_bytes: 2, after_bytes: 7, skip_zeros: true };
    for access in ACCESSES {
        let fetched_before = source.fetched_bytes();
        let pipeline = Pipeline::new(&source).access(access).workers(2);
        let run = check_skipping(&source, &extents, need, &pipeline);
        assert_eq!(run.bytes, 10 + 70_000 + 2 * (2 + 7));
        let fetched = source.fetched_bytes() - fetched_before;
        assert!(fetched < 100_000, "{access:?}: {fetched} bytes fetched");
    }
}

#[test]
fn holes_are_read_as_zeros_if_zeros_matter() {
    let extents = [100_000..100_010, 5_000_000..5_070_000];
    let source = SparseSource::new(noise(8 << 20), &extents);
    let need = Need { before_bytes: 2, after_bytes: 7, skip_zeros: false };
    for access in ACCESSES {
        let fetched_before = source.fetched_bytes();
        let pipeline = Pipeline::new(&source).access(access).workers(2).buffer_bytes(1 << 20);
        let (run, seen) = collect(&pipeline, &Census { expected: source.bytes(), need });
        crate::census::check_census(&seen, 0..8 << 20, need);
        assert_eq!(run.unwrap().bytes, 8 << 20);
        let fetched = source.fetched_bytes() - fetched_before;
        assert!(fetched < 150_000, "{access:?}: {fetched} bytes fetched");
        assert!(seen.len() < 30, "{access:?}: cut into {} chunks", seen.len());
    }
}

#[test]
fn holes_of_any_pattern_change_nothing() {
    let length = || prop_oneof![1u64..40, 1u64..20_000];
    let lengths = prop::collection::vec((length(), length()), 0..20);
    let around = || prop_oneof![Just(0usize), 1usize..50, 0usize..10_000];
    let input =
        ((lengths, 0u64..20_000), (around(), around()), 2_000usize..200_000, 0..ACCESSES.len());
    for_all(200, input, |((lengths, tail), (before_bytes, after_bytes), buffer_bytes, access)| {
        let extents = extents(&lengths);
        let length = extents.last().map_or(0, |extent| extent.end) + tail;
        let source = SparseSource::new(noise(length as usize), &extents);
        let access: Access = ACCESSES[access];
        let pipeline = Pipeline::new(&source).access(access).buffer_bytes(buffer_bytes).workers(2);
        let need = Need { before_bytes, after_bytes, skip_zeros: true };
        check_skipping(&source, &extents, need, &pipeline);
        check_whole(&pipeline, source.bytes(), Need { skip_zeros: false, ..need });
    });
}

/// Sees some bytes after the edge of a hole, on file systems with sparse files.
#[test]
fn a_sparse_file_has_the_bytes_it_has_when_read_in_full() {
    let mut file = NamedTempFile::new().unwrap();
    let data = noise(70_000);
    for at in [1 << 20, 3 << 20] {
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&data).unwrap();
    }
    file.as_file().set_len(5_000_001).unwrap();
    let expected = std::fs::read(file.path()).unwrap();
    assert_eq!(expected.len(), 5_000_001);
    let source = open_temp(&file);
    for access in ACCESSES {
        let pipeline = Pipeline::new(&source).access(access).workers(2);
        let need = Need { before_bytes: 100, after_bytes: 5_000, skip_zeros: false };
        check_whole(&pipeline, &expected, need);
        let skipping = Need { skip_zeros: true, ..need };
        let (run, seen) = collect(&pipeline, &Census { expected: &expected, need: skipping });
        let run = run.unwrap();
        assert!(seen.iter().all(|chunk| chunk.is_true), "{access:?}");
        assert_eq!(run.bytes + run.hole_bytes, 5_000_001, "{access:?}");
        for at in [1 << 20, 3 << 20] {
            let owned: u64 = seen
                .iter()
                .map(|chunk| chunk.own.end.min(at + 70_000).saturating_sub(chunk.own.start.max(at)))
                .sum();
            assert_eq!(owned, 70_000, "{access:?}: data at {at} is owned");
        }
    }
}

#[test]
fn a_source_that_is_one_hole_costs_nothing() {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 40).unwrap();
    let source = open_temp(&file);
    if source.next_data(0).unwrap().is_some() {
        return; // This file system keeps no holes.
    }
    for access in ACCESSES {
        let need = Need { before_bytes: 8, after_bytes: 8, skip_zeros: true };
        let (run, seen) =
            collect(&Pipeline::new(&source).access(access), &Census { expected: b"", need });
        let run = run.unwrap();
        assert_eq!((run.bytes, run.hole_bytes, seen.len()), (0, 1 << 40, 0));
    }
}
