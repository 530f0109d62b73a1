//! Shared test code: bytes to search, kernels that record what they see, and checks of these
//! records.

use std::io::Write;
use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};
use quarrier_core::Result;
use quarrier_core::pipeline::{Access, Chunk, Emitter, Kernel, Need, Pipeline, Run};
use quarrier_core::region::AsData;
use quarrier_core::source::FileSource;
use tempfile::NamedTempFile;

/// Every way to bring bytes into memory.
pub(crate) const ACCESSES: [Access; 4] =
    [Access::Window, Access::Read, Access::Queue, Access::Uring];

/// The promise of these tests' kernels and sinks: they only compare and count bytes.
pub(crate) fn as_data() -> AsData {
    // SAFETY: these tests make no text of the bytes, and have no unsafe code that reads them.
    unsafe { AsData::promised() }
}

/// Returns bytes without a pattern (xorshift), none of them zero.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8 | 1
    };
    (0..length).map(|_| next()).collect()
}

/// Returns a number below `limit` that looks random but is the same in every run.
pub(crate) fn scatter(index: u64, limit: u64) -> u64 {
    let mixed = (index ^ index >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 29) % limit
}

/// Checks that `rule` holds for `cases` random inputs.
pub(crate) fn for_all<S: Strategy>(cases: u32, inputs: S, rule: impl Fn(S::Value)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let tried = TestRunner::new(config).run(&inputs, |input| {
        rule(input);
        Ok(())
    });
    tried.unwrap_or_else(|failure| panic!("{failure}"));
}

pub(crate) fn temp_file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

pub(crate) fn open_temp(file: &NamedTempFile) -> FileSource {
    FileSource::open(file.path()).unwrap()
}

/// Runs `task` on its own thread and fails if it takes longer than a minute, so that a deadlock
/// fails the test instead of blocking it.
pub(crate) fn without_hanging<T: Send + 'static>(task: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = task();
        let _ = sender.send(());
        result
    });
    if receiver.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("hangs: not done after a minute");
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// One chunk as a kernel saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) index: u64,
    pub(crate) own: Range<u64>,
    pub(crate) shown: Range<u64>,
    /// Whether the chunk showed the expected bytes.
    pub(crate) is_true: bool,
    pub(crate) at_start: bool,
    pub(crate) at_end: bool,
    pub(crate) unreadable: Vec<Range<u64>>,
}

/// Records the chunks, and whether their bytes are those `expected` of the source.
pub(crate) struct Census<'e> {
    pub(crate) expected: &'e [u8],
    pub(crate) need: Need,
}

impl Kernel for Census<'_> {
    type Output = Vec<Seen>;

    fn need(&self) -> Need {
        self.need
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Vec<Seen>>) {
        let shown = chunk.offset..chunk.offset + chunk.data.len() as u64;
        emit.output().push(Seen {
            index: chunk.index,
            own: chunk.offset + chunk.own.start as u64..chunk.offset + chunk.own.end as u64,
            is_true: chunk.data == &self.expected[shown.start as usize..shown.end as usize],
            shown,
            at_start: chunk.at_start,
            at_end: chunk.at_end,
            unreadable: chunk.unreadable.to_vec(),
        });
    }
}

/// Runs a kernel that yields lists and returns all of them, joined in the sink's order.
pub(crate) fn collect<T, K>(pipeline: &Pipeline<'_>, kernel: &K) -> (Result<Run>, Vec<T>)
where
    T: Send,
    K: Kernel<Output = Vec<T>>,
{
    let mut all = Vec::new();
    let pipeline = pipeline.clone().show_changing(as_data());
    let run = pipeline.run(kernel, &mut |_: &Chunk<'_>, part: &mut Vec<T>| all.append(part));
    (run, all)
}

/// Checks the promise to every kernel: chunks come in order, own every position of `range` exactly
/// once, show the right bytes, and as much context as requested.
pub(crate) fn check_census(seen: &[Seen], range: Range<u64>, need: Need) {
    let mut at = range.start;
    for (index, chunk) in seen.iter().enumerate() {
        assert_eq!(chunk.index, index as u64, "chunks are numbered in order");
        assert_eq!(chunk.own.start, at, "chunk {index} begins where the one before it ended");
        assert!(!chunk.own.is_empty(), "chunk {index} owns nothing");
        check_chunk(chunk, &range, need);
        at = chunk.own.end;
    }
    assert_eq!(at, range.end, "the last chunk ends where the range ends");
}

/// Checks a single chunk.
pub(crate) fn check_chunk(chunk: &Seen, range: &Range<u64>, need: Need) {
    let first = chunk.own.start.saturating_sub(need.before_bytes as u64).max(range.start);
    let last = (chunk.own.end + need.after_bytes as u64).min(range.end);
    assert!(chunk.shown.start <= first && chunk.shown.end >= last, "{chunk:?} shows too little");
    assert!(chunk.shown.start >= range.start && chunk.shown.end <= range.end, "{chunk:?}");
    assert!(chunk.is_true, "{chunk:?} shows other bytes than the source has");
    assert_eq!(chunk.at_start, chunk.shown.start == range.start, "{chunk:?}");
    assert_eq!(chunk.at_end, chunk.shown.end == range.end, "{chunk:?}");
}

/// Runs the census over a whole source with the bytes `expected`.
pub(crate) fn check_whole(pipeline: &Pipeline<'_>, expected: &[u8], need: Need) -> Run {
    let (run, seen) = collect(pipeline, &Census { expected, need });
    let run = run.unwrap();
    let length = expected.len() as u64;
    check_census(&seen, 0..length, need);
    assert_eq!((run.bytes, run.hole_bytes, run.position), (length, 0, length));
    assert!(!run.stopped);
    run
}

/// Yields, for every owned position, its offset and the sum of the bytes from `before` bytes before
/// it to `after` bytes after it: a result that does not depend on the cuts.
pub(crate) struct Neighbours {
    pub(crate) before: usize,
    pub(crate) after: usize,
}

impl Neighbours {
    /// Returns the expected results for `data` at offset 0, computed without a pipeline.
    pub(crate) fn oracle(&self, data: &[u8]) -> Vec<(u64, u64)> {
        (0..data.len()).map(|position| (position as u64, self.sum(data, position))).collect()
    }

    fn sum(&self, data: &[u8], position: usize) -> u64 {
        let first = position.saturating_sub(self.before);
        let last = (position + self.after + 1).min(data.len());
        data[first..last].iter().map(|&byte| u64::from(byte)).sum()
    }
}

impl Kernel for Neighbours {
    type Output = Vec<(u64, u64)>;

    fn need(&self) -> Need {
        Need { before_bytes: self.before, after_bytes: self.after, skip_zeros: false }
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Self::Output>) {
        for position in chunk.own.clone() {
            let sum = self.sum(chunk.data, position);
            emit.output().push((chunk.offset + position as u64, sum));
        }
    }
}
