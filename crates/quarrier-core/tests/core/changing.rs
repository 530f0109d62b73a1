//! Sources that change during a run: only code that promised to tolerate it sees the changes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use quarrier_core::pipeline::{Access, Chunk, Emitter, Kernel, Need, Pipeline};
use quarrier_core::region::ChangingBytes;
use quarrier_core::source::{ChangingMemory, Memory, Source, SplitSource, read_exact_at};

use crate::census::{ACCESSES, as_data, noise, open_temp, temp_file};
use crate::region::slots;

/// Changes the bytes that it sees in the file itself, and yields whether it saw the change.
struct Overwrites {
    path: PathBuf,
}

fn overwrite(path: &Path, range: std::ops::Range<u64>) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&vec![0; (range.end - range.start) as usize], range.start).unwrap();
}

impl Kernel for Overwrites {
    type Output = Vec<bool>;
    fn need(&self) -> Need {
        Need { before_bytes: 10, after_bytes: 20, skip_zeros: false }
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Vec<bool>>) {
        let before = chunk.data.to_vec();
        overwrite(&self.path, chunk.offset..chunk.offset + chunk.data.len() as u64);
        emit.output().push(before != chunk.data);
    }
}

/// Whether the kernel or the sink saw bytes change.
fn sees_changes(pipeline: &Pipeline<'_>, path: &Path) -> bool {
    let mut is_seen = false;
    let mut sink = |chunk: &Chunk<'_>, seen: &mut Vec<bool>| {
        is_seen |= seen.drain(..).any(|seen| seen);
        let before = chunk.data.to_vec();
        let last = chunk.offset + chunk.data.len() as u64 - 1;
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(&[1], last).unwrap();
        is_seen |= before != chunk.data;
    };
    pipeline.clone().workers(1).run(&Overwrites { path: path.into() }, &mut sink).unwrap();
    is_seen
}

#[test]
fn changing_bytes_are_copied_without_a_promise() {
    let _slots = slots();
    for access in ACCESSES.map(Some).into_iter().chain([None]) {
        for joins in [false, true] {
            for is_promised in [false, true] {
                let file = temp_file(&noise(300_000));
                let memory = Memory::new("memory", noise(5_000));
                let parts: Vec<Box<dyn Source>> =
                    vec![Box::new(open_temp(&file)), Box::new(memory)];
                let split = SplitSource::new("split", parts).unwrap();
                let alone = open_temp(&file);
                let source: &dyn Source = if joins { &split } else { &alone };
                let mut pipeline = Pipeline::new(source).buffer_bytes(50_000).range(0..300_000);
                if let Some(access) = access {
                    pipeline = pipeline.access(access);
                }
                if is_promised {
                    pipeline = pipeline.show_changing(as_data());
                }
                let is_window = matches!(access, None | Some(Access::Window));
                let sees = sees_changes(&pipeline, file.path());
                assert_eq!(sees, is_window && is_promised, "{access:?}, {joins}, {is_promised}");
            }
        }
    }
}

#[test]
fn the_plan_says_why_resident_bytes_are_read() {
    let file = temp_file(&noise(100_000));
    let source = open_temp(&file);
    for pipeline in [Pipeline::new(&source), Pipeline::new(&source).access(Access::Window)] {
        let plan = pipeline.plan(Need::default()).unwrap();
        assert_eq!(plan.access, Access::Read);
        assert!(plan.reason.contains("others may change"), "{}", plan.reason);
        let plan = pipeline.show_changing(as_data()).plan(Need::default()).unwrap();
        assert_eq!(plan.access, Access::Window);
    }
}

/// Records the addresses of its bytes.
struct Where;

impl Kernel for Where {
    type Output = Vec<usize>;
    fn need(&self) -> Need {
        Need::default()
    }
    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Vec<usize>>) {
        emit.output().push(chunk.data.as_ptr().addr());
    }
}

#[test]
fn memory_that_others_change_is_shown_by_promise_and_else_copied() {
    let bytes: Vec<AtomicU8> = noise(200_000).into_iter().map(AtomicU8::new).collect();
    let start = bytes.as_ptr().addr();
    // SAFETY: `bytes` outlives `changing` and is a live array of this length; an `AtomicU8` has the
    // layout of a `u8`.
    let changing = unsafe { ChangingBytes::new(bytes.as_ptr().cast(), bytes.len()) };
    let source = ChangingMemory::new("memory", changing);
    assert_eq!(read_exact_at(&source, 10, 199_990).unwrap(), noise(200_000)[10..]);
    assert_eq!(source.read_at(200_000, &mut [0]).unwrap(), 0);
    assert!(source.window(0..200_001).unwrap().is_err());
    for is_promised in [false, true] {
        let mut pipeline = Pipeline::new(&source).workers(2).buffer_bytes(30_000);
        if is_promised {
            pipeline = pipeline.show_changing(as_data());
        }
        let mut places = Vec::new();
        pipeline
            .run(&Where, &mut |_: &Chunk<'_>, some: &mut Vec<usize>| places.append(some))
            .unwrap();
        let within = places.iter().filter(|&&at| (start..start + bytes.len()).contains(&at));
        assert_eq!(within.count(), if is_promised { places.len() } else { 0 });
        bytes[0].store(0, Ordering::Relaxed);
    }
}
