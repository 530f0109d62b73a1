//! Sources that end before their length when opened: the result is an error with the offset, never
//! a signal and never zeros in place of data.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier_core::pipeline::{Access, Chunk, Emitter, Kernel, Need, Pipeline, Run};
use quarrier_core::region::Region;
use quarrier_core::source::Source;
use quarrier_core::{Error, Result};

use crate::census::{
    ACCESSES, Census, as_data, collect, noise, open_temp, temp_file, without_hanging,
};
use crate::faults::ShrinkingSource;
use crate::region::slots;

fn check_shrank(run: Result<Run>, opened: u64, ended: u64, what: &str) {
    match run {
        Err(Error::Shrank { opened_bytes, ended_at, .. }) => {
            assert_eq!((opened_bytes, ended_at), (opened, ended), "{what}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

fn truncate(path: &Path, length: u64) {
    File::options().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[test]
fn a_source_that_shrinks_is_an_error_with_the_offset_where_it_ended() {
    let bytes = noise(300_000);
    for access in ACCESSES {
        for ends_at in [0, 1, 4_096, 123_456, 299_999] {
            for buffer_bytes in [4_096, 50_000, 1 << 20] {
                let source = ShrinkingSource::new(bytes.clone(), ends_at);
                let pipeline =
                    Pipeline::new(&source).access(access).workers(3).buffer_bytes(buffer_bytes);
                let census = Census { expected: &bytes, need: Need::default() };
                let (run, seen) = collect(&pipeline, &census);
                let what = format!("{access:?}, ends at {ends_at}, buffers of {buffer_bytes}");
                check_shrank(run, 300_000, ends_at as u64, &what);
                // The sink received every complete chunk before the error.
                let whole = ends_at as u64 / buffer_bytes as u64;
                assert_eq!(seen.len() as u64, whole, "{what}");
                assert!(seen.iter().all(|chunk| chunk.is_true), "{what}");
            }
        }
    }
}

#[test]
fn a_file_truncated_between_opening_and_reading_is_an_error() {
    let _slots = slots();
    let bytes = noise(300_000);
    for access in ACCESSES {
        for skip_zeros in [false, true] {
            for ended in [0, 8_192, 123_456, 299_000] {
                let file = temp_file(&bytes);
                let source = open_temp(&file);
                truncate(file.path(), ended);
                let census =
                    Census { expected: &bytes, need: Need { skip_zeros, ..Need::default() } };
                let pipeline = Pipeline::new(&source).access(access).workers(2);
                let (run, _) = collect(&pipeline.buffer_bytes(65_536), &census);
                let what = format!("{access:?}, skip zeros {skip_zeros}, cut to {ended}");
                check_shrank(run, 300_000, ended, &what);
            }
        }
    }
}

/// Truncates the file in the first chunk, then touches the bytes.
struct Truncates {
    path: PathBuf,
    length: u64,
    is_done: AtomicBool,
}

impl Kernel for Truncates {
    type Output = u64;
    fn need(&self) -> Need {
        Need { skip_zeros: true, ..Need::default() }
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, u64>) {
        if !self.is_done.swap(true, Ordering::SeqCst) {
            truncate(&self.path, self.length);
        }
        *emit.output() += chunk.owned().iter().map(|&byte| u64::from(byte)).sum::<u64>();
    }
}

fn check_truncated_under_windows(length: usize, cut_to: u64, buffer_bytes: usize) {
    let file = temp_file(&noise(length));
    let source = open_temp(&file);
    let kernel =
        Truncates { path: file.path().into(), length: cut_to, is_done: AtomicBool::new(false) };
    let pipeline = Pipeline::new(&source).access(Access::Window).workers(1);
    let pipeline = pipeline.show_changing(as_data());
    let run = pipeline
        .buffer_bytes(buffer_bytes)
        .run(&kernel, &mut |_: &Chunk<'_>, sum: &mut u64| *sum = 0);
    let what = format!("{length} bytes cut to {cut_to}, windows of {buffer_bytes}");
    check_shrank(run, length as u64, cut_to, &what);
}

#[test]
fn a_file_truncated_under_a_window_is_an_error_and_no_signal() {
    let _slots = slots();
    for (cut_to, buffer_bytes) in
        [(0, 1 << 20), (5_000, 1 << 20), (5_000, 65_536), (200_000, 65_536)]
    {
        check_truncated_under_windows(300_000, cut_to, buffer_bytes);
    }
}

/// Bytes that disappear from a file's last page cause no signal: they turn into zeros.
#[test]
fn a_file_truncated_within_its_last_page_is_an_error() {
    let _slots = slots();
    check_truncated_under_windows(300_000, 299_900, 1 << 20);
    check_truncated_under_windows(300_000, 299_900, 65_536);
    check_truncated_under_windows(100, 1, 65_536);
}

/// The sink reads the whole chunk long after the file was truncated.
#[test]
fn a_file_truncated_before_the_sink_looks_at_the_chunk_is_an_error() {
    let _slots = slots();
    let bytes = noise(100_000);
    let file = temp_file(&bytes);
    let source = open_temp(&file);
    let path = file.path().to_path_buf();
    let mut is_true = true;
    let pipeline = Pipeline::new(&source).access(Access::Window).show_changing(as_data());
    let run = pipeline.workers(1).buffer_bytes(1 << 20).run(
        &Census { expected: &bytes, need: Need::default() },
        &mut |chunk: &Chunk<'_>, _: &mut Vec<_>| {
            truncate(&path, 10_000);
            is_true &= chunk.data == &bytes[..];
        },
    );
    assert!(!is_true, "the sink was shown zeros");
    check_shrank(run, 100_000, 10_000, "cut down while the sink looked");
}

/// The many reads that fail at once must not fill the queue and block the reader.
#[test]
fn a_file_truncated_under_io_uring_is_an_error_and_does_not_hang() {
    for access in [Access::Uring, Access::Queue, Access::Read] {
        without_hanging(move || {
            let file = temp_file(&noise(4 << 20));
            let source = open_temp(&file);
            let path = file.path().to_path_buf();
            let kernel = Pause { path, is_done: AtomicBool::new(false) };
            let pipeline = Pipeline::new(&source).access(access).workers(1).buffers(8);
            let run =
                pipeline.buffer_bytes(4096).run(&kernel, &mut |_: &Chunk<'_>, (): &mut ()| {});
            check_shrank(run, 4 << 20, 100_000, &format!("{access:?}"));
        });
    }
}

/// Truncates the file in the first chunk, then pauses.
struct Pause {
    path: PathBuf,
    is_done: AtomicBool,
}

impl Kernel for Pause {
    type Output = ();
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, _: &Chunk<'_>, _: &mut Emitter<'_, ()>) {
        if !self.is_done.swap(true, Ordering::SeqCst) {
            truncate(&self.path, 100_000);
        }
        std::thread::sleep(Duration::from_millis(15));
    }
}

#[test]
fn a_window_whose_pages_vanish_shows_zeros_and_is_torn() {
    let _slots = slots();
    let bytes = noise(50_000);
    let file = temp_file(&bytes);
    let source = open_temp(&file);
    let region = source.window(100..50_000).unwrap().unwrap();
    assert!(matches!(&region, Region::Window(_)));
    assert_eq!(region.as_data(as_data()), &bytes[100..]);
    assert!(!region.is_torn());
    truncate(file.path(), 0);
    assert!(region.as_data(as_data()).iter().all(|&byte| byte == 0));
    assert!(region.is_torn());
}
