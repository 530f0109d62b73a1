//! Devices have the same findings as the oracle, for every number of patterns, kind of data and
//! chunk size, and also when they fail.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use quarrier_core::pipeline::{Access, Pipeline};
use quarrier_core::source::Memory;
use quarrier_gpu::{
    Device, Dialect, Driver, DriverName, Error, Facts, Kind, Raw, Result, Step, Times,
};
use quarrier_search::{Builder, Finding, GpuSearcher, Options, Pattern, Sample, Searcher};

use super::engines::{meant, noise};
use super::oracle::{OraclePattern, all};

/// Returns the first device of this machine; `None` only if no driver is installed.
pub(crate) fn device() -> Option<&'static Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    DEVICE
        .get_or_init(|| {
            let first = quarrier_gpu::find().into_iter().next();
            let vendors = std::fs::read_dir("/etc/OpenCL/vendors");
            let is_installed = vendors.is_ok_and(|mut entries| entries.next().is_some());
            assert_eq!(first.is_some(), is_installed, "a driver is there: {is_installed}");
            first
        })
        .as_ref()
}

/// How a test runs: slots of the device, workers on the CPU, and the chunks' size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) slots: usize,
    pub(crate) workers: usize,
    pub(crate) buffer_bytes: usize,
    pub(crate) access: Access,
}

pub(crate) const READ: Cut = Cut { slots: 2, workers: 0, buffer_bytes: 4096, access: Access::Read };

fn run(searcher: &Searcher, on: &GpuSearcher, text: &[u8], cut: Cut) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut sink = searcher.sink(|_, findings| {
        found.extend_from_slice(findings);
        ControlFlow::Continue(())
    });
    let memory = |bytes| Some(on.buffer(bytes));
    Pipeline::new(&Memory::new("text", text))
        .access(cut.access)
        .workers(on.slots() + cut.workers)
        .buffers(on.slots() + cut.workers + 1)
        .buffer_bytes(cut.buffer_bytes)
        .memory(&memory)
        .run(on, &mut sink)
        .unwrap();
    assert_eq!(sink.too_long(), None);
    drop(sink);
    found
}

pub(crate) fn found_by(
    device: &Device,
    searcher: &Arc<Searcher>,
    text: &[u8],
    cut: Cut,
) -> Vec<Finding> {
    let on = searcher
        .on_devices(std::slice::from_ref(device), cut.slots, &Sample::default(), &false.into())
        .unwrap();
    let found = run(searcher, &on, text, cut);
    assert_eq!(on.lost(), Vec::<String>::new());
    found
}

pub(crate) fn searcher(patterns: &[OraclePattern]) -> Arc<Searcher> {
    built(Searcher::builder(), patterns.iter().map(OraclePattern::pattern).collect())
}

fn built(builder: Builder<'_>, patterns: Vec<Pattern>) -> Arc<Searcher> {
    Arc::new(builder.build(patterns).unwrap())
}

fn check(patterns: &[OraclePattern], text: &[u8]) {
    let Some(device) = device() else { return };
    let (searcher, expected) = (searcher(patterns), all(patterns, text));
    for buffer_bytes in [1, 7, 64, 4096] {
        if text.len() / buffer_bytes > 700 {
            continue;
        }
        for (access, workers) in [(Access::Read, 0), (Access::Queue, 1), (Access::Window, 0)] {
            let cut = Cut { buffer_bytes, access, workers, ..READ };
            assert_eq!(found_by(device, &searcher, text, cut), expected, "{cut:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn findings_equal_the_oracles(
        patterns in prop::collection::vec(meant(1..14), 1..20),
        text in prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0u8), any::<u8>()], 0..600),
    ) {
        check(&patterns, &text);
    }
}

/// Returns every occurrence of exact patterns, by a map from bytes to patterns for each length.
fn occurrences(patterns: &[Vec<u8>], text: &[u8]) -> Vec<Finding> {
    let mut by_length: HashMap<usize, HashMap<&[u8], Vec<u32>>> = HashMap::new();
    for (index, pattern) in patterns.iter().enumerate() {
        let of_length = by_length.entry(pattern.len()).or_default();
        of_length.entry(pattern).or_default().push(index as u32);
    }
    let mut found = Vec::new();
    for (&length, known) in &by_length {
        for (offset, window) in text.windows(length).enumerate() {
            found.extend(known.get(window).into_iter().flatten().map(|&pattern| Finding {
                offset: offset as u64,
                pattern,
                length: length as u32,
            }));
        }
    }
    found.sort_unstable();
    found
}

fn check_many(patterns: &[Vec<u8>], text: &[u8], buffer_bytes: usize) {
    let Some(device) = device() else { return };
    let meant = patterns.iter().map(|p| Pattern::bytes(p, &format!("{p:02X?}")).unwrap()).collect();
    let searcher = built(Searcher::builder(), meant);
    let expected = occurrences(patterns, text);
    assert!(!expected.is_empty());
    for workers in [0, 1] {
        let cut = Cut { buffer_bytes, workers, ..READ };
        let found = found_by(device, &searcher, text, cut);
        assert_eq!(found.len(), expected.len(), "{} patterns, {cut:?}", patterns.len());
        assert!(found == expected, "{} patterns, {cut:?}", patterns.len());
    }
}

/// Returns noise with every fifth pattern in it.
fn planted(patterns: &[Vec<u8>], noise_bytes: usize) -> Vec<u8> {
    let mut text: Vec<u8> = noise(3).take(noise_bytes).collect();
    for (i, pattern) in patterns.iter().enumerate().step_by(patterns.len() / 5_000 * 5 + 1) {
        text.extend_from_slice(pattern);
        text.extend(noise(i as u64 + 99).take(i % 23));
    }
    text
}

#[test]
fn one_to_a_hundred_thousand_patterns_are_found() {
    for count in [1, 10, 1_000, 10_000, 100_000] {
        let patterns: Vec<Vec<u8>> =
            (0..count).map(|i| noise(i as u64 * 7 + 1).take(4 + i % 13).collect()).collect();
        check_many(&patterns, &planted(&patterns, 1 << 19), 100_000);
    }
}

#[test]
fn patterns_with_a_common_prefix_are_distinguished() {
    let patterns: Vec<Vec<u8>> =
        (0..3_000).map(|i| format!("common prefix {i:05} and what follows").into_bytes()).collect();
    check_many(&patterns, &planted(&patterns, 1 << 16), 65_536);
}

#[test]
fn short_runs_of_fixed_bytes_have_classes_of_their_own() {
    let mut patterns: Vec<OraclePattern> = [&b"ab"[..], b"abc", b"abcd", b"\0\0", b"x"]
        .iter()
        .map(|p| OraclePattern::literal(p))
        .collect();
    // Two fixed bytes, three, one, and half bytes.
    for text in ["a??b", "ab?c", "a?b?c?ab", "a?abc?b", "??abcd"] {
        let bytes = text.bytes().map(|b| if b == b'?' { (0, 0) } else { (b, 0xFF) }).collect();
        patterns.push(OraclePattern { bytes });
    }
    patterns.push(OraclePattern { bytes: vec![(0x60, 0xF0), (b'b', 0xFF), (b'c', 0xFF)] });
    let mut text: Vec<u8> = b"abcd ab abcabc a?b?c?ab xabcdx aabcab".repeat(20);
    text.extend_from_slice(&[0; 70]);
    check(&patterns, &text);
}

#[test]
fn findings_beyond_the_capacity_are_found_by_a_second_run() {
    // 65,536 findings fit at first, and a million are too many for a device.
    for length in [65_536 + 3, 70_000, 300_000, 1_100_000] {
        let patterns = [vec![0; 4], vec![0; 9]];
        check_many(&patterns, &vec![0; length], 1 << 21);
    }
}

#[test]
fn letters_match_in_either_case_and_in_utf16() {
    let Some(device) = device() else { return };
    let patterns = ["Password", "key", "s3cret"].map(|p| Pattern::literal(p).unwrap()).to_vec();
    let options = Options { ignore_case: true, utf16: true, ..Options::default() };
    let searcher = built(Searcher::builder().options(options), patterns);
    let mut text = b"PASSWORD password kEy {3cret S3CRET ".repeat(50);
    text.extend("KeyPassword".encode_utf16().flat_map(u16::to_le_bytes));
    let expected = searcher.find_all(&text).unwrap();
    assert_eq!(expected.len(), 50 * 4 + 2);
    assert_eq!(found_by(device, &searcher, &text, READ), expected);
}

#[test]
fn regexes_in_a_set_with_literals_are_found_on_the_cpu() {
    let Some(device) = device() else { return };
    let patterns = vec![
        Pattern::literal("needle").unwrap(),
        Pattern::regex("[0-9]+-[a-z]+").unwrap(),
        Pattern::literal("n").unwrap(),
    ];
    let searcher = built(Searcher::builder(), patterns);
    let text = b"a needle 12-ab, another needle 3-needle ".repeat(300);
    let expected = searcher.find_all(&text).unwrap();
    for buffer_bytes in [100, 1000, 65_536] {
        let cut = Cut { buffer_bytes, ..READ };
        assert_eq!(found_by(device, &searcher, &text, cut), expected);
    }
}

#[test]
fn the_timeline_shows_the_work_of_slots() {
    let Some(device) = device() else { return };
    let searcher = searcher(&[OraclePattern::literal(b"needle")]);
    let on = searcher
        .on_devices(std::slice::from_ref(device), 2, &Sample::default(), &false.into())
        .unwrap();
    let text = vec![b'n'; 1 << 20];
    let mut sink = searcher.sink(|_, _| ControlFlow::Continue(()));
    let run = Pipeline::new(&Memory::new("text", &text[..]))
        .access(Access::Read)
        .workers(on.slots())
        .run(&on, &mut sink)
        .unwrap();
    let names: Vec<&str> = run.timeline.agents.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["slot 1", "slot 2"]);
    assert!(run.timeline.has_device());
    let worked = run.timeline.agents.iter().flat_map(|(_, spans)| spans);
    let bytes: u64 = worked.filter(|span| span.stage.is_work()).map(|span| span.bytes).sum();
    assert_eq!(bytes, text.len() as u64);
}

/// A device that fails after some jobs.
struct Failing {
    /// `None` for a device that never works, which needs no driver.
    inner: Option<Box<dyn Driver>>,
    facts: Facts,
    jobs_left: AtomicI64,
}

impl Failing {
    fn lost(&self) -> Error {
        Error::Failed { device: self.facts.name.clone(), what: "the device is lost".to_string() }
    }
}

// SAFETY: `pin` and `collect` are the inner driver's, which keeps the contract. Without an inner
// driver `pin` returns an error, and no step runs, so nothing accesses host memory.
unsafe impl Driver for Failing {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn dialect(&self) -> Dialect {
        Dialect::OpenCl
    }

    fn compile(&self, source: &str, kernels: &[&str]) -> Result<Vec<Raw>> {
        self.inner.as_ref().map_or(Ok(vec![0; kernels.len()]), |i| i.compile(source, kernels))
    }

    fn allocate(&self, bytes: usize) -> Result<Raw> {
        self.inner.as_ref().map_or(Ok(0), |inner| inner.allocate(bytes))
    }

    unsafe fn free(&self, buffer: Raw) {
        // SAFETY: the inner driver made the handle, and the caller keeps its contract, which is the
        // same.
        self.inner.iter().for_each(|inner| unsafe { inner.free(buffer) });
    }

    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        self.inner.as_ref().map_or_else(|| Err(self.lost()), |inner| inner.pin(bytes))
    }

    unsafe fn unpin(&self, start: NonNull<u8>, pinned: Raw) {
        // SAFETY: the inner driver made the handle, and the caller keeps its contract, which is the
        // same.
        self.inner.iter().for_each(|inner| unsafe { inner.unpin(start, pinned) });
    }

    fn open_queue(&self) -> Result<Raw> {
        self.inner.as_ref().map_or(Ok(0), |inner| inner.open_queue())
    }

    unsafe fn close_queue(&self, queue: Raw) {
        // SAFETY: the inner driver made the handle, and the caller keeps its contract, which is the
        // same.
        self.inner.iter().for_each(|inner| unsafe { inner.close_queue(queue) });
    }

    unsafe fn submit(&self, queue: Raw, steps: &[Step<'_>]) -> Result<()> {
        if self.jobs_left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err(self.lost());
        }
        // SAFETY: the inner driver made all handles, and the caller keeps its contract, which is
        // the same.
        self.inner.as_ref().map_or(Ok(()), |inner| unsafe { inner.submit(queue, steps) })
    }

    unsafe fn collect(&self, queue: Raw) -> Result<Times> {
        let inner = self.inner.as_ref();
        // SAFETY: the inner driver made the handle, and the caller keeps its contract, which is the
        // same.
        inner.map_or(Ok(Times::default()), |inner| unsafe { inner.collect(queue) })
    }
}

fn check_failing(inner: Option<Box<dyn Driver>>, jobs: i64) {
    let facts = inner.as_ref().map_or_else(
        || Facts {
            name: "paper".to_string(),
            driver: DriverName::Other,
            version: String::new(),
            kind: Kind::Gpu,
            units: 1,
            memory_bytes: 1 << 30,
            local_bytes: 1 << 16,
            items_max: 64,
            is_unified: false,
        },
        |inner| inner.facts().clone(),
    );
    let device = Device::by(Box::new(Failing { inner, facts, jobs_left: AtomicI64::new(jobs) }));
    let patterns = [OraclePattern::literal(b"lost"), OraclePattern::literal(b"found")];
    let searcher = searcher(&patterns);
    let text = b"lost and found, ".repeat(2000);
    let on = searcher.on_devices(&[device], 3, &Sample::default(), &false.into()).unwrap();
    for workers in [0, 2] {
        let cut = Cut { workers, buffer_bytes: 1000, ..READ };
        assert_eq!(run(&searcher, &on, &text, cut), all(&patterns, &text));
    }
    let lost = on.lost();
    assert!(matches!(&lost[..], [one] if one.contains("the device is lost")), "{lost:?}");
}

/// Uploads before the first chunk: a job for each table.
const TABLE_JOBS: i64 = 6;

#[test]
fn a_device_that_never_works_is_dropped_and_the_findings_are_complete() {
    check_failing(None, TABLE_JOBS);
}

#[test]
fn a_device_lost_in_the_middle_is_dropped_and_the_findings_are_complete() {
    let Some(inner) = quarrier_gpu::drivers(DriverName::OpenCl).into_iter().next() else { return };
    check_failing(Some(inner), TABLE_JOBS + 7);
}
