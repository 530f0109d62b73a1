//! The account of a run: its plan, its timeline, its error messages.

use std::time::Duration;

use quarrier_core::Error;
use quarrier_core::pipeline::{Access, Chunk, Need, Pipeline, Run, Stage, Touch};
use quarrier_core::source::{Memory, Source};

use crate::census::{ACCESSES, check_whole, noise, open_temp, temp_file};
use crate::faults::SlowSource;

fn bytes_in(run: &Run, stage: Stage) -> u64 {
    let spans = run.timeline.agents.iter().flat_map(|(_, spans)| spans);
    spans.filter(|span| span.stage == stage).map(|span| span.bytes).sum()
}

/// Checks that each agent's spans are ordered, and add up to the loads and the bytes.
fn check_timeline(run: &Run) {
    let names: Vec<&str> = run.timeline.agents.iter().map(|(name, _)| name.as_str()).collect();
    let of = |role: &str| names.iter().filter(|name| name.starts_with(role)).count();
    assert_eq!((of("worker "), of("reader ")), (run.plan.workers, run.plan.readers), "{names:?}");
    for stage in Stage::ALL {
        assert_eq!(bytes_in(run, stage), run.bytes, "{stage:?} handles every byte once");
        let spans = run.timeline.agents.iter().flat_map(|(_, spans)| spans);
        let busy: Duration = spans.filter(|span| span.stage == stage).map(|span| span.busy).sum();
        assert_eq!(busy, run.timeline.load(stage).busy, "{stage:?}");
    }
    for (name, spans) in &run.timeline.agents {
        let is_reader_of_many = run.plan.access == Access::Uring && name.starts_with("reader");
        let is_sorted = spans.is_sorted_by_key(|span| span.start);
        assert!(is_sorted || is_reader_of_many, "{name} in order of time");
        for span in spans {
            assert!(span.start <= span.end && span.end <= run.elapsed, "{name}: {span:?}");
            assert!(span.busy <= span.end - span.start || is_reader_of_many, "{name}: {span:?}");
        }
    }
    if run.plan.access != Access::Uring {
        // No agent works and waits at the same time. (io_uring has many reads in flight.)
        let agents = run.timeline.agents.len() as u32;
        let loads = Stage::ALL.map(|stage| run.timeline.load(stage));
        let sum: Duration = loads.iter().map(|load| load.busy + load.waiting).sum();
        assert!(sum <= run.elapsed * agents, "{sum:?} by {agents} agents in {:?}", run.elapsed);
    }
}

#[test]
fn loads_of_a_run_add_up() {
    let bytes = noise(1_000_000);
    let file = temp_file(&bytes);
    let source = open_temp(&file);
    for access in ACCESSES {
        for (workers, buffer_bytes) in [(1, 100_000), (3, 10_000), (2, 100)] {
            let pipeline = Pipeline::new(&source).access(access).workers(workers).readers(2);
            let pipeline = pipeline.buffer_bytes(buffer_bytes);
            check_timeline(&check_whole(&pipeline, &bytes, Need::default()));
        }
    }
}

#[test]
fn the_load_shows_the_slow_stage() {
    let bytes = noise(40_000);
    let delay = Duration::from_millis(5);
    let source = SlowSource::new(bytes.clone(), move |_| delay);
    // With one buffer, no read begins before the worker has finished the previous chunk.
    let pipeline = Pipeline::new(&source).access(Access::Queue).readers(1).workers(1).buffers(1);
    let run = check_whole(&pipeline.buffer_bytes(2_000), &bytes, Need::default());
    check_timeline(&run);
    let (read, work) = (run.timeline.load(Stage::Read), run.timeline.load(Stage::Work));
    assert!(read.busy >= 20 * delay, "reading was slow: {read:?}");
    assert!(work.waiting >= 10 * delay, "the worker waited for it: {work:?}");
    assert!(work.busy < read.busy, "work was quick: {work:?}");
}

#[test]
fn a_plan_depends_on_settings_and_source() {
    let memory = Memory::new("memory", noise(1_000));
    let slow = SlowSource::new(noise(1_000), |_| Duration::ZERO);
    let plan = |pipeline: Pipeline<'_>| pipeline.plan(Need::default()).unwrap();
    assert_eq!(plan(Pipeline::new(&memory)).access, Access::Window);
    assert_eq!(plan(Pipeline::new(&slow)).access, Access::Queue);
    assert_eq!(plan(Pipeline::new(&memory).readers(3)).access, Access::Queue);
    for access in ACCESSES {
        let pipeline = Pipeline::new(&slow).access(access).workers(5).readers(3).buffers(7);
        let made = plan(pipeline.buffer_bytes(12_345));
        assert_eq!((made.access, made.reason), (access, "requested"));
        assert_eq!((made.workers, made.buffers, made.buffer_bytes), (5, 7, 12_345));
        let readers = match access {
            Access::Queue => 3,
            Access::Uring => 1,
            Access::Window | Access::Read => 0,
        };
        assert_eq!(made.readers, readers);
    }
}

#[test]
fn settings_of_zero_are_planned() {
    let source = Memory::new("memory", noise(10_000_000));
    let zeros = Pipeline::new(&source).workers(0).readers(0).buffers(0).buffer_bytes(0);
    let plan = zeros.plan(Need::default()).unwrap();
    assert!(plan.workers >= 1 && plan.buffers >= plan.workers && plan.buffer_bytes >= 65_536);
    assert_eq!(plan.access, Access::Window);
}

#[test]
fn buffers_that_nobody_asked_for_fit_the_most_workers() {
    let source = Memory::new("memory", noise(1_000));
    for access in [Access::Window, Access::Read, Access::Queue, Access::Uring] {
        for bytes in [0, 1 << 30] {
            let pipeline = Pipeline::new(&source).access(access).workers(4096).buffer_bytes(bytes);
            let plan = pipeline.plan(Need::default()).unwrap();
            assert!(plan.workers == 4096 && (2..=4096).contains(&plan.buffers), "{plan}");
        }
    }
}

#[test]
fn impossible_settings_are_refused_before_anything_is_read() {
    let source = Memory::new("memory", noise(1_000));
    let new = || Pipeline::new(&source).access(Access::Queue);
    for (pipeline, says) in [
        (new().workers(5_000), "5000 workers are too many; 4096 at most"),
        (new().readers(5_000), "5000 readers are too many; 4096 at most"),
        (new().buffers(5_000), "5000 buffers are too many; 4096 at most"),
        (new().buffer_bytes(1 << 31), "a buffer of 2147483648 bytes is too large"),
        (new().range(2_000..3_000), "the range begins at byte 2000 but the source has 1000 bytes"),
    ] {
        let run = pipeline.run(&Touch, &mut |_: &Chunk<'_>, _: &mut u64| panic!("was read"));
        let Err(Error::BadPlan(text)) = run else { panic!("{says}: {run:?}") };
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn touch_sums_all_bytes() {
    let bytes = noise(1_234_567);
    let expected: u64 = bytes.iter().map(|&byte| u64::from(byte)).sum();
    let source = Memory::new("memory", bytes);
    let mut total = 0;
    let sink = &mut |_: &Chunk<'_>, sum: &mut u64| total += std::mem::take(sum);
    Pipeline::new(&source).buffer_bytes(10_001).run(&Touch, sink).unwrap();
    assert_eq!(total, expected);
}

#[test]
fn errors_say_what_where_and_what_to_try() {
    let no_space = std::io::Error::from_raw_os_error(5);
    let error = Error::io("disk.img", "read at byte 4096", no_space);
    assert_eq!(error.to_string(), "disk.img: cannot read at byte 4096: Input/output error");
    assert!(std::error::Error::source(&error).is_some());
    let error = Error::Shrank { source_name: "log".to_string(), opened_bytes: 100, ended_at: 60 };
    assert_eq!(
        error.to_string(),
        "log: shrank while it was read: it had 100 bytes when opened and ended at byte 60; \
         copy it first, or read it when nothing writes to it"
    );
}

/// Direct reads cover only whole pages; the rest goes through the page cache.
#[test]
fn direct_reads_yield_the_same_bytes() {
    let bytes = noise(300_001);
    let file = temp_file(&bytes);
    let Ok(source) = quarrier_core::source::FileSource::open_direct(file.path()) else {
        return; // This file system has no O_DIRECT.
    };
    assert!(!source.is_resident(), "direct reads never come from the page cache");
    for access in ACCESSES {
        for buffer_bytes in [1_000, 65_536] {
            let pipeline = Pipeline::new(&source).access(access).buffer_bytes(buffer_bytes);
            let need = Need { before_bytes: 10, after_bytes: 10, skip_zeros: false };
            check_whole(&pipeline, &bytes, need);
        }
    }
}
