//! Every byte is owned exactly once, and results come in the order of the source.

use std::ops::Range;

use proptest::prelude::*;
use quarrier_core::pipeline::{Access, Need, Pipeline};
use quarrier_core::source::{Memory, Source};

use crate::census::{
    ACCESSES, Census, check_census, check_whole, collect, for_all, noise, open_temp, temp_file,
};

/// A way to cut: the user's settings, and the kernel's need.
#[derive(Debug, Clone)]
struct Cut {
    range: Range<u64>,
    workers: usize,
    readers: usize,
    buffers: usize,
    buffer_bytes: usize,
    need: Need,
}

const SOURCE_BYTES: u64 = 3_000_001;

/// Maximum number of chunks in a case, so that even chunks of one byte can be tested.
const CHUNKS_MAX: u64 = 200;

fn cuts() -> impl Strategy<Value = Cut> {
    let size = (0u32..=20).prop_flat_map(|bits| 1usize << bits..=1 << bits.max(1));
    let around = || prop_oneof![Just(0), 1usize..20, 4000usize..5000, 0usize..70_000];
    let numbers = (1usize..=8, 1usize..=3, 1usize..=12);
    (numbers, size, around(), around(), 0..SOURCE_BYTES, 0..SOURCE_BYTES).prop_map(
        |((workers, readers, buffers), buffer_bytes, before_bytes, after_bytes, start, length)| {
            let length = length.min(buffer_bytes as u64 * CHUNKS_MAX);
            let range = start..(start + length).min(SOURCE_BYTES);
            let need = Need { before_bytes, after_bytes, skip_zeros: false };
            Cut { range, workers, readers, buffers, buffer_bytes, need }
        },
    )
}

fn check(source: &dyn Source, expected: &[u8], access: Access, cut: &Cut) {
    let pipeline = Pipeline::new(source)
        .access(access)
        .range(cut.range.clone())
        .workers(cut.workers)
        .readers(cut.readers)
        .buffers(cut.buffers)
        .buffer_bytes(cut.buffer_bytes);
    let (run, seen) = collect(&pipeline, &Census { expected, need: cut.need });
    let run = run.unwrap();
    check_census(&seen, cut.range.clone(), cut.need);
    let most = seen.iter().map(|chunk| chunk.own.end - chunk.own.start).max().unwrap_or(0);
    assert!(most <= cut.buffer_bytes as u64, "a chunk owns {most} positions");
    assert_eq!(run.bytes, cut.range.end - cut.range.start);
    assert_eq!(run.position, cut.range.end);
    assert_eq!((run.stopped, run.hole_bytes, run.unreadable.len()), (false, 0, 0));
}

fn check_cuts(cases: u32, source: &dyn Source, expected: &[u8], access: Access) {
    for_all(cases, cuts(), |cut| check(source, expected, access, &cut));
}

#[test]
fn every_byte_of_memory_is_owned_once_and_in_order() {
    let bytes = noise(SOURCE_BYTES as usize);
    let source = Memory::new("noise", bytes.clone());
    check_cuts(100, &source, &bytes, Access::Window);
    check_cuts(30, &source, &bytes, Access::Queue);
}

#[test]
fn every_byte_of_a_file_is_owned_once_and_in_order_in_windows() {
    let bytes = noise(SOURCE_BYTES as usize);
    let file = temp_file(&bytes);
    check_cuts(60, &open_temp(&file), &bytes, Access::Window);
}

#[test]
fn every_byte_of_a_file_is_owned_once_and_in_order_when_workers_read() {
    let bytes = noise(SOURCE_BYTES as usize);
    let file = temp_file(&bytes);
    check_cuts(60, &open_temp(&file), &bytes, Access::Read);
}

#[test]
fn every_byte_of_a_file_is_owned_once_and_in_order_when_readers_read() {
    let bytes = noise(SOURCE_BYTES as usize);
    let file = temp_file(&bytes);
    check_cuts(60, &open_temp(&file), &bytes, Access::Queue);
}

#[test]
fn every_byte_of_a_file_is_owned_once_and_in_order_through_io_uring() {
    let bytes = noise(SOURCE_BYTES as usize);
    let file = temp_file(&bytes);
    check_cuts(60, &open_temp(&file), &bytes, Access::Uring);
}

#[test]
fn unset_settings_are_planned() {
    let bytes = noise(SOURCE_BYTES as usize);
    let file = temp_file(&bytes);
    let need = Need { before_bytes: 2, after_bytes: 9, skip_zeros: true };
    check_whole(&Pipeline::new(&open_temp(&file)), &bytes, need);
    check_whole(&Pipeline::new(&Memory::new("noise", &bytes[..])), &bytes, need);
    for access in ACCESSES {
        check_whole(&Pipeline::new(&open_temp(&file)).access(access), &bytes, need);
    }
}

#[test]
fn an_empty_source_has_no_chunks_and_ends_well() {
    let file = temp_file(b"");
    let need = Need { before_bytes: 5, after_bytes: 5, skip_zeros: false };
    check_whole(&Pipeline::new(&open_temp(&file)), b"", need);
    for access in ACCESSES {
        check_whole(&Pipeline::new(&open_temp(&file)).access(access), b"", need);
        check_whole(&Pipeline::new(&Memory::new("empty", b"")).access(access), b"", need);
    }
}

#[test]
fn an_empty_range_has_no_chunks_wherever_it_lies() {
    let bytes = noise(10_000);
    let source = Memory::new("noise", &bytes[..]);
    for at in [0, 1, 4096, 9_999, 10_000] {
        let census = Census { expected: &bytes, need: Need::default() };
        let (run, seen) = collect(&Pipeline::new(&source).range(at..at), &census);
        assert_eq!((run.unwrap().bytes, seen), (0, Vec::new()));
    }
}

#[test]
fn a_range_beyond_the_source_ends_with_it() {
    let bytes = noise(10_000);
    let source = Memory::new("noise", &bytes[..]);
    let census = Census { expected: &bytes, need: Need::default() };
    let (run, seen) = collect(&Pipeline::new(&source).range(7..u64::MAX), &census);
    assert_eq!(run.unwrap().bytes, 9_993);
    check_census(&seen, 7..10_000, Need::default());
}
